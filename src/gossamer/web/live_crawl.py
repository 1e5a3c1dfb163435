"""What does the crawl say about itself now? A running one is asked over its socket.

Figures are asked for at most once per second, and only if somebody watches. A crawl that does not answer is read from
its ledger, which takes a pass over its hosts: at most every `LEDGER_FIGURES_S`. One that does not react (it was
suspended, or a debugger holds it) is not asked again for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.control.running import QueryClient
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.figures import Figures

FIGURES_S = 0.9
LEDGER_FIGURES_S = 5.0
FRESH_PER_PASS = 20  # a pass over the hosts takes at most this part of the time
ANSWER_WITHIN_S = 3.0
SILENT_S = 10.0  # for which a crawl that did not answer in time is not asked again


class LiveCrawl:
    """The crawl in a folder as its own process sees it, or as its ledger has it; without a folder the latter."""

    def __init__(self, folder: CrawlFolder | None, read_ledger: Callable[[], Awaitable[Figures]]) -> None:
        self._folder = folder
        self._read_ledger = read_ledger
        self._turn = asyncio.Lock()
        self._figures: Figures | None = None
        self._figures_until = 0.0
        self._last: Figures | None = None  # of the running crawl
        self._client: QueryClient | None = None
        self._connecting = asyncio.Lock()
        self._silent_until = 0.0

    def is_running(self) -> bool:
        """Return whether a process runs the crawl in this folder."""
        return self._folder is not None and self._folder.owner() is not None

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
                self._last = msgspec.convert(await self.ask("figures"), Figures)
            except (GossamerError, msgspec.ValidationError):
                # It begins, ends, stands still or is of another version. Its last answer is newer than what is
                # committed; counters that go back would look like a new process to a client that computes rates.
                if self._last is not None:
                    return replace(self._last, rates={}, core_share={}, bound_by=None, forecast=None), FIGURES_S
            else:
                return self._last, FIGURES_S
        self._last = None
        started = time.monotonic()
        figures = await self._read_ledger()
        took_s = time.monotonic() - started
        return figures, max(LEDGER_FIGURES_S, FRESH_PER_PASS * took_s) if took_s > FIGURES_S / 20 else FIGURES_S

    async def ask(self, name: str, /, **fields: object) -> object:
        """Return the answer of the running crawl to a query. Raises `GossamerError` if it does not answer."""
        if self._folder is None:
            raise GossamerError("a crawl on many machines answers no queries")
        if time.monotonic() < self._silent_until:
            raise GossamerError(f"{self._folder.path}: the crawl that runs there has not answered for a while")
        started = time.monotonic()
        try:
            async with self._connecting:
                client = self._client = self._client or await QueryClient(self._folder.state).__aenter__()
            return await client.ask(name, within_s=ANSWER_WITHIN_S, **fields)
        except UsageError:
            raise
        except GossamerError:
            if time.monotonic() - started >= ANSWER_WITHIN_S:
                self._silent_until = time.monotonic() + SILENT_S
            await self.hang_up()
            raise

    async def hang_up(self) -> None:
        """Close the connection to the crawl; the next question opens another one."""
        client = self._client
        self._client = None
        if client is not None:
            await client.__aexit__(None, None, None)
