"""Which links of a crawl are broken, lead to redirects or out of its scope, and who links to a URL?

One pass over the stored pages, as `export --format links` reads them. What became of a target is read from the catalog,
at the end of its redirects; the links that are asked for wait on disk (`LinkTable`), so that memory does not grow with
the crawl. A target that is queued is not broken: it has not been answered yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec import Struct

from gossamer.core.domains import registrable_domain
from gossamer.core.url import host_of, url_id
from gossamer.handover.documents import FOUND_VIA, PageDocument, documents
from gossamer.handover.link_table import Fate, LinkTable, SeenIds
from gossamer.handover.links import graph_links
from gossamer.handover.stored import is_page
from gossamer.inspect.life_source import joined_scope
from gossamer.inspect.view import CrawlView
from gossamer.parse.article import MAX_LINKS
from gossamer.records import Outcome, Source, UrlId, UrlRecord, UrlState

_MAX_CHAIN = 20  # more than the redirects that a crawl follows in a row
_REMEMBERED = 50_000  # targets, about 20 MB
NOT_FETCHED = Fate("")
# What a visitor would get an error for. Not: what we decided not to fetch, or lost ourselves.
BROKEN = frozenset(
    {
        Outcome.CLIENT_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.SERVER_ERROR,
        Outcome.BAD_STATUS,
        Outcome.DNS_NOT_FOUND,
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.CONNECT_TIMEOUT,
        Outcome.TLS_ERROR,
        Outcome.TIMEOUT,
        Outcome.DISCONNECTED,
        Outcome.PROTOCOL_ERROR,
        Outcome.HEADER_TOO_LARGE,
        Outcome.BAD_REDIRECT,
        Outcome.REDIRECT_LOOP,
        Outcome.TOO_MANY_REDIRECTS,
    }
)


class Wanted(Struct, frozen=True):
    """A target whose links are asked for: the name of its group, and what became of it."""

    name: str
    fate: Fate


Question = Callable[[str, UrlId], Wanted | None]  # about the target of a link


class LinkPass(Struct):
    """What was read."""

    pages: int = 0
    links: int = 0
    cut_pages: int = 0  # with more links than are read of one page


class Orphan(Struct, frozen=True):
    """A page that no stored page links to."""

    url: str
    found_via: str
    parent: str  # the sitemap or redirect that named it
    depth: int
    status: int
    title: str


class Fates:
    """What became of URLs. Rows are looked up as they are asked for."""

    def __init__(self, crawl: CrawlView) -> None:
        self._look_up = crawl.ledger.look_up

    def of(self, key: UrlId) -> Fate:
        """Return what became of a URL, at the end of its redirects."""
        row, seen, chain = self._look_up(key), {key}, list[str]()
        while row is not None and _redirects(row) and len(chain) < _MAX_CHAIN:
            target = url_id(row.redirect_to)
            chain.append(row.redirect_to)
            if target in seen:
                return Fate(Outcome.REDIRECT_LOOP.value, row.status, row.error, tuple(chain), is_loop=True)
            seen.add(target)
            row = self._look_up(target)
        if row is None:
            return Fate("", chain=tuple(chain))
        if row.state is UrlState.QUEUED:
            return Fate("queued", chain=tuple(chain))
        is_loop = row.outcome == Outcome.REDIRECT_LOOP
        return Fate(row.outcome, row.status, row.error, tuple(chain), is_loop=is_loop)


def _redirects(row: UrlRecord) -> bool:
    return row.outcome == Outcome.REDIRECT and row.state is not UrlState.QUEUED and bool(row.redirect_to)


def broken(crawl: CrawlView) -> Question:
    """Ask for links whose target, or the end of its redirects, has no answer or one that is an error."""
    fates = Fates(crawl)

    def wanted(url: str, key: UrlId) -> Wanted | None:
        fate = fates.of(key)
        return Wanted(url, fate) if fate.outcome in BROKEN else None

    return wanted


def redirected(crawl: CrawlView) -> Question:
    """Ask for links to redirects, with where they end."""
    fates = Fates(crawl)

    def wanted(url: str, key: UrlId) -> Wanted | None:
        fate = fates.of(key)
        return Wanted(url, fate) if fate.chain else None

    return wanted


def external(crawl: CrawlView) -> Question:
    """Ask for links out of the scope, by domain. What is in the catalog is in the scope of some seed."""
    scope, look_up = joined_scope(crawl), crawl.ledger.look_up

    def wanted(url: str, key: UrlId) -> Wanted | None:
        host = host_of(url)
        if scope.contains(url, host) or look_up(key) is not None:
            return None
        return Wanted(registrable_domain(host), NOT_FETCHED)

    return wanted


def leading_to(crawl: CrawlView, asked: UrlId) -> Question:
    """Ask for the links to one URL."""
    fates = Fates(crawl)
    return lambda url, key: Wanted(url, fates.of(key)) if key == asked else None


def collect(crawl: CrawlView, question: Question, table: LinkTable) -> LinkPass:
    """Add the links that are asked for to a table; return what was read."""

    @lru_cache(maxsize=_REMEMBERED)
    def number_of(url: str) -> int:
        key = url_id(url)
        wanted = question(url, key)
        return table.add_target(key, wanted.name, url, wanted.fate) if wanted is not None else 0

    done = LinkPass()
    for document in documents(crawl):
        _count(done, document)
        for link in graph_links([document]):
            number = number_of(link.to_url)
            if number:
                table.add(number, link)
    table.index()
    return done


def _count(done: LinkPass, document: PageDocument) -> None:
    links = len(document.article.links)
    done.pages += 1
    done.links += links
    done.cut_pages += links >= MAX_LINKS


def orphans(crawl: CrawlView, done: LinkPass) -> Iterator[Orphan]:
    """Yield the pages that were found without a link, and to which no other stored page leads, also by redirects."""
    fates = Fates(crawl)
    with SeenIds() as linked:
        for document in documents(crawl):
            _count(done, document)
            own = url_id(document.facts.url)
            for link in document.article.links:
                key = url_id(link.url)
                if key in linked:
                    continue
                way = [key, *map(url_id, fates.of(key).chain)]
                if own not in way:  # a page that only links to itself is not found by it
                    linked.update(way)
        for key, row in crawl.ledger.urls():
            if is_page(row) and row.source is not Source.LINK and key not in linked:
                parent = crawl.ledger.look_up(row.parent) if row.parent else None
                found_on = parent.url if parent is not None else ""
                yield Orphan(row.url, FOUND_VIA[row.source], found_on, row.depth, row.status, row.title)
