from __future__ import annotations

from pathlib import Path

from gossamer.engine.event_emitter import EventEmitter
from gossamer.fetch.names.dns import Resolver
from gossamer.model.figures import Figures, RunState, Totals
from gossamer.model.records import Outcome
from gossamer.ports.page_sink import Volume
from gossamer.runtime.hub.config import HubLimits
from gossamer.runtime.hub.run import Run
from gossamer.runtime.hub.stats import HubStats
from gossamer.runtime.stores.store_stats import StoreStats
from gossamer.runtime.watch.crash import CrashFile
from gossamer.runtime.watch.figures_source import FiguresSource, RunMeasures, RunSources
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.machine import Machine
from gossamer.runtime.watch.vitals import StallProbe
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.telemetry.bound_by import LoadLimits
from tests.engine.test_crawl import NOW, Bench


class TwoWorkers:
    @staticmethod
    def running() -> int:
        return 2

    @staticmethod
    def volume() -> Volume:
        return Volume(given_bytes=5000, file_bytes=1000)


class Sources:
    """The sources of the figures of a crawl that does not run."""

    def __init__(self, bench: Bench, stats: HubStats | None = None) -> None:
        now = lambda: bench.now  # noqa: E731
        self.gauges, self.stores = Gauges(), StoreStats()
        self.warnings = WarningLog(EventEmitter(lambda _: None, 0.0), CrashFile(Path("crawl")), now)
        self.stats = stats or HubStats()
        parts = self.gauges, self.warnings, Resolver(now), self.stores, TwoWorkers()
        run = Run(HubLimits(max_time_s=100.0))
        run.stats = self.stats
        run.begin(lambda *_: None, lambda: None, NOW)
        sources = RunSources(run, StallProbe(), *parts)
        measures = RunMeasures(
            out="crawl",
            started_at=NOW,
            max_wait_s=0.0,
            memory_ceiling_bytes=1000,
            sources=sources,
            load_limits=LoadLimits(),
        )
        self.figures = FiguresSource(bench.crawl, measures, now)


def test_figures_show_totals_queue_and_flight_of_the_moment() -> None:
    bench = Bench("http://a.test/0", "http://a.test/1", "http://b.test/0")
    first, _ = bench.past_robots()
    figures = Sources(bench).figures.read()
    assert (figures.totals.fetches, figures.urls_queued, figures.in_flight) == (2, 3, 2)
    assert figures.hosts["busy"] == 2
    assert (figures.state, figures.finished, figures.run_seconds) == (RunState.RUNNING, "running", 1.0)
    bench.end(first)
    assert figures.totals.fetches == 2, "a snapshot does not change"


def test_at_the_end_parked_urls_and_commit_times_are_known() -> None:
    bench = Bench("http://a.test/0")
    bench.crawl.tasks(bench.now)
    bench.crawl.take_resolves()
    bench.crawl.fail_address("a.test", Outcome.DNS_FAILED, "no answer", bench.now)
    stats = HubStats(commits=4, commit_s=[0.004, 0.001, 0.003, 0.002], worker_deaths=1)
    figures = Sources(bench, stats).figures.read_all("parked")
    assert (figures.state, figures.finished, figures.urls_parked) == (RunState.FINISHED, "parked", 1)
    assert (figures.commits, figures.commit_p50_ms, figures.commit_p99_ms) == (4, 3.0, 4.0)
    assert figures.worker_deaths == 1


def test_the_live_figures_have_histograms_that_do_not_change() -> None:
    bench = Bench("http://a.test/0")
    sources = Sources(bench)
    assert sources.figures.read().latency == {}
    sources.stats.add_commit(0.02)
    sources.stats.flush_time.add(0.01)
    figures = sources.figures.read_live()
    sources.stats.add_commit(0.02)
    assert list(figures.latency) == ["dns", "connect", "tls", "first_byte", "body", "total"]
    assert (figures.commit_time.count, figures.commit_time.sum_s) == (1, 0.02)
    assert (figures.flush_time.count, figures.compression_ratio, figures.workers) == (1, 5.0, 2)


def test_the_writes_of_a_store_are_counted_instead_of_the_archives() -> None:
    sources = Sources(Bench("http://a.test/0"))
    sources.stats.flush_time.add(0.01)
    sources.stores.flush_time.add(0.5)
    sources.stores.pages, sources.stores.batches, sources.stores.failed_writes = 90, 2, 3
    figures = sources.figures.read_live()
    assert (figures.flush_time.sum_s, figures.batch_fill, figures.failed_writes) == (0.5, 45.0, 3)


def test_gauges_and_warnings_are_part_of_the_figures() -> None:
    bench = Bench("http://a.test/0")
    sources = Sources(bench)
    for second in (0, 1, 2):
        seen = Figures(totals=Totals(pages=10 * second), out="crawl", run_seconds=float(second))
        sources.gauges.update(seen, Machine(7, 100, 5000, hub_cpu_s=0.5 * second))
    sources.warnings.begin("disk", "it is nearly full")
    sources.warnings.warn("worker_died", "worker 1 was killed by SIGKILL")
    figures = sources.figures.read()
    assert (figures.open_files, figures.free_bytes, figures.core_share) == (7, 5000, {"hub": 0.5})
    assert {name: rate.pages for name, rate in figures.rates.items()} == {"10s": 10.0, "1m": 10.0, "run": 10.0}
    assert [(each.rule, each.is_lasting) for each in figures.warnings] == [("disk", True), ("worker_died", False)]
    assert [each.rule for each in sources.figures.read_all("exhausted").warnings] == ["worker_died"], "nothing lasts"
    sources.warnings.end("disk")
    assert [each.rule for each in sources.figures.read().warnings] == ["worker_died"]
