"""Which results take long to complete, and how do the others get their turn meanwhile?

A robots.txt of 500 KB takes up to 100 ms to read, once, and 150 hosts can answer with one each at the same moment:
every page behind them would wait for 15 s. So such results wait here, outside of the order of arrival, one at a time:
each is read in slices, then completed, and after each slice there is a pause of `PAUSE` times what it took, in which
everything else goes on. Their tasks stay outstanding until they are completed, but they use no connection: for up to
`MAX_SLOTS` of them, whose bodies are in memory, as many others may be made. When the crawl stops, what is left is
completed without pauses, but still in slices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

from gossamer.model.records import Result

COSTLY_ROBOTS_BYTES = 20_000  # 2 ms
PAUSE = 1.0  # so that they take half of the time at most
MAX_SLOTS = 48  # of up to 1 MiB each


class CostlyResults:
    def __init__(
        self,
        read_on: Callable[[Result], bool],
        complete: Callable[[Result], None],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._read_on = read_on  # reads a slice; returns whether that was the last
        self._complete = complete
        self._clock = clock
        self._waiting: deque[Result] = deque()  # the first is being read
        self._task: asyncio.Task[None] | None = None
        self._pause = PAUSE

    @property
    def free_slots(self) -> int:
        """How many requests may be made beyond the limit of connections, for those that wait and use none."""
        return min(MAX_SLOTS, len(self._waiting))

    def add(self, result: Result) -> None:
        self._waiting.append(result)
        self._begin()

    def _begin(self) -> None:
        if self._task is None and self._waiting:
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._on_end)

    async def _work(self) -> None:
        while self._waiting:
            began = self._clock()
            if self._read_on(self._waiting[0]):
                self._complete(self._waiting.popleft())
            await asyncio.sleep(self._pause * (self._clock() - began))

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.result()  # an error goes to the loop's handler, which ends the crawl
            self._begin()  # one may have been added after the last was completed

    async def finish(self) -> None:
        """Complete those that are left, without pauses: the crawl stops, and nobody else needs the loop for long."""
        self._pause = 0.0
        while self._task is not None:
            await asyncio.wait((self._task,))
