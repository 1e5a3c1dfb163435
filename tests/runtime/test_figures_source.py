from __future__ import annotations

from gossamer.figures import RunState
from gossamer.records import Outcome
from gossamer.runtime.figures_source import FiguresSource, RunMeasures
from gossamer.runtime.hub_stats import HubStats
from gossamer.runtime.vitals import StallProbe
from tests.engine.test_crawl import NOW, Bench


def source(bench: Bench, stats: HubStats) -> FiguresSource:
    measures = RunMeasures(
        out="crawl",
        started_at=NOW,
        max_wait_s=0.0,
        memory_ceiling_bytes=1000,
        stats=stats,
        probe=StallProbe(),
        state=lambda: RunState.PAUSED,
    )
    return FiguresSource(bench.crawl, measures, lambda: bench.now)


def test_figures_show_totals_queue_and_flight_of_the_moment() -> None:
    bench = Bench("http://a.test/0", "http://a.test/1", "http://b.test/0")
    first, _ = bench.past_robots()
    figures = source(bench, HubStats()).read()
    assert (figures.totals.fetches, figures.urls_queued, figures.in_flight) == (2, 3, 2)
    assert figures.hosts["busy"] == 2
    assert (figures.state, figures.finished, figures.run_seconds) == (RunState.PAUSED, "running", 1.0)
    bench.end(first)
    assert figures.totals.fetches == 2, "a snapshot does not change"


def test_at_the_end_parked_urls_and_commit_times_are_known() -> None:
    bench = Bench("http://a.test/0")
    bench.crawl.orders(bench.now)
    bench.crawl.take_resolves()
    bench.crawl.fail_address("a.test", Outcome.DNS_FAILED, "no answer", bench.now)
    stats = HubStats(commits=4, commit_s=[0.004, 0.001, 0.003, 0.002], worker_deaths=1)
    figures = source(bench, stats).read_all("parked")
    assert (figures.state, figures.finished, figures.urls_parked) == (RunState.FINISHED, "parked", 1)
    assert (figures.commits, figures.commit_p50_ms, figures.commit_p99_ms) == (4, 3.0, 4.0)
    assert figures.worker_deaths == 1
