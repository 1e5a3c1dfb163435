"""Does a page have nearly the same text as an earlier one?

Called for every page that is no exact duplicate. The signature of a page that repeats none is stored, and later
pages are compared with it; one that repeats another is marked and not stored, so a mark always refers to a page
without one. A URL whose signature was stored is never marked at a later visit: others may refer to it.
10 µs per page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.dedup.scheme import SCHEMES, NearDup
from gossamer.model.records import Outcome, QueuedUrl, Result, Similar, Source, UrlRecord

if TYPE_CHECKING:
    from gossamer.ports import Ledger

_PROBE = Source.PROBE


class NearDuplicates:
    """Marks near duplicates by the signatures in the ledger."""

    def __init__(self, ledger: Ledger, near_dup: NearDup) -> None:
        self._ledger = ledger
        self._scheme = SCHEMES.get(near_dup)

    def restore(self) -> None:
        """Use the signatures of earlier runs."""
        if self._scheme is not None:
            self._ledger.use_signatures(self._scheme.edition)

    def check(self, url: QueuedUrl, result: Result) -> bool:
        """Return whether a page is a near duplicate, and record of which in `result`. Call before writing its row."""
        if self._scheme is None or not result.signature or url.source is _PROBE:
            return False
        found = self._ledger.most_similar(result.signature)
        if found is None:
            self._ledger.put_signature(url.id, result.signature)
            return False
        if self._is_stored(url, found):
            return False
        # In a cluster the page found here may have turned out to repeat one that another node stored.
        row = self._ledger.look_up(found.url_id)
        first = (row.near_duplicate_of if row is not None else b"") or found.url_id
        result.near_duplicate_of = first
        result.similarity = found.similarity
        return True

    def _is_stored(self, url: QueuedUrl, found: Similar) -> bool:
        """Return whether the URL's own signature may be stored, so that others may refer to it."""
        if found.url_id == url.id:
            return True
        row = self._ledger.look_up(url.id)
        return row is not None and _was_stored(row)


def _was_stored(row: UrlRecord) -> bool:
    return row.visits > 0 and row.outcome == Outcome.OK.value and not (row.duplicate_of or row.near_duplicate_of)
