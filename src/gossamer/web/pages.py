"""The pages of a crawl for its dashboard: found by URL or title, and shown as they were archived.

An archived copy is the work of strangers. It is served in UTF-8 with a policy of its own, which puts it into a sandbox
of no origin without scripts, forms, or anything from elsewhere, and shown in a frame with the same sandbox.
A browser connects ahead of use to where a `<link>`, a frame or a link that is clicked would lead, before it asks any
policy; so these elements are renamed, which makes them inert.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from gossamer.archive.reader import parse_http_head
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.url.forms import canonical, host_of
from gossamer.engine.admission.revival import dead_letters, is_requested, purpose_of
from gossamer.handover.export.documents import DocumentMaker
from gossamer.handover.export.stored import ExportedPage, ExportedPages, is_page
from gossamer.model.errors import UsageError
from gossamer.model.records import UrlId, UrlRecord, UrlState
from gossamer.parse.types.charset import html_as_utf8
from gossamer.reading.view import CrawlView
from gossamer.reading.why.source import life_as_json, life_in
from gossamer.telemetry.advice import advice_on
from gossamer.web.access import Tickets
from gossamer.web.http import Response
from gossamer.web.routes import MISSING, ApiError, ApiRoute, Nothing
from gossamer.web.source import CrawlSource

# Looks through the catalog for some rows, a part at a time.
#
# A crawl has millions of URLs, and a question must be answered within a second: so a scan stops after `MAX_S`, says how
# many rows it has scanned, and gives a cursor to go on from. 3 µs per row.

MAX_S = 0.7
_LOOK_AT_CLOCK = 256  # rows


class Scan(Struct, frozen=True):
    """What a scan found. The cursor is empty if it has scanned everything."""

    rows: list[tuple[UrlId, UrlRecord]]
    scanned: int
    cursor: str


def scan(crawl: CrawlView, is_wanted: Callable[[UrlRecord], bool], cursor: str, limit: int, host: str = "") -> Scan:
    """Return up to `limit` rows after a cursor (the id of a URL in hex, or empty), of one host or of all."""
    after = bytes.fromhex(cursor)
    end = time.monotonic() + MAX_S
    rows: list[tuple[UrlId, UrlRecord]] = []
    scanned = 0
    for key, row in crawl.ledger.urls(crawl.ledger.host_id(host) if host else None, after):
        scanned += 1
        if is_wanted(row):
            rows.append((key, row))
        if len(rows) >= limit or (scanned % _LOOK_AT_CLOCK == 0 and time.monotonic() > end):
            return Scan(rows, scanned, key.hex())
    return Scan(rows, scanned, "")


COPY_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
MAX_TEXT_CHARS = 500_000
_ASKED = r"://|^[^/?#\s]*[.:][^/?#\s]|^localhost($|[/?#])"  # a URL, or a text without a scheme that names a host
_HTML = ("text/html", "application/xhtml+xml")
_LEADING_OUT = re.compile(rb"<(/?)(?=(?:a|area|frame|iframe|link)[\s/>])", re.IGNORECASE)
_STYLE = b"<style>x-a{color:#0b57d0;text-decoration:underline}</style>"

Text: TypeAlias = Annotated[str, Meta(max_length=2000)]
Cursor: TypeAlias = Annotated[str, Meta(pattern="^([0-9a-f]{32})?$")]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=500)]


class PagesQuery(Struct, frozen=True):
    """Which pages."""

    q: Text = ""  # a part of the URL or title
    host: Annotated[str, Meta(max_length=300)] = ""
    cursor: Cursor = ""
    limit: Limit = 50


class DeadQuery(Struct, frozen=True):
    """Which dead letters."""

    outcome: Annotated[str, Meta(max_length=40)] = ""
    host: Annotated[str, Meta(max_length=300)] = ""
    cursor: Cursor = ""
    limit: Limit = 50


class DuplicatesQuery(Struct, frozen=True):
    """Which duplicates."""

    kind: Literal["all", "exact", "near"] = "all"
    cursor: Cursor = ""
    limit: Limit = 50


class PageLine(Struct, frozen=True):
    """A URL in a list."""

    id: str
    url: str
    title: str
    state: str
    outcome: str
    status: int
    content_type: str
    bytes: int
    fetched_at: float
    depth: int
    error: str
    same_as: str  # the URL of the page that it duplicates
    similarity: float  # to that one: 1 if it is the same
    has_copy: bool
    purpose: str  # page, sitemap, or probe: our own request for a page that cannot exist


class PagesAnswer(Struct, frozen=True):
    """A page of a list of URLs. With a cursor, there are more, or rows that were not scanned yet."""

    pages: list[PageLine]
    scanned: int
    cursor: str


class PageId(Struct, frozen=True):
    """One URL, by its id."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class CopyQuery(PageId, frozen=True):
    """The archived copy of one URL; a frame, which sends no token, has a ticket."""

    ticket: str = ""


class Header(Struct, frozen=True):
    """A header of an archived answer."""

    name: str
    value: str


