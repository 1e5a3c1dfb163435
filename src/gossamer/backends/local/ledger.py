"""The ledger of one machine: LMDB in `state/`, group commit, one owner.

Tables and their keys (all big-endian, so that order of bytes is order of meaning):

    urls      host id 8, key hash 8               -> UrlRecord          the catalog and the exact seen set
    queue     host id 8, rank 4, seq 8            -> key hash 8         what waits, a host's URLs in order
    hosts     host id 8                           -> HostRecord
    domains   xxh3_64 of the name                 -> DomainRecord
    robots    host id 8, xxh3_64 of the origin    -> RobotsRecord
    sleeping  due time in µs 8, host id 8         -> host name
    contents  content hash 16                     -> ContentRecord      the first page that had it
    archives  file name                           -> committed length
    meta      name                                -> value

Invariants: a URL stands in `queue` exactly while its state is QUEUED; what was returned by
`admit` is in `urls`. Reads go through the changes that are not committed yet. `seal` and
the function that it returns split a commit in two: the second half may run in another
thread, and is the only place that writes or waits for the disk.
Costs: `admit` about 3 µs for a new URL, 1.5 for a known one; a commit of 500 pages with
2,500 new URLs about 25 ms of CPU, most of it without the GIL.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lmdb
import msgspec
from xxhash import xxh3_64_digest

from gossamer import failpoints
from gossamer.backends.local.bloom import SeenFilter
from gossamer.backends.local.changes import Changes
from gossamer.core.catalog import queued_from, record_of
from gossamer.core.url import host_id, host_of
from gossamer.errors import CorruptFolderError, DiskFullError
from gossamer.records import (
    ContentRecord,
    DomainRecord,
    HostId,
    HostRecord,
    QueuedUrl,
    RobotsRecord,
    UrlId,
    UrlRecord,
    UrlState,
)

MAP_BYTES = 1 << 40  # address space, not disk: the file is sparse and grows as it is used
FORMAT = b"1"
TABLES = ("urls", "queue", "hosts", "domains", "robots", "sleeping", "contents", "archives", "meta")
_RANK_OFFSET = 1 << 31

_encode = msgspec.msgpack.Encoder().encode
_decode_url = msgspec.msgpack.Decoder(UrlRecord).decode
_decode_host = msgspec.msgpack.Decoder(HostRecord).decode
_decode_domain = msgspec.msgpack.Decoder(DomainRecord).decode
_decode_content = msgspec.msgpack.Decoder(ContentRecord).decode
_decode_robots = msgspec.msgpack.Decoder(RobotsRecord).decode


def _microseconds(at: float) -> bytes:
    # Rounded, not cut: a time that was read back and is waited for must find its own entry due.
    return round(at * 1e6).to_bytes(8, "big")


def _place(rank: int, seq: int) -> bytes:
    return (rank + _RANK_OFFSET).to_bytes(4, "big") + seq.to_bytes(8, "big")


class LocalLedger:
    """See `gossamer.ports.Ledger` for the contract."""

    def __init__(self, folder: Path, *, is_readonly: bool = False) -> None:
        self._folder = folder
        self._is_readonly = is_readonly
        self._env: lmdb.Environment | None = None
        self._pending = Changes()
        self._writing: Changes | None = None
        self._seen = SeenFilter()
        self._sleeping_count = 0
        self._names: dict[HostId, str] = {}

    def open(self) -> None:
        """Open or make the store, and fill the filter of seen URLs."""
        try:
            env = lmdb.open(
                str(self._folder),
                map_size=MAP_BYTES,
                max_dbs=len(TABLES),
                subdir=True,
                readonly=self._is_readonly,
                create=not self._is_readonly,
                max_readers=512,
                readahead=False,
            )
        except lmdb.Error as error:
            raise CorruptFolderError(f"{self._folder}: cannot open the ledger: {error}") from error
        self._env = env
        self._tables = {name: env.open_db(name.encode(), create=not self._is_readonly) for name in TABLES}
        written = self.get_meta("format")
        if written is not None and written != FORMAT:
            raise CorruptFolderError(f"{self._folder}: ledger format {written.decode()}, this program writes 1")
        if self._is_readonly:
            return
        if written is None:
            self.put_meta("format", FORMAT)
        with env.begin() as txn:
            self._sleeping_count = txn.stat(self._tables["sleeping"])["entries"]
            known = txn.stat(self._tables["urls"])["entries"]
            self._seen.fill(known, txn.cursor(self._tables["urls"]).iternext(keys=True, values=False))

    # -- reads through the changes ----------------------------------------------------------------

    def _read(self, table: str, key: bytes) -> bytes | None:
        assert self._env is not None
        with self._env.begin(self._tables[table]) as txn:
            value: bytes | None = txn.get(key)
            return value

    def is_seen(self, url_id: UrlId) -> bool:
        """Tell whether a URL was ever admitted."""
        writing = self._writing  # read once: the thread that writes lets go of it at any moment
        if url_id in self._pending.urls or (writing is not None and url_id in writing.urls):
            return True
        return url_id in self._seen and self._read("urls", url_id) is not None

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the catalog's row of a URL."""
        value = self._url_bytes(url_id)
        return None if value is None else _decode_url(value)

    def _url_bytes(self, url_id: UrlId) -> bytes | None:
        writing = self._writing
        value = self._pending.urls.get(url_id)
        if value is None and writing is not None:
            value = writing.urls.get(url_id)
        return self._read("urls", url_id) if value is None else value

    def host(self, name: str) -> HostRecord | None:
        """Return what is known of a host."""
        return self._host_by_id(host_id(name))

    def _host_by_id(self, key: HostId) -> HostRecord | None:
        writing = self._writing
        record = self._pending.hosts.get(key)
        if record is None and writing is not None:
            record = writing.hosts.get(key)
        if record is not None:
            return record
        value = self._read("hosts", key)
        return None if value is None else _decode_host(value)

    def domain(self, name: str) -> DomainRecord | None:
        """Return what is known of a registrable domain."""
        writing = self._writing
        record = self._pending.domains.get(name)
        if record is None and writing is not None:
            record = writing.domains.get(name)
        if record is not None:
            return record
        value = self._read("domains", xxh3_64_digest(name.encode()))
        return None if value is None else _decode_domain(value)

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        assert self._env is not None
        changes = [c for c in (self._writing, self._pending) if c is not None]
        found: dict[bytes, bytes] = {}
        with self._env.begin(self._tables["robots"]) as txn:
            for key, value in _with_prefix(txn.cursor(), host_id, host_id):
                found[key] = value
        for change in changes:
            found.update(change.robots.get(host_id, ()))
        return [_decode_robots(found[key]) for key in sorted(found)]

    def refill(self, host_id: HostId, after: tuple[int, int] | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host beyond a rank and seq, in order."""
        assert self._env is not None
        bound = host_id + (b"" if after is None or after[0] < -_RANK_OFFSET else _place(*after))
        changed = self._changed_queue(host_id)
        entries: list[tuple[bytes, bytes]] = []
        with self._env.begin(self._tables["queue"]) as txn:
            for key, value in _with_prefix(txn.cursor(), host_id, bound):
                if key > bound and key not in changed:
                    entries.append((key, value))
                    if len(entries) == count:
                        break
        entries += [(key, value) for key, value in changed.items() if value is not None and key > bound]
        entries.sort()
        return [self._queued(host_id, value) for _, value in entries[:count]]

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host from the end of its queue, last first."""
        assert self._env is not None
        changed = self._changed_queue(host_id)
        entries = [(key, value) for key, value in changed.items() if value is not None]
        kept = 0
        with self._env.begin(self._tables["queue"]) as txn:
            for key, value in _with_prefix_backwards(txn.cursor(), host_id):
                if key not in changed:
                    entries.append((key, value))
                    kept += 1
                    if kept == count:
                        break
        entries.sort(reverse=True)
        return [self._queued(host_id, value) for _, value in entries[:count]]

    def _changed_queue(self, host_id: HostId) -> dict[bytes, bytes | None]:
        """Return a host's queue as far as it is not committed."""
        changed: dict[bytes, bytes | None] = {}
        for change in (self._writing, self._pending):
            if change is not None:
                changed.update(change.queue.get(host_id, ()))
        return changed

    def _queued(self, host: HostId, key_hash: bytes) -> QueuedUrl:
        url_id = host + key_hash
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
            if len(self._names) > 50_000:
                self._names.clear()
            name = self._names[host] = record.name
        return name

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page that had this content."""
        writing = self._writing
        first = self._pending.contents.get(content_hash)
        if first is None and writing is not None:
            first = writing.contents.get(content_hash)
        if first is not None:
            return first
        value = self._read("contents", content_hash)
        return None if value is None else _decode_content(value)

    def archive_ends(self) -> dict[str, int]:
        """Return the committed length of every archive file."""
        assert self._env is not None
        with self._env.begin(self._tables["archives"]) as txn:
            ends = {bytes(key).decode(): int.from_bytes(value, "big") for key, value in txn.cursor()}
        for change in (self._writing, self._pending):
            if change is not None:
                ends.update(change.archives)
        return ends

    def get_meta(self, name: str) -> bytes | None:
        """Return a named value."""
        writing = self._writing
        value = self._pending.meta.get(name)
        if value is None and writing is not None:
            value = writing.meta.get(name)
        return self._read("meta", name.encode()) if value is None else value

    # -- changes ----------------------------------------------------------------------------------

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        """Queue the URLs whose id was never admitted before; return them."""
        new: list[QueuedUrl] = []
        pending, seen = self._pending.urls, self._seen
        for url in urls:
            if self.is_seen(url.id):
                continue
            new.append(url)
            seen.add(url.id)
            pending[url.id] = _encode(record_of(url))
            self._enqueue(url)
        return new

    def _enqueue(self, url: QueuedUrl) -> None:
        host = url.id[:8]
        queue = self._pending.queue.get(host)
        if queue is None:
            queue = self._pending.queue[host] = {}
        queue[host + _place(url.rank, url.seq)] = url.id[8:]

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        """Put a URL (back) into its host's queue at its rank and seq."""
        if record is None:
            record = self.look_up(url.id) or record_of(url)
        for name in ("rank", "seq", "depth", "hops", "attempt", "not_before", "https_first"):
            setattr(record, name, getattr(url, name))
        record.state = UrlState.QUEUED
        self._seen.add(url.id)
        self._pending.urls[url.id] = _encode(record)
        self._enqueue(url)

    def settle(self, url: QueuedUrl, record: UrlRecord) -> None:
        """Take a URL out of its queue; `record` is what the catalog says of it from now on."""
        host = url.id[:8]
        self._pending.urls[url.id] = _encode(record)
        self._pending.queue.setdefault(host, {})[host + _place(url.rank, url.seq)] = None

    def bury(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        """Move all that is queued at a host to the dead letters; return how many."""
        buried = 0
        after: tuple[int, int] | None = None
        while batch := self.refill(host_id, after, 1000):
            for url in batch:
                record = self.look_up(url.id) or record_of(url)
                record.state, record.outcome, record.error, record.fetched_at = UrlState.DEAD, outcome, error, now
                self.settle(url, record)
            buried += len(batch)
            after = batch[-1].rank, batch[-1].seq
        return buried

    def put_host(self, record: HostRecord) -> None:
        """Keep a host; the record is read when it is written."""
        self._pending.hosts[host_id(record.name)] = record

    def put_domain(self, record: DomainRecord) -> None:
        """Keep a registrable domain."""
        self._pending.domains[record.name] = record

    def put_robots(self, record: RobotsRecord) -> None:
        """Keep robots.txt of an origin."""
        host = host_id(host_of(record.origin + "/"))
        origins = self._pending.robots.setdefault(host, {})
        origins[host + xxh3_64_digest(record.origin.encode())] = _encode(record)

    def put_sleeping(self, name: str, until: float) -> None:
        """Let a host sleep until a time."""
        key = _microseconds(until) + host_id(name)
        if not self._is_sleeping(key):
            self._sleeping_count += 1
        self._pending.sleeping[key] = name.encode()

    def _is_sleeping(self, key: bytes) -> bool:
        for change in (self._pending, self._writing):
            if change is not None and key in change.sleeping:
                return change.sleeping[key] is not None
        return self._read("sleeping", key) is not None

    def wake(self, now: float, count: int) -> list[str]:
        """Return up to `count` sleeping hosts whose time has come, soonest first; they sleep no more."""
        until = _microseconds(now) + b"\xff" * 8
        due = [(key, value) for key, value in self._sleeping_from(count) if key <= until][:count]
        for key, _ in due:
            self._pending.sleeping[key] = None
        self._sleeping_count -= len(due)
        return [name.decode() for _, name in due]

    def sleeping(self) -> tuple[int, float]:
        """Return how many hosts sleep, and when the first is due."""
        if not self._sleeping_count:
            return 0, float("inf")
        key, _ = self._sleeping_from(1)[0]
        return self._sleeping_count, int.from_bytes(key[:8], "big") / 1e6

    def _sleeping_from(self, count: int) -> list[tuple[bytes, bytes]]:
        """Return the first sleeping hosts in order."""
        assert self._env is not None
        changed: dict[bytes, bytes | None] = {}
        for change in (self._writing, self._pending):
            if change is not None:
                changed.update(change.sleeping)
        entries = [(key, value) for key, value in changed.items() if value is not None]
        kept = 0
        with self._env.begin(self._tables["sleeping"]) as txn:
            for key, value in txn.cursor():
                if key not in changed:
                    entries.append((key, value))
                    kept += 1
                    if kept == count:
                        break
        entries.sort()
        return entries[:count]

    def put_content(self, content_hash: bytes, first: ContentRecord) -> None:
        """Name the first page that had this content; a later one changes nothing."""
        if self.first_with_content(content_hash) is None:
            self._pending.contents[content_hash] = first

    def put_archive_end(self, file: str, end: int) -> None:
        """Note how far an archive file belongs to what is committed."""
        self._pending.archives[file] = max(end, self._archive_end(file))

    def _archive_end(self, file: str) -> int:
        for change in (self._pending, self._writing):
            if change is not None and file in change.archives:
                return change.archives[file]
        return int.from_bytes(self._read("archives", file.encode()) or b"", "big")

    def put_meta(self, name: str, value: bytes) -> None:
        """Keep a named value."""
        self._pending.meta[name] = value

    # -- commit -----------------------------------------------------------------------------------

    def seal(self) -> Callable[[], None]:
        """Close the changes so far; return the function that writes them. One at a time."""
        if self._writing is not None:
            raise RuntimeError("the commit before has not ended")
        changes, self._pending = self._pending, Changes()
        changes.encoded_hosts = sorted((key, _encode(record)) for key, record in changes.hosts.items())
        changes.encoded_domains = sorted(
            (xxh3_64_digest(name.encode()), _encode(record)) for name, record in changes.domains.items()
        )
        self._writing = changes
        return lambda: self._write(changes)

    def commit(self) -> None:
        """Make all changes so far durable."""
        self.seal()()

    def _write(self, changes: Changes) -> None:
        assert self._env is not None
        failpoints.reach("before_commit")
        try:
            with self._env.begin(write=True) as txn:
                self._put_all(txn, changes)
                failpoints.reach("in_commit")
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.MapFullError) or _is_disk_full(error):
                raise DiskFullError(f"{self._folder}: no room for the ledger: {error}") from error
            raise
        self._writing = None
        failpoints.reach("after_commit")

    def _put_all(self, txn: lmdb.Transaction, changes: Changes) -> None:
        tables = self._tables
        self._put(txn, "urls", sorted(changes.urls.items()))
        added: list[tuple[bytes, bytes]] = []
        for queue in changes.queue.values():
            for key, value in queue.items():
                if value is None:
                    txn.delete(key, db=tables["queue"])
                else:
                    added.append((key, value))
        self._put(txn, "queue", sorted(added))
        for key, value in changes.sleeping.items():
            if value is None:
                txn.delete(key, db=tables["sleeping"])
            else:
                txn.put(key, value, db=tables["sleeping"])
        self._put(txn, "hosts", changes.encoded_hosts)
        self._put(txn, "domains", changes.encoded_domains)
        self._put(txn, "robots", sorted(item for origins in changes.robots.values() for item in origins.items()))
        self._put(txn, "contents", sorted((key, _encode(first)) for key, first in changes.contents.items()))
        self._put(txn, "archives", [(name.encode(), end.to_bytes(8, "big")) for name, end in changes.archives.items()])
        self._put(txn, "meta", [(name.encode(), value) for name, value in changes.meta.items()])

    def _put(self, txn: lmdb.Transaction, table: str, items: list[tuple[bytes, bytes]]) -> None:
        if items:
            with txn.cursor(self._tables[table]) as cursor:
                cursor.putmulti(items)

    def close(self) -> None:
        """Commit and let go."""
        if self._env is None:
            return
        if not self._is_readonly:
            self.commit()
        self._env.close()
        self._env = None

    # -- all of it --------------------------------------------------------------------------------

    def hosts(self) -> Iterator[HostRecord]:
        """Return all hosts."""
        writing = self._writing
        changed = {**(writing.hosts if writing else {}), **self._pending.hosts}
        yield from changed.values()
        for key, value in self._all("hosts", b""):
            if key not in changed:
                yield _decode_host(value)

    def domains(self) -> Iterator[DomainRecord]:
        """Return all registrable domains."""
        writing = self._writing
        changed = {**(writing.domains if writing else {}), **self._pending.domains}
        yield from changed.values()
        keys = {xxh3_64_digest(name.encode()) for name in changed}
        for key, value in self._all("domains", b""):
            if key not in keys:
                yield _decode_domain(value)

    def urls(self, host_id: HostId | None = None) -> Iterator[tuple[UrlId, UrlRecord]]:
        """Return the committed catalog, or a host's part of it, in order of id."""
        for key, value in self._all("urls", host_id or b""):
            yield key, _decode_url(value)

    def _all(self, table: str, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Read a table in slices, so that no read transaction lasts."""
        assert self._env is not None
        after = prefix
        while True:
            with self._env.begin(self._tables[table]) as txn:
                batch: list[tuple[bytes, bytes]] = []
                for key, value in _with_prefix(txn.cursor(), prefix, after):
                    if key > after or (key == after and not batch and after == prefix):
                        batch.append((key, value))
                        if len(batch) == 2000:
                            break
            yield from batch
            if len(batch) < 2000:
                return
            after = batch[-1][0]


def _with_prefix(cursor: Any, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:  # noqa: ANN401
    if not (cursor.set_range(start) if start else cursor.first()):
        return
    for key, value in cursor.iternext():
        if not key.startswith(prefix):
            return
        yield key, value


def _with_prefix_backwards(cursor: Any, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:  # noqa: ANN401
    if not (cursor.set_range(prefix + b"\xff" * 13) or cursor.last()):
        return
    for key, value in cursor.iterprev():
        if key.startswith(prefix):
            yield key, value
        elif key < prefix:
            return


def _is_disk_full(error: Exception) -> bool:
    text = str(error)
    return "No space left" in text or f"errno {errno.ENOSPC}" in text
