"""How the page's process reads the crawl: its ledger in threads, its figures from the crawl itself if it runs.

The ledger is opened once, and anew if its file is another one: the folder was removed and a crawl begun there, or the
ledger was rebuilt. LMDB allows no file to be open twice, so those who read are waited for. Every question sees the
crawl as it is then, and no read transaction lasts long. Figures are asked for at most once per second, and only if
somebody looks. A crawl that does not answer is read from its ledger, which takes a pass over its hosts: at most every
`LEDGER_FIGURES_S`. One that stands still (it was stopped, or a debugger holds it) is not asked again for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.model.commands import OperatorCommand
from gossamer.model.errors import GossamerError, UsageError, as_our_error, damage_of
from gossamer.model.events import masked_values
from gossamer.model.figures import Figures
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.runtime.session.control_socket import QueryClient

T = TypeVar("T")
View: TypeAlias = CrawlReader | SharedReader
Obey: TypeAlias = Callable[[OperatorCommand, str], str]  # a command and how it came; returns what was done, in one line
FIGURES_S = 0.9
LEDGER_FIGURES_S = 5.0
FRESH_PER_PASS = 20  # a pass over the hosts takes at most this part of the time
ANSWER_WITHIN_S = 3.0
SILENT_S = 10.0  # for which a crawl that did not answer in time is not asked again
_THREADS = 4
_PASSES = 2  # over all events, at a time: they may take long, and the other threads answer everything else


class Source:
    """A crawl that is open for reading; use it with `async with`."""

    def __init__(
        self,
        open_view: Callable[[], View],
        obey: Obey,
        folder: Path | None,
        *,
        is_read_only: bool = False,
    ) -> None:
        self._open_view = open_view
        self._obey = obey
        self.folder = None if folder is None else CrawlFolder(folder)
        self.is_read_only = is_read_only
        self._threads = ThreadPoolExecutor(_THREADS, "reader")
        self._passes = asyncio.Semaphore(_PASSES)
        self._changes = Condition()  # of the next two
        self._opened: View | None = None
        self._readers = 0
        self._turn = asyncio.Lock()
        self._figures: Figures | None = None
        self._live: Figures | None = None  # what the crawl that runs said last
        self._masks: bool | None = None  # not read yet
        self._figures_until = 0.0
        self._client: QueryClient | None = None
        self._connecting = asyncio.Lock()
        self._silent_until = 0.0

    async def __aenter__(self) -> Source:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._hang_up()
        self._threads.shutdown(cancel_futures=True)
        self._close()

    async def read(self, how: Callable[[View], T]) -> T:
        """Return what a function reads of the crawl as it is now. It runs in a thread."""

        def read() -> T:
            with self.viewing() as view:
                return how(view)

        return await self.run(read)

    async def read_events(self, how: Callable[[View], T]) -> T:
        """Return what a function reads in a pass over all events of the crawl. It may have to wait for others."""
        async with self._passes:
            return await self.read(how)

    async def run(self, what: Callable[[], T]) -> T:
        """Return what a function returns. It runs in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, what)

    async def obey(self, command: OperatorCommand, how: str) -> str:
        """Give the crawl a command; return what was done, in one line."""
        return await self.run(lambda: self._obeyed(command, how))

    def _obeyed(self, command: OperatorCommand, how: str) -> str:
        if self.folder is None or self.is_running():
            return self._obey(command, how)
        with self._changes:  # what is kept for the next run is written to the ledger: one process opens it once
            self._changes.wait_for(lambda: not self._readers)
            self._close()
            return self._obey(command, how)

    @contextmanager
    def viewing(self) -> Iterator[View]:
        """Yield the crawl as it is now. Blocks. Raises `GossamerError` if it cannot be read."""
        opened = self._begin_reading()
        try:
            view = opened.again(time.time()) if isinstance(opened, SharedReader) else opened.again()
            self._masks = view.settings.mask_queries
        except Exception as error:
            self._end_reading()
            raise _unreadable(error) from error
        try:
            yield view
        except Exception as error:
            if (damage := damage_of(error)) is not None:
                raise damage from error
            raise
        finally:
            self._end_reading()

    def _begin_reading(self) -> View:
        with self._changes:
            if isinstance(self._opened, CrawlReader) and self._opened.is_replaced():
                self._changes.wait_for(lambda: not self._readers)
                self._close()
            if self._opened is None:
                try:
                    self._opened = self._open_view().__enter__()
                except Exception as error:
                    raise _unreadable(error) from error
            self._readers += 1
            return self._opened

    def _end_reading(self) -> None:
        with self._changes:
            self._readers -= 1
            self._changes.notify_all()

    def _close(self) -> None:
        opened = self._opened
        self._opened = None
        if opened is not None:
            opened.__exit__(None, None, None)

    async def shown(self, answer: Any) -> Any:  # noqa: ANN401 - anything that becomes JSON
        """Return what may be shown of an answer: everything, or with `--mask-queries` no values of queries."""
        if self._masks is None:
            self._masks = await self.read(lambda view: view.settings.mask_queries)
        return masked_values(msgspec.to_builtins(answer)) if self._masks else answer

    # -- figures ----------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Return whether a process runs the crawl in this folder."""
        return self.folder is not None and self.folder.owner() is not None

    async def figures(self) -> Figures:
        """Return the figures of the crawl, at most a second old if it runs."""
        async with self._turn:
            if self._figures is None or time.monotonic() >= self._figures_until:
                self._figures, fresh_s = await self._read_figures()
                self._figures_until = time.monotonic() + fresh_s
            return self._figures

    def forget_figures(self) -> None:
        """Make the next call of `figures` read them anew."""
        self._figures_until = 0.0

    async def _read_figures(self) -> tuple[Figures, float]:
        if self.is_running():
            try:
                self._live = msgspec.convert(await self.ask("figures"), Figures)
            except (GossamerError, msgspec.ValidationError):
                # It begins, ends, stands still or is of another version. What it said last is newer than what is
                # committed; counters that go back would look like a new process to who computes rates from them.
                if self._live is not None:
                    return replace(self._live, rates={}, core_share={}, bound_by=None, forecast=None), FIGURES_S
            else:
                return self._live, FIGURES_S
        self._live = None
        started = time.monotonic()
        figures = await self.read(lambda view: view.figures())
        took_s = time.monotonic() - started
        return figures, max(LEDGER_FIGURES_S, FRESH_PER_PASS * took_s) if took_s > FIGURES_S / 20 else FIGURES_S

    async def ask(self, name: str, /, **fields: object) -> object:
        """Return the answer of the crawl that runs to a query. Raises `GossamerError` if it does not answer."""
        if self.folder is None:
            raise GossamerError("a crawl on many machines answers no queries")
        if time.monotonic() < self._silent_until:
            raise GossamerError(f"{self.folder.path}: the crawl that runs there has not answered for a while")
        started = time.monotonic()
        try:
            async with self._connecting:
                client = self._client = self._client or await QueryClient(self.folder.state).__aenter__()
            return await client.ask(name, within_s=ANSWER_WITHIN_S, **fields)
        except UsageError:
            raise
        except GossamerError:
            if time.monotonic() - started >= ANSWER_WITHIN_S:
                self._silent_until = time.monotonic() + SILENT_S
            await self._hang_up()
            raise

    async def _hang_up(self) -> None:
        client = self._client
        self._client = None
        if client is not None:
            await client.__aexit__(None, None, None)


def _unreadable(error: Exception) -> GossamerError:
    """Return why a crawl cannot be read. What is wrong with its folder is not wrong with a request."""
    found = as_our_error(error)
    return GossamerError(str(found)) if isinstance(found, UsageError) else found
