"""How the page's process reads the crawl: its ledger in threads, its figures from the crawl itself if it runs.

The ledger is opened once; every question sees the crawl as it is then, and no read transaction lasts long. Figures are
asked for at most once per second, and only if somebody looks. A crawl that does not answer is read from its ledger,
which takes a pass over its hosts: at most every `LEDGER_FIGURES_S`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import msgspec

from gossamer.backends.local.folder import CrawlFolder
from gossamer.commands import OperatorCommand
from gossamer.errors import GossamerError, UsageError
from gossamer.events import masked_values
from gossamer.figures import Figures
from gossamer.inspect.reader import CrawlReader
from gossamer.inspect.shared_reader import SharedReader
from gossamer.runtime.control_socket import QueryClient

T = TypeVar("T")
View: TypeAlias = CrawlReader | SharedReader
FIGURES_S = 0.9
LEDGER_FIGURES_S = 5.0
FRESH_PER_PASS = 20  # a pass over the hosts takes at most this part of the time
_THREADS = 4


class Source:
    """A crawl that is open for reading; use it with `async with`."""

    def __init__(
        self,
        open_view: Callable[[], View],
        obey: Callable[[OperatorCommand], str],
        folder: Path | None,
        *,
        is_read_only: bool = False,
    ) -> None:
        self._open_view = open_view
        self.obey = obey
        self.folder = None if folder is None else CrawlFolder(folder)
        self.is_read_only = is_read_only
        self._threads = ThreadPoolExecutor(_THREADS, "reader")
        self._opened: View | None = None
        self._opening = Lock()
        self._turn = asyncio.Lock()
        self._figures: Figures | None = None
        self._masks: bool | None = None  # not read yet
        self._figures_until = 0.0
        self._client: QueryClient | None = None

    async def __aenter__(self) -> Source:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._hang_up()
        self._threads.shutdown(cancel_futures=True)
        if self._opened is not None:
            self._opened.__exit__(None, None, None)

    async def read(self, how: Callable[[View], T]) -> T:
        """Return what a function reads of the crawl as it is now. It runs in a thread."""
        return await self.run(lambda: how(self.view()))

    async def run(self, what: Callable[[], T]) -> T:
        """Return what a function returns. It runs in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, what)

    def view(self) -> View:
        """Return the crawl as it is now. Blocks."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open_view().__enter__()
                return self._opened
        opened = self._opened
        return opened.again(time.time()) if isinstance(opened, SharedReader) else opened.again()

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

    async def _read_figures(self) -> tuple[Figures, float]:
        if self.is_running():
            try:
                return msgspec.convert(await self.ask("figures"), Figures), FIGURES_S
            except GossamerError:
                pass  # it is about to begin or to end: what is committed says where it was
        started = time.monotonic()
        figures = await self.read(lambda view: view.figures())
        took_s = time.monotonic() - started
        return figures, max(LEDGER_FIGURES_S, FRESH_PER_PASS * took_s) if took_s > FIGURES_S / 20 else FIGURES_S

    async def ask(self, name: str, /, **fields: object) -> object:
        """Return the answer of the crawl that runs to a query. Raises `GossamerError` if it does not answer."""
        if self.folder is None:
            raise GossamerError("a crawl on many machines answers no queries")
        try:
            if self._client is None:
                self._client = await QueryClient(self.folder.state).__aenter__()
            return await self._client.ask(name, **fields)
        except UsageError:
            raise
        except GossamerError:
            await self._hang_up()
            raise

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.__aexit__(None, None, None)
