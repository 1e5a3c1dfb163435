"""The crawl's running totals: kept in the ledger with every commit, so that they survive a restart."""

from __future__ import annotations

from msgspec import Struct

from gossamer.records import ANSWERED, OrderKind, Outcome, Result


class Totals(Struct):
    """Counts since the crawl began, over all its runs."""

    pages: int = 0
    html_pages: int = 0
    fetches: int = 0
    errors: int = 0
    bytes: int = 0
    content_bytes: int = 0
    words: int = 0
    urls_seen: int = 0
    unique_hosts: int = 0
    unique_domains: int = 0
    robots_disallowed: int = 0
    robots_fetches: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    redirects: int = 0
    retries: int = 0
    dead: int = 0
    excluded: int = 0
    links: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    runs: int = 0
    outcomes: dict[str, int] = {}
    statuses: dict[str, int] = {}
    types: dict[str, int] = {}

    def count_fetch(self, kind: OrderKind, result: Result) -> None:
        """Count one request and its answer."""
        self.fetches += 1
        self.bytes += result.wire_bytes
        self.links += result.links_found
        if kind is OrderKind.ROBOTS:
            self.robots_fetches += 1
        # A robots.txt that is missing is an answer like any other.
        is_missing_robots = kind is OrderKind.ROBOTS and result.outcome is Outcome.CLIENT_ERROR
        if result.outcome not in ANSWERED and not is_missing_robots:
            self.errors += 1
        _add(self.outcomes, str(result.outcome))
        if result.status:
            _add(self.statuses, str(result.status))

    def count_page(self, result: Result) -> None:
        """Count a page."""
        self.pages += 1
        self.content_bytes += result.content_bytes
        self.words += result.words
        self.html_pages += result.content_type in ("text/html", "application/xhtml+xml")
        _add(self.types, result.content_type or "unknown")


def _add(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1
