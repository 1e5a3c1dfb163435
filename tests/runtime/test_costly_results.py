"""Results that take long are completed one at a time, with pauses in which others go on."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from gossamer.model.records import Outcome, Result
from gossamer.runtime.hub.costly_results import MAX_SLOTS, PAUSE, CostlyResults

from .virtual_time import run_virtually

TAKES_S = 0.05
SLICES = 5


class Clock:
    """A clock that reading a result moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.completed: list[tuple[int, float]] = []
        self._slices = 0

    def read_on(self, _: Result) -> bool:
        self._slices += 1
        self.now += TAKES_S / SLICES
        return self._slices % SLICES == 0

    def complete(self, result: Result) -> None:
        self.completed.append((result.task_id, asyncio.get_running_loop().time()))

    def __call__(self) -> float:
        return self.now


def completed(count: int, later: int = 0) -> list[tuple[int, float]]:
    """Return which results were completed when, of some that come at once and some that come later."""
    clock = Clock()

    async def main() -> None:
        costly = CostlyResults(clock.read_on, clock.complete, clock)
        for number in range(count):
            costly.add(Result(number, Outcome.OK))
        await asyncio.sleep(10.0)
        for number in range(count, count + later):
            costly.add(Result(number, Outcome.OK))
        await asyncio.sleep(10.0)

    run_virtually(main())
    return clock.completed


def test_a_single_one_does_not_wait() -> None:
    (only,) = completed(1)
    assert only[1] < 2 * TAKES_S


def test_all_are_completed_in_order_with_a_pause_after_each() -> None:
    ended = completed(5)
    assert [number for number, _ in ended] == [0, 1, 2, 3, 4]
    pauses = [later[1] - earlier[1] for earlier, later in pairwise(ended)]
    assert min(pauses) >= PAUSE * TAKES_S - 0.001


def test_those_that_come_later_begin_at_once() -> None:
    ended = completed(2, later=2)
    assert [number for number, _ in ended] == [0, 1, 2, 3]
    assert ended[2][1] - 10.0 < TAKES_S + 0.01


def test_those_that_wait_leave_their_connections_to_others() -> None:
    clock, slots = Clock(), list[int]()

    async def main() -> None:
        costly = CostlyResults(clock.read_on, clock.complete, clock)
        for number in range(MAX_SLOTS + 10):
            costly.add(Result(number, Outcome.OK))
            slots.append(costly.free_slots)
        await asyncio.sleep(100.0)
        slots.append(costly.free_slots)

    run_virtually(main())
    assert slots[:3] == [1, 2, 3]
    assert slots[-2:] == [MAX_SLOTS, 0]


def test_at_the_end_those_that_are_left_are_completed_at_once() -> None:
    clock = Clock()

    async def main() -> None:
        costly = CostlyResults(clock.read_on, clock.complete, clock)
        for number in range(3):
            costly.add(Result(number, Outcome.OK))
        await asyncio.sleep(1.2 * PAUSE * TAKES_S)
        assert len(clock.completed) == 1
        began = asyncio.get_running_loop().time()
        await costly.finish()
        assert len(clock.completed) == 3
        assert asyncio.get_running_loop().time() - began <= PAUSE * TAKES_S / SLICES + 0.001, "without pauses"

    run_virtually(main())
    assert [number for number, _ in clock.completed] == [0, 1, 2]


def test_an_error_reaches_the_handler_of_the_loop() -> None:
    clock, errors = Clock(), list[object]()

    def fail(_: Result) -> None:
        raise ValueError("planted")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
        CostlyResults(clock.read_on, fail, clock).add(Result(1, Outcome.OK))
        await asyncio.sleep(10.0)

    run_virtually(main())
    assert [str(error) for error in errors] == ["planted"]
