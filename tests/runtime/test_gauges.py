"""Gauges are differences between moments: over ten seconds, a minute and the run."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.model.figures import Figures, RunState, Totals
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.machine import Machine


def look(gauges: Gauges, second: float, machine: Machine | None = None, **counts: int) -> None:
    totals = replace(Totals(), **counts)
    gauges.update(Figures(totals=totals, out="crawl", run_seconds=second), machine or Machine(1, 100, 1000))


def test_rates_cover_ten_seconds_a_minute_and_the_run() -> None:
    gauges = Gauges()
    for second in range(101):
        pages = 10 * min(second, 80) + 100 * max(0, second - 80)
        look(gauges, float(second), pages=pages, fetches=2 * pages, errors=second, bytes=1000 * second)
    assert gauges.rates["10s"].pages == 100.0
    assert gauges.rates["1m"].pages == (40 * 10 + 20 * 100) / 60
    assert gauges.rates["run"].pages == 28.0
    assert gauges.rates["10s"].fetches == 200.0
    assert (gauges.rates["1m"].errors, gauges.rates["run"].bytes) == (1.0, 1000.0)


def test_a_paused_crawl_has_no_rate_and_begins_anew_afterwards() -> None:
    gauges = Gauges()
    for second in range(21):
        look(gauges, float(second), pages=10 * second)
    for _ in range(500):  # its time stands still
        machine = Machine(1, 100, 1000, hub_cpu_s=50.0)
        paused = Figures(totals=Totals(pages=200), out="crawl", run_seconds=20.0, state=RunState.PAUSED)
        gauges.update(paused, machine)
    assert (gauges.rates["10s"].pages, gauges.rates["run"].pages, gauges.core_share) == (0.0, 10.0, {})
    for second in range(21, 24):
        look(gauges, float(second), Machine(1, 100, 1000, hub_cpu_s=50.0), pages=10 * second)
    assert (gauges.rates["10s"].pages, gauges.core_share) == (10.0, {"hub": 0.0})


def test_a_crawl_grows_while_more_urls_are_found_than_fetched() -> None:
    gauges = Gauges()
    seen = []
    for second in range(200):
        known = 100 + 20 * min(second, 50)  # after 50 s everything is found
        look(gauges, float(second), fetches=5 * second, urls_seen=known)
        seen.append(gauges.is_growing)
    assert seen[0] is False, "one moment shows nothing"
    assert all(seen[1:51])
    assert not any(seen[110:])


def test_a_crawl_that_has_just_begun_has_no_rate() -> None:
    gauges = Gauges()
    look(gauges, 0.0, pages=70)
    assert gauges.rates["10s"].pages == 0.0


def test_the_busiest_worker_is_shown_and_one_that_died_is_not() -> None:
    gauges = Gauges()
    for second, of_each in ((0.0, {1: 5.0, 2: 9.0}), (10.0, {1: 14.0, 3: 50.0})):
        look(gauges, second, Machine(1, 100, 1000, hub_cpu_s=0.3 * second, worker_cpu_s=of_each))
    assert gauges.core_share == {"hub": 0.3, "worker": 0.9}


def test_a_clock_that_is_set_is_a_jump_and_one_that_drifts_is_not() -> None:
    gauges = Gauges()
    for second, ahead_s in enumerate((1000.0, 1000.1, 1004.9, 1010.1, 1010.1, 400.0)):
        look(gauges, float(second), Machine(1, 100, 1000, wall_ahead_s=ahead_s))
    assert (gauges.clock_jumps, round(gauges.jump_s)) == (2, -610)
