"""Is this URL one of infinitely many, by its shape?

A path that repeats a segment, or that is very deep, is refused only if it was found on a page whose own path is at that
limit: a relative link that a server answers at any depth goes on by itself, while any other page may name such a path.
The shape of a calendar (year and month) is no reason by itself: see `calendar` for how many of those a host may have.
"""

from __future__ import annotations

import re
from collections import Counter

from gossamer.core.url import path_of
from gossamer.expressions import expression

MAX_SEGMENT_REPEATS = 3
MAX_NUMBER_REPEATS = 6  # a chapter, a section and a page may have the same number
MAX_SEGMENTS = 100

_DATED_PATH = expression(
    r"/(?:19|20)\d\d(?:[/_-](?:0?[1-9]|1[0-2])(?![\d])(?:[/_-](?:0?[1-9]|[12]\d|3[01])(?![\d]))?)/?(?:$|\?)"
)
_DATED_QUERY = expression(
    r"[?&](?:date|month|day|ym|cal|calendar|start|from)=(?:19|20)\d\d-?(?:0[1-9]|1[0-2])", re.IGNORECASE
)
# Two searches: one pattern with both would take quadratic time on a query full of years.
_YEAR_QUERY = expression(r"[?&]y(?:ear)?=(?:19|20)\d\d", re.IGNORECASE)
_MONTH_QUERY = expression(r"[?&]m(?:onth)?=", re.IGNORECASE)


def shape_trap(url: str, found_on: str | None = None) -> str | None:
    """Return the name of the trap that the shape of a URL indicates, or None. `found_on`: the page; None: any page."""
    path = path_of(url).partition("?")[0]
    if path.count("/") <= MAX_SEGMENT_REPEATS:
        return None
    segments = path[1:].split("/")
    if len(segments) > MAX_SEGMENTS:
        return "path_too_deep" if found_on is None or _segments(found_on) >= MAX_SEGMENTS else None
    repeats = Counter(segment for segment in segments if segment)
    for segment, times in repeats.items():
        most = MAX_NUMBER_REPEATS if segment.isdigit() else MAX_SEGMENT_REPEATS
        if times > most and (found_on is None or _segments(found_on, segment) >= most):
            return "repeated_segment"
    return None


def _segments(url: str, like: str | None = None) -> int:
    """Return how many segments a path has, or how many that are equal to one."""
    if not url:
        return 0
    segments = path_of(url).partition("?")[0][1:].split("/")
    return len(segments) if like is None else segments.count(like)


def is_dated(url: str) -> bool:
    """Return whether a URL ends in a date (year and month): the shape of an infinite calendar."""
    if "/20" not in url and "=20" not in url and "/19" not in url and "=19" not in url:
        return False  # 0.2 µs, and true of nearly all URLs
    path = path_of(url)
    return _DATED_PATH.search(path) is not None or ("?" in path and _is_dated_query(path))


def _is_dated_query(path: str) -> bool:
    if _DATED_QUERY.search(path) is not None:
        return True
    return _YEAR_QUERY.search(path) is not None and _MONTH_QUERY.search(path) is not None
