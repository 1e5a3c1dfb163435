"""The progress of a crawl, and what it waits for.

From the figures of the process that runs it, if that answers; else from committed state, in one pass over the hosts.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gossamer.model.events import Event, EventName
from gossamer.model.figures import (
    ActiveWarning,
    BoundBy,
    Figures,
    Forecast,
    RequisiteCounts,
    RevisitFigures,
    RunState,
    Throughput,
    VisitCounts,
    requisite_counts,
    visit_counts,
)
from gossamer.model.records import HostRecord
from gossamer.reading.folder import CrawlReader
from gossamer.reading.host_states import OVER_BUDGET, HostTally
from gossamer.telemetry.figure_list import Place, labelled, unknown
from gossamer.telemetry.summary import cuts_of
from gossamer.telemetry.text import count, duration, plural, rounded

_TAIL_BYTES = 1 << 16
# States of hosts that only the process of a crawl knows,
_LIVE_STATES = ("ready", "waiting", "parked", "busy", "at_limit", "over_budget")


_BETWEEN = "its own files: report and index at the end, the ledger at the start"


class CrawlStatus(Struct, kw_only=True):
    """The status of a crawl at one time. `hosts` counts them by state, each once.

    Those at their limit wait for others at their address or domain.
    """

    out: str
    is_running: bool
    owner: int | None
    finished: str
    state: RunState
    pages: int
    max_pages: int | None
    pages_per_second: float | None  # None: `unknown` says why; like the share of errors
    fetches: int
    errors: int
    error_rate: float | None
    bytes: int
    seconds: float
    runs: int
    unique_domains: int
    urls_seen: int
    urls_queued: int
    urls_over_budget: int  # of those queued: their host or domain has as many pages as it may
    urls_retried: int  # of those queued: they wait to be tried again; known of a crawl that runs
    urls_parked: int  # of those queued, at hosts that are parked for longer than `max_wait_s`
    max_wait_s: float
    in_flight: int  # of a crawl that runs, like the next
    paused_seconds: float
    hosts: dict[str, int]
    next_request_in_s: float | None
    last_activity_at: float
    last_activity: str
    quiet_s: float
    loop_stall_p99_ms: float  # of the run that ended last, like the next
    loop_stall_max_ms: float
    waits_for: str
    parked: list[str]
    held: dict[str, int]  # URLs that are held back, by rule
    held_dropped: int
    released: int  # URLs whose quarantine was ended since the last run
    evicted: int
    cuts: dict[str, int]  # links and pages that limits and rules left out, by rule
    requisites: RequisiteCounts | None  # what pages need to be shown; None: there is none
    visits: VisitCounts  # of known URLs that were fetched again
    revisits: RevisitFigures | None  # of a crawl that fetches again, at the end of its last run or now
    rates: dict[str, Throughput]  # of a crawl that runs, like the next and the memory
    bound_by: BoundBy | None
    forecast: Forecast | None
    warnings: list[ActiveWarning]
    private_bytes: int
    worker_deaths: int
    more: dict[str, float] | UnsetType = UNSET  # figures that have a row of their own
    unknown: dict[str, str] | UnsetType = UNSET  # why there is no number: there is no evidence for one yet
    is_between: bool  # a process owns the crawl, but its run has not begun, or has ended: it reads or writes files


def crawl_status(crawl: CrawlReader, live: Figures | None = None) -> CrawlStatus:
    """Return the status of a crawl; `live` are the figures of its process, if that could be asked."""
    figures = live or crawl.figures()
    hosts = crawl.hosts()
    last = last_event(crawl.folder.events)
    totals = figures.totals
    is_between = crawl.owner is not None and live is None and last is not None and last.event is EventName.STOPPED
    return CrawlStatus(
        out=str(crawl.folder.path),
        is_running=crawl.owner is not None,
        owner=crawl.owner,
        finished=figures.finished,
        state=figures.state,
        pages=totals.pages,
        max_pages=crawl.settings.max_pages,
        pages_per_second=rounded(figures.pages_per_second, 2),
        fetches=totals.fetches,
        errors=totals.errors,
        error_rate=rounded(figures.error_rate, 6),
        bytes=totals.bytes,
        seconds=round(totals.seconds, 3),
        runs=totals.runs,
        unique_domains=totals.unique_domains,
        urls_seen=totals.urls_seen,
        urls_queued=figures.urls_queued,
        urls_over_budget=figures.urls_over_budget,
        urls_retried=figures.urls_retried,
        urls_parked=figures.urls_parked,
        max_wait_s=crawl.settings.max_wait,
        in_flight=figures.in_flight if crawl.is_running else 0,
        paused_seconds=round(figures.paused_seconds, 3),
        hosts=hosts.states if live is None else _live_states(hosts, live),
        next_request_in_s=None if hosts.next_at == float("inf") else round(hosts.next_at - crawl.now, 3),
        last_activity_at=last.ts if last else 0.0,
        last_activity=f"{last.event} {last.url or last.host or last.reason}".strip() if last else "",
        quiet_s=round(max(0.0, crawl.now - last.ts), 3) if last else 0.0,
        loop_stall_p99_ms=round(figures.loop_stall_p99_ms, 2),
        loop_stall_max_ms=round(figures.loop_stall_max_ms, 2),
        waits_for=_BETWEEN if is_between else _waits_for(crawl, figures, hosts),
        parked=[_parked_line(host, crawl.now) for host in hosts.parked.rows()],
        held=totals.held,
        held_dropped=totals.held_dropped,
        released=0 if crawl.is_running else crawl.state.released,
        evicted=totals.evicted,
        cuts=cuts_of(totals),
        requisites=requisite_counts(totals, figures.requisites_queued),
        visits=visit_counts(totals),
        revisits=figures.revisits,
        rates=figures.rates,
        bound_by=figures.bound_by,
        forecast=None if figures.state is RunState.PAUSED else figures.forecast,
        warnings=figures.warnings,
        private_bytes=figures.private_bytes,
        worker_deaths=figures.worker_deaths,
        more=labelled(figures, Place.STATUS),
        unknown=unknown(figures),
        is_between=is_between,
    )


def _parked_line(host: HostRecord, now: float) -> str:
    wait = duration(host.parked_until - now)
    return f"{host.name}: {count(host.queued)} queued, parked for {wait}: {host.park_reason or 'no reason given'}"


def _live_states(hosts: HostTally, live: Figures) -> dict[str, int]:
    """Return the hosts by state: those with work as the process sees them now, the others as they are committed."""
    at_work = {state: live.hosts.get(state, 0) for state in _LIVE_STATES}
    return {**at_work, **{state: hosts.states[state] for state in ("swapped_out", "dead", "blocked", "idle")}}


def _waits_for(crawl: CrawlReader, figures: Figures, hosts: HostTally) -> str:
    resume = f"'gossamer resume {crawl.folder.path}'"
    left = any(hosts.states[state] for state in ("ready", "waiting", "parked", "swapped_out"))
    if crawl.owner is None:
        if not left and not crawl.state.released:
            if hosts.states[OVER_BUDGET]:
                return f"a higher budget of pages for {plural(hosts.states[OVER_BUDGET], 'host')}"
            return "nothing: no URL is queued" + (", but some are held back" if crawl.state.totals.held else "")
        return resume + (" with a higher limit" if figures.finished == "max_pages" else "")
    if figures.state is RunState.PAUSED:
        return resume
    if figures.bound_by is not None:
        return f"{figures.bound_by.resource}: {figures.bound_by.evidence}"
    if hosts.states["ready"]:
        return f"answers: {plural(hosts.states['ready'], 'host')} can be contacted now"
    if not left:
        return "the end: no URL is queued"
    wait = duration(max(0.0, hosts.next_at - crawl.now))
    return f"politeness: the next host may be contacted in {wait}"


def last_event(folder: Path) -> Event | None:
    """Return the last complete event of a crawl. Reads only the end of its last file."""
    for path in sorted(folder.glob("*.jsonl"), reverse=True):
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().splitlines()
        for line in reversed(lines):
            try:
                return msgspec.json.decode(line, type=Event)
            except msgspec.DecodeError:
                continue
    return None
