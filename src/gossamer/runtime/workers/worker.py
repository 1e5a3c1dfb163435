"""Carries out tasks: fetch, parse, archive, and one small result each.

A worker is independent of frontier and ledger. Each task passed to `start` produces exactly
one `Result`, whatever the server does; if our own code raises on it, a result with the outcome
`internal_error`, and a `Crash` with the details. The records of a task are in the archive before its
result is reported. What may take long (large bodies, PDF files, XML) is parsed in a thread, so that the
event loop is not blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from gossamer.core.content.pdf_type import PDF
from gossamer.core.politeness.networks import network_of
from gossamer.core.robots.rules import MAX_ROBOTS_BYTES
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.href_memo import HrefMemo
from gossamer.fetch.http import BIG_BODY_BYTES, Fetcher, FetchRequest
from gossamer.fetch.transfer import OnSent
from gossamer.foundation import failpoints
from gossamer.model.errors import GossamerError, as_our_error
from gossamer.model.exchanges import Exchange, FetchedPage, Volume
from gossamer.model.records import ContentRecord, FetchKind, FetchTask, Outcome, Result
from gossamer.parse.dispatch import may_be_pdf
from gossamer.parse.feeds.feed_type import feed_type
from gossamer.parse.types.sniff import HTML, XHTML, XML
from gossamer.runtime.session.clock import lease_clock
from gossamer.runtime.watch import vitals
from gossamer.runtime.watch.crash import Crash, crash_of
from gossamer.runtime.workers.answers import WorkerRules, add_stored_links, crashed_result, is_head, read_answer
from gossamer.runtime.workers.marks import Marks, new_marks

if TYPE_CHECKING:
    from gossamer.ports import PageSink
from collections import OrderedDict, deque

# In which order are answers read that have arrived? By turns between the addresses that sent them, and at each of these
# by turns between registrable domains.
#
# If answers arrive faster than they can be read, they wait; in the order of arrival, hosts that are asked once in a
# while would wait behind all that a farm of a thousand hosts at one address sends at the same time. By turns, they
# wait for one answer of each other address, and of each other domain at their own. Adding and removing one takes 1 µs.


class Arrivals:
    __slots__ = ("_by_address",)

    def __init__(self) -> None:
        # By network and domain: whose turn it is, is first.
        self._by_address: OrderedDict[str, OrderedDict[str, deque[tuple[FetchTask, Exchange]]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def add(self, task: FetchTask, exchange: Exchange) -> None:
        """Add an answer behind those of its domain at its address."""
        network = network_of(exchange.address)
        domain = registrable_domain(task.host)
        domains = self._by_address.get(network)
        if domains is None:
            domains = self._by_address[network] = OrderedDict()
        waiting = domains.get(domain)
        if waiting is None:
            domains[domain] = deque(((task, exchange),))
        else:
            waiting.append((task, exchange))

    def take(self) -> tuple[FetchTask, Exchange]:
        """Remove and return the answer whose turn it is."""
        network, domains = next(iter(self._by_address.items()))
        domain, waiting = next(iter(domains.items()))
        taken = waiting.popleft()
        if waiting:
            domains.move_to_end(domain)
        else:
            del domains[domain]
        if domains:
            self._by_address.move_to_end(network)
        else:
            del self._by_address[network]
        return taken


BIG_BYTES = 250_000  # the slowest page of that size, full of links in a legacy charset, takes 0.1 s
BIG_LEGACY_BYTES = 40_000  # of a page in another charset than UTF-8, whose tables may have to be made first
BIG_XML_BYTES = 50_000
BIG_FEED_BYTES = 4_000  # the slowest feed of that size, whose URLs are relative to a long base, takes 20 ms
TRIM_BYTES = 2_000_000
SLICE_S = 0.004
MAX_GROUP = 8  # pages that are read before they are stored
# A coding that does not compress adds a little: with that much more, whatever was cut off has the full length decoded.
FETCHED_ROBOTS_BYTES = MAX_ROBOTS_BYTES + 4096
MAX_SITEMAP_BYTES = 50_000_000
CHECKED_BYTES = 4096  # of a body, if a URL is only checked and HEAD was refused; then the connection is closed
KEPT_TYPES = frozenset(
    {
        "text/",
        "application/xhtml+xml",
        "application/xml",
        "application/rss+xml",
        "application/x-rss+xml",
        "application/rdf+xml",
        "application/atom+xml",
    }
)
HTML_TYPES = frozenset((HTML, XHTML))
_PAGE = FetchKind.PAGE  # constants: see `runtime/workers/answers`
_ROBOTS = FetchKind.ROBOTS
_NOT_STORED = frozenset((Outcome.LINKS_ONLY, Outcome.TYPE_REFUSED))
_NOT_MODIFIED = Outcome.NOT_MODIFIED
_OPAQUE = (b"\x1f\x8b", b"%PDF-")
_NOT_WHOLE = frozenset(
    {
        Outcome.TYPE_REFUSED,
        Outcome.WORKER_LOST,
        Outcome.TIMEOUT,
        Outcome.DISCONNECTED,
        Outcome.PROTOCOL_ERROR,
        Outcome.HEADER_TOO_LARGE,
        Outcome.INTERNAL_ERROR,
    }
)


class Listener(Protocol):
    """Receives what becomes of tasks. Called from the event loop."""

    def on_result(self, result: Result) -> None:
        """A task has ended."""
        ...

    def on_sent(self, task_id: int, sent_at: float) -> None:
        """A request with `report_sent` was sent."""
        ...

    def on_failure(self, error: GossamerError) -> None:
        """The worker cannot continue: its archive cannot be written."""
        ...

    def on_crash(self, crash: Crash) -> None:
        """Our code raised on a page; its result follows, or was passed before."""
        ...


class Worker:
    def __init__(
        self,
        rules: WorkerRules,
        fetcher: Fetcher,
        sinks: Sequence[PageSink],
        first_copy: Callable[[bytes], ContentRecord | None],
        listener: Listener,
        *,
        stored_copy: Callable[[ContentRecord], Exchange | None] | None = None,
        marks: Marks | None = None,
    ) -> None:
        self._stored_copy = stored_copy
        self._rules = rules
        self._previews_left = rules.previews
        self._fetcher = fetcher
        self._sinks = sinks
        self._first_copy = first_copy
        self._listener = listener
        more = {PDF} if rules.parses_pdf and not rules.html_only else set()
        self._wanted = (HTML_TYPES if rules.html_only else KEPT_TYPES) | more | frozenset(rules.accepts)
        self._threads: set[asyncio.Task[None]] = set()
        # The tree of a page of 5 MB can take 100 MB: one at a time, in one thread that reuses its memory.
        self._big = ThreadPoolExecutor(1, "big")
        self._huge = ThreadPoolExecutor(1, "huge")  # writes: not behind what waits to be read
        self._deep = ThreadPoolExecutor(1, "deep")  # waits for a process that may read a PDF for 20 s
        self._arrivals = Arrivals()
        self._is_closing = False
        self._is_draining = False
        self._sinks_free = asyncio.Event()  # not while a thread writes to them
        self._sinks_free.set()
        self._is_held_up = False  # `_drain` waits for that
        self._memo = HrefMemo(rules.max_hrefs)
        self._marks = new_marks() if marks is None else marks
        vitals.map_large_blocks()

    def start(self, task: FetchTask) -> None:
        request = FetchRequest(
            url=task.url,
            addresses=task.addresses,
            headers=_conditions(task),
            wanted_types=self._wanted if task.kind is _PAGE and not self._rules.checks_only else None,
            max_bytes=_max_bytes(task.kind, self._rules),
            number=task.id,
            is_head=self._rules.checks_only and is_head(task),
            is_anonymous=task.is_anonymous,
            limit_s=task.limit_s,
        )
        on_sent = (lambda at: self._listener.on_sent(task.id, at)) if task.report_sent else None
        try:
            if task.send_until:
                self._start_leased(task, request, on_sent)
                return
            self._fetcher.start(request, lambda exchange: self._enqueue(task, exchange), on_sent)
        except Exception as error:
            asyncio.get_running_loop().call_soon(self._crash, task, Exchange(task.url, Outcome.OK), error)

    def _start_leased(self, task: FetchTask, request: FetchRequest, on_sent: OnSent | None) -> None:
        """Start a task that is returned if it may not be sent any more when the request is about to be written."""

        def check(at: float) -> None:
            if lease_clock() >= task.send_until:
                ticket.cancel()
                result = Result(task.id, Outcome.WORKER_LOST, error="it could not be sent in time")
                asyncio.get_running_loop().call_soon(self._listener.on_result, result)
            elif on_sent is not None:
                on_sent(at)

        ticket = self._fetcher.start(request, lambda exchange: self._enqueue(task, exchange), check)

    def open_address(self, address: str) -> None:
        """Allow requests to one more address."""
        self._fetcher.open_address(address)

    def mark_links_final(self, task_id: int) -> None:
        """Omit the links of a page if its neighbours repeat them: the hub's decision on them is final."""
        self._memo.mark_offered(task_id)

    def volume(self) -> Volume:
        """Return what its sinks have compressed so far."""
        return sum((sink.volume for sink in self._sinks), Volume())

    async def sync(self) -> None:
        """Make what is archived durable; finish full files."""
        await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        for sink in self._sinks:
            sink.sync()

    async def close(self) -> None:
        """Wait for the parser, and finish the archive files. PDF files still to be read deeply are given up."""
        if self._rules.parses_pdf_deep:
            from gossamer.parse.pdf.deep import end_reading

            self._is_closing = True
            self._deep.shutdown(wait=False, cancel_futures=True)
            end_reading()
        while self._arrivals or self._threads:
            if self._threads:
                await asyncio.wait(self._threads)
            while not self._sinks_free.is_set():
                await self._sinks_free.wait()
            if self._arrivals:
                self._process_some()
        self._big.shutdown()
        self._huge.shutdown()
        self._deep.shutdown()
        for sink in self._sinks:
            await asyncio.to_thread(sink.close)

    def _enqueue(self, task: FetchTask, exchange: Exchange) -> None:
        """Queue an answer: many arrive at once, and processing all of them would block the loop for long."""
        self._arrivals.add(task, exchange)
        if not self._is_draining:
            self._is_draining = True
            asyncio.get_running_loop().call_soon(self._drain)

    def _drain(self) -> None:
        """Process queued answers for a slice of time, then return to the loop."""
        self._is_held_up = not self._sinks_free.is_set()
        if self._is_held_up:
            return  # it is called again when they are
        self._process_some()
        self._is_draining = bool(self._arrivals)
        if self._is_draining:
            asyncio.get_running_loop().call_soon(self._drain)

    def _process_some(self) -> None:
        """Process queued answers for about a slice of time: read some, then store and report these.

        Page by page would take more CPU time: code is faster while it is in the processor's caches, and all that is
        done with a page does not fit into the small ones.
        """
        until = monotonic() + SLICE_S / 2  # storing takes as long as reading
        pages: list[tuple[FetchedPage, Result]] = []
        while self._arrivals:
            task, exchange = self._arrivals.take()
            is_robots = task.kind is _ROBOTS
            if self._is_slow(exchange) and not is_robots:
                reading = asyncio.get_running_loop().create_task(self._finish_big(task, exchange))
                self._threads.add(reading)
                reading.add_done_callback(self._threads.discard)
                continue
            page = FetchedPage(task, exchange)
            self._marks[0] = task.id
            try:
                pages.append((page, self._read(page)))
            except Exception as error:
                self._crash(task, exchange, error)
            # The hub takes far longer for the rules of a robots.txt than it takes to read one here.
            if is_robots or len(pages) >= MAX_GROUP or monotonic() >= until:
                break
        self._finish_all(pages)

    def _finish_all(self, pages: list[tuple[FetchedPage, Result]]) -> None:
        """Store pages, then report them; before a copy of one of them is stored, since it only refers to that."""
        results: list[Result] = []
        contents: set[bytes] = set()
        for page, result in pages:
            if result.content_hash in contents:
                self._report(results)
                contents.clear()
            self._marks[0] = page.task.id
            if self._try_to_store(page, result):
                results.append(result)
                if result.content_hash:
                    contents.add(result.content_hash)
        self._marks[0] = 0
        self._report(results)

    def _report(self, results: list[Result]) -> None:
        for result in results:
            self._listener.on_result(result)
        results.clear()

    def _is_slow(self, exchange: Exchange) -> bool:
        """Return whether an answer may take longer to read than the event loop can wait. 1 µs for a page."""
        content = exchange.content
        if len(content) > BIG_BYTES or len(exchange.body) > BIG_BODY_BYTES:
            return True
        content_type = exchange.named.get("content-type", "")
        if "html" in content_type and not content.startswith(_OPAQUE):
            is_legacy = len(content) > BIG_LEGACY_BYTES and not _is_utf8(content, content_type)
            return is_legacy or _is_big_feed(content)
        # XML takes ten times as long as HTML; a PDF, or XML in gzip, contains a hundred times as much as it seems to.
        is_opaque = content.startswith(_OPAQUE) or (self._rules.parses_pdf and may_be_pdf(exchange))
        is_big = len(content) > (BIG_FEED_BYTES if "rss" in content_type or "atom" in content_type else BIG_XML_BYTES)
        return is_opaque or is_big or _is_big_feed(content)

    async def _finish_big(self, task: FetchTask, exchange: Exchange) -> None:
        page = FetchedPage(task, exchange)
        is_deep = self._rules.parses_pdf_deep and may_be_pdf(exchange)
        executor, slot = (self._deep, 3) if is_deep else (self._big, 1)
        try:
            result = await asyncio.get_running_loop().run_in_executor(
                executor, copy_context().run, self._read_big, page, slot
            )
        except (Exception, asyncio.CancelledError) as error:
            if is_deep and self._is_closing:
                result = Result(task.id, Outcome.WORKER_LOST, error="not read: the crawl stops")
                self._listener.on_result(result)
                return
            if isinstance(error, asyncio.CancelledError):
                raise
            self._crash(task, exchange, error)
        else:
            while not self._sinks_free.is_set():  # another one may be the first to go on
                await self._sinks_free.wait()
            if len(exchange.body) > BIG_BODY_BYTES:
                await self._finish_huge(page, result)
            else:
                self._finish_all([(page, result)])

    async def _finish_huge(self, page: FetchedPage, result: Result) -> None:
        """Store an answer in a thread, and report it: to compress and write 50 MB takes 0.2 s, in which others wait."""
        result.worker = self._rules.number
        try:
            failpoints.reach("after_fetch")
            if self._is_to_be_stored(page, result):
                await self._write_in_thread(page, result)
        except (GossamerError, OSError) as error:
            self._listener.on_failure(as_our_error(error))
        except Exception as error:
            self._crash(page.task, page.exchange, error, result)
        else:
            self._listener.on_result(result)

    async def _write_in_thread(self, page: FetchedPage, result: Result) -> None:
        self._sinks_free.clear()
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._huge, copy_context().run, self._write_marked, page, result
            )
        finally:
            if self._is_held_up:  # small answers first: the next huge one may be waiting, too
                self._is_held_up = False
                asyncio.get_running_loop().call_soon(self._drain)
            self._sinks_free.set()

    def _write_marked(self, page: FetchedPage, result: Result) -> None:
        self._marks[4] = page.task.id
        try:
            self._write(page, result)
        finally:
            self._marks[4] = 0

    def _crash(self, task: FetchTask, exchange: Exchange, error: Exception, stored: Result | None = None) -> None:
        """End a task on which our code raised; the others go on."""
        self._listener.on_crash(crash_of(task.url, error))
        result = crashed_result(task, exchange, error)
        if stored is not None:
            result.archived = stored.archived
            result.archive_end = stored.archive_end
        result.worker = self._rules.number
        self._listener.on_result(result)

    def _read(self, page: FetchedPage) -> Result:
        """Return the result of an answer. Sinks come first: the archive's digest of the body is the content's too."""
        for sink in self._sinks:
            sink.prepare(page)
        result = read_answer(page.task, page.exchange, self._rules, self._memo)
        if result.preview:
            self._count_preview()
        stored = page.task.stored
        if stored is not None and self._stored_copy is not None and result.outcome is Outcome.NOT_MODIFIED:
            add_stored_links(result, page.task, self._stored_copy(stored), self._rules)
        return result

    def _count_preview(self) -> None:
        """Stop reading first words when enough pages have shown theirs."""
        self._previews_left -= 1
        if self._previews_left <= 0:
            self._rules = replace(self._rules, previews=0)

    def _read_big(self, page: FetchedPage, slot: int) -> Result:
        """Read an answer that needs much memory, and return that to the system."""
        self._marks[slot] = page.task.id
        try:
            return self._read(page)
        finally:
            self._marks[slot] = 0
            if len(page.exchange.content) > TRIM_BYTES or page.task.kind is FetchKind.SITEMAP:
                vitals.trim_memory()

    def _try_to_store(self, page: FetchedPage, result: Result) -> bool:
        """Store a page; return whether its result is to be reported. If not, a failure was."""
        result.worker = self._rules.number
        try:
            failpoints.reach("after_fetch")
            self._store(page, result)
        except (GossamerError, OSError) as error:
            self._listener.on_failure(as_our_error(error))
        except Exception as error:
            self._crash(page.task, page.exchange, error, result)
        else:
            return True
        return False

    def _store(self, page: FetchedPage, result: Result) -> None:
        if self._is_to_be_stored(page, result):
            self._write(page, result)

    def _is_to_be_stored(self, page: FetchedPage, result: Result) -> bool:
        """Return whether an answer is stored; if so, with the first page that has its content."""
        if not _is_stored(page.exchange, result):
            return False
        if result.content_hash:
            page.first_copy = self._first_copy(result.content_hash)
        elif page.task.stored is not None and result.outcome is _NOT_MODIFIED:
            page.first_copy = page.task.stored
        return True

    def _write(self, page: FetchedPage, result: Result) -> None:
        for sink in self._sinks:
            sink.write(page, result)


