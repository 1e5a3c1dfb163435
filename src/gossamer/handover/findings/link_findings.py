"""Which links of a crawl are broken, lead to redirects or out of its scope, and who links to a URL?

One pass over the stored pages, as `export --format links` reads them. What became of a target is read from the catalog
(`fates`); the links that are asked for wait on disk (`LinkTable`), so that memory does not grow with the crawl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.handover.export.documents import FOUND_VIA, DocumentMaker, PageDocument, documents
from gossamer.handover.export.stored import ExportedPages, is_page
from gossamer.handover.findings.checks import CheckTargets
from gossamer.handover.findings.link_table import LinkTable, SeenIds
from gossamer.handover.findings.links import GraphLink, graph_links
from gossamer.model.records import Source, UrlId
from gossamer.parse.html.anchors import other_links
from gossamer.parse.html.requisites import requisites_of
from gossamer.parse.text.article import MAX_LINKS
from gossamer.ports import Catalog
from gossamer.reading.view import CrawlView
from gossamer.reading.why.fates import BROKEN, MALFORMED, NOT_FETCHED, Fate, Fates
from gossamer.reading.why.source import joined_scope

_REMEMBERED = 50_000  # targets, about 20 MB
_ANCHOR = "a"
_HEAD = "head"  # `link` with canonical, alternate, next or prev, or a refresh: a crawl follows them
_LINKS = frozenset({_ANCHOR, _HEAD})


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


class Linked(Struct):
    """A stored page, and what it refers to by which element."""

    document: PageDocument
    links: list[tuple[GraphLink, str]]
    malformed: list[str]  # hrefs that are no URLs, as on the page


class Broken(Struct):
    """Asks for links whose target, or the end of its redirects, has no answer or one that is an error.

    With checks, for what could not be checked, too. Results of checks count only for what is to be checked.
    """

    fates: Fates
    checked_fates: Fates
    targets: CheckTargets | None = None

    def link(self, url: str, key: UrlId) -> Wanted | None:
        """Answer for a link."""
        return self._wanted(url, key, self.targets.of_link if self.targets is not None else None)

    def asset(self, url: str, key: UrlId) -> Wanted | None:
        """Answer for something else that a page needs."""
        fate = self.fates.of_requisite(key)
        if fate.outcome in BROKEN:
            return Wanted(url, fate)
        return self._wanted(url, key, self.targets.of_asset if self.targets is not None else None)

    def _wanted(self, url: str, key: UrlId, target_of: Callable[[str, UrlId], str] | None) -> Wanted | None:
        is_target = target_of is not None and bool(target_of(url, key))
        fate = (self.checked_fates if is_target else self.fates).of(key, url)
        if fate.outcome in BROKEN:
            return Wanted(url, fate)
        why = CheckTargets.why_not_checked(fate) if is_target else ""
        return Wanted(url, replace(fate, error=why, is_checked=False)) if why else None


def broken(crawl: CrawlView, targets: CheckTargets | None = None, results: Catalog | None = None) -> Broken:
    """Ask for broken links, by the catalog of the crawl and, if there are any, by the results of checks."""
    own = Fates(crawl.ledger)
    return Broken(own, own if results is None else Fates(crawl.ledger, results), targets)


def redirected(crawl: CrawlView) -> Question:
    """Ask for links to redirects, with where they end."""
    fates = Fates(crawl.ledger)

    def wanted(url: str, key: UrlId) -> Wanted | None:
        fate = fates.of(key)
        return Wanted(url, fate) if fate.chain else None

    return wanted


def external(crawl: CrawlView) -> Question:
    """Ask for links out of the scope, by domain. What is in the catalog is in the scope of some seed."""
    scope = joined_scope(crawl)
    look_up = crawl.ledger.look_up

    def wanted(url: str, key: UrlId) -> Wanted | None:
        host = host_of(url)
        if scope.contains(url, host) or look_up(key) is not None:
            return None
        return Wanted(registrable_domain(host), NOT_FETCHED)

    return wanted


def leading_to(crawl: CrawlView, asked: UrlId) -> Question:
    """Ask for the links to one URL."""
    fates = Fates(crawl.ledger)
    return lambda url, key: Wanted(url, fates.of(key)) if key == asked else None


def collect(
    crawl: CrawlView,
    question: Question,
    table: LinkTable,
    assets: Question | None = None,
    *,
    with_malformed: bool = False,
) -> LinkPass:
    """Add the links that are asked for to a table, with `assets` also what else pages need; return what was read."""

    @lru_cache(maxsize=_REMEMBERED)
    def number_of(url: str, is_asset: bool) -> int:
        key = crawl.ledger.url_id(url)
        wanted = assets(url, key) if is_asset and assets is not None else question(url, key)
        return table.add_target(key, wanted.name, url, wanted.fate) if wanted is not None else 0

    done = LinkPass()
    for page in linked_pages(crawl, with_assets=assets is not None):
        _count(done, page.document)
        for link, element in page.links:
            number = number_of(link.to_url, element not in _LINKS)
            if number:
                table.add(number, link, element)
        for href in page.malformed if with_malformed else ():
            number = table.add_target(_malformed_key(href), href, href, MALFORMED)
            table.add(number, GraphLink(page.document.facts.url, href, "", "", False))
    table.index()
    return done


def linked_pages(crawl: CrawlView, *, with_assets: bool) -> Iterator[Linked]:
    """Yield the stored pages with their links, in archive order."""
    pages = ExportedPages(crawl)
    maker = DocumentMaker(crawl, pages)
    for page in pages.in_archive_order(is_page):
        document, source = maker.make_with_source(page)
        links = [(link, _ANCHOR) for link in graph_links([document])]
        others = other_links(source, {link.url for link in document.article.links})
        url = document.facts.url
        links += [(GraphLink(url, to, "", "", False), _HEAD) for to in others.urls]
        if with_assets:
            links += [(GraphLink(url, each.url, "", "", False), each.element) for each in requisites_of(source)]
        yield Linked(document, links, others.malformed)


def _malformed_key(href: str) -> UrlId:
    return blake2b(href.encode("utf-8", "replace"), digest_size=16).digest()


def urls_to_check(crawl: CrawlView, targets: CheckTargets) -> Iterator[str]:
    """Yield what is to be checked, each URL once."""
    with SeenIds() as seen:
        for page in linked_pages(crawl, with_assets=targets.assets):
            for link, element in page.links:
                ask = targets.of_link if element in _LINKS else targets.of_asset
                url = ask(link.to_url, crawl.ledger.url_id(link.to_url))
                if url and (key := crawl.ledger.url_id(url)) not in seen:
                    seen.put(key)
                    yield url


def _count(done: LinkPass, document: PageDocument) -> None:
    links = len(document.article.links)
    done.pages += 1
    done.links += links
    done.cut_pages += links >= MAX_LINKS


def orphans(crawl: CrawlView, done: LinkPass) -> Iterator[Orphan]:
    """Yield the pages that were found without a link, and to which no other stored page leads, also by redirects."""
    fates = Fates(crawl.ledger)
    with SeenIds() as linked:
        for document in documents(crawl):
            _count(done, document)
            own = crawl.ledger.url_id(document.facts.url)
            for link in document.article.links:
                key = crawl.ledger.url_id(link.url)
                if key in linked:
                    continue
                way = [key, *map(crawl.ledger.url_id, fates.of(key).chain)]
                if own not in way:  # a page that only links to itself is not found by it
                    linked.update(way)
        for key, row in crawl.ledger.urls():
            if is_page(row) and row.source is not Source.LINK and key not in linked:
                parent = crawl.ledger.look_up(row.parent) if row.parent else None
                found_on = parent.url if parent is not None else ""
                yield Orphan(row.url, FOUND_VIA[row.source], found_on, row.depth, row.status, row.title)
