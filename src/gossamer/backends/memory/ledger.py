"""The ledger in memory: for the simulator, for tests, and as the simplest implementation of the contract.

Every table is a dict from the row's key (`core/ledger/rows`) to the object itself; what was changed since the
last seal is encoded only if the rows of a commit are requested.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gossamer.core.dedup.index import NearIndex, index_of
from gossamer.core.ledger import rows
from gossamer.core.ledger.candidates import find_id
from gossamer.core.ledger.catalog import queued_from, record_of
from gossamer.core.ledger.tables import NAMESAKES, Record, RecordTable
from gossamer.core.url.forms import host_of, key_of
from gossamer.core.url.identity import current, first_free, shard_of, shard_prefix
from gossamer.model.records import (
    Change,
    ChangeKind,
    ContentRecord,
    DomainRecord,
    FetchKind,
    HostId,
    HostRecord,
    QueuedUrl,
    QueuePosition,
    RobotsRecord,
    Similar,
    UrlId,
    UrlRecord,
    UrlState,
)
from gossamer.model.state import CrawlState, Namesake, ShardState
from gossamer.ports import Row

_SHARDED = frozenset(rows.SHARDED)
_NO_HOSTS: Mapping[HostId, str] = {}


class MemoryLedger:
    """See `gossamer.ports.Ledger` for the contract. Writing a commit does nothing."""

    def __init__(self) -> None:
        self.identity = current()
        self._tables: dict[str, dict[bytes, Any]] = {table: {} for table in rows.TABLES}
        self._changed: dict[str, set[bytes]] = {table: set() for table in rows.TABLES}
        self._queues: defaultdict[HostId, list[QueuePosition]] = defaultdict(list)
        self._due: list[tuple[int, HostId]] = []  # swapped-out hosts, sorted
        self._near: NearIndex | None = None
        self._edition = ""
        self._signatures: list[tuple[UrlId, bytes]] = []
        self._next_seq = 1
        self._last_change = 0
        self._shards: set[int] = set()  # that have rows

    def _put(self, table: str, key: bytes, value: object) -> None:
        if table in _SHARDED:
            self._shards.add(shard_of(key))
        self._tables[table][key] = value
        self._changed[table].add(key)

    def _remove(self, table: str, key: bytes) -> None:
        self._tables[table].pop(key, None)
        self._changed[table].add(key)

    def _of_shard(self, table: str, shard: int | None) -> list[Any]:
        if shard is not None and shard not in self._shards:
            return []
        return [value for key, value in self._tables[table].items() if shard in (None, shard_of(key))]

    # -- queues -----------------------------------------------------------------------------------

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        new = []
        for url in urls:
            found, is_known = self.find(url.id, url.url, is_requisite=url.kind is FetchKind.REQUISITE)
            if not is_known:
                admitted = url if found == url.id else replace(url, id=found)
                self._enqueue(admitted, record_of(admitted))
                new.append(admitted)
        return new

    def _enqueue(self, url: QueuedUrl, record: UrlRecord) -> None:
        self._put("urls", url.id, record)
        self._put("queue", rows.queue_key(url), b"")
        queue = self._queues[url.id[:8]]
        position = url.position
        at = bisect_left(queue, position)
        if at == len(queue) or queue[at] != position:
            queue.insert(at, position)
        state = self.shard_state(shard_of(url.id))
        state.next_seq = max(state.next_seq, url.seq + 1)
        self._put("shards", shard_prefix(shard_of(url.id)), state)
        self._next_seq = max(self._next_seq, state.next_seq)

    def is_seen(self, url_id: UrlId) -> bool:
        return url_id in self._tables["urls"]

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        record: UrlRecord | None = self._tables["urls"].get(url_id)
        return record

    def find(self, url_id: UrlId, url: str, *, is_requisite: bool = False) -> tuple[UrlId, bool]:
        return find_id(self.identity, url_id, url, self._stored_url, is_requisite=is_requisite)

    def _stored_url(self, url_id: UrlId) -> str | None:
        record = self.look_up(url_id)
        return None if record is None else record.url

    def url_id(self, url: str) -> UrlId:
        first = self.identity.url_candidate(self.identity.host_id(host_of(url)), key_of(url), 0)
        return self.find(first, url)[0]

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        base = record or self.look_up(url.id) or record_of(url)
        again = replace(
            base,
            state=UrlState.QUEUED,
            priority=url.priority,
            seq=url.seq,
            depth=url.depth,
            hops=url.hops,
            attempt=url.attempt,
            not_before=url.not_before,
            https_first=url.https_first,
        )
        self._enqueue(url, again)

    def finish(self, url: QueuedUrl, record: UrlRecord | None) -> None:
        """Remove a URL from its queue; `record` is its row in the catalog from now on, None removes that, too."""
        if record is None:
            self._remove("urls", url.id)
        else:
            self._put("urls", url.id, record)
        self._remove("queue", rows.queue_key(url))
        queue = self._queues[url.id[:8]]
        if url.position in queue:
            queue.remove(url.position)

    def amend(self, url_id: UrlId, record: UrlRecord) -> None:
        self._put("urls", url_id, record)

    def read_queue(self, host_id: HostId, after: QueuePosition | None, count: int) -> list[QueuedUrl]:
        queue = self._queues.get(host_id, [])
        start = 0 if after is None else bisect_right(queue, after)
        return [self._queued(position[2]) for position in queue[start : start + count]]

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        return [self._queued(position[2]) for position in reversed(self._queues.get(host_id, [])[-count:])]

    def _queued(self, url_id: UrlId) -> QueuedUrl:
        record: UrlRecord = self._tables["urls"][url_id]
        return queued_from(url_id, host_of(record.url), record)

    def kill_queue(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        queued = self.read_queue(host_id, None, len(self._queues.get(host_id, [])))
        for url in queued:
            record: UrlRecord = self._tables["urls"][url.id]
            self.finish(url, replace(record, state=UrlState.DEAD, outcome=outcome, error=error, fetched_at=now))
        return len(queued)

    # -- hosts ------------------------------------------------------------------------------------

    def host(self, name: str) -> HostRecord | None:
        record: HostRecord | None = self._tables["hosts"].get(self.identity.host_id(name))
        return record if record is None or record.name == name.rstrip(".") else None

    def host_id(self, name: str) -> HostId:
        return self.identity.host_id(name)

    def identify(self, name: str, taken: Mapping[HostId, str] = _NO_HOSTS) -> HostId:
        def name_at(key: HostId) -> str:
            record = self._tables["hosts"].get(key)
            return taken.get(key, "") if record is None else str(record.name)

        number = first_free(lambda number: self.identity.host_candidate(name, number), name_at, name)
        if number:
            self._assign(Namesake(self.identity.host_candidate(name, number), name, number))
        return self.identity.host_id(name)

    def _assign(self, other: Namesake) -> None:
        self.identity.assign(other.name, other.probe, is_domain=other.is_domain)
        self.put_record(NAMESAKES, other)

    def domain(self, name: str) -> DomainRecord | None:
        record: DomainRecord | None = self._tables["domains"].get(self.identity.domain_id(name))
        return record if record is None or record.name == name else None

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        return [record for key, record in self._tables["robots"].items() if key.startswith(host_id)]

    def put_host(self, record: HostRecord, key: HostId | None = None) -> None:
        record.probe = self.identity.probe_of(record.name)
        self._put("hosts", key or self.identity.host_id(record.name), record)

    def put_domain(self, record: DomainRecord) -> None:
        name = record.name

        def name_at(key: bytes) -> str:
            found = self._tables["domains"].get(key)
            return "" if found is None else str(found.name)

        if name_at(self.identity.domain_id(name)) not in ("", name):
            number = first_free(lambda number: self.identity.domain_candidate(name, number), name_at, name)
            record.probe = number
            self._assign(Namesake(self.identity.domain_candidate(name, number), name, number, is_domain=True))
        self._put("domains", self.identity.domain_id(name), record)

    def put_robots(self, record: RobotsRecord) -> None:
        record.probe = self.identity.probe_of(host_of(record.origin + "/"))
        self._put("robots", rows.robots_key(record.origin, identity=self.identity), record)

    def hosts(self, shard: int | None = None) -> Iterator[HostRecord]:
        return iter(self._of_shard("hosts", shard))

    def domains(self, shard: int | None = None) -> Iterator[DomainRecord]:
        return iter(self._of_shard("domains", shard))

    def swap_out(self, name: str, until: float) -> None:
        due = rows.microseconds(until), self.identity.host_id(name)
        if due not in self._due:
            insort(self._due, due)
        self._put("swapped_out", rows.swapped_out_key(due[1], due[0]), name)

    def swap_in_due(self, now: float, count: int) -> list[str]:
        keys = [rows.swapped_out_key(host, at) for at, host in self._due[:count] if at <= rows.microseconds(now)]
        del self._due[: len(keys)]
        names: list[str] = [self._tables["swapped_out"][key] for key in keys]
        for key in keys:
            self._remove("swapped_out", key)
        return names

    def take_shard(self, shard: int) -> None:
        for other in list(self.records(NAMESAKES, shard)):
            self.identity.assign(other.name, other.probe, is_domain=other.is_domain)
        known = set(self._due)
        for key in self._tables["swapped_out"]:
            due = rows.due_us_of(key), key[10:]
            if shard_of(key) == shard and due not in known:
                insort(self._due, due)

    def release_shard(self, shard: int) -> None:
        self._due = [due for due in self._due if shard_of(due[1]) != shard]

    def load_rows(self, loaded: Sequence[Row]) -> None:
        for table, key, value in loaded:
            if value is None or key in self._tables[table]:
                continue
            self._shards.add(shard_of(key))
            self._tables[table][key] = _DECODERS.get(table, bytes)(value)
            if table == "queue":
                record_position = rows.position_of(key)
                insort(self._queues[key[:8]], record_position)
            elif table == "shards":
                state = self._tables[table][key]
                self._next_seq = max(self._next_seq, state.next_seq)
                self._last_change = max(self._last_change, state.last_change)

    def drop_rows(self, shards: Collection[int]) -> None:
        self._shards.difference_update(shards)
        for table in rows.SHARDED:
            for key in [key for key in self._tables[table] if shard_of(key) in shards]:
                del self._tables[table][key]
        for host in [host for host in self._queues if shard_of(host) in shards]:
            del self._queues[host]

    def swapped_out(self) -> tuple[int, float]:
        return len(self._due), self._due[0][0] / 1e6 if self._due else float("inf")

    # -- records ----------------------------------------------------------------------------------

    def record(self, table: RecordTable[Record], key: bytes) -> Record | None:
        value = self._tables[table.name].get(key)
        return None if value is None else table.decode(value)

    def records(self, table: RecordTable[Record], shard: int | None = None) -> Iterator[Record]:
        return map(table.decode, self._of_shard(table.name, shard))

    def first_records(
        self, table: RecordTable[Record], prefix: bytes, after: bytes = b"", count: int = 1000
    ) -> list[Record]:
        known = self._tables[table.name]
        keys = sorted(key for key in known if key.startswith(prefix) and key > after)
        return [table.decode(known[key]) for key in keys[:count]]

    def put_record(self, table: RecordTable[Record], record: Record) -> None:
        self._put(table.name, table.key(record), rows.encode(record))

    def remove_record(self, table: RecordTable[Record], key: bytes) -> None:
        self._remove(table.name, key)

    # -- contents and signatures ------------------------------------------------------------------

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        record: ContentRecord | None = self._tables["contents"].get(content_hash)
        return record

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Store the first page with this content; return the one that is already known, if any."""
        first = self.first_with_content(content_hash)
        if first is None:
            self._put("contents", content_hash, page)
        return first

    def use_signatures(self, edition: str) -> None:
        if self._edition != edition or self._near is None:
            self._edition = edition
            self._near = index_of(edition)
            self._signatures = []

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page that a signature repeats."""
        assert self._near is not None, "call use_signatures first"
        match = self._near.nearest(signature, lambda number: self._signatures[number][1])
        return Similar(self._signatures[match.number][0], match.similarity) if match is not None else None

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        assert self._near is not None, "call use_signatures first"
        self._near.add(len(self._signatures), signature)
        self._put("signatures", len(self._signatures).to_bytes(8, "big"), url_id + signature)
        self._signatures.append((url_id, signature))

    # -- the change feed, archives, state ---------------------------------------------------------

    def record_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        shard = shard_of(url_id)
        self._last_change += 1
        state = self.shard_state(shard)
        state.last_change = self._last_change
        self._put("shards", shard_prefix(shard), state)
        self._put("changes", rows.change_key(shard, self._last_change), rows.encode_change(url_id, kind))

    def changes(self, after: int, count: int) -> list[Change]:
        entries = [rows.decode_change(key, value) for key, value in self._tables["changes"].items()]
        return sorted((entry for entry in entries if entry.seq > after), key=lambda entry: entry.seq)[:count]

    def last_change(self) -> int:
        return self._last_change

    def put_archive_end(self, file: str, end: int) -> None:
        self._put("archives", file.encode(), max(end, self._tables["archives"].get(file.encode(), 0)))

    def archive_ends(self) -> dict[str, int]:
        return {name.decode(): end for name, end in self._tables["archives"].items()}

    def crawl_state(self) -> CrawlState | None:
        value = self._tables["meta"].get(rows.CRAWL_KEY)
        return None if value is None else rows.decode_crawl(value)

    def put_crawl_state(self, state: CrawlState) -> None:
        self._put("meta", rows.CRAWL_KEY, rows.encode(state))

    def shard_state(self, shard: int) -> ShardState:
        state: ShardState = self._tables["shards"].get(shard_prefix(shard)) or ShardState()
        return state

    def next_seq(self) -> int:
        return self._next_seq

    def urls(self, host_id: HostId | None = None, after: UrlId = b"") -> Iterator[tuple[UrlId, UrlRecord]]:
        rows = self._tables["urls"]
        prefix = host_id or b""
        return ((key, rows[key]) for key in sorted(rows) if key.startswith(prefix) and key > after)

    # -- commit -----------------------------------------------------------------------------------

    def seal(self) -> SealedMemory:
        changed = self._changed
        self._changed = {table: set() for table in rows.TABLES}
        return SealedMemory(
            {table: {key: _sealed(self._tables[table].get(key)) for key in keys} for table, keys in changed.items()}
        )

    def commit(self) -> None:
        """Close the changes so far."""
        self.seal().write()

    def pending_count(self) -> int:
        return sum(map(len, self._changed.values()))

    def close(self) -> None:
        self.commit()


class SealedMemory:
    """See `gossamer.ports.SealedChanges`."""

    def __init__(self, changes: dict[str, dict[bytes, Any]]) -> None:
        self._changes = changes

    def by_shard(self) -> dict[int, list[Row]]:
        shards: dict[int, list[Row]] = {}
        for row in self._rows(rows.SHARDED):
            shards.setdefault(shard_of(row.key), []).append(row)
        return shards

    def unsharded(self) -> list[Row]:
        return self._rows(rows.UNSHARDED)

    def _rows(self, tables: Sequence[str]) -> list[Row]:
        return [
            Row(table, key, None if value is None else _encoded(table, value))
            for table in sorted(tables)
            for key, value in sorted(self._changes[table].items(), key=lambda item: item[0])
        ]

    def write(self) -> None:
        """Do nothing: there is no durable storage."""


_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "urls": rows.decode_url,
    "hosts": rows.decode_host,
    "domains": rows.decode_domain,
    "robots": rows.decode_robots,
    "shards": rows.decode_shard,
    "swapped_out": bytes.decode,
}


def _sealed(value: object) -> object:
    """Return a row's object as it is now: hosts and domains are shared with the frontier and change later."""
    return replace(value) if isinstance(value, HostRecord | DomainRecord | ShardState) else value


def _encoded(table: str, value: Any) -> bytes:  # noqa: ANN401 - a row of any table
    if isinstance(value, bytes):
        return value
    if table == "archives":
        return int(value).to_bytes(8, "big")
    if table == "robots":
        return rows.encode_robots(value)
    return value.encode() if table == "swapped_out" else rows.encode(value)
