"""Which of a page's hrefs can be skipped? Those that pages near it had, and that were offered to the crawl.

Pages of a site repeat the same navigation. A relative href means the same URL on every page of a
folder, one that begins with a slash on every page of an origin, an absolute one everywhere; so they
are looked up here before anything is resolved: 0.05 µs instead of 2, and nothing is sent to the hub.
A seed with rules of its own has hrefs of its own, since it may follow what others do not.
New hrefs of a page count as offered only when the hub reports that the decision on all of them is
final; until then they are pending under the id of their task. It is the first of the layers that know seen URLs, which
are listed in `engine/admission/admission`.

Memory: at most `max_hrefs` of each kind, 170 bytes each, and the hrefs of the last page.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import filterfalse
from typing import TypeAlias

MEMO_HREFS = 50_000
MAX_PENDING = 4_096  # pages
_NOT_RELATIVE = "/?\\"  # to an origin, to the page itself, or in an unusual form
_Places: TypeAlias = tuple[str, ...]  # a folder, an origin, nothing


class HrefMemo:
    """The hrefs offered recently, by what they are relative to."""

    def __init__(self, max_hrefs: int = MEMO_HREFS) -> None:
        self._max_hrefs = max_hrefs
        self._known: dict[str, set[str]] = {}
        self._count = 0
        self._pending: OrderedDict[int, tuple[_Places, list[str]]] = OrderedDict()
        self._pending_count = 0

    def fresh(self, task_id: int, base: str, hrefs: list[str], seed: int = 0) -> list[str]:
        """Return the hrefs of a page that were not offered yet for its seed, in order."""
        places = _places_of(base)
        if seed:
            places = tuple(f"{seed} {place}" for place in places)
        fresh = hrefs
        for place in places:
            known = self._known.get(place)
            if known is not None:
                fresh = [*filterfalse(known.__contains__, fresh)]  # half the time of a comprehension
        if fresh:
            self._pending[task_id] = places, fresh
            self._pending_count += len(fresh)
            while len(self._pending) > MAX_PENDING or (
                self._pending_count > self._max_hrefs and len(self._pending) > 1
            ):
                self._pending_count -= len(self._pending.popitem(last=False)[1][1])
        return fresh

    def mark_offered(self, task_id: int) -> None:
        """Record that the decision on all fresh hrefs of a page is final."""
        pending = self._pending.pop(task_id, None)
        if pending is None:
            return
        (folder, origin, scheme), hrefs = pending
        self._pending_count -= len(hrefs)
        if self._count > self._max_hrefs:
            self._known.clear()
            self._count = 0
        self._count += len(hrefs)
        relative = [href for href in hrefs if href[0] not in _NOT_RELATIVE and ":" not in href]
        self._add(folder, relative)
        if len(relative) == len(hrefs):
            return
        self._add(origin, [href for href in hrefs if href[0] == "/" and href[1:2] not in ("/", "\\")])
        self._add(scheme, [href for href in hrefs if href.startswith(("http://", "https://"))])

    def _add(self, place: str, hrefs: list[str]) -> None:
        if not hrefs:
            return
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = set()
        known.update(hrefs)


def _places_of(base: str) -> _Places:
    """Return what hrefs of a page can be relative to: its folder, its origin, nothing.

    An origin has no final slash, so it cannot equal the name of a folder.
    """
    query = base.find("?")
    folder = base[: base.rfind("/", 0, query if query >= 0 else len(base)) + 1]
    return folder, base[: base.index("/", 8)], ""
