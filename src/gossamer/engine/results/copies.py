"""Is a page a copy of another, exactly or nearly? The first one is stored, later ones refer to it.

The signature of a page that repeats none is stored, and later pages are compared with it (10 µs); one that repeats
another is marked and not stored, so a mark always refers to a page without one. A URL whose signature was stored is
never marked at a later visit: others may refer to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.dedup.scheme import SCHEMES, NearDup
from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.events import EventName
from gossamer.model.records import ContentRecord, Outcome, QueuedUrl, Result, Similar, Source, UrlId, UrlRecord
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger

_PROBE = Source.PROBE  # a constant: up to Python 3.11, reading a member from its class takes 80 ns


class Copies:
    """Marks pages that repeat another."""

    def __init__(self, ledger: Ledger, near_dup: NearDup, emitter: EventEmitter, state: CrawlState) -> None:
        self._ledger = ledger
        self._scheme = SCHEMES.get(near_dup)
        self._events = emitter
        self._state = state

    def restore(self) -> None:
        """Use the signatures of earlier runs."""
        if self._scheme is not None:
            self._ledger.use_signatures(self._scheme.edition)

    def marked(self, url: QueuedUrl, result: Result) -> Result:
        """Return a page's result; if it repeats another page, with a mark which. Call before its row is written."""
        if result.content_hash:
            page = ContentRecord(url.id, url.url, result.sent_at, result.payload_digest, result.archived)
            first = self._ledger.put_content(result.content_hash, page)
            if first is not None and first.url_id != url.id:
                self._state.totals.duplicates += 1
                return replace(result, duplicate_of=first.url_id)
        similar = self._most_similar(url, result)
        if similar is None:
            return result
        self._state.totals.near_duplicates += 1
        return replace(result, near_duplicate_of=similar.url_id, similarity=similar.similarity)

    def _most_similar(self, url: QueuedUrl, result: Result) -> Similar | None:
        """Return which page this one nearly repeats; None if it repeats none. Call before writing its row."""
        if self._scheme is None or not result.signature or url.source is _PROBE:
            return None
        found = self._ledger.most_similar(result.signature)
        if found is None:
            self._ledger.put_signature(url.id, result.signature)
            return None
        if self._is_stored(url, found):
            return None
        # In a cluster the page found here may have turned out to repeat one that another node stored.
        row = self._ledger.look_up(found.url_id)
        return replace(found, url_id=row.near_duplicate_of) if row is not None and row.near_duplicate_of else found

    def _is_stored(self, url: QueuedUrl, found: Similar) -> bool:
        """Return whether the URL's own signature may be stored, so that others may refer to it."""
        if found.url_id == url.id:
            return True
        row = self._ledger.look_up(url.id)
        return row is not None and _was_stored(row)

    def mark(self, page: UrlId, first: UrlId, now: float) -> None:
        """Mark a page as a copy of one that another node stored before; both are stored."""
        row = self._ledger.look_up(page)
        if row is not None and not row.duplicate_of:
            row.duplicate_of = first
            self._ledger.amend(page, row)
            self._state.totals.duplicates += 1
            self._events.emit(EventName.DUPLICATE, now, url=row.url, depth=row.depth, reason="first stored elsewhere")

    def mark_near(self, page: UrlId, other: Similar, now: float) -> None:
        """Mark a page as nearly the same as one that another node stored before; both are stored."""
        row = self._ledger.look_up(page)
        if row is not None and not row.duplicate_of and not row.near_duplicate_of:
            row.near_duplicate_of = other.url_id
            row.similarity = other.similarity
            self._ledger.amend(page, row)
            self._state.totals.near_duplicates += 1
            self._events.emit(
                EventName.NEAR_DUPLICATE,
                now,
                url=row.url,
                depth=row.depth,
                parent=other.url_id.hex(),
                similarity=round(other.similarity, 4),
                reason="first stored elsewhere",
            )

    def emit(self, url: QueuedUrl, result: Result, now: float) -> None:
        """Emit the event of a page that repeats another."""
        if result.duplicate_of:
            self._events.duplicate(url, result, now)
        elif result.near_duplicate_of:
            first = self._ledger.look_up(result.near_duplicate_of)
            self._events.near_duplicate(url, result, first.url if first is not None else "", now)


def _was_stored(row: UrlRecord) -> bool:
    return row.visits > 0 and row.outcome == Outcome.OK.value and not (row.duplicate_of or row.near_duplicate_of)
