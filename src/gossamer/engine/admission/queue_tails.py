"""Which host has the last URL of all queues? For eviction, without reading every queue.

Of each host a bound is known: its last URL has this position or an earlier one. A URL that is queued may raise it; one
that leaves the queue leaves the bound too late, never too early. The host with the latest bound is the candidate; if
its queue, when it is read, ends earlier than its bound, the caller puts it back with the true position. So the first
host whose bound holds has the last URL of all. Pure. 0.2 µs per queued URL, O(log hosts) per candidate.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from gossamer.core.url.identity import host_id, shard_of

Tail: TypeAlias = tuple[int, int]  # priority and seq of a URL
UNKNOWN: Final[Tail] = (1 << 62, 0)  # later than any
NOWHERE: Final[Tail] = (-(1 << 62), 0)


class QueueTails:
    """A bound per host on the end of its queue."""

    def __init__(self) -> None:
        self._bounds: dict[str, Tail] = {}
        self._raised: set[str] = set()  # hosts whose bounds are not in the heap yet
        self._heap: list[tuple[int, int, str]] = []  # negative, so that the latest is first

    def add(self, host: str, tail: Tail = UNKNOWN) -> None:
        """Record that a URL at this position is queued at a host."""
        if tail > self._bounds.get(host, NOWHERE):
            self._bounds[host] = tail
            self._raised.add(host)

    def latest(self) -> Tail:
        for host in self._raised:
            priority, seq = self._bounds[host]
            heappush(self._heap, (-priority, -seq, host))
        self._raised.clear()
        while self._heap:
            priority, seq, host = self._heap[0]
            if self._bounds.get(host) == (-priority, -seq):
                return -priority, -seq
            heappop(self._heap)
        return NOWHERE

    def pop(self) -> str | None:
        """Remove and return the host with the latest bound; the caller puts it back if its queue is not empty."""
        if self.latest() == NOWHERE:
            return None
        host = heappop(self._heap)[2]
        del self._bounds[host]
        return host

    def forget(self, shards: Collection[int]) -> None:
        self._bounds = {host: tail for host, tail in self._bounds.items() if shard_of(host_id(host)) not in shards}
        self._raised &= self._bounds.keys()
        self._heap = [entry for entry in self._heap if entry[2] in self._bounds]
        heapify(self._heap)
