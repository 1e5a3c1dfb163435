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
from gossamer.core.url import url_id
from gossamer.records import HostId, UrlId
from gossamer.state import (
    DomainHome,
    HeldUrl,
    HoldRule,
    HostEvidence,
    HostHeld,
    IntroducedBatch,
    LinkBatch,
    SeedRecord,
    Submitters,
)

Record = TypeVar("Record", bound=msgspec.Struct)


class RecordTable(Generic[Record]):
    """A table: its name, the type of its records, and how a key follows from a record.

    `first_records` reads a table in order; its prefix must contain the first `group_bytes` of the key.
    """

    def __init__(
        self, name: str, record_type: type[Record], key: Callable[[Record], bytes], *, group_bytes: int = 0
    ) -> None:
        self.name = name
        self.key = key
        self.group_bytes = group_bytes
        self.decode = msgspec.msgpack.Decoder(record_type).decode


EVIDENCE = RecordTable("evidence", HostEvidence, lambda evidence: host_id(evidence.host))
QUARANTINES = RecordTable(
    "quarantines", Quarantine, lambda one: host_id(one.host) + xxh3_64_digest(one.pattern.encode())
)
SUBMITTERS = RecordTable("submitters", Submitters, lambda submitters: submitters.sitemap)
_RULE_BYTES = {HoldRule.FIRST_PASS: b"f", HoldRule.CALENDAR: b"c", HoldRule.QUARANTINE: b"q"}
HELD = RecordTable("held", HeldUrl, lambda held: held_key(held.id, held.rule), group_bytes=8)
HELD_COUNTS = RecordTable("held_counts", HostHeld, lambda held: host_id(held.host))
SEEDS = RecordTable("seeds", SeedRecord, lambda seed: url_id(seed.url))
BACKLOG = RecordTable("backlog", LinkBatch, lambda batch: batch_key(batch.parent, batch.number))
INTRODUCED = RecordTable("introduced", IntroducedBatch, lambda batch: introduced_key(batch.parent, batch.number))
HOMES = RecordTable("homes", DomainHome, lambda home: home.id)
RECORD_TABLES = (EVIDENCE, QUARANTINES, SUBMITTERS, HELD, HELD_COUNTS, SEEDS, BACKLOG, INTRODUCED, HOMES)


def batch_key(parent: UrlId, number: int) -> bytes:
    """Return the key of a batch of links: those of a page are adjacent, in order."""
    return parent + number.to_bytes(4)


def introduced_key(parent: UrlId, number: int) -> bytes:
    """Return the key of a batch of links to new hosts, whose number is that of an arrival."""
    return parent + number.to_bytes(8)


def held_key(url_id: UrlId, rule: HoldRule) -> bytes:
    """Return the key of a held URL: the links of a host that a rule holds are adjacent."""
    return url_id[:8] + _RULE_BYTES[rule] + url_id[8:]


def held_prefix(host: HostId, rule: HoldRule) -> bytes:
    """Return the common prefix of the links of a host that a rule holds."""
    return host + _RULE_BYTES[rule]
