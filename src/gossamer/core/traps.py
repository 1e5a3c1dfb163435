"""Is this URL one of infinitely many? The refusal is the name of the trap.

Two kinds: the shape of a single URL (a segment that occurs more than three times), and
budgets per host (date-shaped paths). Both depend only on what was admitted before; the
counts are stored, so that a resumed crawl decides the same.
"""

from __future__ import annotations

import re
from collections import Counter

from gossamer.core.identity import host_id, shard_of
from gossamer.core.url import path_of

MAX_SEGMENT_REPEATS = 3
MAX_SEGMENTS = 30
MAX_DATED_URLS_PER_HOST = 40

_DATED_PATH = re.compile(
    r"/(?:19|20)\d\d(?:[/_-](?:0?[1-9]|1[0-2])(?![\d])(?:[/_-](?:0?[1-9]|[12]\d|3[01])(?![\d]))?)/?(?:$|\?)"
)
_DATED_QUERY = re.compile(
    r"[?&](?:date|month|day|ym|cal|calendar|start|from)=(?:19|20)\d\d-?(?:0[1-9]|1[0-2])", re.IGNORECASE
)
# Two searches: one pattern with both would take quadratic time on a query full of years.
_YEAR_QUERY = re.compile(r"[?&]y(?:ear)?=(?:19|20)\d\d", re.IGNORECASE)
_MONTH_QUERY = re.compile(r"[?&]m(?:onth)?=", re.IGNORECASE)


def shape_trap(url: str) -> str | None:
    """Return the name of the trap that the shape of a URL indicates, or None."""
    path = path_of(url).partition("?")[0]
    if path.count("/") <= MAX_SEGMENT_REPEATS:
        return None
    segments = path.split("/")
    if len(segments) > MAX_SEGMENTS:
        return "path_too_deep"
    repeats = Counter(segment for segment in segments if segment)
    return "repeated_segment" if repeats and max(repeats.values()) > MAX_SEGMENT_REPEATS else None


def is_dated(url: str) -> bool:
    """Return whether a URL ends in a date (year and month): the shape of an infinite calendar."""
    path = path_of(url)
    return _DATED_PATH.search(path) is not None or ("?" in path and _is_dated_query(path))


def _is_dated_query(path: str) -> bool:
    if _DATED_QUERY.search(path) is not None:
        return True
    return _YEAR_QUERY.search(path) is not None and _MONTH_QUERY.search(path) is not None


class DateBudget:
    """How many date-shaped URLs each host has had."""

    def __init__(self, limit: int = MAX_DATED_URLS_PER_HOST) -> None:
        self._limit = limit
        self._used: Counter[str] = Counter()
        self._changed: set[str] = set()

    def refusal(self, url: str, host: str) -> str | None:
        """Return the name of the trap if a date-shaped URL is over its host's budget, else None."""
        return "calendar" if self._used[host] >= self._limit and is_dated(url) else None

    def count(self, url: str, host: str) -> None:
        """Count an admitted URL."""
        if is_dated(url):
            self._used[host] += 1
            self._changed.add(host)

    def used(self, host: str) -> int:
        """Return how many date-shaped URLs of a host were admitted."""
        return self._used[host]

    def restore(self, host: str, used: int) -> None:
        """Restore the count of an earlier run."""
        if used:
            self._used[host] = used

    def take_changed(self) -> set[str]:
        """Return the hosts whose counts changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def release(self, shard: int) -> None:
        """Forget the hosts of a shard."""
        for host in [name for name in self._used if shard_of(host_id(name)) == shard]:
            del self._used[host]
