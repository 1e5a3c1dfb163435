"""The state of every shard: the next sequence number, and the change feed.

Both numbers come from one counter over all shards in this store and are recorded with the shard they
were used in (see `ShardState`). So `changes` can return the entries of all shards in the order in
which they happened, by merging the shards: one seek for each that has entries after the given number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice

from gossamer.backends.local.store import Item, Store
from gossamer.core.ledger.rows import change_key, decode_change, decode_shard, encode, encode_change
from gossamer.core.url.identity import shard_of, shard_prefix
from gossamer.model.records import Change, ChangeKind, UrlId
from gossamer.model.state import ShardState

_CHUNK = 64  # entries of one shard that are read at a time while shards are merged


class ShardStates:
    """The live rows of the shards, and the change feed whose numbers they contain."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._states: dict[int, ShardState] = {}
        self._changed: set[int] = set()
        self.next_seq = 1
        self.last_change = 0

    def open(self) -> None:
        """Read what is committed."""
        for key, value in self._store.committed("shards"):
            state = self._states[shard_of(key)] = decode_shard(value)
            self.next_seq = max(self.next_seq, state.next_seq)
            self.last_change = max(self.last_change, state.last_change)

    def load(self, shard: int) -> None:
        """Read the state of a shard that was taken, unless it is known."""
        value = None if shard in self._states else self._store.get("shards", shard_prefix(shard))
        if value is not None:
            state = self._states[shard] = decode_shard(value)
            self.next_seq = max(self.next_seq, state.next_seq)
            self.last_change = max(self.last_change, state.last_change)

    def drop(self, shards: Collection[int]) -> None:
        """Forget the states of shards."""
        for shard in shards:
            self._states.pop(shard, None)
        self._changed.difference_update(shards)

    def of(self, shard: int) -> ShardState:
        """Return the live state of a shard."""
        state = self._states.get(shard)
        if state is None:
            state = self._states[shard] = ShardState()
        return state

    def record_seq(self, url_id: UrlId, seq: int) -> None:
        """Record the sequence number of a URL."""
        shard = (url_id[0] << 4) | (url_id[1] >> 4)  # `shard_of` without the call: once per URL
        state = self._states.get(shard) or self.of(shard)
        if seq >= state.next_seq:
            state.next_seq = seq + 1
            self._changed.add(shard)
            if seq >= self.next_seq:
                self.next_seq = seq + 1

    def record_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        shard = (url_id[0] << 4) | (url_id[1] >> 4)  # `shard_of` without the call: once per page
        number = self.last_change = self.last_change + 1
        state = self._states.get(shard) or self.of(shard)
        state.last_change = number
        self._changed.add(shard)
        self._store.put("changes", change_key(shard, number), encode_change(url_id, kind))

    def seal(self) -> None:
        """Add what has changed to the store's changes."""
        for shard in self._changed:
            self._store.put("shards", shard_prefix(shard), encode(self._states[shard]))
        self._changed.clear()

    def changes(self, after: int, count: int) -> list[Change]:
        heap: list[tuple[int, Item, Iterator[Item]]] = []
        for shard, state in self._states.items():
            if state.last_change > after:
                entries = self._entries(shard, after)
                if (entry := next(entries, None)) is not None:
                    heap.append((int.from_bytes(entry[0][2:], "big"), entry, entries))
        heapify(heap)
        return [decode_change(*entry) for entry in islice(_merged(heap), count)]

    def _entries(self, shard: int, after: int) -> Iterator[Item]:
        prefix = shard_prefix(shard)
        bound = change_key(shard, after)
        while entries := self._store.first("changes", prefix, bound, _CHUNK):
            yield from entries
            bound = entries[-1][0]


def _merged(heap: list[tuple[int, Item, Iterator[Item]]]) -> Iterator[Item]:
    """Yield entries in the order of their numbers, which are unique."""
    while heap:
        _, entry, entries = heappop(heap)
        yield entry
        if (following := next(entries, None)) is not None:
            heappush(heap, (int.from_bytes(following[0][2:], "big"), following, entries))
