"""Which of a page's hrefs need no second look? Those that its neighbours had, and that were offered to the crawl.

Pages of a folder repeat the same navigation. A relative href means the same URL on every page of a
folder, so it is looked up here before anything is resolved: 0.03 µs instead of 2, and nothing travels
to the hub. What a page newly brings counts as offered only when the hub says that all of it was
decided for good; until then it is kept by the number of its order.
"""

from __future__ import annotations

from collections import OrderedDict

MOST_HREFS = 50_000  # about 8 MB
MOST_PENDING = 4_096


class HrefMemo:
    """The hrefs offered lately, by folder."""

    def __init__(self) -> None:
        self._folders: dict[str, set[str]] = {}
        self._count = 0
        self._pending: OrderedDict[int, tuple[str, list[str]]] = OrderedDict()

    def fresh(self, order_id: int, base: str, hrefs: list[str]) -> list[str]:
        """Return the hrefs of a page that were not offered yet, in order."""
        folder = _folder_of(base)
        known = self._folders.get(folder)
        fresh = [href for href in hrefs if href not in known] if known else hrefs
        if fresh:
            self._pending[order_id] = folder, fresh
            if len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)
        return fresh

    def note_offered(self, order_id: int) -> None:
        """Take note that all fresh hrefs of a page were decided for good."""
        pending = self._pending.pop(order_id, None)
        if pending is None:
            return
        folder, hrefs = pending
        if self._count > MOST_HREFS:
            self._folders.clear()
            self._count = 0
        known = self._folders.setdefault(folder, set())
        before = len(known)
        known.update([href for href in hrefs if _goes_by_folder(href)])
        self._count += len(known) - before


def _folder_of(base: str) -> str:
    """Return a canonical URL up to the last slash of its path."""
    query = base.find("?")
    return base[: base.rfind("/", 0, query if query >= 0 else len(base)) + 1]


def _goes_by_folder(href: str) -> bool:
    """Tell whether a href means the same on all pages of a folder: no bare query, no scheme without slashes."""
    return href[:1] != "?" and (":" not in href or "://" in href)
