"""Hosts that were swapped out of memory, and when each is due.

The table is sorted by shard, then by time, so that a shard can move. What is due first over all shards is found
with a heap of the first due time per shard; an entry is valid while it agrees with `_first`. Opening
reads the keys once (0.3 µs each); swapping in costs one read of the table per host.
"""

from __future__ import annotations

from heapq import heappop, heappush

from gossamer.backends.local.store import Store
from gossamer.core.ledger.rows import due_us_of, microseconds, swapped_out_key
from gossamer.core.url.identity import host_id, shard_of, shard_prefix

TABLE = "swapped_out"
_ALL = 1 << 30


class SwappedOut:
    """See `gossamer.ports.HostStore`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._count = 0
        self._first: dict[int, int] = {}  # shard -> due time of its first host, in µs
        self._heap: list[tuple[int, int]] = []  # the same as (due time, shard), and stale entries

    def open(self) -> None:
        """Find what is due first in each shard."""
        for key in self._store.committed_keys(TABLE):
            self._count += 1
            if shard_of(key) not in self._first:
                self._set_first(shard_of(key), due_us_of(key))

    def _set_first(self, shard: int, due_us: int) -> None:
        self._first[shard] = due_us
        heappush(self._heap, (due_us, shard))

    def add(self, name: str, until: float) -> None:
        """Record that a host is swapped out until a time."""
        due_us = microseconds(until)
        key = swapped_out_key(host_id(name), due_us)
        if self._store.get(TABLE, key) is None:
            self._count += 1
        self._store.put(TABLE, key, name.encode())
        first = self._first.get(shard_of(key))
        if first is None or due_us < first:
            self._set_first(shard_of(key), due_us)

    def pop_due(self, now: float, count: int) -> list[str]:
        """Remove and return hosts that are due, soonest first."""
        names: list[str] = []
        now_us = microseconds(now)
        while len(names) < count and (next_us := self._next_us()) is not None and next_us <= now_us:
            names.append(self._pop_first(heappop(self._heap)[1]))
        self._count -= len(names)
        return names

    def _next_us(self) -> int | None:
        while self._heap and self._first.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _pop_first(self, shard: int) -> str:
        (key, name), *rest = self._store.first(TABLE, shard_prefix(shard), b"", 2)
        self._store.put(TABLE, key, None)
        if rest:
            self._set_first(shard, due_us_of(rest[0][0]))
        else:
            del self._first[shard]
        return name.decode()

    def take_shard(self, shard: int) -> None:
        """Count a shard's hosts again."""
        entries = self._store.first(TABLE, shard_prefix(shard), b"", _ALL)
        if entries and shard not in self._first:
            self._count += len(entries)
            self._set_first(shard, due_us_of(entries[0][0]))

    def release_shard(self, shard: int) -> None:
        """Stop counting a shard's hosts: they are no longer due here."""
        if shard in self._first:
            del self._first[shard]
            self._count -= len(self._store.first(TABLE, shard_prefix(shard), b"", _ALL))

    def waiting(self) -> tuple[int, float]:
        """Return how many hosts are swapped out, and when the first is due."""
        next_us = self._next_us()
        return self._count, float("inf") if next_us is None else next_us / 1e6
