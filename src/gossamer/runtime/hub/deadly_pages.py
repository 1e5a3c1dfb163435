"""Which pages kill the workers that read them?

A page on which our own code raises ends with `internal_error`. One that kills the process (a crash in native code, an
endless loop that the hub ends, memory that the kernel refuses) can only be recognized by repetition: after
`MAX_DEATHS` deaths while its answer was being read, it ends with the same outcome. Such deaths are excused: they do not
count for the limit that ends the crawl, unless pages kill workers all the time: then the workers are broken.

Counts are per run: after a restart a page may kill `MAX_DEATHS` workers again.
"""

from __future__ import annotations

from collections import Counter

MAX_DEATHS = 3
MAX_DEADLY_PAGES = 20  # or one of a hundred pages


class DeadlyPages:
    """Counts deaths by page."""

    def __init__(self) -> None:
        self._deaths: Counter[str] = Counter()
        self._ended = 0

    def is_last_death(self, url: str) -> bool:
        """Record that a worker died while it read a page; return whether the page is not to be tried again."""
        self._deaths[url] += 1
        is_last = self._deaths[url] >= MAX_DEATHS
        if is_last:
            del self._deaths[url]
            self._ended += 1
        return is_last

    def excused_deaths(self, pages: int) -> int:
        """Return how many deaths are explained by pages that ended, in a crawl with so many pages."""
        return MAX_DEATHS * min(self._ended, max(MAX_DEADLY_PAGES, pages // 100))
