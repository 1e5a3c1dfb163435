"""Assembles the figures of a running crawl from engine, run and probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from gossamer.engine.crawl import Crawl
from gossamer.fetch.names.dns import Resolver
from gossamer.model.exchanges import Volume
from gossamer.model.figures import Figures, Resource, RunState
from gossamer.runtime.hub.run import Run
from gossamer.runtime.stores.store_stats import StoreStats
from gossamer.runtime.watch import vitals
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.telemetry.bound_by import Load, LoadLimits
from gossamer.telemetry.forecast import ForecastLimits, limits_of

SLOWING = frozenset({Resource.CPU, Resource.CONNECTIONS, Resource.DNS, Resource.DISK, Resource.LEDGER})


class MeasuredWorkers(Protocol):
    """The part of the workers that is shown."""

    def running(self) -> int:
        """Return how many workers run."""
        ...

    def volume(self) -> Volume:
        """Return what all workers have compressed."""
        ...


class RunSources(Struct, frozen=True):
    """The sources of figures besides the engine's totals and queues."""

    run: Run
    probe: vitals.StallProbe
    gauges: Gauges
    warnings: WarningLog
    resolver: Resolver
    stores: StoreStats
    workers: MeasuredWorkers


class RunMeasures(Struct, frozen=True):
    """What does not change within a run, and the sources of what does."""

    out: str
    started_at: float
    max_wait_s: float
    memory_ceiling_bytes: int
    sources: RunSources
    load_limits: LoadLimits  # those that do not change
    is_node: bool = False  # of a cluster: then the limit of pages is what it has claimed so far, not the crawl's


