"""What became of a URL that a link leads to?

Read from the catalog, at the end of its redirects; if the crawl does not know it, from the checks of links (`checks`).
A URL that is queued has not been answered yet: it is not broken, unless nothing can connect to its server, as requests
for robots.txt have shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.core.links.requisite import requisite_id
from gossamer.core.url.forms import host_of, origin_of, url_id
from gossamer.core.url.identity import host_id
from gossamer.model.records import OrderKind, Outcome, UrlId, UrlRecord, UrlState

if TYPE_CHECKING:
    from gossamer.ports import Catalog

_MAX_CHAIN = 20  # more than the redirects that a crawl follows in a row
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
        return self.of(own if self._look_up(own)[0] is not None else key)

    def of(self, key: UrlId) -> Fate:
        """Return what became of a URL, at the end of its redirects."""
        seen = {key}
        chain = list[str]()
        row, catalog = self._look_up(key)
        while row is not None and _redirects(row) and len(chain) < _MAX_CHAIN:
            target = url_id(row.redirect_to)
            if row.kind is OrderKind.REQUISITE:
                target = requisite_id(target)
            chain.append(row.redirect_to)
            if target in seen:
                return Fate(Outcome.REDIRECT_LOOP.value, row.status, row.error, tuple(chain), is_loop=True)
            seen.add(target)
            row, catalog = self._look_up(target)
        if row is None:
            return Fate("", chain=tuple(chain))
        if row.state is UrlState.QUEUED:
            return _unanswered(row, catalog, tuple(chain))
        is_loop = row.outcome == Outcome.REDIRECT_LOOP
        return Fate(row.outcome, row.status, row.error, tuple(chain), is_loop=is_loop)

    def _look_up(self, key: UrlId) -> tuple[UrlRecord | None, Catalog]:
        for catalog in self._catalogs:
            row = catalog.look_up(key)
            if row is not None:
                return row, catalog
        return None, self._catalogs[0]


def _redirects(row: UrlRecord) -> bool:
    return row.outcome == Outcome.REDIRECT and row.state is not UrlState.QUEUED and bool(row.redirect_to)


def _unanswered(row: UrlRecord, catalog: Catalog, chain: tuple[str, ...]) -> Fate:
    """Return the fate of a URL that waits: for its turn, or for a server that nothing can connect to."""
    origin = origin_of(row.url)
    for robots in catalog.robots(host_id(host_of(row.url))):
        if robots.origin == origin and robots.outcome in UNCONNECTED:
            return Fate(robots.outcome, 0, "no connection, not even for robots.txt", chain)
    return Fate(QUEUED, 0, row.error, chain)
