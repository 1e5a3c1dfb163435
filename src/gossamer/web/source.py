"""How the dashboard's process reads the crawl's ledger, in threads, and gives it commands.

The ledger is opened once, and anew if its file is another one: the folder was removed and a crawl begun there, or the
ledger was rebuilt. LMDB allows no file to be open twice, so readers are waited for. Every question sees the crawl as it
is then, and no read transaction lasts long. Figures come from the crawl itself if it runs: see `web/live_crawl`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from threading import Condition
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from gossamer.backends.local.folder import CrawlFolder
from gossamer.control.record import is_ledger_url
from gossamer.control.target import Target, target
from gossamer.model.commands import OperatorCommand
from gossamer.model.errors import GossamerError, UsageError, as_our_error, damage_of
from gossamer.model.events import masked_values
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.web.live_crawl import LiveCrawl

T = TypeVar("T")
View: TypeAlias = CrawlReader | SharedReader
_THREADS = 4
_PASSES = 2  # over all events, at a time: they may take long, and the other threads answer everything else


class CrawlSource:
    """A crawl that is open for reading; use it with `async with`."""

    def __init__(
        self,
        open_view: Callable[[], View],
        crawl: str,
        *,
        find_target: Callable[[str], Target] = target,
        is_read_only: bool = False,
    ) -> None:
        self._open_view = open_view
        self._crawl = crawl
        self._find_target = find_target
        self.folder = None if is_ledger_url(crawl) else CrawlFolder(Path(crawl))
        self.is_read_only = is_read_only
        self._threads = ThreadPoolExecutor(_THREADS, "reader")
        self._passes = asyncio.Semaphore(_PASSES)
        self._changes = Condition()  # of the next two
        self._opened: View | None = None
        self._readers = 0
        self._masks: bool | None = None  # not read yet
        self.live = LiveCrawl(self.folder, lambda: self.read(lambda view: view.figures()))

    async def __aenter__(self) -> CrawlSource:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.live.hang_up()
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
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, what)

    def target(self) -> Target:
        """Return what obeys a command. Blocks, as it does."""
        if self.folder is None or self.live.is_running():
            return self._find_target(self._crawl)
        return _Stopped(self)

    @contextmanager
    def closed(self) -> Iterator[Target]:
        """Yield what obeys a command while nobody reads: one process opens a ledger once, and it writes there."""
        with self._changes:
            self._changes.wait_for(lambda: not self._readers)
            self._close()
            yield self._find_target(self._crawl)

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
        """Return an answer as it may be shown: with `--mask-queries` without the values of queries."""
        if self._masks is None:
            self._masks = await self.read(lambda view: view.settings.mask_queries)
        return masked_values(msgspec.to_builtins(answer)) if self._masks else answer


class _Stopped(Struct, frozen=True):
    """A crawl that does not run: see `gossamer.control.target.Target`."""

    source: CrawlSource

    def obey(self, command: OperatorCommand, by: str) -> str:
        with self.source.closed() as target:
            return target.obey(command, by)


def _unreadable(error: Exception) -> GossamerError:
    """Return why a crawl cannot be read. A fault of its folder is not one of the request."""
    found = as_our_error(error)
    return GossamerError(str(found)) if isinstance(found, UsageError) else found
