"""Has ranks computed while a crawl runs: every N pages, beside it, and gives them to it.

A ranking reads all pages, about a millisecond each. So the next one is due after N pages more, and after a quarter of
what the last one read: all rankings together read five times the pages of the crawl at most.

On many machines one node does it, the owner of the first shard, by the pages of all nodes; the ranks then reach the
nodes as messages. A node that becomes that owner counts from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.errors import GossamerError
from gossamer.model.events import EventName
from gossamer.reading.rank_file import RankHead
from gossamer.runtime.ranks.rank_job import RankJob
from gossamer.runtime.ranks.stored_ranks import StoredRanks
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.telemetry.text import plural

LOOK_S = 1.0
GROWTH = 4  # a ranking is due after this fraction of the pages of the last one, at least

CountPages = Callable[[], Awaitable[int | None]]  # None: another node is to have ranks computed


def is_due(pages: int, last: int, every: int) -> bool:
    """Return whether a ranking is due, by the pages now and at the last one."""
    return pages >= last + max(every, last // GROWTH)


class RankWatch:
    def __init__(
        self,
        every: int,
        job: RankJob,
        count: CountPages,
        stored: StoredRanks,
        *,
        emitter: EventEmitter,
        warnings: WarningLog,
        now: Callable[[], float],
    ) -> None:
        self._every = every  # 0: never
        self._job = job
        self._count = count
        self.stored = stored
        self._emitter = emitter
        self._warnings = warnings
        self._now = now
        self._last: int | None = None  # pages at the last ranking; None: another node did it

    async def run(self) -> None:
        """Watch until cancelled."""
        self._last = self.stored.pages
        while True:
            await asyncio.sleep(LOOK_S)
            if (head := await self.stored.adopt_new()) is not None:
                self._emit(head, 0.0)
            if self._every and await self._is_due():
                await self._rank()

    async def _is_due(self) -> bool:
        try:
            pages = await self._count()
        except GossamerError:
            return False  # the ledger is away, and the operator was told
        if pages is None or self._last is None:
            self._last = pages
            return False
        if not is_due(pages, self._last, self._every):
            return False
        self._last = pages
        return True

    async def _rank(self) -> None:
        started = self._now()
        try:
            head = await self._job.run()
            seconds = self._now() - started
            await self.stored.adopt_new()
        except (GossamerError, OSError) as error:
            self._warnings.warn("rank_failed", f"domains were not ranked: {error}")
            return
        self._emit(head, seconds)

    def _emit(self, head: RankHead, seconds: float) -> None:
        what = f"{plural(head.domains, 'domain')} by {plural(head.links, 'link')} on {plural(head.pages, 'page')}"
        self._emitter.emit(
            EventName.RANKED,
            self._now(),
            reason=f"{what} in {seconds:.1f} s" if seconds else f"{what}, by the operator",
            fetched=head.pages,
            links=head.links,
            unique_domains=head.domains,
            total_ms=round(1000 * seconds),
        )
