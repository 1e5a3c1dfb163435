"""Passes URLs that were reported as changed on to the crawl, in batches, as commands.

Whoever reports waits until the crawl has them: it answers a command when that is committed. A crawl that begins or ends
is asked again for a while. At most `MAX_WAITING_URLS` wait; a command has at most `BATCH_URLS`, and `BATCH_CHARS`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator

from gossamer.control.target import operator
from gossamer.model.commands import ReportChanges
from gossamer.model.errors import GossamerError, NotListeningError
from gossamer.telemetry.text import plural
from gossamer.web.source import CrawlSource

MAX_WAITING_URLS = 100_000
BATCH_URLS = 10_000
BATCH_CHARS = 4 << 20
GATHER_S = 0.5
RETRY_S = 1.0
HAND_OVER_WITHIN_S = 30.0


class Reporting:
    """Passes URLs on to the crawl. `run` must run."""

    def __init__(self, source: CrawlSource, announce: Callable[[str], None]) -> None:
        self._source = source
        self._announce = announce
        self._waiting: list[tuple[tuple[str, ...], asyncio.Future[str]]] = []
        self._has_some = asyncio.Event()  # or the end has come
        self._is_ending = False
        self.reported = 0

    @property
    def room(self) -> int:
        """How many URLs may be added."""
        return MAX_WAITING_URLS - sum(len(urls) for urls, _ in self._waiting)

    async def report(self, urls: Iterable[str]) -> None:
        """Return when the crawl has some URLs. Raises `GossamerError` if it cannot be reached."""
        results: list[asyncio.Future[str]] = []
        for batch in batches(urls):
            result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._waiting.append((batch, result))
            results.append(result)
        self._has_some.set()
        await asyncio.gather(*results)

    async def run(self) -> None:
        """Hand over what waits, until `end`: then the rest, at once."""
        while not self._is_ending or self._waiting:
            await self._has_some.wait()
            if not self._is_ending:
                await asyncio.sleep(GATHER_S)
            await self._flush()

    def end(self) -> None:
        """Let `run` return when everything that waits was handed over."""
        self._is_ending = True
        self._has_some.set()

    async def _flush(self) -> None:
        while self._waiting:
            count = urls = chars = 0
            for batch, _ in self._waiting:
                urls = urls + len(batch)
                chars = chars + sum(map(len, batch))
                if count and (urls > BATCH_URLS or chars > BATCH_CHARS):
                    break
                count += 1
            taken = self._waiting[:count]
            del self._waiting[:count]
            await self._hand_over(taken)
        if not self._is_ending:
            self._has_some.clear()

    async def _hand_over(self, taken: list[tuple[tuple[str, ...], asyncio.Future[str]]]) -> None:
        urls = list(dict.fromkeys(url for batch, _ in taken for url in batch))
        try:
            done = await self._obeyed(ReportChanges(urls))
        except GossamerError as error:
            self._announce(f"{plural(len(urls), 'URL')} could not be reported: {error}")
            for _, result in taken:
                if not result.done():  # the client may have disconnected
                    result.set_exception(error)
            return
        self.reported += len(urls)
        self._announce(done)
        for _, result in taken:
            if not result.done():
                result.set_result(done)

    async def _obeyed(self, command: ReportChanges) -> str:
        until = time.monotonic() + HAND_OVER_WITHIN_S
        while True:
            try:
                target = await asyncio.to_thread(self._source.target)
                return await asyncio.to_thread(target.obey, command, f"{operator()}, change notices")
            except NotListeningError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(RETRY_S)


def batches(urls: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield URLs in parts that fit into a command."""
    batch: list[str] = []
    chars = 0
    for url in urls:
        if batch and (len(batch) == BATCH_URLS or chars + len(url) > BATCH_CHARS):
            yield tuple(batch)
            batch = []
            chars = 0
        batch.append(url)
        chars += len(url)
    if batch:
        yield tuple(batch)
