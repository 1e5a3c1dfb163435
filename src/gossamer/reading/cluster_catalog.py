"""The catalog of a crawl on many machines: the read side of a ledger, on top of the ledger that nodes share.

Takes no lease and changes nothing; shows what is committed. A URL costs one round trip; a host, its robots.txt or its
queue the rows of one shard (`CACHED_SHARDS` of each table stay in memory, as they were when they were read). A pass
over everything reads `SHARDS_AT_ONCE` shards at a time, whose rows are in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import cast

from gossamer.core.ledger import rows
from gossamer.core.ledger.archive_names import checked_ends
from gossamer.core.ledger.candidates import find_id
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.ledger.tables import SEEDS, Record, RecordTable
from gossamer.core.url.forms import host_of, key_of
from gossamer.core.url.identity import MAX_CANDIDATES, SHARD_COUNT, shard_of, use, with_record
from gossamer.model.figures import Totals
from gossamer.model.records import (
    Change,
    DomainRecord,
    HostId,
    HostRecord,
    QueuedUrl,
    QueuePosition,
    RobotsRecord,
    UrlId,
    UrlRecord,
    UrlState,
)
from gossamer.model.state import CrawlRecord, CrawlState, ShardState
from gossamer.ports import Row
from gossamer.ports.shared_ledger import LedgerReader

SHARDS_AT_ONCE = 16
CACHED_SHARDS = 128


class SharedCatalog:
    """See `gossamer.ports.Catalog` for the contract."""

    def __init__(self, shared: LedgerReader, record: CrawlRecord) -> None:
        self._shared = shared
        self._record = record
        self.has_homes = (
            False  # whether domains may have left rows behind in their first shard: see `engine/cluster/rehoming`
        )
        self.identity = with_record(record.ids)
        self._table = lru_cache(maxsize=CACHED_SHARDS)(self._read_table)

    def identify(self) -> None:
        """Make the identity of the crawl, whose regions are known now, the current one."""
        self.identity = with_record(self._record.ids)
        use(self.identity)

    def _read_table(self, table: str, shard: int) -> dict[bytes, bytes]:
        """Return a table of a shard, sorted by key."""
        found = [row for some in self._shared.scan([shard], [table]) for row in some]
        return {row.key: row.value for row in sorted(found) if row.value is not None}

    def _all(self, table: str, shard: int | None = None, first: int = 0) -> Iterator[Row]:
        """Yield the rows of a table in order of their keys; of one shard, or from a shard on."""
        shards = range(first, SHARD_COUNT) if shard is None else range(shard, shard + 1)
        for start in range(0, len(shards), SHARDS_AT_ONCE):
            some = shards[start : start + SHARDS_AT_ONCE]
            yield from sorted(row for part in self._shared.scan(some, [table]) for row in part)

    # -- URLs -------------------------------------------------------------------------------------

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the row of a URL."""
        (row,) = self._shared.look_up([url_id])
        return None if row is None else rows.decode_url(row)

    def url_id(self, url: str) -> UrlId:
        """Return the id of a URL: of the row with this URL, or the one that it would get."""

        def stored_url(url_id: UrlId) -> str | None:
            (row,) = self._shared.look_up([url_id])
            return None if row is None else rows.stored_url(row)

        first = self.identity.url_candidate(self.host_id(host_of(url)), key_of(url), 0)
        return find_id(self.identity, first, url, stored_url, is_requisite=False)[0]

    def host_id(self, name: str) -> HostId:
        """Return the id of a host."""
        self.host(name)  # learns whether it has another than its first
        return self.identity.host_id(name)

    def urls(self, host_id: HostId | None = None, after: UrlId = b"") -> Iterator[tuple[UrlId, UrlRecord]]:
        """Return the catalog, or a host's part of it, in order of id, after an id."""
        shard = None if host_id is None else shard_of(host_id)
        for row in self._all("urls", shard, shard_of(after) if after else 0):
            if row.value is not None and row.key > after and row.key.startswith(host_id or b""):
                yield row.key, rows.decode_url(row.value)

    def read_queue(self, host_id: HostId, after: QueuePosition | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host after a position, in order.

        What has left the queue since its shard was read is left out.
        """
        keys = list(self._table("queue", shard_of(host_id)))
        start = bisect_right(keys, rows.queue_bound(host_id, after))
        while start < len(keys) and keys[start].startswith(host_id):
            ids = [rows.queued_id(key) for key in keys[start : start + count] if key.startswith(host_id)]
            found = [None if row is None else rows.decode_url(row) for row in self._shared.look_up(ids)]
            known = [(key, row) for key, row in zip(ids, found, strict=True) if row is not None]
            queued = [queued_from(key, host_of(row.url), row) for key, row in known if row.state is UrlState.QUEUED]
            if queued:
                return queued
            start += len(ids)
        return []

    # -- hosts ------------------------------------------------------------------------------------

    def host(self, name: str) -> HostRecord | None:
        """Return what is known about a host."""
        name = name.rstrip(".")
        key = self.identity.host_id(name)
        row = self._table("hosts", shard_of(key)).get(key)
        for number in range(1, MAX_CANDIDATES):
            if row is None:
                return None
            host = rows.decode_host(row)
            if host.name == name:
                self.identity.assign(name, host.probe)
                return host
            key = self.identity.host_candidate(name, number)
            row = self._table("hosts", shard_of(key)).get(key)
        return None

    def hosts(self, shard: int | None = None) -> Iterator[HostRecord]:
        known = ((row.key, rows.decode_host(row.value)) for row in self._all("hosts", shard) if row.value is not None)
        return (
            host
            for key, host in known
            if not self.has_homes or key == self.identity.host_candidate(host.name, host.probe)
        )

    def domain(self, name: str) -> DomainRecord | None:
        """Return what is known about a registrable domain."""
        for number in range(MAX_CANDIDATES):
            key = self.identity.domain_candidate(name, number)
            row = self._table("domains", shard_of(key)).get(key)
            domain = None if row is None else rows.decode_domain(row)
            if domain is None or domain.name == name:
                return domain
        return None

    def domains(self, shard: int | None = None) -> Iterator[DomainRecord]:
        """Return all registrable domains."""
        known = ((row.key, rows.decode_domain(row.value)) for row in self._all("domains", shard) if row.value)
        return (
            domain
            for key, domain in known
            if not self.has_homes or key == self.identity.domain_candidate(domain.name, domain.probe)
        )

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        known = self._table("robots", shard_of(host_id))
        return [rows.decode_robots(row) for key, row in known.items() if key.startswith(host_id)]

    # -- records, archives, state -----------------------------------------------------------------

    def record(self, table: RecordTable[Record], key: bytes) -> Record | None:
        """Return a record by its key. Seeds with rules are in the crawl's record, not in a table."""
        if table.name == SEEDS.name:
            return next((each for each in self.records(table) if table.key(each) == key), None)
        row = self._table(table.name, shard_of(key)).get(key)
        return None if row is None else table.decode(row)

    def records(self, table: RecordTable[Record], shard: int | None = None) -> Iterator[Record]:
        """Return all records of a table."""
        if table.name == SEEDS.name:
            seeds = cast(Iterable[Record], self._record.seeds)
            return (each for each in seeds if shard is None or shard_of(table.key(each)) == shard)
        return (table.decode(row.value) for row in self._all(table.name, shard) if row.value is not None)

    def archive_ends(self) -> dict[str, int]:
        """Return the committed length of every archive file of every node."""
        names = {node.name for node in self._shared.nodes()}
        ends = {file: end for name in sorted(names) for file, end in self._shared.archive_ends(name).items()}
        return checked_ends(ends, "the ledger")

    def crawl_state(self) -> CrawlState:
        """Return the state of the whole crawl: the totals of all nodes."""
        totals = Totals()
        for view in self._shared.nodes().values():
            totals.add(view.totals)
        return CrawlState(totals=totals, scope=self._record.scope)

    # -- changes: numbers grow within a shard only ------------------------------------------------

    def last_changes(self) -> dict[int, int]:
        """Return the number of the last change of each shard that has any."""
        found: dict[int, int] = {}
        for row in self._all("shards"):
            state: ShardState = rows.decode_shard(row.value or b"")
            if state.last_change:
                found[shard_of(row.key)] = state.last_change
        return found

    def changes_of(self, shard: int, after: int) -> list[Change]:
        """Return the changes of a shard after a number, in order."""
        entries = [rows.decode_change(row.key, row.value) for row in self._all("changes", shard) if row.value]
        return [entry for entry in entries if entry.seq > after]
