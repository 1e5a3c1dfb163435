"""A crawl from within a program: `async with gossamer.crawl(seeds) as pages: async for page in pages: …`.

The crawl is the same as the command line's: same settings, same folder, same guarantees; either can
continue what the other stopped. It runs in the caller's event loop. Pages are yielded when they are
in the archive and in the ledger; their content is read from the archive on first access. A program
that falls behind pauses the crawl, so memory stays bounded: at most `MAX_WAITING` pages. Pages that
were yielded are not yielded again after a kill; an indexer that must not miss anything reads the feed
with a cursor (`gossamer.handover.feed`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from gossamer.assembly import build_session, open_ledger
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.intake import FoundLink, LinkHooks
from gossamer.errors import GossamerError, UsageError
from gossamer.exchanges import Exchange
from gossamer.handover.documents import DocumentMaker, PageDocument
from gossamer.handover.stored import StoredPage, StoredPages
from gossamer.inspect.node_folders import one_folder
from gossamer.parse.article import Article
from gossamer.ports import Ledger
from gossamer.records import Order, OrderKind, Outcome, Result, Source, UrlRecord
from gossamer.runtime.control import Pause, Resume, Stop
from gossamer.runtime.run_parts import Observer
from gossamer.runtime.session import Session
from gossamer.settings.load import check_names, refuse_page, settings_for_known, settings_for_new
from gossamer.settings.model import Settings
from gossamer.settings.regions import refuse_regions
from gossamer.settings.seeds import Seed, default_folder, needs_contact, seeds_from
from gossamer.telemetry.summary import Summary

__all__ = ["Crawling", "FoundLink", "Page", "crawl"]

MAX_WAITING = 256
RESUME_BELOW = 64
_READER = "reader"  # pauses a crawl whose pages are not read as fast as they arrive


class _LedgerAccess:
    """The ledger of a crawl while it runs and after it has ended: the content of its pages may still be read."""

    def __init__(self, folder: CrawlFolder, settings: Settings, session: Session) -> None:
        self.name = str(folder.path)
        self.folders = one_folder(folder)
        self.settings = settings
        self._folder = folder
        self._session = session
        self._reader: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        if self._session.is_open:
            return self._session.ledger
        if self._reader is None:
            self._reader = open_ledger(self._folder, is_readonly=True)
        return self._reader


class Page:
    """A page that was fetched, stored and recorded."""

    def __init__(self, order: Order, row: UrlRecord, pages: StoredPages, maker: DocumentMaker) -> None:
        self._key = order.url_id
        self._row = row
        self._pages = pages
        self._maker = maker
        self.url = row.url
        self.status = row.status
        self.depth = row.depth
        self.title = row.title
        self.content_type = row.content_type
        self.fetched_at = row.fetched_at  # seconds since 1970

    def __repr__(self) -> str:
        return f"Page({self.url!r})"

    @property
    def duplicate_of(self) -> str:
        """The URL of the page that this one duplicates, exactly or nearly; empty if there is none."""
        return self._maker.url_of(self._row.duplicate_of or self._row.near_duplicate_of)

    @cached_property
    def _stored(self) -> StoredPage:
        stored = self._pages.at(self._key, self._row)
        if stored is None:
            raise GossamerError(f"{self.url}: its archive record is missing")
        return stored

    @cached_property
    def _exchange(self) -> Exchange:
        return self._pages.exchange(self._stored)

    @property
    def content(self) -> bytes:
        """The body, decoded."""
        return self._exchange.content

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The response headers in order, names in lower case."""
        return self._exchange.headers

    @cached_property
    def document(self) -> PageDocument:
        """Everything that `gossamer export` writes for the page."""
        return self._maker.make(self._stored)

    @property
    def article(self) -> Article:
        """The content: main text, headings, dates, links with their anchor texts."""
        return self.document.article

    @property
    def text(self) -> str:
        """The main text."""
        return self.article.text

    @property
    def language(self) -> str:
        """The language as detected, otherwise as declared by the page."""
        return self.document.language

    @property
    def links(self) -> list[str]:
        """The URLs that the page links to."""
        return [link.url for link in self.article.links]


