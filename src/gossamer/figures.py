"""The crawl's running totals: kept in the ledger with every commit, so that they survive a restart."""

from __future__ import annotations

from msgspec import Struct

from gossamer.records import ANSWERED, OrderKind, Outcome, Result

_HTML = ("text/html", "application/xhtml+xml")
# 3xx answers that lead nowhere: failures of their URL, but answers.
_USELESS_REDIRECTS = frozenset({Outcome.BAD_REDIRECT, Outcome.REDIRECT_LOOP, Outcome.TOO_MANY_REDIRECTS})
_NO_ERRORS = ANSWERED | _USELESS_REDIRECTS


def is_error(outcome: str, *, is_robots: bool) -> bool:
    """Return whether a fetch with this outcome is an error. The one definition, for totals, hosts and reports.

    A fetch is an order that ended, or a name look-up that failed; an order that was given back has not ended. It is
    an error if there was no HTTP answer, or an answer with 4xx or 5xx. One exception: a robots.txt that is missing
    (4xx but 429) allows everything, so it is an answer like any other.
    """
    return outcome not in _NO_ERRORS and not (is_robots and outcome == Outcome.CLIENT_ERROR)


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
    failed_lookups: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    retries: int = 0
    dead: int = 0
    excluded: int = 0
    links: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    next_seq: int = 1
    runs: int = 0
    outcomes: dict[str, int] = {}
    statuses: dict[str, int] = {}
    types: dict[str, int] = {}

    def become(self, other: Totals) -> None:
        """Take over all counts of another."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(other, name))

    def count_fetch(self, kind: OrderKind, result: Result) -> None:
        """Count an order that ended."""
        self.fetches += 1
        self.bytes += result.wire_bytes
        self.links += result.links_found
        is_robots = kind is OrderKind.ROBOTS
        self.robots_fetches += is_robots
        self.errors += is_error(result.outcome, is_robots=is_robots)
        _add(self.outcomes, str(result.outcome))
        if result.status:
            _add(self.statuses, str(result.status))

    def count_failed_lookup(self, outcome: Outcome) -> None:
        """Count a name look-up that brought no usable address: a fetch without an answer."""
        self.fetches += 1
        self.errors += 1
        self.failed_lookups += 1
        _add(self.outcomes, str(outcome))

    def count_page(self, result: Result) -> None:
        """Count a page."""
        self.pages += 1
        self.content_bytes += result.content_bytes
        self.words += result.words
        self.html_pages += result.content_type in _HTML
        _add(self.types, result.content_type or "unknown")


def _add(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1
