"""The ledger of one machine: LMDB in `state/`, group commit, one owner.

The format is in `core/ledger/rows`. Invariants: a URL is in `queue` exactly while its state is QUEUED;
what was returned by `admit` is in `urls`. Reads go through the changes that are not committed yet
(`store`). A host's record is shared with the frontier, live, and written as it is when a commit is sealed.
Costs: `admit` about 3 µs for a new URL, 1.5 for a known one; a commit of 500 pages with
2,500 new URLs about 25 ms of CPU, most of it without the GIL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gossamer.backends.local import digest_log
from gossamer.backends.local.bloom import SeenFilter
from gossamer.backends.local.digest_log import DigestLog
from gossamer.backends.local.near_dup import SignatureTable
from gossamer.backends.local.shard_states import ShardStates
from gossamer.backends.local.store import Item, SealedStore, Store
from gossamer.backends.local.swapped_out import SwappedOut
from gossamer.core.ledger import rows
from gossamer.core.ledger.archive_names import checked_ends
from gossamer.core.ledger.candidates import find_id, is_same
from gossamer.core.ledger.catalog import queued_from, record_of
from gossamer.core.ledger.rows import encode
from gossamer.core.ledger.tables import NAMESAKES, RECORD_TABLES, Record, RecordTable
from gossamer.core.url.forms import host_of, key_of
from gossamer.core.url.identity import (
    KEY_BYTES,
    current,
    first_free,
    shard_of,
    shard_range,
    use,
    with_record,
)
from gossamer.model.errors import CorruptFolderError, UsageError
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
from gossamer.model.state import CrawlState, IdentityRecord, Namesake, Row, ShardState

# All rows of a table, or those of one shard: committed, not committed yet, and live.

T = TypeVar("T")


def all_rows(
    store: Store, table: str, live: Mapping[bytes, T], decode: Callable[[bytes], T], shard: int | None
) -> Iterator[T]:
    """Yield all records of a table; `live` ones replace those in the store."""
    changed = {key for key in store.changed_keys(table) if shard in (None, shard_of(key))}
    yield from (record for key, record in live.items() if shard in (None, shard_of(key)))
    for key in changed:
        if key not in live and (value := store.get(table, key)) is not None:
            yield decode(value)
    for key, value in committed_of(store, table, shard):
        if key not in changed and key not in live:
            yield decode(value)


def committed_of(store: Store, table: str, shard: int | None) -> Iterator[Item]:
    """Yield the committed entries of a table, of one shard or of all."""
    start, end = (b"", None) if shard is None else shard_range(shard)
    return store.committed(table, b"", start, end)


_TABLES = (*rows.TABLES, digest_log.TABLE)
_GROUPS = {"queue": 8, "robots": 8, "swapped_out": 2, "changes": 2} | {  # bytes of a key, by table
    table.name: table.group_bytes for table in RECORD_TABLES if table.group_bytes
}
_GROUPS[digest_log.TABLE] = digest_log.GROUP_BYTES
_APPENDED = frozenset({"signatures"})
_ALL = 1 << 30
NO_HOSTS: Mapping[HostId, str] = {}
_REQUISITE = FetchKind.REQUISITE  # up to Python 3.11, reading it from its class takes 80 ns
_COUNTED = ("urls", "contents", "changes", "signatures")


class LedgerLimits(msgspec.Struct, frozen=True):
    """How much of the ledger may be in memory. None: no limit."""

    seen_bytes: int | None = None  # of the filters of URLs and contents
    near_pages: int | None = None
    names: int = 50_000


IDENTITY_FILE = "identity"  # beside the ledger: what its ids depend on, for the case that the ledger is lost


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only the user who runs the crawl can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())


class LocalLedger:
    """See `gossamer.ports.Ledger` for the contract."""

    def __init__(
        self,
        folder: Path,
        *,
        is_readonly: bool = False,
        is_copy: bool = False,
        limits: LedgerLimits | None = None,
        identity: IdentityRecord | None = None,
    ) -> None:
        """`identity` is that of a ledger that is made now; None: the current one."""
        limits = limits or LedgerLimits()
        self._folder = folder
        self._is_readonly = is_readonly
        self._is_copy = is_copy
        self._store = Store(folder, _TABLES, _GROUPS, appended=_APPENDED, is_readonly=is_readonly, is_copy=is_copy)
        self._shards = ShardStates(self._store)
        self._swapped_out = SwappedOut(self._store)
        self._signatures = SignatureTable(self._store, limits.near_pages)
        self._live_hosts: dict[HostId, HostRecord] = {}  # changed since the last seal
        self._live_domains: dict[str, DomainRecord] = {}
        self._archive_ends: dict[str, int] = {}  # likewise
        quarter = None if limits.seen_bytes is None else limits.seen_bytes // 4
        self._seen = SeenFilter(DigestLog(self._store, b"u"), None if quarter is None else 3 * quarter)
        # Most pages are the first with their content: no look-up needed.
        self._contents = SeenFilter(DigestLog(self._store, b"c"), quarter)
        self._maybe_seen = self._seen.partitions
        self._maybe_stored = self._contents.partitions
        self._names: dict[HostId, str] = {}
        self._max_names = limits.names
        self._new_identity = identity
        self.identity = current()

    def open(self) -> None:
        """Open or create the store, and fill the filter of seen URLs. Makes its identity the current one."""
        self._store.open()
        self._check_format()
        if not self._is_readonly:
            self._store.create_tables()
        self._identify()
        if self._is_readonly:
            return
        self._shards.open()
        self._swapped_out.open()
        self._seen.open(self._store.committed_count("urls"), self._store.committed_keys("urls"))
        self._contents.open(self._store.committed_count("contents"), self._store.committed_keys("contents"))

    def _check_format(self) -> None:
        """Refuse a ledger of another format, before anything is changed in it."""
        written = self._store.get("meta", rows.FORMAT_KEY)
        if written in (None, rows.FORMAT, rows.FORMAT_BEFORE):
            return
        self._store.close()
        is_older = written is not None and written < rows.FORMAT
        raise UsageError(
            f"{self._folder}: ledger format {(written or b'').decode('ascii', 'replace')}, written by "
            f"{'an earlier' if is_older else 'a later'} version; this one reads format {rows.FORMAT.decode()}: "
            "continue with the version that started the crawl, or start a new one in another folder"
        )

    def _identify(self) -> None:
        """Learn how ids are made; decide it for a new ledger, and for one of the format before.

        The rows of that one stay as they are, and its ids are made as before. All that is upgraded is one transaction:
        what tells these ids from keyed ones, and the format, which earlier versions refuse.
        """
        stored = self._store.get("meta", rows.IDENTITY_KEY)
        written = self._store.get("meta", rows.FORMAT_KEY)
        if stored is not None:
            record = rows.decode_identity(stored)
        elif written is None:
            record = self._kept_identity() or self._new_identity or current().record
        else:
            record = IdentityRecord(os.urandom(KEY_BYTES), is_unkeyed=True)
        if not self._is_readonly and (stored is None or written != rows.FORMAT):
            self._store.put("meta", rows.FORMAT_KEY, rows.FORMAT)
            self._store.put("meta", rows.IDENTITY_KEY, encode(record))
            if written is not None or self._is_copy:  # a new ledger has it from the first commit on, with the seeds
                self._store.write_now()
        if not self._is_readonly and not self._is_copy and written != rows.FORMAT:
            write_private(self._folder / IDENTITY_FILE, encode(record))
        self.identity = with_record(record)
        use(self.identity)
        self._learn_namesakes(None)

    def _kept_identity(self) -> IdentityRecord | None:
        """Return the identity of a ledger that was here before: one that is rebuilt makes the same ids again."""
        try:
            return None if self._is_copy else rows.decode_identity((self._folder / IDENTITY_FILE).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    def _learn_namesakes(self, shard: int | None) -> None:
        for other in list(self.records(NAMESAKES, shard)):
            self.identity.assign(other.name, other.probe, is_domain=other.is_domain)

    @property
    def is_open(self) -> bool:
        """Return whether it can be used."""
        return self._store.is_open

    def read_all(self) -> None:
        """Read all tables; raises if the file is damaged."""
        self._store.read_all()

    # -- memory -----------------------------------------------------------------------------------

    def pending_count(self) -> int:
        """Return how many changes wait for the next commit, without the few of robots.txt and names."""
        in_tables = sum(map(self._store.pending_count, _COUNTED))
        in_queue = self._store.pending_count("urls")  # every change to a queue changes the URL's row
        return in_tables + in_queue + len(self._live_hosts) + len(self._live_domains)

    @property
    def has_forgotten_signatures(self) -> bool:
        """Return whether pages are compared with the newer ones only."""
        return self._signatures.has_forgotten

    def shrink(self, *, forgets_pages: bool) -> None:
        """Drop what need not be in memory."""
        self._names.clear()
        if forgets_pages:
            self._signatures.forget_older()

    # -- reads ------------------------------------------------------------------------------------

    def is_seen(self, url_id: UrlId) -> bool:
        return url_id in self._maybe_seen and self._store.get("urls", url_id) is not None

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        value = self._store.get("urls", url_id)
        return None if value is None else rows.decode_url(value)

    def find(self, url_id: UrlId, url: str, *, is_requisite: bool = False) -> tuple[UrlId, bool]:
        return find_id(self.identity, url_id, url, self._stored_url, is_requisite=is_requisite)

    def _stored_url(self, url_id: UrlId) -> str | None:
        if not self._is_readonly and url_id not in self._maybe_seen:
            return None
        value = self._store.get("urls", url_id)
        return None if value is None else rows.stored_url(value)

    def url_id(self, url: str) -> UrlId:
        first = self.identity.url_candidate(self.identity.host_id(host_of(url)), key_of(url), 0)
        return self.find(first, url)[0]

    def host_id(self, name: str) -> HostId:
        return self.identity.host_id(name)

    def host(self, name: str) -> HostRecord | None:
        record = self._host_by_id(self.identity.host_id(name))
        return record if record is None or record.name in (name, name.rstrip(".")) else None

    def identify(self, name: str, taken: Mapping[HostId, str] = NO_HOSTS) -> HostId:
        def name_at(key: HostId) -> str:
            record = self._host_by_id(key)
            return taken.get(key, "") if record is None else record.name

        number = first_free(lambda number: self.identity.host_candidate(name, number), name_at, name)
        if number:
            self._assign(Namesake(self.identity.host_candidate(name, number), name, number))
        return self.identity.host_id(name)

    def _assign(self, other: Namesake) -> None:
        self.identity.assign(other.name, other.probe, is_domain=other.is_domain)
        self.put_record(NAMESAKES, other)

    def _host_by_id(self, key: HostId) -> HostRecord | None:
        live = self._live_hosts.get(key)
        if live is not None:
            return live
        value = self._store.get("hosts", key)
        return None if value is None else rows.decode_host(value)

    def domain(self, name: str) -> DomainRecord | None:
        live = self._live_domains.get(name)
        if live is not None:
            return live
        value = self._store.get("domains", self.identity.domain_id(name))
        record = None if value is None else rows.decode_domain(value)
        if record is None or record.name == name:
            return record
        if not self._is_readonly:
            self._identify_domain(DomainRecord(name))
        return None

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        return [rows.decode_robots(value) for _, value in self._store.first("robots", host_id, b"", _ALL)]

    def read_queue(self, host_id: HostId, after: QueuePosition | None, count: int) -> list[QueuedUrl]:
        entries = self._store.first("queue", host_id, rows.queue_bound(host_id, after), count)
        return [self._queued(host_id, key) for key, _ in entries]

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        return [self._queued(host_id, key) for key, _ in self._store.last("queue", host_id, count)]

    def _queued(self, host: HostId, key: bytes) -> QueuedUrl:
        url_id = rows.queued_id(key)
        record = self.look_up(url_id)
        if record is None:
            raise CorruptFolderError(f"{self._folder}: a queued URL is missing from the catalog: {url_id.hex()}")
        return queued_from(url_id, self._name_of(host), record)

    def _name_of(self, host: HostId) -> str:
        name = self._names.get(host)
        if name is None:
            record = self._host_by_id(host)
            if record is None:
                raise CorruptFolderError(f"{self._folder}: a queued URL's host is missing: {host.hex()}")
            if len(self._names) >= self._max_names:
                self._names.clear()
            name = self._names[host] = record.name
        return name

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        if not self._is_readonly and content_hash not in self._maybe_stored:
            return None
        value = self._store.get("contents", content_hash)
        return None if value is None else rows.decode_content(value)

    def changes(self, after: int, count: int) -> list[Change]:
        return self._current_shards().changes(after, count)

    def last_change(self) -> int:
        return self._current_shards().last_change

    def _current_shards(self) -> ShardStates:
        """Return the shards' states; a reader reads them again, since another process writes them."""
        if not self._is_readonly:
            return self._shards
        states = ShardStates(self._store)
        states.open()
        return states

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page that a signature repeats."""
        return self._signatures.most_similar(signature)

    def archive_ends(self) -> dict[str, int]:
        entries = self._store.first("archives", b"", b"", _ALL)
        ends = {name.decode(): int.from_bytes(end, "big") for name, end in entries}
        return checked_ends(ends, "the ledger") | self._archive_ends

    def crawl_state(self) -> CrawlState | None:
        value = self._store.get("meta", rows.CRAWL_KEY)
        return None if value is None else rows.decode_crawl(value)

    def shard_state(self, shard: int) -> ShardState:
        return self._shards.of(shard)

    def next_seq(self) -> int:
        return self._shards.next_seq

    def record(self, table: RecordTable[Record], key: bytes) -> Record | None:
        value = self._store.get(table.name, key)
        return None if value is None else table.decode(value)

    def first_records(
        self, table: RecordTable[Record], prefix: bytes, after: bytes = b"", count: int = 1000
    ) -> list[Record]:
        entries = self._store.first(table.name, prefix, after, count)
        return [table.decode(value) for _, value in entries]

    # -- changes ----------------------------------------------------------------------------------

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        new: list[QueuedUrl] = []
        may_collide = self.identity.may_collide
        for url in urls:  # `is_seen` without the call: once per link
            row = self._store.get("urls", url.id) if url.id in self._maybe_seen else None
            if row is not None and is_same(rows.stored_url(row), url.url):
                continue
            if row is not None or may_collide:
                found, is_known = self.find(url.id, url.url, is_requisite=url.kind is _REQUISITE)
                if is_known:
                    continue
                url = url if found == url.id else replace(url, id=found)  # noqa: PLW2901
            new.append(url)
            self._seen.add(url.id)
            self._enqueue(url, record_of(url))
        return new

    def _enqueue(self, url: QueuedUrl, record: UrlRecord) -> None:
        self._shards.record_seq(url.id, url.seq)
        self._store.put("urls", url.id, encode(record))
        self._store.put("queue", rows.queue_key(url), b"")

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        """Put a URL (back) into its host's queue at its priority and seq."""
        if not self.is_seen(url.id):
            self._seen.add(url.id)
        if record is None:
            record = self.look_up(url.id) or record_of(url)
        for name in ("priority", "seq", "depth", "hops", "attempt", "not_before", "https_first"):
            setattr(record, name, getattr(url, name))
        record.state = UrlState.QUEUED
        self._enqueue(url, record)

    def finish(self, url: QueuedUrl, record: UrlRecord | None) -> None:
        """Remove a URL from its queue; `record` is its row in the catalog from now on, None removes that, too."""
        self._store.put("urls", url.id, encode(record) if record is not None else None)
        self._store.put("queue", rows.queue_key(url), None)

    def amend(self, url_id: UrlId, record: UrlRecord) -> None:
        self._store.put("urls", url_id, encode(record))

    def kill_queue(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        killed = 0
        after: QueuePosition | None = None
        while batch := self.read_queue(host_id, after, 1000):
            for url in batch:
                record = self.look_up(url.id) or record_of(url)
                record.state = UrlState.DEAD
                record.outcome = outcome
                record.error = error
                record.fetched_at = now
                self.finish(url, record)
            killed += len(batch)
            after = batch[-1].position
        return killed

    def put_host(self, record: HostRecord, key: HostId | None = None) -> None:
        if self.identity.has_assigned:
            record.probe = self.identity.probe_of(record.name)
        self._live_hosts[key or self.identity.host_id(record.name)] = record

    def put_domain(self, record: DomainRecord) -> None:
        # Whoever changes a domain has read it: `domain` finds what collides by accident.
        if self.identity.may_collide and record.name not in self._live_domains:
            self._identify_domain(record)
        self._live_domains[record.name] = record

    def _identify_domain(self, record: DomainRecord) -> None:
        """Give a domain another id if its own is another's."""
        live = {self.identity.domain_id(name): name for name in self._live_domains}

        def name_at(key: bytes) -> str:
            value = self._store.get("domains", key)
            return live.get(key, "") if value is None else rows.decode_domain(value).name

        name = record.name
        if name_at(self.identity.domain_id(name)) in ("", name):
            return
        number = first_free(lambda number: self.identity.domain_candidate(name, number), name_at, name)
        record.probe = number
        self._assign(Namesake(self.identity.domain_candidate(name, number), name, number, is_domain=True))

    def put_robots(self, record: RobotsRecord) -> None:
        record.probe = self.identity.probe_of(host_of(record.origin + "/"))
        self._store.put("robots", rows.robots_key(record.origin, identity=self.identity), rows.encode_robots(record))

    def put_record(self, table: RecordTable[Record], record: Record) -> None:
        self._store.put(table.name, table.key(record), encode(record))

    def remove_record(self, table: RecordTable[Record], key: bytes) -> None:
        self._store.put(table.name, key, None)

    def swap_out(self, name: str, until: float) -> None:
        self._swapped_out.add(name, until)

    def swap_in_due(self, now: float, count: int) -> list[str]:
        return self._swapped_out.pop_due(now, count)

    def swapped_out(self) -> tuple[int, float]:
        return self._swapped_out.waiting()

    def take_shard(self, shard: int) -> None:
        self._swapped_out.take_shard(shard)
        self._shards.load(shard)
        self._learn_namesakes(shard)
        for key, _ in committed_of(self._store, "urls", shard):
            if key not in self._maybe_seen:
                self._seen.add(key)

    def release_shard(self, shard: int) -> None:
        self._swapped_out.release_shard(shard)

    def load_rows(self, loaded: Sequence[Row]) -> None:
        """Add rows of a shard, unless there are rows with their keys. Thread-safe; `take_shard` makes them count."""
        self._store.load(loaded)

    def drop_rows(self, shards: Collection[int]) -> None:
        self._shards.drop(shards)
        self._store.drop(rows.SHARDED, [shard_range(shard) for shard in shards])

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Store the first page with this content; return the one that is already known, if any."""
        first = self.first_with_content(content_hash)
        if first is None:
            self._contents.add(content_hash)
            self._store.put("contents", content_hash, encode(page))
        return first

    def record_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        self._shards.record_change(url_id, kind)

    def use_signatures(self, edition: str) -> None:
        self._signatures.use(edition)

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        self._signatures.put(url_id, signature)

    def put_archive_end(self, file: str, end: int) -> None:
        known = self._archive_ends.get(file)
        if known is None:
            known = int.from_bytes(self._store.get("archives", file.encode()) or b"", "big")
        self._archive_ends[file] = max(end, known)

    def put_crawl_state(self, state: CrawlState) -> None:
        self._store.put("meta", rows.CRAWL_KEY, encode(state))

    # -- commit -----------------------------------------------------------------------------------

    def seal(self) -> SealedStore:
        for key, host in self._live_hosts.items():
            self._store.put("hosts", key, encode(host))
        for file, end in self._archive_ends.items():
            self._store.put("archives", file.encode(), end.to_bytes(8, "big"))
        self._archive_ends.clear()
        for name, domain in self._live_domains.items():
            self._store.put("domains", self.identity.domain_id(name), encode(domain))
        self._shards.seal()
        self._seen.seal()
        self._contents.seal()
        sealed = self._store.seal()
        self._live_hosts = {}
        self._live_domains = {}
        return sealed

    def commit(self) -> None:
        self.seal().write()

    def close(self) -> None:
        if self._store.is_open:
            if not self._is_readonly:
                self.commit()
            self._store.close()

    def abandon(self) -> None:
        """Close the store without committing: what is pending may not be whole."""
        self._store.close()

    # -- all of it --------------------------------------------------------------------------------

    def hosts(self, shard: int | None = None) -> Iterator[HostRecord]:
        return all_rows(self._store, "hosts", self._live_hosts, rows.decode_host, shard)

    def domains(self, shard: int | None = None) -> Iterator[DomainRecord]:
        live = {self.identity.domain_id(name): domain for name, domain in self._live_domains.items()}
        return all_rows(self._store, "domains", live, rows.decode_domain, shard)

    def records(self, table: RecordTable[Record], shard: int | None = None) -> Iterator[Record]:
        """Return all records of a table, including uncommitted ones."""
        return all_rows(self._store, table.name, {}, table.decode, shard)

    def urls(self, host_id: HostId | None = None, after: UrlId = b"") -> Iterator[tuple[UrlId, UrlRecord]]:
        for key, value in self._store.committed("urls", host_id or b"", after + b"\0" if after else b""):
            yield key, rows.decode_url(value)
