"""Tables of records that every ledger stores in the same way: one record per key, read by key or by shard.

A key begins with an id (`core/url/identity`), so that a record belongs to a shard. To add a table, define its record in
`state` (or in the module that uses it) and list it here; ledgers need no change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from gossamer.core.revisit.stored import DueHost, DueUrl, HostVisits, ShardVisits, due_host_key, due_key
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.url.forms import url_id
from gossamer.core.url.identity import SHARD_PREFIX_BYTES, digest, domain_id, host_id, shard_prefix
from gossamer.model.records import HostId, UrlId
from gossamer.model.state import (
    DomainHome,
    DomainRank,
    HeldUrl,
    HoldRule,
    HostEvidence,
    HostHeld,
    IntroducedBatch,
    LinkBatch,
    LinkMeta,
    Namesake,
    SeedRecord,
    SpamTally,
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
QUARANTINES = RecordTable("quarantines", Quarantine, lambda one: quarantine_key(one.host, one.pattern))
SUBMITTERS = RecordTable("submitters", Submitters, lambda submitters: submitters.sitemap)
_RULE_BYTES = {
    HoldRule.FIRST_PASS: b"f",
    HoldRule.CALENDAR: b"c",
    HoldRule.QUARANTINE: b"q",
    HoldRule.SPAM: b"s",
    HoldRule.HOSTS_PER_DOMAIN: b"d",
}
HELD = RecordTable("held", HeldUrl, lambda held: held_key(held.id, held.rule), group_bytes=8)
HELD_COUNTS = RecordTable("held_counts", HostHeld, lambda held: host_id(held.host))
SEEDS = RecordTable("seeds", SeedRecord, lambda seed: url_id(seed.url))
BACKLOG = RecordTable("backlog", LinkBatch, lambda batch: batch_key(batch.parent, batch.number))
INTRODUCED = RecordTable("introduced", IntroducedBatch, lambda batch: introduced_key(batch.parent, batch.number))
HOMES = RecordTable("homes", DomainHome, lambda home: home.id)
RANKS = RecordTable("ranks", DomainRank, lambda rank: domain_id(rank.domain))
DUE = RecordTable("due", DueUrl, lambda due: due_key(due.id, due.at), group_bytes=8)
DUE_HOSTS = RecordTable(
    "due_hosts", DueHost, lambda due: due_host_key(due.host, due.at), group_bytes=SHARD_PREFIX_BYTES
)
HOST_VISITS = RecordTable("host_visits", HostVisits, lambda visits: host_id(visits.host))
SHARD_VISITS = RecordTable("shard_visits", ShardVisits, lambda visits: shard_prefix(visits.shard))
SPAM = RecordTable("spam", SpamTally, lambda tally: spam_key(tally.name, is_domain=tally.is_domain))
NAMESAKES = RecordTable("namesakes", Namesake, lambda other: namesake_key(other.id, is_domain=other.is_domain))
LINK_META = RecordTable("link_meta", LinkMeta, lambda meta: meta.id)
RECORD_TABLES = (
    EVIDENCE,
    QUARANTINES,
    SUBMITTERS,
    HELD,
    HELD_COUNTS,
    SEEDS,
    BACKLOG,
    INTRODUCED,
    HOMES,
    RANKS,
    DUE,
    DUE_HOSTS,
    HOST_VISITS,
    SHARD_VISITS,
    SPAM,
    LINK_META,
    NAMESAKES,
)


def batch_key(parent: UrlId, number: int) -> bytes:
    """Return the key of a batch of links: those of a page are adjacent, in order."""
    return parent + number.to_bytes(4)


def introduced_key(parent: UrlId, number: int) -> bytes:
    """Return the key of a batch of links to new hosts, whose number is that of an arrival."""
    return parent + number.to_bytes(8)


def quarantine_key(host: str, pattern: str) -> bytes:
    return host_id(host) + digest(pattern)


def spam_key(name: str, *, is_domain: bool) -> bytes:
    return host_id(name) + (b"d" if is_domain else b"h")


def namesake_key(name_id: bytes, *, is_domain: bool) -> bytes:
    return name_id + (b"d" if is_domain else b"h")


def held_key(url_id: UrlId, rule: HoldRule) -> bytes:
    """Return the key of a held URL: the links of a host that a rule holds are adjacent."""
    return url_id[:8] + _RULE_BYTES[rule] + url_id[8:]


def held_prefix(host: HostId, rule: HoldRule) -> bytes:
    return host + _RULE_BYTES[rule]
