"""What became of a URL that a link leads to?

Read from the catalog, at the end of its redirects; if the crawl does not know it, from the checks of links (`checks`).
A URL that is queued has not been answered yet: it is not broken, unless nothing can connect to its server, as requests
for robots.txt have shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.core.links.requisite import requisite_id
from gossamer.core.url.forms import host_of, origin_of
from gossamer.model.records import FetchKind, Outcome, UrlId, UrlRecord, UrlState

if TYPE_CHECKING:
    from gossamer.ports import Catalog

MAX_CHAIN = 20  # redirects in a row: what browsers follow, and the most that `--max-redirects` allows
LONG_CHAIN = "long_chain"  # the crawl followed its redirects no further, and knows no end of it
QUEUED = "queued"
UNCONNECTED = frozenset(
    {
        Outcome.DNS_NOT_FOUND.value,
        Outcome.DNS_FAILED.value,
        Outcome.CONNECT_FAILED.value,
        Outcome.CONNECT_TIMEOUT.value,
        Outcome.TLS_ERROR.value,
    }
)
# What a visitor would get an error for. Not: what we decided not to fetch, or lost ourselves.
BROKEN = UNCONNECTED | {
    Outcome.CLIENT_ERROR.value,
    Outcome.RATE_LIMITED.value,
    Outcome.SERVER_ERROR.value,
    Outcome.BAD_STATUS.value,
    Outcome.TIMEOUT.value,
    Outcome.DISCONNECTED.value,
    Outcome.PROTOCOL_ERROR.value,
    Outcome.HEADER_TOO_LARGE.value,
    Outcome.BAD_REDIRECT.value,
    Outcome.REDIRECT_LOOP.value,
    Outcome.TOO_MANY_REDIRECTS.value,
}
_REDIRECTS = (Outcome.REDIRECT.value, Outcome.NO_HTTPS.value, Outcome.TOO_MANY_REDIRECTS.value)


class Fate(Struct, frozen=True):
    """What became of a URL that a link leads to, at the end of its redirects."""

    outcome: str  # empty: it was not fetched
    status: int = 0
    error: str = ""
    chain: tuple[str, ...] = ()  # targets of redirects, in order
    is_loop: bool = False  # the chain comes back to one of its URLs
    is_checked: bool = True  # otherwise it was to be checked and could not be


NOT_FETCHED = Fate("")
MALFORMED = Fate("bad_url", error="not a URL: no host, or one that cannot be")


class Fates:
    """What became of URLs. Rows are looked up as they are asked for: in the first of some catalogs that has one."""

    def __init__(self, *catalogs: Catalog) -> None:
        self._catalogs = catalogs

    def of_requisite(self, key: UrlId) -> Fate:
        """Return what became of a URL as something that a page needs, else as a page: at the end of redirects."""
        own = requisite_id(key)
        return self.of(own if self._catalogs[0].look_up(own) is not None else key)

    def of(self, key: UrlId, url: str = "") -> Fate:
        """Return what became of a URL, at the end of its redirects; `key` is its id in the first catalog.

        The other catalogs, in which it may have other ids, are asked if the URL itself is given.
        """
        seen = {key}
        chain = list[str]()
        is_cut = False
        row, catalog = self._look_up(key, url)
        while row is not None and _redirects(row) and len(chain) < MAX_CHAIN:
            is_cut = row.outcome == Outcome.TOO_MANY_REDIRECTS
            url = row.redirect_to
            target = self._catalogs[0].url_id(url)
            if row.kind is FetchKind.REQUISITE:
                target = requisite_id(target)
            chain.append(row.redirect_to)
            if target in seen:
                return Fate(Outcome.REDIRECT_LOOP.value, row.status, row.error, tuple(chain), is_loop=True)
            seen.add(target)
            row, catalog = self._look_up(target, url)
        if row is None:
            return Fate(LONG_CHAIN if is_cut else "", chain=tuple(chain))
        if _redirects(row):
            return Fate(Outcome.TOO_MANY_REDIRECTS.value, row.status, row.error, tuple(chain))
        if row.state is UrlState.QUEUED:
            return _unanswered(row, catalog, tuple(chain))
        is_loop = row.outcome == Outcome.REDIRECT_LOOP
        return Fate(row.outcome, row.status, row.error, tuple(chain), is_loop=is_loop)

    def _look_up(self, key: UrlId, url: str) -> tuple[UrlRecord | None, Catalog]:
        first, *others = self._catalogs
        row = first.look_up(key)
        if row is not None:
            return row, first
        for catalog in others if url else ():
            row = catalog.look_up(catalog.url_id(url))
            if row is not None:
                return row, catalog
        return None, first


def _redirects(row: UrlRecord) -> bool:
    return row.outcome in _REDIRECTS and row.state is not UrlState.QUEUED and bool(row.redirect_to)


def _unanswered(row: UrlRecord, catalog: Catalog, chain: tuple[str, ...]) -> Fate:
    """Return the fate of a URL that waits: for its turn, or for a server that nothing can connect to."""
    origin = origin_of(row.url)
    for robots in catalog.robots(catalog.host_id(host_of(row.url))):
        if robots.origin == origin and robots.outcome in UNCONNECTED:
            return Fate(robots.outcome, 0, "no connection, not even for robots.txt", chain)
    return Fate(QUEUED, 0, row.error, chain)