class PageAnswer(Struct, frozen=True):
    """An archived page: facts, headers, text."""

    page: PageLine
    http_status: int
    address: str
    archived_in: str
    headers: list[Header]
    text: str
    is_text_cut: bool
    copy: str  # where the archived copy is, with a ticket: for a frame


class WhyQuery(Struct, frozen=True):
    """One URL."""

    url: Annotated[str, Meta(min_length=1, max_length=8000, extra_json_schema={"pattern": _ASKED})]


class WhyAnswer(Struct, frozen=True):
    """The whole history of a URL, as `gossamer why --json` prints it."""

    life: dict[str, Any]
    advice: str  # what helps if it is dead
    note: str  # what could not be read
    pace: list[str]  # of its host: which rules set it, for people


class Trap(Struct, frozen=True):
    """A pattern of URLs in quarantine."""

    name: str
    host: str
    pattern: str
    since: float
    fetched: int
    new: int
    held: int
    samples: list[str]
    is_released: bool
    reason: str = ""  # if it is not that pages had nothing new
    demotes_only: bool = False  # a host with spam that is demoted, and none of whose links are held


class TrapsAnswer(Struct, frozen=True):
    """The patterns in quarantine, and those that were released."""

    traps: list[Trap]


class UrlQuestions:
    """Answers questions about URLs."""

    def __init__(self, source: CrawlSource, tickets: Tickets) -> None:
        self._source = source
        self._tickets = tickets

    def routes(self) -> list[ApiRoute]:
        lists: list[tuple[str, str, Callable[..., Awaitable[PagesAnswer]], type[Struct]]] = [
            ("/api/pages", "Pages", self.find, PagesQuery),
            ("/api/dead", "Dead letters", self.dead, DeadQuery),
            ("/api/duplicates", "Pages with the content of another", self.duplicates, DuplicatesQuery),
        ]
        found = [
            ApiRoute(path=path, summary=text, handle=handle, answer=PagesAnswer, parameters=query, statuses=MISSING)
            for path, text, handle, query in lists
        ]
        return [
            *found,
            ApiRoute(path="/api/traps", summary="Patterns in quarantine", handle=self.traps, answer=TrapsAnswer),
            ApiRoute(
                path="/api/why",
                summary="The history of a URL",
                handle=self.why,
                answer=WhyAnswer,
                parameters=WhyQuery,
                statuses=MISSING,
            ),
            ApiRoute(
                path="/api/pages/{id}",
                summary="An archived page",
                handle=self.one,
                answer=PageAnswer,
                parameters=PageId,
                statuses=MISSING,
            ),
            ApiRoute(
                path="/api/pages/{id}/why",
                summary="The history of the URL with this id",
                handle=self.why_of,
                answer=WhyAnswer,
                parameters=PageId,
                statuses=MISSING,
            ),
            ApiRoute(
                path="/api/pages/{id}/copy",
                summary="The archived copy, in a sandbox",
                handle=self.copy,
                answer=str,
                parameters=CopyQuery,
                statuses=MISSING,
                media="*/*",
            ),
        ]

    async def find(self, query: PagesQuery) -> PagesAnswer:
        """Return pages whose URL or title contains a text."""
        words = query.q.lower().split()

        def is_wanted(row: UrlRecord) -> bool:
            text = f"{row.url} {row.title}".lower()
            return is_page(row) and row.state is UrlState.DONE and all(word in text for word in words)

        return await self._source.read(lambda view: _listed(view, is_wanted, query.cursor, query.limit, query.host))

    async def dead(self, query: DeadQuery) -> PagesAnswer:
        """Return dead letters, as `gossamer retry --list` does."""
        wanted = dead_letters([query.outcome] if query.outcome else [])

        def is_wanted(row: UrlRecord) -> bool:
            return is_requested(row, wanted)

        return await self._source.read(lambda view: _listed(view, is_wanted, query.cursor, query.limit, query.host))

    async def duplicates(self, query: DuplicatesQuery) -> PagesAnswer:
        """Return pages with the content of another one."""

        def is_wanted(row: UrlRecord) -> bool:
            return bool(
                (row.duplicate_of and query.kind != "near") or (row.near_duplicate_of and query.kind != "exact")
            )

        return await self._source.read(lambda view: _listed(view, is_wanted, query.cursor, query.limit))

    async def traps(self, _: Nothing) -> TrapsAnswer:
        """Return the patterns in quarantine, most URLs first."""

        def read(view: CrawlView) -> TrapsAnswer:
            found = sorted(view.ledger.records(QUARANTINES), key=lambda each: (each.is_released, -each.held))
            return TrapsAnswer([_trap(each) for each in found])

        return await self._source.read(read)

    async def why(self, query: WhyQuery) -> WhyAnswer:
        if re.search(_ASKED, query.url) is None:
            raise ApiError(400, f"{query.url[:80]!r}: expected a URL (https://example.org/page) or a domain")
        return await self._source.read_events(lambda view: _why(view, query.url))

    async def why_of(self, query: PageId) -> WhyAnswer:
        """Return the history of a URL that is known by its id: if queries are masked, a list has no other name."""

        def read(view: CrawlView) -> WhyAnswer:
            row = view.ledger.look_up(bytes.fromhex(query.id))
            if row is None:
                raise ApiError(404, "no URL of this crawl has this id")
            return _why(view, row.url)

        return await self._source.read_events(read)

    async def one(self, query: PageId) -> PageAnswer:
        path = f"/api/pages/{query.id}/copy"
        copy = f"{path}?ticket={self._tickets.ticket(path)}"
        return await self._source.read(lambda view: _page(view, bytes.fromhex(query.id), copy))

    async def copy(self, query: CopyQuery) -> Response:
        """Return the archived copy of a page, for a frame."""
        return await self._source.read(lambda view: _copy(view, bytes.fromhex(query.id)))


