"""Results are reviewed at the same time, and completed in the order of arrival."""

from __future__ import annotations

import asyncio

from gossamer.model.errors import GossamerError
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.hub.reviewing import ReviewedResults
from gossamer.runtime.watch.crash import Crash


class Recorder:
    """Records what reaches the hub."""

    def __init__(self) -> None:
        self.results: list[tuple[int, Outcome]] = []

    def on_result(self, result: Result) -> None:
        self.results.append((result.task_id, result.outcome))

    def on_sent(self, task_id: int, sent_at: float) -> None: ...

    def on_failure(self, error: GossamerError) -> None: ...

    def on_crash(self, crash: Crash) -> None: ...

    def on_lost(self, number: int, cause: str) -> None: ...


def _task(number: int) -> FetchTask | None:
    if number == 99:
        return None
    return FetchTask(number, FetchKind.PAGE, "http://h.test/", b"", "h.test", (), 0, 0, 0, 0.0)


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_result_waits_for_those_before_it() -> None:
    async def run() -> None:
        hub, begun = Recorder(), []
        decided = {number: asyncio.Event() for number in (1, 2, 3)}

        async def review(task: FetchTask, result: Result) -> bool:
            begun.append(task.id)
            await decided[result.task_id].wait()
            return result.task_id != 2

        results = ReviewedResults(hub, _task, review)
        for number in (1, 2, 3):
            results.on_result(Result(number, Outcome.OK))
        decided[3].set()
        await _settle()
        assert (begun, hub.results) == ([1, 2, 3], [])
        decided[1].set()
        await _settle()
        assert hub.results == [(1, Outcome.OK)]
        decided[2].set()
        await _settle()
        # What could not be decided returns to the queue.
        assert hub.results == [(1, Outcome.OK), (2, Outcome.WORKER_LOST), (3, Outcome.OK)]
        results.on_result(Result(3, Outcome.OK))
        await _settle()
        assert len(hub.results) == 4

    asyncio.run(run())


def test_a_result_whose_task_is_gone_is_passed_on() -> None:
    async def run() -> None:
        async def review(task: FetchTask, result: Result) -> bool:
            raise AssertionError((task, result))

        hub = Recorder()
        ReviewedResults(hub, _task, review).on_result(Result(99, Outcome.OK))
        assert hub.results == [(99, Outcome.OK)]

    asyncio.run(run())
