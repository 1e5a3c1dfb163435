"""What do the pages of a host show about it? Traps, "not found" with 200, answers that are too large.

Told of every page; decides whether its links are followed and whether a pattern of URLs goes into
quarantine. A quarantine is written to the ledger with the changes it causes: what was queued
becomes dead letters with the outcome `quarantined`, so that `release` can queue them again.
Costs 5 µs a page of a host with many pages, 1 µs else.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from xxhash import xxh3_64_digest, xxh3_64_hexdigest

from gossamer.core.catalog import queued_from, record_of
from gossamer.core.frontier import Frontier
from gossamer.core.intake import Intake
from gossamer.core.novelty import MIN_PAGES, Quarantine, SoftNotFound, patterns_of
from gossamer.core.url import host_id, host_of, link_to, origin_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.figures import Totals
from gossamer.ports import Ledger
from gossamer.records import (
    HostRecord,
    Link,
    OrderKind,
    Outcome,
    QueuedUrl,
    Result,
    Source,
    Truncation,
    UrlState,
)

OVERSIZE_ANSWERS = 3  # more than two are a habit
QUARANTINES = "quarantines"  # name of the value in the ledger
_BATCH = 1000
# Members at hand: up to Python 3.11 an enum takes 80 ns to give one.
_OK = Outcome.OK
_REDIRECT = Outcome.REDIRECT
_PAGE = OrderKind.PAGE
_PROBE = Source.PROBE
_LENGTH = Truncation.LENGTH


class NotFoundVerdict(Struct, frozen=True):
    """What a page showed: whether it is a "not found" in disguise, and a URL to probe its host with."""

    is_soft_404: bool = False
    probe: Link | None = None


NOTHING = NotFoundVerdict()


class Evidence:
    """Watches what comes back."""

    def __init__(
        self, intake: Intake, frontier: Frontier, ledger: Ledger, emitter: EventEmitter, *, is_on: bool = True
    ) -> None:
        self._intake = intake
        self._frontier = frontier
        self._ledger = ledger
        self._events = emitter
        self._is_on = is_on
        self._soft = SoftNotFound()

    def restore(self) -> None:
        """Take up the quarantines of earlier runs."""
        self._intake.novelty.load(read_quarantines(self._ledger))

    def note_host(self, record: HostRecord) -> None:
        """Remember a host that sends too much."""
        if record.oversize >= OVERSIZE_ANSWERS:
            self._intake.heavy_hosts.add(record.name)

    def note_size(self, record: HostRecord, result: Result) -> None:
        """Count an answer that was over the cap."""
        if result.truncated is _LENGTH:
            record.oversize += 1
            self.note_host(record)

    def note_page(self, url: QueuedUrl, result: Result, record: HostRecord, now: float) -> NotFoundVerdict:
        """Take note of a page; return what it shows about the host's "not found"."""
        if not self._is_on or url.kind is not _PAGE or result.outcome is not _OK:
            return NOTHING
        text = result.text_hash
        if not text or not result.content_type.startswith("text/html"):
            return NOTHING
        if url.source is _PROBE:
            record.soft_404 = text
            self._ledger.put_host(record)
        if record.soft_404 == text:
            self._events.soft_404(url, now)
            return NotFoundVerdict(is_soft_404=True)
        if self._soft.note(url.host, text) and not record.soft_404:
            return NotFoundVerdict(probe=link_to(_unlikely(url.url)))
        return NOTHING

    def note_novelty(
        self, url: QueuedUrl, result: Result, record: HostRecord, totals: Totals, *, is_copy: bool, now: float
    ) -> None:
        """Take note of what a page or redirect brought; begin a quarantine where it is time."""
        if not self._is_on or record.pages < MIN_PAGES or url.kind is not _PAGE:
            return
        if result.outcome is _REDIRECT:
            mark = xxh3_64_digest(result.redirect_to.encode())
        elif result.outcome is _OK:
            mark = result.text_hash or result.content_hash[:8]
        else:
            return
        # A copy of another host's page is no sign of a trap here: mirrors end.
        is_own_copy = is_copy and result.duplicate_of[:8] == url.id[:8]
        begun = self._intake.novelty.note(url.url, url.host, mark, is_copy=is_own_copy, now=now)
        if begun is not None:
            begun.held = self._hold(begun, now)
            totals.dead += begun.held
            write_quarantines(self._ledger, self._intake.novelty.quarantines())
            self._events.quarantined(begun, now)

    def _hold(self, begun: Quarantine, now: float) -> int:
        """Move what is queued of a pattern to the dead letters; return how many."""
        after: tuple[int, int] | None = None
        held = 0
        while urls := self._ledger.read_queue(host_id(begun.host), after, _BATCH):
            after = urls[-1].priority, urls[-1].seq
            of_pattern = [url for url in urls if begun.pattern in patterns_of(url.url)]
            for url in self._frontier.forget(begun.host, of_pattern, now):
                row = record_of(url)
                row.state, row.outcome, row.fetched_at = UrlState.DEAD, Outcome.QUARANTINED.value, now
                row.error = begun.name
                self._ledger.finish(url, row)
                held += 1
        host = self._frontier.record_of(begun.host)
        if host is not None:
            self._ledger.put_host(host)
        return held


def _unlikely(url: str) -> str:
    """Return a URL of the same origin that no site has."""
    origin = origin_of(url)
    return f"{origin}/{xxh3_64_hexdigest(origin.encode())}-no-such-page"


def read_quarantines(ledger: Ledger) -> list[Quarantine]:
    """Return the quarantines that a ledger holds."""
    return msgspec.msgpack.decode(ledger.get_meta(QUARANTINES) or b"\x90", type=list[Quarantine])


def write_quarantines(ledger: Ledger, quarantines: list[Quarantine]) -> None:
    """Put quarantines among the pending changes."""
    ledger.put_meta(QUARANTINES, msgspec.msgpack.encode(quarantines))


def release(ledger: Ledger, name: str) -> int | None:
    """Let a quarantine go and queue what it held; return how many URLs, or None where there is none of that name."""
    quarantines = read_quarantines(ledger)
    chosen = next((each for each in quarantines if each.name == name and not each.is_released), None)
    if chosen is None:
        return None
    chosen.is_released = True
    host = ledger.host(chosen.host)
    count = 0
    for url_id, row in list(ledger.urls(host_id(chosen.host))):
        if row.state is UrlState.DEAD and row.outcome == Outcome.QUARANTINED.value and row.error == name:
            row.outcome = row.error = ""
            ledger.requeue(queued_from(url_id, host_of(row.url), row), row)
            count += 1
    if host is not None:
        host.queued += count
        ledger.put_host(host)
    _uncount_dead(ledger, count)
    write_quarantines(ledger, quarantines)
    return count


def _uncount_dead(ledger: Ledger, count: int) -> None:
    value = ledger.get_meta("totals")
    if value is not None:
        totals = msgspec.msgpack.decode(value, type=Totals)
        totals.dead -= count
        ledger.put_meta("totals", msgspec.msgpack.encode(totals))
