"""How far has a crawl come, and what does it wait for? From committed state, in one pass over the hosts."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.events import Event
from gossamer.inspect.reader import CrawlReader
from gossamer.inspect.report.aggregates import Leaders
from gossamer.records import HostRecord
from gossamer.telemetry.text import count, duration

_TAIL_BYTES = 1 << 16
_PARKED_SHOWN = 5
HOST_STATES = ("ready", "waiting", "parked", "swapped_out", "dead", "idle")


class CrawlStatus(Struct, kw_only=True):
    """The status of a crawl at one moment. `hosts` counts them by state, each once."""

    out: str
    is_running: bool
    owner: int | None
    finished: str
    pages: int
    max_pages: int | None
    pages_per_second: float
    fetches: int
    errors: int
    error_rate: float
    bytes: int
    seconds: float
    runs: int
    unique_domains: int
    urls_seen: int
    urls_queued: int
    urls_parked: int
    hosts: dict[str, int]
    next_request_in_s: float | None
    last_activity_at: float
    last_activity: str
    quiet_s: float
    waits_for: str
    parked: list[str]


def host_state_of(host: HostRecord, now: float) -> str:
    """Return the state of a host, as far as the ledger knows."""
    if host.is_dead or host.is_blocked:
        return "dead"
    if not host.queued:
        return "idle"
    if host.parked_until > now:
        return "parked"
    if host.swapped_out_until > now:
        return "swapped_out"
    return "waiting" if host.next_at > now else "ready"


class _HostCount:
    """The hosts counted by state, and when the first of them may be asked."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.states = dict.fromkeys(HOST_STATES, 0)
        self.next_at = float("inf")
        self.parked: Leaders[HostRecord] = Leaders(_PARKED_SHOWN)

    def add(self, host: HostRecord) -> None:
        """Count a host."""
        state = host_state_of(host, self._now)
        self.states[state] += 1
        if state == "parked":
            self.parked.offer(host.queued, host)
        if state not in ("dead", "idle"):
            self.next_at = min(self.next_at, max(self._now, host.next_at, host.parked_until))

    def parked_lines(self) -> list[str]:
        """Return the parked hosts with the most URLs."""
        return [
            f"{host.name}: {count(host.queued)} queued, parked for {duration(host.parked_until - self._now)}: "
            f"{host.park_reason or 'no reason given'}"
            for host in self.parked.rows()
        ]


def crawl_status(crawl: CrawlReader) -> CrawlStatus:
    """Return the status of a crawl."""
    summary, hosts = crawl.summary(), _HostCount(crawl.now)
    for host in crawl.ledger.hosts():
        hosts.add(host)
    last = last_event(crawl.folder.events)
    return CrawlStatus(
        out=str(crawl.folder.path),
        is_running=crawl.owner is not None,
        owner=crawl.owner,
        finished=summary.finished,
        pages=summary.pages,
        max_pages=crawl.settings.max_pages,
        pages_per_second=summary.pages_per_second,
        fetches=summary.fetches,
        errors=summary.errors,
        error_rate=summary.error_rate,
        bytes=summary.bytes,
        seconds=summary.seconds,
        runs=crawl.totals.runs,
        unique_domains=summary.unique_domains,
        urls_seen=summary.urls_seen,
        urls_queued=summary.urls_queued,
        urls_parked=summary.urls_parked,
        hosts=hosts.states,
        next_request_in_s=None if hosts.next_at == float("inf") else round(hosts.next_at - crawl.now, 3),
        last_activity_at=last.ts if last else 0.0,
        last_activity=f"{last.event} {last.url or last.host or last.reason}".strip() if last else "",
        quiet_s=round(max(0.0, crawl.now - last.ts), 3) if last else 0.0,
        waits_for=_waits_for(crawl, summary.finished, hosts),
        parked=hosts.parked_lines(),
    )


def _waits_for(crawl: CrawlReader, finished: str, hosts: _HostCount) -> str:
    left = any(hosts.states[state] for state in ("ready", "waiting", "parked", "swapped_out"))
    if crawl.owner is None:
        if not left:
            return "nothing: no URL is queued"
        return f"'gossamer resume {crawl.folder.path}'" + (" with a higher limit" if finished == "max_pages" else "")
    if hosts.states["ready"]:
        return f"answers: {count(hosts.states['ready'])} hosts can be asked now"
    if not left:
        return "the end: no URL is queued"
    wait = duration(max(0.0, hosts.next_at - crawl.now))
    return f"politeness: the next host may be asked in {wait}"


def last_event(folder: Path) -> Event | None:
    """Return the last whole event of a crawl. Reads only the end of its last file."""
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