def crawl(
    seeds: str | Iterable[str],
    *,
    out: str | Path | None = None,
    accept_link: Callable[[FoundLink], bool] | None = None,
    score_link: Callable[[FoundLink], float] | None = None,
    on_page: Callable[[Page], None] | None = None,
    **settings: Any,  # noqa: ANN401 - checked against `Settings`
) -> Crawling:
    """Return a crawl, to be started with `async with`.

    `seeds` and `settings` are those of the command line (`max_pages=100`, `scope="host"`). Hooks: `accept_link`
    may reject a link that is in scope, `score_link` ranks it from 0 to 100 within its host, `on_page` is called with
    each page. If a hook raises, the crawl ends cleanly and the exception is raised.
    """
    found = seeds_from([seeds] if isinstance(seeds, str) else seeds)
    if not found and out is None:
        raise UsageError("no seeds; expected gossamer.crawl('https://example.org/')")
    folder = CrawlFolder(Path(out) if out is not None else default_folder(found[0].link.host))
    folder.check_usable()
    check_names(settings)
    sources = [("arguments", settings)]
    if folder.holds_crawl():
        chosen = settings_for_known(folder.settings_path, sources)
    else:
        chosen = settings_for_new(sources, has_domain_list=False)
        refuse_regions(chosen)
    refuse_page(chosen, "gossamer.crawl")
    if not chosen.contact and any(map(needs_contact, found)):
        raise UsageError("a crawl of public hosts needs contact='you@example.org', so that webmasters can reach you")
    return Crawling(chosen, folder, found, _Hooks(accept_link, score_link, on_page))


class _Hooks(Struct, frozen=True):
    accept_link: Callable[[FoundLink], bool] | None
    score_link: Callable[[FoundLink], float] | None
    on_page: Callable[[Page], None] | None


class Crawling:
    """A running crawl. Iterate over it for its pages, or `await` `finish` to run it to its end."""

    def __init__(self, settings: Settings, folder: CrawlFolder, seeds: list[Seed], hooks: _Hooks) -> None:
        self.out = folder.path
        self.summary: Summary | None = None  # once it has ended
        self._hooks = hooks
        observer = Observer(on_page=self._on_result)
        self._session = build_session(settings, folder, seeds, hooks=self._link_hooks(), observer=observer)
        access = _LedgerAccess(folder, settings, self._session)
        self._pages = StoredPages(access)
        self._maker = DocumentMaker(access, self._pages)
        self._waiting: deque[Page] = deque()
        self._wakes = asyncio.Event()
        self._is_iterated = True
        self._is_paused = False
        self._failure: Exception | None = None  # of a hook
        self._run: asyncio.Task[Summary] | None = None

    async def __aenter__(self) -> Self:
        self._session.open()
        self._run = asyncio.create_task(self._session.run(is_guest=True))
        self._run.add_done_callback(lambda _: self._wakes.set())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_iterated = False
        self._session.submit(Stop("stopped"))
        await self._end()

    def stop(self) -> None:
        """Stop cleanly: requests in flight are completed, and finished pages are yielded."""
        self._session.submit(Stop("stopped"))

    async def finish(self) -> Summary:
        """Run the crawl to its end without iterating; return its summary."""
        self._is_iterated = False
        self._waiting.clear()
        self._set_paused(False)
        await self._end()
        assert self.summary is not None
        return self.summary

    async def _end(self) -> None:
        assert self._run is not None
        try:
            self.summary = await self._run
        except GossamerError:
            if self._failure is None:
                raise
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # -- pages ------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Page]:
        return self

    async def __anext__(self) -> Page:
        assert self._run is not None
        while not self._waiting:
            if self._run.done():
                await self._end()
                raise StopAsyncIteration
            self._wakes.clear()
            await self._wakes.wait()
        page = self._waiting.popleft()
        if self._is_paused and len(self._waiting) <= RESUME_BELOW:
            self._set_paused(False)
        return page

    def _on_result(self, order: Order, result: Result) -> None:
        if order.kind is not OrderKind.PAGE or result.outcome is not Outcome.OK:
            return
        row = self._session.ledger.look_up(order.url_id)
        if row is None or row.source is Source.PROBE:
            return
        page = Page(order, row, self._pages, self._maker)
        if self._hooks.on_page is not None:
            self._guarded(self._hooks.on_page, page, None)
        if self._is_iterated:
            self._waiting.append(page)
            self._wakes.set()
            if len(self._waiting) >= MAX_WAITING:
                self._set_paused(True)

    def _set_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._session.submit(Pause(_READER) if is_paused else Resume(_READER))

    # -- hooks ------------------------------------------------------------------------------------

    def _link_hooks(self) -> LinkHooks:
        accept, score = self._hooks.accept_link, self._hooks.score_link
        return LinkHooks(
            None if accept is None else lambda link: self._guarded(accept, link, False),
            None if score is None else lambda link: self._guarded(lambda found: float(score(found)), link, 0.0),
        )

    def _guarded(self, hook: Callable[[Any], Any], argument: object, default: object) -> Any:  # noqa: ANN401
        """Return the hook's result; if it raises, stop the crawl and store the exception."""
        if self._failure is not None:
            return default
        try:
            return hook(argument)
        except Exception as error:  # a user's code may raise anything
            self._failure = error
            self._session.submit(Stop("hook_failed"))
            return default
