"""Is a page a copy of another, exactly or nearly? The first one is stored, later ones refer to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.near_duplicates import NearDuplicates
from gossamer.model.events import EventName
from gossamer.model.records import ContentRecord, QueuedUrl, Result, Similar, UrlId
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger


class Copies:
    """Marks pages that repeat another."""

    def __init__(self, ledger: Ledger, near: NearDuplicates, emitter: EventEmitter, state: CrawlState) -> None:
        self._ledger = ledger
        self._near = near
        self._events = emitter
        self._state = state

    def is_copy(self, url: QueuedUrl, result: Result) -> bool:
        """Return whether a page repeats another, and record which in `result`. Call before its row is written."""
        if self._is_duplicate(url, result):
            self._state.totals.duplicates += 1
            return True
        is_near = self._near.check(url, result)
        self._state.totals.near_duplicates += is_near
        return is_near

    def _is_duplicate(self, url: QueuedUrl, result: Result) -> bool:
        if not result.content_hash:
            return False
        page = ContentRecord(url.id, url.url, result.sent_at, result.payload_digest, result.archived)
        first = self._ledger.put_content(result.content_hash, page)
        if first is None or first.url_id == url.id:
            return False
        result.duplicate_of = first.url_id
        return True

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
