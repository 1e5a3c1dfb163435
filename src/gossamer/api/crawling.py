"""A crawl that runs within a program: its pages, failures and events, and what may be added to it.

Pages are yielded when they are in the archive and in the ledger. A program that falls behind pauses the crawl, so
memory stays bounded: at most `MAX_WAITING` pages, events or calls of hooks wait. The crawl does not end by itself while
the program has a page, an event or a call in its hands: it may add URLs.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from msgspec.structs import replace

from gossamer.api.hooks import AwaitedLinkHooks, DirectLinkHooks, Failure, HookCalls, Hooks, Meta, encoded_meta
from gossamer.api.page import Page, PageParts
from gossamer.assembly.run import RunPlace, build_session, open_ledger
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.links.intake import FoundLink
from gossamer.core.politeness.other_crawls import HostContacts
from gossamer.core.url.forms import host_of, link_to
from gossamer.handover.export.documents import DocumentMaker
from gossamer.handover.export.stored import ExportedPages
from gossamer.model.commands import Pause, Resume, Stop, Wake
from gossamer.model.errors import GossamerError, IncompleteCrawlWarning, SeedsFailedError, UsageError
from gossamer.model.events import Event, EventName
from gossamer.model.records import ANSWERED, FetchKind, FetchTask, Link, Outcome, Result, Source, UrlRecord, UrlState
from gossamer.ports import Catalog, Ledger
from gossamer.reading.node_folders import one_folder
from gossamer.reading.why.fates import MAX_CHAIN
from gossamer.reading.why.link_meta import meta_of
from gossamer.runtime.session.parts import Observer
from gossamer.runtime.session.session import Session
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, needs_contact, seeds_in
from gossamer.telemetry.summary import Summary

# Which seeds could not be fetched, and why? Read from the ledger, so it holds for earlier runs too.


def failed_seeds(seeds: Iterable[Seed], ledger: Catalog) -> list[Failure]:
    """Return the seeds that failed, were forbidden, or wait for a host that is parked."""
    failures = (_failure(seed, ledger) for seed in seeds)
    return [failure for failure in failures if failure is not None]


def _failure(seed: Seed, ledger: Catalog) -> Failure | None:
    link = seed.link
    if seed.is_guess:  # https was a guess: if there is none, the seed is the URL with http
        plain = link_to("http:" + link.url.removeprefix("https:"))
        link = plain if ledger.look_up(ledger.url_id(plain.url)) is not None else link
    at, row = _redirected(link, ledger)
    if row is None:
        is_target = at.url != link.url
        return _failed(link, "not_queued", f"redirects to {at.url}, which was not queued") if is_target else None
    if row.state is UrlState.DEAD or row.outcome == Outcome.ROBOTS_DENIED.value:
        return _failed(link, row.outcome, row.error or (f"status {row.status}" if row.status else ""), row)
    host = ledger.host(host_of(row.url)) if row.state is UrlState.QUEUED else None
    if host is not None and host.park_reason and host.parked_until > 0:
        return _failed(link, "parked", host.park_reason, row)
    return None


def _redirected(link: Link, ledger: Catalog) -> tuple[Link, UrlRecord | None]:
    """Return where redirects lead to."""
    row = ledger.look_up(ledger.url_id(link.url))
    for _ in range(MAX_CHAIN):
        if row is None or row.outcome not in _LEADS_ON or not row.redirect_to:
            break
        link = link_to(row.redirect_to)
        row = ledger.look_up(ledger.url_id(link.url))
    return link, row


def _failed(link: Link, outcome: str, error: str, row: UrlRecord | None = None) -> Failure:
    status, attempts = (row.status, row.attempt + 1) if row is not None else (0, 0)
    return Failure(url=link.url, host=link.host, outcome=outcome, error=error, status=status, attempts=attempts)


_LEADS_ON = frozenset({Outcome.REDIRECT.value, Outcome.NO_HTTPS.value})
MAX_WAITING = 256
RESUME_BELOW = 64
Statuses: TypeAlias = Literal["pages", "all"] | Collection[int]
_STOPPED = frozenset({"stopped", "signal", "max_time", "hook_failed"})  # not because there was nothing left
_NOT_STARTED = "the crawl is not started; expected 'async with gossamer.crawl(…) as pages:' around it"
_Item = TypeVar("_Item")
_CONTACTS = HostContacts()  # of all crawls of this program: hosts do not care which of them it is


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


class _Brake:
    """Pauses the crawl while too much waits to be read."""

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._session = session
        self._is_on = False

    def set(self, waiting: int) -> None:
        if self._is_on is (waiting > RESUME_BELOW if self._is_on else waiting >= MAX_WAITING):
            return
        self._is_on = not self._is_on
        self._session.submit(Pause(self._name) if self._is_on else Resume(self._name))


class _Stream(Generic[_Item]):
    """A queue: `put` by the crawl, `get` by the program."""

    def __init__(self, name: str, session: Session) -> None:
        self._session = session
        self._brake = _Brake(name, session)
        self.waiting: deque[_Item] = deque()
        self._wakes = asyncio.Event()
        self.is_wanted = True
        self._is_held = True  # the program has the last item, or has not begun to read

    @property
    def is_busy(self) -> bool:
        return self.is_wanted and (self._is_held or bool(self.waiting))

    def put(self, item: _Item) -> None:
        if self.is_wanted:
            self.waiting.append(item)
            self._wakes.set()
            self._brake.set(len(self.waiting))

    def accept(self, item: _Item) -> bool:
        """Put an item; return whether more are wanted."""
        self.put(item)
        return self.is_wanted

    def end(self) -> None:
        """Nothing more comes."""
        self._wakes.set()

    def close(self) -> None:
        """Nobody reads any more."""
        self.is_wanted = self._is_held = False
        self.waiting.clear()
        self._brake.set(0)
        self._session.submit(Wake())

    async def get(self, is_over: Callable[[], bool]) -> _Item | None:
        """Return the next item; None if it is over."""
        self.is_wanted = True
        while not self.waiting:
            if is_over():
                return None
            self._is_held = False
            self._session.submit(Wake())  # the crawl may end now
            self._wakes.clear()
            await self._wakes.wait()
        self._is_held = True
        item = self.waiting.popleft()
        self._brake.set(len(self.waiting))
        return item


class Crawling:
    """A running crawl. Iterate over it for its pages, or `await` `finish` to run it to its end."""

    def __init__(
        self, settings: Settings, folder: CrawlFolder, seeds: list[Seed], hooks: Hooks, statuses: Statuses = "pages"
    ) -> None:
        self.out = folder.path
        self.summary: Summary | None = None  # once it has ended
        self._settings = settings
        self._seeds = seeds
        self._hooks = hooks
        self._statuses = statuses
        awaited = hooks.waits_for_links
        self._awaited = AwaitedLinkHooks(hooks, self._with_page_meta, self._fail) if awaited else None
        link_hooks = self._awaited or DirectLinkHooks(hooks, self._with_page_meta, self._fail)
        self._last_page: tuple[str, dict[str, Any]] = ("", {})  # whose links hooks have got, and its metadata
        review = None if self._awaited is None else self._awaited.review
        observer = Observer(on_page=self._on_result, review=review, is_needed=self._is_needed)
        self._session = build_session(
            settings, folder, seeds, hooks=link_hooks.of_engine(), observer=observer, place=RunPlace(contacts=_CONTACTS)
        )
        access = _LedgerAccess(folder, settings, self._session)
        stored = ExportedPages(access)
        self._parts = PageParts(access, stored, DocumentMaker(access, stored))
        self._pages: _Stream[Page] = _Stream("reader", self._session)
        self._has_begun = False  # to read pages
        self._events: list[_Stream[Event]] = []
        self._calls = HookCalls(self._fail, _Brake("hooks", self._session).set)
        self._answers = 0  # that were handed over
        self._failure: Exception | None = None  # of a hook
        self._run: asyncio.Task[Summary] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        if self._run is not None:
            raise UsageError("a crawl is started once; expected another gossamer.crawl(…, out=…) to continue it")
        if self._hooks.on_error is not None:
            self._session.listen(self._on_event)
        if self._awaited is None:
            self._session.open()
        else:  # recovery may have to wait for hooks, which need the loop
            self._awaited.loop = asyncio.get_running_loop()
            self._awaited.asks = self._session.link_review
            await asyncio.to_thread(self._session.open)
        self._run = asyncio.create_task(self._session.run(is_guest=True))
        self._run.add_done_callback(self._on_end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pages.close()
        self._session.submit(Stop("stopped"))
        await self._end()

    def stop(self) -> None:
        """Stop cleanly: requests in flight are completed, and finished pages are yielded."""
        self._session.submit(Stop("stopped"))

    async def finish(self) -> Summary:
        """Run the crawl to its end without iterating; return its summary."""
        self._started()
        self._pages.close()
        await self._end()
        assert self.summary is not None
        return self.summary

    def _started(self) -> asyncio.Task[Summary]:
        if self._run is None:
            raise UsageError(_NOT_STARTED)
        return self._run

    async def _end(self) -> None:
        run = self._started()
        try:
            self.summary = await asyncio.shield(run)
        except GossamerError:
            if self._failure is None:
                raise
        finally:
            if self._awaited is not None:
                self._awaited.cancel()
        await self._calls.finish()
        if self._failure is not None:
            failure = self._failure
            self._failure = None
            raise failure
        is_first = not self._is_over
        self._is_over = True
        if self.summary is not None and is_first:
            self._check(self.summary)

    def _check(self, summary: Summary) -> None:
        """Warn if URLs are held back; raise if nothing was fetched because no seed could be."""
        if summary.held or summary.held_dropped:
            warnings.warn(f"{summary.out}: {summary.ended_because}", IncompleteCrawlWarning, stacklevel=4)
        if summary.pages or self._answers or not self._seeds:
            return
        if summary.finished not in _STOPPED and len(self.failed_seeds) == len(self._seeds):
            first = self.failed_seeds[0]
            more = len(self._seeds) - 1
            others = f"; nor could {more} more: see failed_seeds" if more else ""
            raise SeedsFailedError(f"no seed could be fetched: {first.url}: {first.outcome}: {first.error}{others}")

    @property
    def failed_seeds(self) -> list[Failure]:
        """The seeds of this call that could not be fetched, so far, and why."""
        self._started()
        return failed_seeds(self._seeds, self._parts.crawl.ledger)

    # -- pages and events -------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Page]:
        self._started()
        return self

    async def __anext__(self) -> Page:
        run = self._started()
        self._has_begun = True
        page = await self._pages.get(run.done)
        if page is None:
            await self._end()
            raise StopAsyncIteration
        return page

    async def events(self) -> AsyncIterator[Event]:
        """Yield every event from now on: what was fetched, refused, parked, and why.

        Pages are not collected from then on, unless they are being iterated over already.
        """
        run = self._started()
        if not self._has_begun:
            self._pages.close()
        stream: _Stream[Event] = _Stream(f"events {len(self._events)}", self._session)
        self._events.append(stream)
        self._session.listen(stream.accept)
        try:
            while (event := await stream.get(run.done)) is not None:
                yield event
        finally:
            stream.close()
            self._events.remove(stream)
        await self._end()

    def _is_needed(self) -> bool:
        return self._pages.is_busy or self._calls.is_busy or any(stream.is_busy for stream in self._events)

    def _on_end(self, _: asyncio.Task[Summary]) -> None:
        self._pages.end()
        for stream in self._events:
            stream.end()

    def _on_result(self, task: FetchTask, result: Result) -> None:
        if task.kind is not FetchKind.PAGE or result.outcome is Outcome.WORKER_LOST:
            return
        is_failure = result.outcome not in ANSWERED and self._hooks.on_error is not None
        if not is_failure and not self._is_wanted(result):
            return
        row = self._session.ledger.look_up(task.url_id)
        if row is None or row.source is Source.PROBE:
            return
        is_final = row.state is not UrlState.QUEUED
        if is_failure and is_final and self._hooks.on_error is not None:
            self._calls.call(self._hooks.on_error, _failure_of(task, result))
        if self._is_wanted(result) and (is_final or result.outcome is Outcome.OK):
            self._hand_over(Page(task.url_id, row, self._parts))

    def _is_wanted(self, result: Result) -> bool:
        if self._statuses == "pages":
            return result.outcome is Outcome.OK
        return bool(result.status) and (self._statuses == "all" or result.status in self._statuses)

    def _hand_over(self, page: Page) -> None:
        self._answers += 1
        if self._hooks.on_page is not None and self._failure is None:
            self._calls.call(self._hooks.on_page, page)
        self._pages.put(page)

    def _on_event(self, event: Event) -> bool:
        """Report what failed without a request."""
        hook = self._hooks.on_error
        if hook is not None and event.event is EventName.HOST_DEAD:
            outcome, _, error = event.reason.partition(": ")
            self._calls.call(hook, Failure(url="", host=event.host, outcome=outcome, error=error, urls=event.links))
        elif hook is not None and event.event is EventName.ROBOTS_DISALLOW:
            error = f"line {event.line}: {event.rule}"
            outcome = Outcome.ROBOTS_DENIED.value
            failure = Failure(url=event.url, host=event.host, outcome=outcome, error=error, depth=event.depth)
            self._calls.call(hook, failure)
        return True

    def _fail(self, error: Exception) -> None:
        """End the crawl because of a hook's exception; the first one is raised. From any thread."""
        if self._failure is None:
            self._failure = error
            self._session.submit(Stop("hook_failed"))

    def _with_page_meta(self, link: FoundLink) -> FoundLink:
        if not link.found_on:
            return link
        if link.found_on != self._last_page[0]:
            ledger = self._session.ledger
            key = ledger.url_id(link.found_on)
            self._last_page = link.found_on, meta_of(key, ledger.look_up(key), ledger)
        meta = self._last_page[1]
        return replace(link, page_meta=dict(meta)) if meta else link

    # -- adding -----------------------------------------------------------------------------------

    async def add(self, urls: str | Iterable[str], *, meta: Meta | None = None) -> int:
        """Queue URLs as seeds are; return how many were new. On return they survive a kill.

        `meta`, a small dict of JSON values, is `page.meta` of the page that each leads to.
        """
        self._started()
        lines = [urls] if isinstance(urls, str) else list(urls)
        seeds = seeds_in(lines)
        if not seeds:
            return 0
        if not self._settings.contact and any(map(needs_contact, seeds)):
            raise UsageError("a crawl of public hosts needs contact='you@example.org'; nothing was added")
        encoded = encoded_meta(meta, lines[0]) if meta is not None else b""
        if self._session.is_ending:
            raise GossamerError("the crawl has ended, or is ending; add URLs before, or continue it with out=…")
        return await self._session.control.add_seeds(lines, encoded, "program")


def _failure_of(task: FetchTask, result: Result) -> Failure:
    return Failure(
        url=task.url,
        host=task.host,
        outcome=result.outcome.value,
        error=result.error or (f"status {result.status}" if result.status else ""),
        status=result.status,
        depth=task.depth,
        attempts=task.attempt + 1,
    )
