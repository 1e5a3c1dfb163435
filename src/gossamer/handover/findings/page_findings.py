"""Which pages of a crawl are slow, large, thin, deep, without a title or description, or with that of another page?

From rows of the catalog; pages are read only if a filter needs what the catalog does not have (`page_heads`). How long
an answer took is in the events; the last visit counts. Memory does not grow with the crawl: titles, heads, slow answers
and what was found wait on disk.
"""

from __future__ import annotations

from hashlib import blake2b

from msgspec import Struct

from gossamer.core.url.forms import host_of
from gossamer.handover.export.documents import iso_time
from gossamer.handover.export.page_heads import HTML, PageHead, PageHeads, is_elsewhere, plain
from gossamer.handover.export.stored import is_page
from gossamer.handover.findings.link_table import SeenIds
from gossamer.handover.listing import SortedSpool
from gossamer.model.events import EventName
from gossamer.model.records import UrlId, UrlRecord
from gossamer.reading.requests.runs import Committed, read_all_runs
from gossamer.reading.view import CrawlView

_ANSWERS = (EventName.FETCH_OK, EventName.NOT_MODIFIED)


class PageFilter(Struct, frozen=True, kw_only=True):
    """Which pages are asked for: those that match everything that is given."""

    slow_ms: int | None = None  # at least
    large: int | None = None  # bytes, at least
    thin: int | None = None  # fewer words
    deep: int | None = None  # links from a seed, at least
    missing_title: bool = False
    duplicate_title: bool = False
    noindex: bool = False
    soft_404: bool = False
    missing_description: bool = False
    duplicate_description: bool = False
    canonical_elsewhere: bool = False
    hosts: frozenset[str] = frozenset()

    @property
    def reads_heads(self) -> bool:
        """Whether the heads of pages must be read."""
        return self.missing_description or self.duplicate_description or self.canonical_elsewhere

    def matches_head(self, url: str, heads: PageHeads, head: PageHead | None) -> bool:
        """Return whether what a page says about itself matches; what is not HTML, or cannot be read, never does."""
        if head is None:
            return not self.reads_heads
        return (
            (not self.missing_description or not head.description)
            and (not self.duplicate_description or (bool(head.description) and heads.is_shared(url, head.description)))
            and (not self.canonical_elsewhere or is_elsewhere(url, head))
        )

    def matches(self, row: UrlRecord, *, is_soft_404: bool) -> bool:
        """Return whether a row matches, as far as it shows."""
        is_html = row.content_type in HTML
        return (
            (self.large is None or row.content_bytes >= self.large)
            and (self.thin is None or (is_html and row.words < self.thin))
            and (self.deep is None or row.depth >= self.deep)
            and (not self.missing_title or (is_html and not row.title.strip()))
            and (not self.duplicate_title or bool(row.title.strip()))
            and (not self.noindex or is_noindex(row))
            and (not self.soft_404 or is_soft_404)
            and (not self.hosts or host_of(row.url) in self.hosts)
        )

    def sort_key(self, page: FindingLine) -> float | str:
        """Return where a page comes: the slowest, largest, thinnest or deepest first, equal titles together."""
        if self.slow_ms is not None:
            return -float(page.response_ms or 0)
        if self.large is not None:
            return -float(page.bytes)
        if self.thin is not None:
            return float(page.words)
        if self.deep is not None:
            return -float(page.depth)
        if self.duplicate_title:
            return f"{host_of(page.url)} {plain(page.title)}"
        return f"{host_of(page.url)} {plain(page.description or '')}" if self.duplicate_description else 0.0


class FindingLine(Struct, frozen=True):
    """A page in a list."""

    url: str
    title: str
    status: int
    content_type: str
    words: int
    bytes: int
    depth: int
    noindex: bool
    response_ms: int | None  # None: not asked for
    fetched_at: str
    description: str | None = None  # None: not read, like the next
    canonical: str | None = None
    soft_404: bool = False  # its host answers "not found" like that, with status 200


def find_pages(crawl: CrawlView, wanted: PageFilter, found: SortedSpool[FindingLine]) -> int:
    """Add the pages that are asked for; return how many pages there are."""
    pages = 0
    with SeenIds() as slow, SeenIds() as titles, SeenIds() as soft, PageHeads() as heads:
        has_soft = _read_soft(crawl, soft)
        if wanted.reads_heads:
            heads.read(crawl)
        if wanted.slow_ms is not None:
            _read_slow(crawl, wanted.slow_ms, slow)
        if wanted.duplicate_title:
            for _, row in crawl.ledger.urls():
                if is_page(row) and row.title.strip():
                    titles.count(_title_key(row))
        for key, row in crawl.ledger.urls():
            if not is_page(row):
                continue
            pages += 1
            is_soft_404 = has_soft and (row.is_soft_404 or _text_of(key, row) in soft)
            if not wanted.matches(row, is_soft_404=is_soft_404) or (
                wanted.duplicate_title and titles.number(_title_key(row)) < 2
            ):
                continue
            response_ms = None if wanted.slow_ms is None else slow.number(key)
            head = heads.of(key) if wanted.reads_heads else None
            if not wanted.matches_head(row.url, heads, head):
                continue
            if wanted.slow_ms is None or (key in slow and (response_ms or 0) >= wanted.slow_ms):
                page = _line(row, response_ms, head, is_soft_404=is_soft_404)
                found.add(page, page.url, wanted.sort_key(page))
    return pages


def _read_soft(crawl: CrawlView, soft: SeenIds) -> bool:
    """Add the texts of pages that say "not found" with status 200; return whether there are any.

    A page is marked if it was fetched after a probe had proved it. Those before have the same text, or nearly.
    """
    if not any(host.soft_404 for host in crawl.ledger.hosts()):
        return False
    for key, row in crawl.ledger.urls():
        if row.is_soft_404:
            soft.put(_text_of(key, row))
    return True


def _text_of(key: UrlId, row: UrlRecord) -> bytes:
    """Return what the copies of a text on a host have in common: the host, and the page that they repeat."""
    return key[:8] + (row.duplicate_of or row.near_duplicate_of or key)


def is_noindex(row: UrlRecord) -> bool:
    """Return whether a page asks not to be indexed."""
    return "noindex" in row.directives.replace(",", " ").split()


def _read_slow(crawl: CrawlView, slow_ms: int, slow: SeenIds) -> None:
    """Add the URLs that once took as long, with the time of their last visit."""
    committed = Committed(crawl.state.event_ends)
    for _, event in read_all_runs(crawl.folders.events, on_refusal=lambda _: None, committed=committed):
        if event.event in _ANSWERS and not event.kind:
            key = crawl.ledger.url_id(event.url)
            if event.total_ms >= slow_ms or key in slow:
                slow.put(key, event.total_ms)


def _line(row: UrlRecord, response_ms: int | None, head: PageHead | None, *, is_soft_404: bool) -> FindingLine:
    return FindingLine(
        row.url,
        row.title,
        row.status,
        row.content_type,
        row.words,
        row.content_bytes,
        row.depth,
        is_noindex(row),
        response_ms,
        iso_time(row.fetched_at),
        None if head is None else head.description,
        None if head is None else head.canonical,
        is_soft_404,
    )


def _title_key(row: UrlRecord) -> UrlId:
    return blake2b(f"{host_of(row.url)} {plain(row.title)}".encode("utf-8", "replace"), digest_size=16).digest()
