"""Everything that happens, as records a line: the one source of reports, the audit and `why`.

An event is written when it happens, at least once, and carries its order's id, so that
readers count an order once. The file is flushed every second and at the end; what later
requests rest on (robots.txt, refusals, opt-outs) is written at once, so that after a kill
the proof of politeness has no gap. 2 µs each, 6 µs for those.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec
from msgspec import Struct

from gossamer.errors import DiskFullError


class EventName(StrEnum):
    """What can happen."""

    STARTED = "started"
    FETCH_OK = "fetch_ok"
    REDIRECT = "redirect"
    NOT_MODIFIED = "not_modified"
    TYPE_REFUSED = "type_refused"
    ERROR = "error"
    RETRY = "retry"
    DEAD = "dead"
    ROBOTS_FETCHED = "robots_fetched"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    ROBOTS_DISALLOW = "robots_disallow"
    EXCLUDED_BY_RULE = "excluded_by_rule"
    COOLDOWN_SKIP = "cooldown_skip"
    LINKS_CAPPED = "links_capped"
    PDF_LINKS_EXTRACTED = "pdf_links_extracted"
    SITEMAP_READ = "sitemap_read"
    HOST_PARKED = "host_parked"
    HOST_DEAD = "host_dead"
    HTTP_FALLBACK = "http_fallback"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    HEARTBEAT = "heartbeat"
    WARNING = "warning"
    WORKER_LOST = "worker_lost"
    OPTED_OUT = "opted_out"  # a host or domain is not to be asked any more
    OPT_OUT_ENDED = "opt_out_ended"
    TRAP_QUARANTINED = "trap_quarantined"  # a pattern of URLs that brings nothing new is held
    SOFT_404 = "soft_404"  # "not found" with status 200
    RECOVERED = "recovered"
    STOPPED = "stopped"


class PacePromise(Struct, frozen=True, omit_defaults=True):
    """Delay and connections that a run grants the hosts of a pattern."""

    host: str
    delay_s: float | None = None
    connections: int | None = None


class Promises(Struct, frozen=True, omit_defaults=True):
    """What a run means to keep to; told when it starts, so that it can be held to it later."""

    delay_s: float = 1.0
    host_connections: int = 1
    domain_delay_s: float = 0.0
    address_delay_s: float = 0.0
    address_connections: int = 0  # no limit, or a run of old that did not say
    allows_unreachable_robots: bool = False
    longest_request_s: float = 30.0
    pace: tuple[PacePromise, ...] = ()


class Event(Struct, frozen=True, gc=False, omit_defaults=True):
    """One event. The fields without a default stand in every line."""

    ts: float
    event: EventName
    url: str
    host: str
    depth: int
    status: int
    bytes: int
    content_type: str
    worker: int
    t_ms_from_start: int
    reason: str
    order: int = 0
    kind: str = ""  # robots, sitemap; empty for a page
    sent_at: float = 0.0
    requests: int = 1
    ttfb_ms: int = 0
    total_ms: int = 0
    address: str = ""
    attempt: int = 0
    target: str = ""
    title: str = ""
    links: int = 0
    new_links: int = 0
    directives: str = ""  # noindex, nofollow, noarchive, as far as the page says so
    usage: str = ""  # preferences for the use of the content, as written
    # What stands above is told of a page by place: see `engine/event_emitter`.
    wait_s: float = 0.0
    parent: str = ""
    rule: str = ""
    line: int = 0
    origin: str = ""  # whose robots.txt this is, where another host was asked for it
    retry_after_s: float = 0.0  # as the server said
    promises: Promises | None = None  # of the run that starts
    similarity: float = 0.0  # of a near duplicate to the page it repeats
    # heartbeat
    fetched: int = 0
    enqueued: int = 0
    errors: int = 0
    unique_domains: int = 0
    frontier_size: int = 0


Emit: TypeAlias = Callable[[Event], None]

_OPTED_OUT = EventName.OPTED_OUT
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode


class EventLog:
    """Appends events to a file of its own in `events/`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.jsonl"
        self._file: BinaryIO | None = None
        self._buffer: list[bytes] = []

    def open(self) -> None:
        """Make the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab", buffering=0)

    def emit(self, event: Event) -> None:
        """Take an event; it reaches the file with the next flush, or at once where others rest on it."""
        self._buffer.append(_encode(event))
        if event.kind == "robots" or event.retry_after_s or event.event is _OPTED_OUT:
            with suppress(DiskFullError):  # the next flush will say so, where it can be acted upon
                self.flush()

    def flush(self) -> None:
        """Write what was taken since the last flush, in one write."""
        if not self._buffer or self._file is None:
            return
        try:
            self._file.write(b"\n".join(self._buffer) + b"\n")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(f"{self._path}: no room for events; free some space and resume") from error
            raise
        self._buffer.clear()

    def close(self) -> None:
        """Flush and let go."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def read_events(folder: Path) -> Iterator[Event]:
    """Return all events of a crawl in order of their files; a torn last line is passed over."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                try:
                    yield _decode(line)
                except msgspec.DecodeError:
                    continue