def _listed(
    crawl: CrawlView, is_wanted: Callable[[UrlRecord], bool], cursor: str, limit: int, host: str = ""
) -> PagesAnswer:
    if host and canonical(f"http://{host}/") is None:
        raise ApiError(404, f"{host[:80]!r}: not a host name; expected example.org")
    found = scan(crawl, is_wanted, cursor, limit, host_of(canonical(f"http://{host}/") or "") if host else "")
    return PagesAnswer([_line(key, row, crawl) for key, row in found.rows], found.scanned, found.cursor)


def _line(key: UrlId, row: UrlRecord, crawl: CrawlView) -> PageLine:
    same = row.duplicate_of or row.near_duplicate_of
    other = crawl.ledger.look_up(same) if same else None
    return PageLine(
        id=key.hex(),
        url=row.url,
        title=row.title,
        state=row.state.name.lower(),
        outcome=row.outcome,
        status=row.status,
        content_type=row.content_type,
        bytes=row.content_bytes,
        fetched_at=row.fetched_at,
        depth=row.depth,
        error=row.error,
        same_as=other.url if other is not None else "",
        similarity=1.0 if row.duplicate_of else round(row.similarity, 3),
        has_copy=row.archived is not None,
        purpose=purpose_of(row),
    )


def _trap(each: Quarantine) -> Trap:
    return Trap(
        each.name,
        each.host,
        each.pattern,
        each.since,
        each.fetched,
        each.new,
        each.held,
        each.samples,
        each.is_released,
        each.reason,
        each.demotes_only,
    )


def _why(crawl: CrawlView, url: str) -> WhyAnswer:
    try:
        life = life_in(crawl, url)
    except UsageError as error:
        raise ApiError(404, str(error)) from error
    is_dead = life.row is not None and life.row.state is UrlState.DEAD
    advice = advice_on(life.row.outcome, life.row.status) if life.row is not None and is_dead else ""
    return WhyAnswer(life_as_json(life), advice, crawl.folders.hint, life.pace.lines() if life.pace else [])


# -- one page -------------------------------------------------------------------------------------


def _stored(crawl: CrawlView, key: UrlId) -> tuple[ExportedPages, ExportedPage]:
    row = crawl.ledger.look_up(key)
    if row is None or row.archived is None:
        raise ApiError(404, "no archived copy has this id")
    try:
        pages = ExportedPages(crawl)
    except UsageError as error:
        raise ApiError(404, str(error)) from error
    page = pages.at(key, row) if pages.is_reachable(row) else None
    if page is None:
        where = crawl.folders.hint or "; 'gossamer verify' shows more"
        raise ApiError(404, f"the archived copy cannot be read here{where}")
    return pages, page


def _page(crawl: CrawlView, key: UrlId, copy: str) -> PageAnswer:
    pages, page = _stored(crawl, key)
    status, headers = parse_http_head(page.record.http_parts()[0])
    text = DocumentMaker(crawl, pages).make(page).article.text
    return PageAnswer(
        page=_line(key, page.row, crawl),
        http_status=status,
        address=page.record.fields.get("warc-ip-address", ""),
        archived_in=f"{page.span.file} at {page.span.offset}",
        headers=[Header(name, value) for name, value in headers],
        text=text[:MAX_TEXT_CHARS],
        is_text_cut=len(text) > MAX_TEXT_CHARS,
        copy=copy,
    )


def _copy(crawl: CrawlView, key: UrlId) -> Response:
    pages, page = _stored(crawl, key)
    exchange = pages.exchange(page)
    kind = page.row.content_type
    if kind in _HTML and exchange.is_decoded:
        content = html_as_utf8(exchange.content, page.row.charset)
        inert = _LEADING_OUT.sub(rb"<\1x-", content) + _STYLE
        return Response(200, inert, "text/html; charset=utf-8", policy=COPY_POLICY)
    if kind.startswith("text/") and exchange.is_decoded:
        content = html_as_utf8(exchange.content, page.row.charset)
        return Response(200, content, "text/plain; charset=utf-8", policy=COPY_POLICY)
    name = [("Content-Disposition", f'attachment; filename="{key.hex()}.bin"')]
    return Response(200, exchange.content, "application/octet-stream", name, COPY_POLICY)
