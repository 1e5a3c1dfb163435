"""One page as one record: its facts in the catalog, and its content.

In JSON both are on one level. Times are UTC in ISO 8601, hashes are in hex, and what is not
known is an empty string (a number: null), not a missing name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from gossamer.archive.warc import sha1_base32
from gossamer.core.content.pdf_type import PDF
from gossamer.core.ledger.tables import SEEDS
from gossamer.core.url.forms import host_of
from gossamer.handover.export.stored import ExportedPage, ExportedPages, is_answer, is_page
from gossamer.handover.where import ANYTHING, Selection
from gossamer.model.errors import PluginError
from gossamer.model.events import masked
from gossamer.model.records import FetchKind, Outcome, RequestTimes, Source, UrlId, UrlRecord
from gossamer.model.state import SeedRecord
from gossamer.parse.dispatch import declared_type
from gossamer.parse.text.article import Article, PageSource, read_article
from gossamer.reading.view import CrawlView, OpenCrawl
from gossamer.reading.why.fates import Fate, Fates
from gossamer.reading.why.link_meta import meta_of
from gossamer.settings.identity import robots_token_of
from gossamer.settings.model import PdfUse
from gossamer.settings.plugins import PARSER, of_kind

# Which seed does a page descend from, and which redirects led to it?
#
# The catalog names the parent of every URL: the page, sitemap or redirect by which it was first found. Parents are
# followed upwards; the seeds of what was passed are remembered, so that most pages cost one look-up of a parent that is
# known already. A sitemap that robots.txt lists has no parent: it belongs to the seed of its host, or of the first page
# that was found there.

MAX_REMEMBERED = 50_000  # seeds of URLs, about 8 MB
MAX_REDIRECTS = 20  # more than a crawl follows in a row
_MAX_ROWS = 1000  # of a host, to find the first page
_SEED_SOURCES = (Source.SEED, Source.REDIRECT)  # a seed that a redirect spells otherwise is still one


class Ancestry:
    """The seeds and redirects of pages."""

    def __init__(self, crawl: OpenCrawl) -> None:
        self._crawl = crawl
        self._seeds: dict[UrlId, str] = {}

    def seed_of(self, key: UrlId, row: UrlRecord) -> str:
        """Return the URL of the seed that a page descends from; empty if it was found without one."""
        passed: dict[UrlId, None] = {}  # in order, and never twice
        at: UrlRecord | None = row
        seed = ""
        while at is not None and key not in passed:
            if key in self._seeds:
                seed = self._seeds[key]
                break
            passed[key] = None
            if _is_seed(at):
                seed = at.url
                break
            above = at.parent or self._first_at_host(at)
            key = above
            at = self._crawl.ledger.look_up(above) if above else None
        if len(self._seeds) + len(passed) > MAX_REMEMBERED:
            self._seeds.clear()
        if seed:  # otherwise a parent may not be committed yet
            self._seeds.update(dict.fromkeys(passed, seed))
        return seed

    def redirected_from(self, key: UrlId, row: UrlRecord) -> list[str]:
        """Return the URLs whose redirects led to a URL when it was found, in order."""
        chain: list[str] = []
        while row.source is Source.REDIRECT and row.parent and len(chain) < MAX_REDIRECTS:
            above = self._crawl.ledger.look_up(row.parent)
            # A redirect that only spells a URL otherwise leaves it with its parent, which is a page.
            if (
                above is None
                or above.outcome != Outcome.REDIRECT
                or self._crawl.ledger.url_id(above.redirect_to) != key
            ):
                break
            key = row.parent
            row = above
            chain.append(row.url)
        return chain[::-1]

    def _first_at_host(self, row: UrlRecord) -> UrlId:
        """Return the seed at the host of a sitemap, or else the page by which the host was found; empty if none."""
        if row.kind is not FetchKind.SITEMAP:
            return b""
        rows = islice(self._crawl.ledger.urls(self._crawl.ledger.host_id(host_of(row.url))), _MAX_ROWS)
        found = [
            (not _is_seed(other), other.seq, key)
            for key, other in rows
            if other.kind is FetchKind.PAGE and other.source not in (Source.SITEMAP, Source.PROBE, Source.NOTICE)
        ]
        return min(found)[2] if found else b""


def _is_seed(row: UrlRecord) -> bool:
    return row.source in _SEED_SOURCES and not row.parent and row.depth == 0 and row.kind is FetchKind.PAGE


FOUND_VIA = {
    Source.SEED: "seed",
    Source.LINK: "link",
    Source.REDIRECT: "redirect",
    Source.SITEMAP: "sitemap",
    Source.NOTICE: "notice",
    Source.PROBE: "probe",
}
_NO_FATE = Fate("")
_NO_TIMES = RequestTimes(-1, -1)
_encode = msgspec.json.Encoder().encode


class Storage(Struct, frozen=True, gc=False):
    """Where a page is in the archive."""

    file: str
    offset: int
    length: int
    record_id: str  # urn:uuid:…


class PageFacts(Struct, kw_only=True):
    """What the catalog has about a page."""

    url: str
    fetched_at: str
    status: int
    content_type: str  # as sniffed
    declared_type: str  # as declared by the server
    charset: str
    redirect_to: str
    redirected_from: list[str]  # URLs whose redirects led to it, in order
    redirects: list[str]  # of an answer that is a redirect: all targets, in order
    redirect_loop: bool  # they come back to one of them
    depth: int
    parent: str  # the URL of the page that it was found on; empty for a seed
    found_via: str
    seed: str  # the seed that it descends from; empty if it was found without one
    seed_metadata: dict[str, str]  # of that seed, if it has any
    meta: dict[str, Any]  # what a program attached to the link that led to it
    etag: str
    last_modified: str
    lastmod: str  # according to a sitemap
    content_hash: str  # of the decoded body
    payload_digest: str  # of the body as archived, sha1:BASE32
    bytes: int  # of the decoded body
    words: int  # of its visible text, menus included, as everything else counts them
    truncated: str
    duplicate_of: str
    near_duplicate_of: str
    similarity: float
    spam: float  # score from 0, nothing is suspicious, to 1
    spam_signals: list[str]  # the strongest first
    directives: str
    usage: str
    worker: int  # that fetched it
    connect_ms: int | None  # None on a kept connection
    tls_ms: int | None  # None without a new handshake
    first_byte_ms: int | None  # since the request was sent
    total_ms: int | None  # until the last byte, with connection and handshake
    storage: Storage


class PageDocument(Struct):
    """A page to export."""

    facts: PageFacts
    article: Article

    @property
    def language(self) -> str:
        """The detected language of the page, or else the declared one."""
        return self.article.language or self.article.language_declared

    def to_json(self) -> bytes:
        """Return it as one JSON object on one line."""
        return _encode(self.facts)[:-1] + b"," + _encode(self.article)[1:]


def masked_document(document: PageDocument) -> PageDocument:
    """Return a document without the values of query parameters in its URLs. Its text stays as it is."""
    return msgspec.convert(_masked_urls(msgspec.to_builtins(document)), PageDocument)


def _masked_urls(value: Any) -> Any:  # noqa: ANN401 - anything that becomes JSON
    if isinstance(value, str):
        return masked(value) if value.startswith(("http://", "https://")) else value
    if isinstance(value, dict):
        return {key: _masked_urls(part) for key, part in value.items()}
    return [_masked_urls(part) for part in value] if isinstance(value, list) else value


class DocumentMaker:
    """Makes documents of stored pages. URLs of parents are looked up once for many children."""

    def __init__(self, crawl: OpenCrawl, pages: ExportedPages, *, for_search: bool = False) -> None:
        self._crawl = crawl
        self._pages = pages
        self._for_search = for_search
        self._robots_token = robots_token_of(crawl.settings)
        self._parsers = of_kind(crawl.settings.plugin, PARSER)
        self._reads_pdf = crawl.settings.pdf is PdfUse.DEEP
        self._url_of = lru_cache(maxsize=10_000)(self._look_up_url)
        self._seeds: dict[int, SeedRecord] = {0: SeedRecord("")}
        self._ancestry = Ancestry(crawl)

    def make(self, page: ExportedPage) -> PageDocument:
        """Return the document of a page."""
        return self.make_with_source(page)[0]

    def make_with_source(self, page: ExportedPage) -> tuple[PageDocument, PageSource]:
        """Return the document of a page, and what it was made from."""
        exchange = self._pages.exchange(page)
        declared = declared_type(exchange)
        source = PageSource(
            url=page.row.url,
            content_type=page.row.content_type if exchange.is_decoded else "",
            content=exchange.content,
            headers=exchange.headers,
            header_charset=declared.charset,
            fetched_at=page.row.fetched_at,
            robots_token=self._robots_token,
            for_search=self._for_search,
        )
        article = self._by_plugin(source) if self._parsers and exchange.is_decoded else None
        if article is None and self._reads_pdf and source.content_type == PDF:
            article = _pdf_article(source)
        return PageDocument(self._facts(page, declared.essence), article or read_article(source)), source

    def _by_plugin(self, source: PageSource) -> Article | None:
        """Return the article that a plugin reads; None if there is none for the type, or it raises."""
        from gossamer.parse.by_plugin import article_of, parsed_by_plugin

        try:
            parsed = parsed_by_plugin(self._parsers, source.content, source.url, source.content_type)
        except PluginError:  # the crawl has a dead letter for it
            return None
        return article_of(parsed, source.url) if parsed is not None else None

    def _facts(self, page: ExportedPage, declared: str) -> PageFacts:
        row = page.row
        span = page.span
        seed = self._seed(page.row.seed)
        onward = Fates(self._crawl.ledger).of(page.url_id) if 300 <= row.status < 400 and row.redirect_to else _NO_FATE
        times = row.times or _NO_TIMES
        return PageFacts(
            url=row.url,
            fetched_at=iso_time(row.fetched_at),
            status=row.status,
            content_type=row.content_type,
            declared_type=declared,
            charset=row.charset,
            redirect_to=row.redirect_to,
            redirected_from=self._ancestry.redirected_from(page.url_id, row),
            redirects=list(onward.chain),
            redirect_loop=onward.is_loop,
            depth=row.depth,
            parent=self.url_of(row.parent),
            found_via=FOUND_VIA[row.source],
            seed=seed.url or self._ancestry.seed_of(page.url_id, row),
            seed_metadata=seed.metadata,
            meta=meta_of(page.url_id, row, self._crawl.ledger),
            etag=row.etag,
            last_modified=row.last_modified,
            lastmod=row.lastmod,
            content_hash=row.content_hash.hex(),
            payload_digest=sha1_base32(page.record.payload_digest) if page.record.payload_digest else "",
            bytes=row.content_bytes,
            words=row.words,
            truncated=row.truncated,
            duplicate_of=self.url_of(row.duplicate_of),
            near_duplicate_of=self.url_of(row.near_duplicate_of),
            similarity=1.0 if row.duplicate_of else round(row.similarity, 4),
            spam=row.spam.score if row.spam is not None else 0.0,
            spam_signals=list(row.spam.signals) if row.spam is not None else [],
            directives=row.directives,
            usage=row.usage,
            worker=row.worker,
            connect_ms=_known(times.connect),
            tls_ms=_known(times.tls),
            first_byte_ms=_known(times.first_byte),
            total_ms=_known(times.total),
            storage=Storage(span.file, span.offset, span.length, page.record.id),
        )

    def _seed(self, number: int) -> SeedRecord:
        """Return a seed; they are read again if it is new, since the crawl may be running."""
        if number not in self._seeds:
            self._seeds.update({seed.number: seed for seed in self._crawl.ledger.records(SEEDS)})
        return self._seeds.get(number, self._seeds[0])

    def url_of(self, key: UrlId) -> str:
        """Return the URL of an id; empty if there is none."""
        return self._url_of(key) if key else ""

    def _look_up_url(self, key: UrlId) -> str:
        row = self._crawl.ledger.look_up(key)
        return row.url if row is not None else ""


def _pdf_article(source: PageSource) -> Article:
    """Return the title, text and links of a PDF file: 0.2 s each, as when it was fetched."""
    from gossamer.parse.by_plugin import article_of
    from gossamer.parse.pdf.deep import check_deep, read_deep
    from gossamer.plugins import ParsedContent

    check_deep(parses_pdf=True)  # whoever hands over may have fewer packages than whoever crawled
    found = read_deep(source.content)
    return article_of(ParsedContent(title=found.title, text=found.text, links=found.hrefs), source.url)


def _known(milliseconds: int) -> int | None:
    return milliseconds if milliseconds >= 0 else None


def documents(crawl: CrawlView, selection: Selection = ANYTHING) -> Iterator[PageDocument]:
    """Yield the documents of a crawl that is open for reading, in archive order."""
    pages = ExportedPages(crawl)
    maker = DocumentMaker(crawl, pages)
    is_wanted = wanted_pages(selection)
    hosts = selection.hosts
    for page in pages.of_hosts(hosts, is_wanted) if hosts else pages.in_archive_order(is_wanted):
        document = maker.make(page)
        if selection.has_language(document.language):
            yield document


def wanted_pages(selection: Selection) -> Callable[[UrlRecord], bool]:
    """Return the test for rows: stored pages, unless a condition on the status selects others."""
    kind = is_answer if selection.names("status") else is_page
    return lambda row: kind(row) and selection.wants(row)


def iso_time(seconds: float) -> str:
    """Return a time in UTC, in ISO 8601 with milliseconds."""
    if not seconds:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
