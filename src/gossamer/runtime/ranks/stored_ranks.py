"""Gives the ranks in the crawl folder to the crawl: before a run all at once, in a run in batches, as commands.

That the crawl has them is recorded after the last one: a run that is killed meanwhile begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from gossamer.engine.crawl import Crawl
from gossamer.model.commands import SetRanks, Submit
from gossamer.model.errors import GossamerError
from gossamer.reading.rank_file import RankHead, read_head, read_ranks
from gossamer.runtime.watch.warning_log import WarningLog

BATCHES_PER_COMMIT = 20  # so that changes do not fill the memory
BATCH_EVERY_S = 0.05  # a batch takes some 5 ms
_Stamp = tuple[int, int, int] | None


class StoredRanks:
    def __init__(
        self, path: Path, crawl: Crawl, warnings: WarningLog, submit: Submit, now: Callable[[], float]
    ) -> None:
        self._path = path
        self._crawl = crawl
        self._warnings = warnings
        self._submit = submit
        self._now = now
        self._stamp: _Stamp = None
        self.pages = 0  # that the ranks were computed from

    def adopt(self, commit: Callable[[], None]) -> None:
        """Give all ranks to the crawl, unless it has them. Before a run: 0.6 s per 100,000 domains."""
        self._stamp = self._read_stamp()
        try:
            head = read_head(self._path)
            if head is None:
                return
            self.pages = head.pages
            if head.computed_at == self._crawl.state.ranked_at:
                return
            for number, batch in enumerate(read_ranks(self._path), 1):
                self._crawl.learn_ranks(batch, self._now())
                if number % BATCHES_PER_COMMIT == 0:
                    commit()
        except GossamerError as error:
            self._warn(error)
            return
        self._crawl.learn_ranks((), self._now(), head.computed_at)

    async def adopt_new(self) -> RankHead | None:
        """Give ranks to the running crawl that were stored since; return what they were computed from, if any."""
        stamp = self._read_stamp()
        if stamp == self._stamp or stamp is None:
            return None
        self._stamp = stamp
        try:
            head = await asyncio.to_thread(read_head, self._path)
            if head is None or head.computed_at == self._crawl.state.ranked_at:
                return None
            batches = read_ranks(self._path)
            while batch := await asyncio.to_thread(next, batches, None):
                self._submit(SetRanks(tuple(batch)))
                await asyncio.sleep(BATCH_EVERY_S)
        except GossamerError as error:
            self._warn(error)
            return None
        self._submit(SetRanks((), head.computed_at))
        self.pages = head.pages
        return head

    def _warn(self, error: GossamerError) -> None:
        self._warnings.warn("ranks_unread", f"{error}; hosts have the ranks that they had")

    def _read_stamp(self) -> _Stamp:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
