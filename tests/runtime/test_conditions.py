"""Conditions that the operator must know of: each is a warning when it begins, once, and again after it has ended."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gossamer.core.politeness.pace import Pace, PaceRule
from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.events import Event, EventName, masked_text
from gossamer.model.figures import Figures, RunState, Totals
from gossamer.runtime.watch.conditions import Conditions
from gossamer.runtime.watch.crash import CrashFile
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.machine import Machine
from gossamer.runtime.watch.vitals import StallProbe
from gossamer.runtime.watch.warning_log import WarningLog

WELL = Machine(open_files=50, max_files=1000, free_bytes=10**11)
BUSY = Figures(totals=Totals(), out="crawl", urls_queued=10_000, in_flight=20, hosts={"ready": 5})


class Watch:
    """Conditions, and everything that they report."""

    def __init__(self, folder: Path, pace: Pace | None = None) -> None:
        self.events: list[Event] = []
        self.lines: list[str] = []
        self.second = 0
        emitter = EventEmitter(self.events.append, 0.0)
        self.warnings = WarningLog(emitter, CrashFile(folder), lambda: float(self.second), self.lines.append)
        self.gauges = Gauges()
        pace = pace or Pace(1.0, 1)
        self.conditions = Conditions(self.warnings, self.gauges, connections=100, pace=pace)

    def passes(self, seconds: int, machine: Machine = WELL, **changes: Any) -> None:
        """Look once per second; by default a crawl in which everything is well."""
        for _ in range(seconds):
            self.second += 1
            totals = changes.get("totals", self._totals(10 * self.second))
            figures = replace(BUSY, **{**changes, "totals": totals, "run_seconds": float(self.second)})
            self.gauges.update(figures, machine)
            self.conditions.look(figures, machine)

    @staticmethod
    def _totals(number: int) -> Totals:
        return Totals(fetches=number, pages=number, urls_seen=number)

    def rules(self) -> list[str]:
        """Return the names of the warnings so far; each is an event and a line on stderr."""
        assert all(event.event is EventName.WARNING for event in self.events)
        assert [event.reason for event in self.events] == self.lines
        return [event.rule for event in self.events]


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path)


def test_a_crawl_in_which_all_is_well_has_no_warnings(watch: Watch) -> None:
    watch.passes(300)
    assert watch.rules() == []


@pytest.mark.parametrize(
    ("rule", "trouble", "says"),
    [
        ("frontier_starving", {"urls_queued": 7, "in_flight": 2}, "7 URLs are queued for 100 connections"),
        ("stalled", {"totals": Totals(fetches=3), "in_flight": 4}, "no request has ended for 60 s; in flight: 4"),
        ("open_files", {"machine": Machine(950, 1000, 10**11)}, "950 of 1,000 files are open"),
        ("disk", {"machine": Machine(50, 1000, 10**8)}, "100.0 MB are free"),
        (
            "memory",
            {"private_bytes": 950, "memory_ceiling_bytes": 1000},
            "950 B of memory are in use, near the ceiling",
        ),
    ],
)
def test_a_condition_is_reported_once_until_it_has_ended(
    watch: Watch, rule: str, trouble: dict[str, Any], says: str
) -> None:
    watch.passes(5)
    watch.passes(100, **trouble)
    assert watch.rules() == [rule]
    assert says in watch.lines[0]
    watch.passes(5)
    assert watch.rules() == [rule]
    watch.passes(100, **trouble)
    assert watch.rules() == [rule, rule]


def test_errors_over_5_percent_of_the_last_fetches_are_reported_once(watch: Watch) -> None:
    def fetch(seconds: int, errors_per_second: int) -> None:
        for _ in range(seconds):
            totals.fetches += 20
            totals.errors += errors_per_second
            watch.passes(1, totals=replace(totals))

    totals = Totals()
    fetch(100, 1)  # exactly 5 %
    assert watch.rules() == []
    fetch(20, 2)
    assert watch.rules() == ["error_rate"]
    assert watch.lines == ["6.0 % of the last 100 fetches were errors; 'gossamer report' says which"]
    for _ in range(5):
        fetch(50, 0)
        fetch(20, 2)
    assert watch.rules() == ["error_rate"], "it has not ended meanwhile"
    fetch(100, 0)
    fetch(20, 2)
    assert watch.rules() == ["error_rate", "error_rate"]


@pytest.mark.parametrize("share", [0.02, 0.03, 0.05, 0.07])
@pytest.mark.parametrize("per_second", [1, 20])
def test_a_steady_share_of_errors_is_one_warning_at_most(watch: Watch, share: float, per_second: int) -> None:
    chance = random.Random(1)
    totals = Totals()
    for _ in range(40_000 // per_second if per_second > 1 else 8_000):
        totals.fetches += per_second
        totals.errors += sum(chance.random() < share for _ in range(per_second))
        watch.passes(1, totals=replace(totals))
    assert watch.rules().count("error_rate") <= 1


def test_few_fetches_are_not_judged(watch: Watch) -> None:
    watch.passes(30, totals=Totals(fetches=99, errors=99))
    assert watch.rules() == []


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPING])
def test_a_crawl_that_is_paused_or_stops_neither_starves_nor_stalls(watch: Watch, state: RunState) -> None:
    watch.passes(200, totals=Totals(), urls_queued=0, in_flight=1, state=state)
    assert watch.rules() == []


def test_a_short_queue_with_busy_connections_does_not_starve(watch: Watch) -> None:
    watch.passes(100, urls_queued=7, in_flight=10)
    assert watch.rules() == []


def test_a_condition_that_has_hardly_ended_has_not_ended(watch: Watch) -> None:
    for _ in range(3):
        watch.passes(5, machine=Machine(950, 1000, 499_000_000))
        watch.passes(5, machine=Machine(850, 1000, 501_000_000))
    assert sorted(watch.rules()) == ["disk", "open_files"]


def test_a_crawl_near_its_goal_does_not_starve(watch: Watch) -> None:
    watch.passes(100, max_pages=100, totals=Totals(pages=95), urls_queued=3, in_flight=0, hosts={})
    assert watch.rules() == []


def test_a_crawl_that_is_nearly_done_does_not_starve(watch: Watch) -> None:
    for second in range(300):  # a URL is fetched every second, and the last pages name few new ones
        totals = Totals(fetches=1000 + second, pages=1000 + second, urls_seen=1300 + second // 10)
        watch.passes(1, totals=totals, urls_queued=300 - second, in_flight=1)
    assert watch.rules() == []


def test_a_crawl_that_finds_as_few_urls_as_it_fetches_starves(watch: Watch) -> None:
    for second in range(60):
        totals = Totals(fetches=1000 + second, pages=1000 + second, urls_seen=1007 + second)
        watch.passes(1, totals=totals, urls_queued=7, in_flight=1)
    assert watch.rules() == ["frontier_starving"]


def test_a_crawl_that_waits_politely_does_not_stall(watch: Watch) -> None:
    watch.passes(200, totals=Totals(fetches=3), in_flight=0, hosts={"waiting": 9})
    assert watch.rules() == []


def test_memory_that_is_short_for_a_moment_is_not_reported(watch: Watch) -> None:
    for _ in range(10):
        watch.passes(8, private_bytes=990, memory_ceiling_bytes=1000)
        watch.passes(1, private_bytes=890, memory_ceiling_bytes=1000)
    assert watch.rules() == []


def test_what_lasts_is_shown_with_its_beginning_and_its_value_of_now(watch: Watch) -> None:
    watch.passes(5)
    watch.passes(3, machine=Machine(50, 1000, 4 * 10**8))
    watch.passes(3, machine=Machine(50, 1000, 10**8))
    (active,) = watch.warnings.active()
    assert (active.rule, active.since, active.is_lasting) == ("disk", 6.0, True)
    assert "100.0 MB are free" in active.text
    assert "400.0 MB are free" in watch.lines[0]
    watch.passes(3)
    assert watch.warnings.active() == []


def test_what_is_masked_in_events_is_masked_wherever_a_warning_is_shown(tmp_path: Path) -> None:
    lines: list[str] = []
    emitter = EventEmitter(lambda _: None, 0.0)
    warnings = WarningLog(emitter, CrashFile(tmp_path), lambda: 0.0, lines.append, masked=masked_text)
    warnings.warn("deadly_page", "http://a.test/?token=hush died")
    warnings.begin("stalled", "http://a.test/?token=hush waits")
    shown = [*lines, *(each.text for each in warnings.active())]
    assert len(shown) == 4
    assert not any("hush" in text for text in shown)


def test_the_last_things_that_happened_once_are_shown(watch: Watch) -> None:
    for number in range(30):
        watch.warnings.warn("worker_died", f"worker {number}")
    assert [each.text for each in watch.warnings.active()] == [f"worker {number}" for number in range(10, 30)]


# -- the event loop, files and the clock -----------------------------------------------------------


def test_a_loop_that_is_blocked_for_over_a_second_is_reported_for_a_minute(watch: Watch) -> None:
    watch.passes(5, machine=replace(WELL, stall_s=0.99))
    assert watch.rules() == []
    watch.passes(1, machine=replace(WELL, stall_s=1.4))
    assert watch.rules() == ["loop_stalled"]
    assert "blocked for 1.4 s in the last minute" in watch.lines[0]
    watch.passes(59)
    assert [each.rule for each in watch.warnings.active()] == ["loop_stalled"]
    watch.passes(5)
    assert watch.warnings.active() == []
    watch.passes(1, machine=replace(WELL, stall_s=2.0))
    assert watch.rules() == ["loop_stalled"] * 2


def test_a_real_stall_is_measured(watch: Watch, tmp_path: Path) -> None:
    async def main() -> None:
        probe = StallProbe()
        probe.start()
        await asyncio.sleep(0.1)
        time.sleep(1.3)
        await asyncio.sleep(0.1)
        watch.passes(1, machine=Machine.measured(tmp_path, [], probe.take_longest_s()))
        await asyncio.sleep(0.1)
        assert probe.take_longest_s() < 1.0, "it is reported once"
        probe.stop()

    asyncio.run(main())
    assert watch.rules() == ["loop_stalled"]


def test_files_that_are_really_open_are_reported(watch: Watch, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 1
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
        watch.passes(1, machine=Machine.measured(tmp_path, []))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert watch.rules() == ["open_files"]
    watch.passes(1, machine=Machine.measured(tmp_path, []))
    assert watch.warnings.active() == []


@pytest.mark.parametrize(("ahead_s", "jumps"), [((1000.0, 1005.5), ["+6 s"]), ((1000.0, 400.0), ["-600 s"])])
def test_a_clock_that_jumps_is_reported_each_time(watch: Watch, ahead_s: tuple[float, float], jumps: list[str]) -> None:
    for each in ahead_s:
        watch.passes(5, machine=replace(WELL, wall_ahead_s=each))
    assert watch.rules() == ["clock_jumped"] * len(jumps)
    assert all(f"jumped by {jump}" in line for jump, line in zip(jumps, watch.lines, strict=True))


def test_a_clock_that_is_corrected_slowly_has_not_jumped(watch: Watch) -> None:
    for second in range(60):
        watch.passes(1, machine=replace(WELL, wall_ahead_s=1000.0 + 0.5 * second))
    assert watch.rules() == []


# -- pace -------------------------------------------------------------------------------------------


def test_two_requests_that_are_too_close_are_reported(watch: Watch) -> None:
    for at in (0.0, 1.0, 2.0):
        watch.conditions.check_request("a.test", at)
        watch.conditions.check_request("b.test", at + 0.1)
    watch.passes(1)
    assert watch.rules() == []
    watch.conditions.check_request("a.test", 2.5)
    watch.passes(1)
    assert watch.rules() == ["pace_exceeded"]
    assert "two requests to a.test within 0.500 s; its delay is 1 s" in watch.lines[0]
    watch.conditions.check_request("a.test", 2.6)
    watch.passes(70)
    assert watch.rules() == ["pace_exceeded"]
    watch.conditions.check_request("a.test", 2.7)
    watch.passes(1)
    assert watch.rules() == ["pace_exceeded"] * 2


def test_results_may_come_in_any_order(watch: Watch) -> None:
    for at in (0.0, 3.0, 1.0, 2.0, 4.0):
        watch.conditions.check_request("a.test", at)
    watch.passes(1)
    assert watch.rules() == []


def test_each_host_has_its_own_delay(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Pace(1.0, 1, [PaceRule("quick.test", 0.1), PaceRule("slow.test", 5.0)]))
    for host in ("quick.test", "slow.test"):
        watch.conditions.check_request(host, 0.0)
        watch.conditions.check_request(host, 1.0)
    watch.passes(1)
    assert "slow.test" in watch.lines[0]
    assert len(watch.lines) == 1


def test_the_machine_is_measured(tmp_path: Path) -> None:
    machine = Machine.measured(tmp_path, [1 << 22])
    assert machine.open_files > 2
    assert machine.max_files >= machine.open_files
    assert machine.free_bytes > 0


def own_memory() -> int:
    """Return the bytes that the program's own code has allocated: threads of a test runner allocate, too."""
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/gossamer/*")])
    return sum(trace.size for trace in snapshot.traces)


def test_a_pause_of_hours_takes_no_memory(watch: Watch) -> None:
    watch.passes(50)
    still = Totals(fetches=500, pages=500)
    watch.passes(200, totals=still, state=RunState.PAUSED)
    tracemalloc.start()
    try:
        before = own_memory()
        watch.passes(3600, totals=still, state=RunState.PAUSED)
        after = own_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000
