"""Which results take long to complete, and how do the others get their turn meanwhile?

A robots.txt of 500 KB takes 50 ms of the hub's event loop to read, once. That is no stall; but 150 hosts can answer
with one each at the same moment, and every page behind them would wait for 8 s. So such results wait here, outside of
the order of arrival: one at a time, and after each of them a pause of `PAUSE` times what it took, in which everything
else goes on. Their orders stay outstanding until they are completed, but they use no connection: for up to
`MAX_SLOTS` of them, whose bodies are in memory, as many others may be made. When the crawl stops, what is left is
completed without pauses.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

from gossamer.records import Result

COSTLY_ROBOTS_BYTES = 20_000  # 2 ms
PAUSE = 1.0  # so that they take half of the loop at most
MAX_SLOTS = 48  # of up to 1 MiB each


class CostlyResults:
    """Completes results one at a time, with pauses."""

    def __init__(self, complete: Callable[[Result], None], clock: Callable[[], float] = perf_counter) -> None:
        self._complete = complete
        self._clock = clock
        self._waiting: deque[Result] = deque()
        self._timer: asyncio.Handle | None = None

    @property
    def free_slots(self) -> int:
        """How many requests may be made beyond the limit of connections, for those that wait and use none."""
        return min(MAX_SLOTS, len(self._waiting))

    def add(self, result: Result) -> None:
        """Complete a result now if no other was completed just before, otherwise when it is its turn."""
        self._waiting.append(result)
        if self._timer is None:
            self._next()

    def _next(self) -> None:
        self._timer = None
        if self._waiting:
            began = self._clock()
            self._complete(self._waiting.popleft())
            pause_s = PAUSE * (self._clock() - began)
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._next)

    def finish(self) -> None:
        """Complete those that are left, without pauses: the crawl stops, and nobody else needs the loop."""
        while self._waiting:
            self._complete(self._waiting.popleft())