def _is_stored(exchange: Exchange, result: Result) -> bool:
    """Return whether an answer is stored: if it is complete and of a type that is kept; PDF files only if requested."""
    if not exchange.response_head or exchange.outcome in _NOT_WHOLE:
        return False
    return result.outcome not in _NOT_STORED


def _is_big_feed(content: bytes) -> bool:
    """Return whether an answer will be parsed as a feed, whatever its type, and takes long."""
    return len(content) > BIG_FEED_BYTES and bool(feed_type(XML, content))


def _is_utf8(content: bytes, content_type: str) -> bool:
    """Return whether a page is, or claims to be, in UTF-8: up to 0.1 ms if it does not say so at its beginning."""
    if "utf-8" in content_type.lower() or b"utf-8" in content[:1024].lower() or content.isascii():
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _conditions(task: FetchTask) -> tuple[tuple[str, str], ...]:
    etag = (("If-None-Match", task.etag),) if task.etag else ()
    since = (("If-Modified-Since", task.last_modified),) if task.last_modified else ()
    return etag + since


def _max_bytes(kind: FetchKind, rules: WorkerRules) -> int:
    if kind is _PAGE:
        return CHECKED_BYTES if rules.checks_only else 0
    return {FetchKind.ROBOTS: FETCHED_ROBOTS_BYTES, FetchKind.SITEMAP: MAX_SITEMAP_BYTES}.get(kind, 0)
