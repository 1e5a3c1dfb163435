"""Tables of records that every ledger stores in the same way: one record per key, read by key or by shard.

A key begins with an id (`core/identity`), so that a record belongs to a shard. To add a table, define its record in
`state` (or in the module that uses it) and list it here; ledgers need no change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from xxhash import xxh3_64_digest

from gossamer.core.identity import host_id
from gossamer.core.novelty import Quarantine
from gossamer.state import HostEvidence, Submitters

Record = TypeVar("Record", bound=msgspec.Struct)


class RecordTable(Generic[Record]):
    """A table: its name, the type of its records, and how a key follows from a record."""

    def __init__(self, name: str, record_type: type[Record], key: Callable[[Record], bytes]) -> None:
        self.name = name
        self.key = key
        self.decode = msgspec.msgpack.Decoder(record_type).decode


EVIDENCE = RecordTable("evidence", HostEvidence, lambda evidence: host_id(evidence.host))
QUARANTINES = RecordTable(
    "quarantines", Quarantine, lambda one: host_id(one.host) + xxh3_64_digest(one.pattern.encode())
)
SUBMITTERS = RecordTable("submitters", Submitters, lambda submitters: submitters.sitemap)
RECORD_TABLES = (EVIDENCE, QUARANTINES, SUBMITTERS)
