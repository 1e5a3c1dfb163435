"""Assembles the figures of a running crawl from engine, hub and probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from gossamer.engine.crawl import Crawl
from gossamer.figures import RUNNING, Figures, RunState
from gossamer.runtime import vitals
from gossamer.runtime.hub_stats import HubStats


class RunMeasures(Struct, frozen=True):
    """The sources of figures besides the engine's totals and queues."""

    out: str
    started_at: float
    max_wait_s: float
    memory_ceiling_bytes: int
    stats: HubStats
    probe: vitals.StallProbe
    state: Callable[[], RunState]
    is_node: bool = False  # of a cluster: then the limit of pages is what it has claimed so far, not the crawl's


class FiguresSource:
    """The figures of one run, at any moment of it."""

    def __init__(self, crawl: Crawl, measures: RunMeasures, now: Callable[[], float]) -> None:
        self._crawl = crawl
        self._measures = measures
        self._now = now
        self._pages_before = 0

    def begin(self) -> None:
        """Record where this run begins: the totals of earlier runs are known."""
        self._pages_before = self._crawl.totals.pages

    def read(self) -> Figures:
        """Return the current figures, without what `read_all` adds. Cheap."""
        return self._read(self._measures.state())

    def read_all(self, finished: str = RUNNING) -> Figures:
        """Return the figures with parked URLs and commit times: a pass over the hosts in memory, and a sort.

        `finished` is why the crawl ended, at its end.
        """
        state = self._measures.state() if finished == RUNNING else RunState.FINISHED
        return self._read(state, finished, is_whole=True)

    def _read(self, state: RunState, finished: str = RUNNING, *, is_whole: bool = False) -> Figures:
        measures, stats, probe = self._measures, self._measures.stats, self._measures.probe
        frontier, now = self._crawl.frontier, self._now()
        commits = sorted(stats.commit_s) if is_whole else ()
        return Figures(
            totals=self._crawl.totals.copy(),
            out=measures.out,
            state=state,
            finished=finished,
            max_pages=None if measures.is_node else frontier.limits.max_pages,
            run_seconds=now - measures.started_at,
            pages_before=self._pages_before,
            urls_queued=frontier.counts.queued,
            urls_parked=frontier.view.parked_urls(now, measures.max_wait_s) if is_whole else 0,
            in_flight=frontier.in_flight,
            hosts=frontier.view.host_states(),
            worker_cpu_seconds=stats.worker_cpu_s,
            crawl_cpu_seconds=stats.crawl_cpu_s,
            private_bytes=probe.private_bytes,
            peak_private_bytes=probe.peak_private,
            peak_rss_bytes=vitals.peak_rss_bytes(),
            memory_ceiling_bytes=measures.memory_ceiling_bytes,
            loop_stall_p99_ms=max(stats.worker_stall_p99_ms, probe.stall_p99_ms()),
            loop_stall_max_ms=max(stats.worker_stall_max_ms, probe.stall_max_ms()),
            core_wait_p99_ms=max(stats.worker_core_wait_p99_ms, probe.core_wait_p99_ms()),
            commits=stats.commits,
            commit_p50_ms=_percentile_ms(commits, 0.5),
            commit_p99_ms=_percentile_ms(commits, 0.99),
            worker_deaths=stats.worker_deaths,
        )


def _percentile_ms(sorted_s: Sequence[float], share: float) -> float:
    return 1000 * sorted_s[int(len(sorted_s) * share)] if sorted_s else 0.0