class FiguresSource:
    def __init__(self, crawl: Crawl, measures: RunMeasures, now: Callable[[], float]) -> None:
        self._crawl = crawl
        self._measures = measures
        self._now = now
        self._pages_before = 0
        self._fetches_before = 0

    def begin(self) -> None:
        """Record where this run begins: the totals of earlier runs are known."""
        self._pages_before = self._crawl.totals.pages
        self._fetches_before = self._crawl.totals.fetches

    def load(self) -> Load:
        """Return what the crawl is doing now, as far as it may be bound by it. Cheap."""
        sources = self._measures.sources
        frontier = self._crawl.frontier
        run = sources.run
        counts = frontier.counts
        limits = frontier.limits
        is_limited = limits.max_pages is not None and not counts.requisites  # page limits do not apply to these
        pages_left = (limits.max_pages or 0) - counts.pages - counts.pages_in_flight if is_limited else None
        now = self._now()
        due_at = self._crawl.revisits.next_turn_at
        return Load(
            next_due_in_s=None if due_at is None else max(0.0, due_at - now),
            at_s=now - self._measures.started_at,
            state=run.state,
            paused_by=run.pauses.by,
            queued=counts.queued,
            in_flight=frontier.in_flight,
            lookups=sources.resolver.lookups,
            pages_left=pages_left,
            hosts=self._hosts(),
            next_parked=sources.gauges.next_parked,
            next_parked_in_s=sources.gauges.next_parked.until - now if sources.gauges.next_parked else 0.0,
            retried=sources.gauges.retried_urls,
            next_retry=sources.gauges.next_retry,
            next_retry_in_s=sources.gauges.next_retry.at - now if sources.gauges.next_retry else 0.0,
            core_share=sources.gauges.core_share,
            commit_s=run.stats.commit_time.sum_s,
            flush_s=run.stats.flush_time.sum_s + sources.stores.flush_time.sum_s,
            limits=replace(
                self._measures.load_limits, connections=limits.connections, set_connections=run.limits.connections
            ),
        )

    def forecast_limits(self) -> ForecastLimits:
        """Return what may end the crawl before its queue is empty, or slow it down besides its hosts."""
        run = self._measures.sources.run
        gauges = self._measures.sources.gauges
        totals = self._crawl.totals
        limits = self._crawl.frontier.limits
        pages = self._crawl.frontier.counts.pages
        max_time_s = run.limits.max_time_s
        is_slowed = gauges.bound_by is not None and gauges.bound_by.resource in SLOWING
        # What a node has claimed of the pages is not the crawl's limit: it claims more.
        is_limited = limits.max_pages is not None and not self._measures.is_node
        return limits_of(
            totals,
            is_growing=gauges.is_growing,
            pages_left=max(0, (limits.max_pages or 0) - pages) if is_limited else None,
            seconds_left=None if max_time_s is None else max(0.0, max_time_s - run.active_s(self._now())),
            max_fetches_per_s=gauges.rates["10s"].fetches or None if is_slowed else None,
        )

    def _hosts(self) -> dict[str, int]:
        hosts = self._crawl.frontier.view.host_states()
        parked = self._measures.sources.gauges.parked_hosts
        return {**hosts, "waiting": max(0, hosts["waiting"] - parked), "parked": parked}

    def read_live(self) -> Figures:
        """Return the current figures with the histograms, as a client of a running crawl gets them. 0.1 ms."""
        return self._with_times(self.read())

    def read_all(self, finished: str) -> Figures:
        """Return all figures of a run that has ended, and why: a pass over the hosts in memory, and a sort."""
        measures = self._measures
        frontier = self._crawl.frontier
        stats = self._measures.sources.run.stats
        figures = self._with_times(self.read())
        commits = sorted(stats.commit_s)
        return replace(
            figures,
            state=RunState.FINISHED,
            finished=finished,
            bound_by=None,
            forecast=None,
            warnings=[each for each in figures.warnings if not each.is_lasting],
            urls_parked=frontier.view.parked_urls(self._now(), measures.max_wait_s),
            urls_over_budget=figures.urls_queued
            if finished == "budgets"
            else frontier.view.over_budget_urls(self.forecast_limits().pages_per_url),
            commit_p50_ms=_percentile_ms(commits, 0.5),
            commit_p99_ms=_percentile_ms(commits, 0.99),
        )

    def _with_times(self, figures: Figures) -> Figures:
        sources = self._measures.sources
        stats = sources.run.stats
        stores = sources.stores
        volume = sources.workers.volume()
        flush_time = stores.flush_time if stores.flush_time.sum_s else stats.flush_time
        pages = stores.pages or figures.totals.pages - self._pages_before
        return replace(
            figures,
            latency={"dns": sources.resolver.latency.copy(), **stats.times.copy()},
            commit_time=stats.commit_time.copy(),
            flush_time=flush_time.copy(),
            batch_fill=pages / (stores.batches or stats.commits or 1),
            compression_ratio=volume.given_bytes / volume.file_bytes if volume.file_bytes else 0.0,
        )

    def read(self) -> Figures:
        """Return the current figures, without histograms and what follows from them. Cheap."""
        measures = self._measures
        sources = self._measures.sources
        stats = sources.run.stats
        probe = sources.probe
        gauges = sources.gauges
        frontier = self._crawl.frontier
        now = self._now()
        pauses = sources.run.pauses
        return Figures(
            totals=self._crawl.totals.copy(),
            out=measures.out,
            state=sources.run.state,
            max_pages=None if measures.is_node else frontier.limits.max_pages,
            started_at=measures.started_at,
            run_seconds=now - measures.started_at - pauses.operator_s(now),
            paused_seconds=pauses.lasting_s(now),
            pages_before=self._pages_before,
            fetches_before=self._fetches_before,
            urls_queued=frontier.counts.queued - frontier.counts.requisites,
            requisites_queued=frontier.counts.requisites,
            urls_parked=gauges.parked_urls,
            urls_over_budget=gauges.over_budget_urls,
            urls_retried=gauges.retried_urls,
            in_flight=frontier.in_flight,
            hosts=self._hosts(),
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
            worker_deaths=stats.worker_deaths,
            rates=gauges.rates,
            failed_writes=sources.stores.failed_writes,
            workers=sources.workers.running(),
            open_files=gauges.machine.open_files,
            free_bytes=gauges.machine.free_bytes,
            clock_jumps=gauges.clock_jumps,
            core_share=gauges.core_share,
            bound_by=gauges.bound_by,
            forecast=None if pauses or self._crawl.revisits.is_on else gauges.forecast,
            warnings=sources.warnings.active(),
            revisits=self._crawl.revisits.figures(self._crawl.totals.visits, now),
            domain_budgets=frontier.limits.budget_range(),
        )


def _percentile_ms(sorted_s: Sequence[float], share: float) -> float:
    return 1000 * sorted_s[int(len(sorted_s) * share)] if sorted_s else 0.0
