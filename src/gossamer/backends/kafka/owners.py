"""Who owns which shard, on Cassandra: one row per range of shards, changed under the condition that nobody else did.

All rows of a crawl are in one partition, so that shards of many ranges are taken in one step. A shard that is free
keeps the epoch that its next owner's must exceed: timestamps of rows are made of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from itertools import groupby

import msgspec
from msgspec import Struct

from gossamer.backends.kafka.database import Keyspace, int_bytes
from gossamer.backends.kafka.layout import Layout
from gossamer.model.errors import LedgerUnavailableError
from gossamer.ports.shared_ledger import NodeId

TRIES = 50
PAUSE_S = 0.05
_UPDATE = "UPDATE owners SET version = ?, body = ? WHERE crawl = ? AND range = ? IF version = ?"
_encode = msgspec.msgpack.Encoder().encode


class Owner(Struct, frozen=True, array_like=True):
    """The owner of a shard. Without a name the shard is free."""

    name: str
    incarnation: str
    epoch: int

    @property
    def node(self) -> NodeId:
        return NodeId(self.name, self.incarnation)


_owners = msgspec.msgpack.Decoder(dict[int, Owner]).decode
Owned = dict[int, Owner]  # by shard


class Owners:
    """See the module."""

    def __init__(self, database: Keyspace) -> None:
        self._database = database
        self._crawl = database.name
        self._known: dict[int, tuple[int, Owned]] = {}  # range -> version, as last seen by `look`

    def create(self, layout: Layout) -> None:
        """Create the rows of a new crawl."""
        self._database.read_many(
            ("INSERT INTO owners (crawl, range, version, body) VALUES (?, ?, 0, ?) IF NOT EXISTS",
             (self._crawl, number, _encode({})))
            for number in range(layout.partitions)
        )  # fmt: skip

    def read(self) -> Owned:
        """Return all shards that have or had an owner."""
        found: Owned = {}
        for _, _, body in self._rows():
            found |= _owners(body)
        return found

    def _rows(self) -> list[tuple[int, int, bytes]]:
        found = self._database.read_last("SELECT range, version, body FROM owners WHERE crawl = ?", self._crawl)
        return [(number, version, body) for number, version, body in found]

    def shards_of(self, node: NodeId) -> dict[int, int]:
        """Return the shards of a node, and their epochs."""
        return {
            shard: owner.epoch
            for _, known in self.look().values()
            for shard, owner in known.items()
            if owner.incarnation == node.incarnation and owner.name == node.name
        }

    def look(self) -> Mapping[int, tuple[int, Owned]]:
        """Return version and owners by range, as they were a moment ago: only what has changed is read."""
        versions = self._database.read("SELECT range, version FROM owners WHERE crawl = ?", self._crawl)
        changed = [number for number, version in versions if self._known.get(number, (-1,))[0] != version]
        if changed:
            text = "SELECT range, version, body FROM owners WHERE crawl = ? AND range IN ?"
            for number, version, body in self._database.read(text, self._crawl, changed):
                self._known[number] = version, _owners(body)
        return self._known

    def change(self, shards: Collection[int], layout: Layout, how: Callable[[Owned], Mapping[int, Owner]]) -> Owned:
        """Change the owners of shards: all of them, or none if others did so meanwhile; then try again.

        `how` gets what is known of the shards, and returns what is to change.
        """
        wanted = {number: set(some) for number, some in groupby(sorted(shards), layout.range_of)}
        for attempt in range(TRIES):
            rows = {number: (version, _owners(body)) for number, version, body in self._rows() if number in wanted}
            known = {shard: each for _, some in rows.values() for shard, each in some.items()}
            changed = dict(how({shard: owner for shard, owner in known.items() if shard in shards}))
            if not changed or self._write(rows, changed, layout):
                return changed
            time.sleep(random.uniform(0, PAUSE_S * min(attempt + 1, 10)))
        raise LedgerUnavailableError(f"ledger {self._crawl}: the owners of shards are changed all the time")

    def _write(self, rows: Mapping[int, tuple[int, Owned]], changed: Owned, layout: Layout) -> bool:
        crawl = self._crawl.encode()
        statements = []
        for number, some in groupby(sorted(changed), layout.range_of):
            version, known = rows[number]
            body = _encode(known | {shard: changed[shard] for shard in some})
            values = (int_bytes(version + 1), body, crawl, int_bytes(number), int_bytes(version))
            statements.append(self._database.statement(_UPDATE, *values))
        return self._database.change_together([crawl], statements)
