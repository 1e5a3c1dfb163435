"""How late the loop is, and why: a clock that is moved by hand, and a kernel that says what it is told to."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gossamer.runtime.watch.vitals import PROBE_S, CoreWait, StallProbe


class ScriptedWait(CoreWait):
    """A kernel's account that a test writes."""

    waited_s = 0.0

    def open(self) -> None:
        """Begin with nothing."""

    def seconds(self) -> float:
        """Return what the test says."""
        return self.waited_s


@dataclass
class Machine:
    """A loop with one timer and the queue for a core in front of it."""

    wait: ScriptedWait = field(default_factory=ScriptedWait)
    now: float = 1000.0
    looks: int = 0
    due: float = 0.0
    timer: Callable[[], None] | None = None

    def time(self) -> float:
        return self.now

    def call_at(self, due: float, callback: Callable[..., None], *arguments: Any) -> None:
        self.due, self.timer = due, lambda: callback(*arguments)

    def pass_time(self, until: float) -> None:
        """Let the loop run its timer until then, on time."""
        while self.due <= until:
            self.now = max(self.now, self.due)
            self.fire()
        self.now = until

    def fire(self) -> None:
        self.looks += 1
        assert self.timer is not None
        self.timer()

    def stand_still(self, held_s: float, waited_s: float) -> None:
        """Have the loop held until the timer is late by both together, then run it."""
        self.now = self.due + held_s + waited_s
        self.wait.waited_s += waited_s
        self.fire()


def _probe(machine: Machine) -> StallProbe:
    probe = StallProbe(machine.wait)
    probe.start(machine)  # type: ignore[arg-type]
    return probe


def test_a_loop_that_is_on_time_has_neither_stalled_nor_waited() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.pass_time(machine.now + 1.0)
    assert (probe.stall_p99_ms(), probe.core_wait_p99_ms()) == (0.0, 0.0)
    assert 19 <= machine.looks <= 20, "with cores to spare there is a look every 50 ms"


def test_work_that_holds_the_loop_is_a_stall() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.stand_still(held_s=0.030, waited_s=0.0)
    assert probe.stall_p99_ms() == pytest.approx(30)
    assert probe.core_wait_p99_ms() == 0.0


def test_a_wait_for_a_core_is_no_stall() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.stand_still(held_s=0.0, waited_s=0.030)
    assert probe.stall_p99_ms() == pytest.approx(0, abs=1e-6)
    assert probe.core_wait_p99_ms() == pytest.approx(30)


def test_what_is_both_is_distinguished() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.stand_still(held_s=0.012, waited_s=0.020)
    assert probe.stall_p99_ms() == pytest.approx(12)
    assert probe.core_wait_p99_ms() == pytest.approx(20)


def test_one_long_stall_among_many_short_samples_is_shown_as_the_longest() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.stand_still(held_s=12.4, waited_s=0.5)
    machine.pass_time(machine.now + 300 * PROBE_S)
    assert probe.stall_p99_ms() < 1
    assert probe.stall_max_ms() == pytest.approx(12_400)


def test_a_wait_that_made_nothing_late_is_not_counted() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.wait.waited_s += 0.040
    machine.pass_time(machine.due)
    assert (probe.stall_p99_ms(), probe.core_wait_p99_ms()) == (0.0, 0.0)


def test_while_cores_are_scarce_only_a_wait_right_before_excuses_a_stall() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.stand_still(held_s=0.0, waited_s=0.004)  # cores are scarce from here on
    until = machine.now + PROBE_S - 0.006
    machine.wait.waited_s += 0.025  # waited early in the 50 ms, and in time again
    machine.pass_time(until)
    assert machine.looks > 5
    while machine.due < until + 0.005:  # up to the look before the timer is due
        machine.pass_time(machine.due)
    machine.stand_still(held_s=0.015, waited_s=0.0)
    assert probe.stall_p99_ms() == pytest.approx(15)


def test_a_step_that_comes_late_is_not_taken_for_the_timer() -> None:
    machine = Machine()
    probe = _probe(machine)
    machine.stand_still(held_s=0.0, waited_s=0.004)
    machine.stand_still(held_s=0.020, waited_s=0.0)  # a step, due long before the timer
    assert probe.stall_p99_ms() == pytest.approx(0, abs=1e-6)


@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="the kernel does not tell")
def test_the_kernel_is_asked_about_the_thread_that_begins() -> None:
    looks: list[float] = []

    def look() -> None:
        wait = CoreWait()
        wait.open()
        looks.append(wait.seconds())
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            looks.append(int(file.read().split()[1]) / 1e9)
        looks.append(wait.seconds())
        wait.close()
        looks.append(wait.seconds())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    *open_looks, closed_look = looks
    assert open_looks == sorted(open_looks)
    assert closed_look == 0.0


def test_if_the_kernel_does_not_tell_all_delay_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os, "open", refuse)
    machine = Machine()
    probe = StallProbe()
    probe.start(machine)  # type: ignore[arg-type]
    machine.stand_still(held_s=0.010, waited_s=0.010)
    assert probe.stall_p99_ms() == pytest.approx(20)
    assert probe.core_wait_p99_ms() == 0.0
    probe.stop()
