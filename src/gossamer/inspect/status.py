"""How far is a crawl, and what does it wait for? From what is committed, in one pass over the hosts."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.events import Event
from gossamer.inspect.reader import Inspection
from gossamer.inspect.report.aggregates import Leaders
from gossamer.records import HostRecord
from gossamer.telemetry.text import count, duration

_TAIL_BYTES = 1 << 16
_PARKED_SHOWN = 5
PLACES = ("ready", "waiting", "parked", "swapped_out", "dead", "idle")


class CrawlStatus(Struct, kw_only=True):
    """The state of a crawl at one moment. `hosts` counts them by place, each once."""

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


def place_of(host: HostRecord, now: float) -> str:
    """Return where a host stands, as far as the ledger knows."""
    if host.is_dead or host.is_blocked:
        return "dead"
    if not host.queued:
        return "idle"
    if host.parked_until > now:
        return "parked"
    if host.swapped_out_until > now:
        return "swapped_out"
    return "waiting" if host.next_at > now else "ready"


class _Roll:
    """The hosts by place, and when the first of them can be asked."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.places = dict.fromkeys(PLACES, 0)
        self.next_at = float("inf")
        self.parked: Leaders[HostRecord] = Leaders(_PARKED_SHOWN)

    def take(self, host: HostRecord) -> None:
        """Take a host."""
        place = place_of(host, self._now)
        self.places[place] += 1
        if place == "parked":
            self.parked.offer(host.queued, host)
        if place not in ("dead", "idle"):
            self.next_at = min(self.next_at, max(self._now, host.next_at, host.parked_until))

    def parked_lines(self) -> list[str]:
        """Return the parked hosts with the most URLs."""
        return [
            f"{host.name}: {count(host.queued)} queued, parked for {duration(host.parked_until - self._now)}: "
            f"{host.park_reason or 'no reason given'}"
            for host in self.parked.rows()
        ]


def crawl_status(crawl: Inspection) -> CrawlStatus:
    """Return the status of a crawl."""
    summary, roll = crawl.summary(), _Roll(crawl.now)
    for host in crawl.ledger.hosts():
        roll.take(host)
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
        hosts=roll.places,
        next_request_in_s=None if roll.next_at == float("inf") else round(roll.next_at - crawl.now, 3),
        last_activity_at=last.ts if last else 0.0,
        last_activity=f"{last.event} {last.url or last.host or last.reason}".strip() if last else "",
        quiet_s=round(max(0.0, crawl.now - last.ts), 3) if last else 0.0,
        waits_for=_waits_for(crawl, summary.finished, roll),
        parked=roll.parked_lines(),
    )


def _waits_for(crawl: Inspection, finished: str, roll: _Roll) -> str:
    left = any(roll.places[place] for place in ("ready", "waiting", "parked", "swapped_out"))
    if crawl.owner is None:
        if not left:
            return "nothing: no URL is queued"
        return f"'gossamer resume {crawl.folder.path}'" + (" with a higher limit" if finished == "max_pages" else "")
    if roll.places["ready"]:
        return f"answers: {count(roll.places['ready'])} hosts can be asked now"
    if not left:
        return "the end: no URL is queued"
    wait = duration(max(0.0, roll.next_at - crawl.now))
    return f"politeness: the next host may be asked in {wait}"


def last_event(folder: Path) -> Event | None:
    """Return the last whole event of a crawl; reads the end of its last file only."""
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
