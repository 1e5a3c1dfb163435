"""The ledger of one machine: LMDB in `state/`, group commit, one owner.

Tables and their keys (all big-endian, so that order of bytes is order of meaning):

    urls      host id 8, key hash 8               -> UrlRecord          the catalog and the exact seen set
    queue     host id 8, priority 4, seq 8            -> key hash 8         what waits, a host's URLs in order
    hosts     host id 8                           -> HostRecord
    domains   xxh3_64 of the name                 -> DomainRecord
    robots    host id 8, xxh3_64 of the origin    -> RobotsRecord
    sleeping  due time in µs 8, host id 8         -> host name
    contents  content hash 16                     -> ContentRecord      the first page that had it
    changes   number 8                            -> kind 1, host id 8, key hash 8   the change feed
    signatures  page number 8                     -> url id 16, signature        see `near_dup`
    archives  file name                           -> committed length
    meta      name                                -> value

Invariants: a URL stands in `queue` exactly while its state is QUEUED; what was returned by
`admit` is in `urls`. Reads go through the changes that are not committed yet (`store`).
A host's record is kept as it is, live, and written as it stands when a commit is sealed.
Costs: `admit` about 3 µs for a new URL, 1.5 for a known one; a commit of 500 pages with
2,500 new URLs about 25 ms of CPU, most of it without the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from struct import Struct

import msgspec
from xxhash import xxh3_64_digest

from gossamer.backends.local.bloom import SeenFilter
from gossamer.backends.local.near_dup import SignatureTable
from gossamer.backends.local.store import Store
from gossamer.core.catalog import queued_from, record_of
from gossamer.core.url import host_id, host_of
from gossamer.errors import CorruptFolderError
from gossamer.records import (
    Change,
    ChangeKind,
    ContentRecord,
    DomainRecord,
    HostId,
    HostRecord,
    QueuedUrl,
    RobotsRecord,
    Similar,
    UrlId,
    UrlRecord,
    UrlState,
)

FORMAT = b"1"
TABLES = (
    "urls",
    "queue",
    "hosts",
    "domains",
    "robots",
    "swapped_out",
    "contents",
    "changes",
    "archives",
    "meta",
    "signatures",
)
_BY_HOST = frozenset({"queue", "robots"})
_APPENDED = frozenset({"signatures"})
_PRIORITY_OFFSET = 1 << 31
_ALL = 1 << 30
_KINDS = {kind: bytes((kind,)) for kind in ChangeKind}

_pack_place = Struct(">IQ").pack
_pack_number = Struct(">Q").pack
_encode = msgspec.msgpack.Encoder().encode
_decode_url = msgspec.msgpack.Decoder(UrlRecord).decode
_decode_host = msgspec.msgpack.Decoder(HostRecord).decode
_decode_domain = msgspec.msgpack.Decoder(DomainRecord).decode
_decode_content = msgspec.msgpack.Decoder(ContentRecord).decode
_decode_robots = msgspec.msgpack.Decoder(RobotsRecord).decode


def _microseconds(at: float) -> bytes:
    # Rounded, not cut: a time that was read back and is waited for must find its own entry due.
    return round(at * 1e6).to_bytes(8, "big")


def _place(priority: int, seq: int) -> bytes:
    return _pack_place(priority + _PRIORITY_OFFSET, seq)


def _domain_key(name: str) -> bytes:
    return xxh3_64_digest(name.encode())


class LedgerLimits(msgspec.Struct, frozen=True):
    """How much of the ledger may be in memory. None: no limit."""

    seen_bytes: int | None = None  # of the filters of URLs and contents
    near_pages: int | None = None
    names: int = 50_000


class LocalLedger:
    """See `gossamer.ports.Ledger` for the contract."""

    def __init__(self, folder: Path, *, is_readonly: bool = False, limits: LedgerLimits | None = None) -> None:
        limits = limits or LedgerLimits()
        self._folder = folder
        self._is_readonly = is_readonly
        self._store = Store(folder, TABLES, _BY_HOST, appended=_APPENDED, is_readonly=is_readonly)
        self._signatures = SignatureTable(self._store, limits.near_pages)
        self._live_hosts: dict[HostId, HostRecord] = {}  # changed since the last seal
        self._live_domains: dict[str, DomainRecord] = {}
        self._archive_ends: dict[str, int] = {}  # likewise
        quarter = None if limits.seen_bytes is None else limits.seen_bytes // 4
        self._seen = SeenFilter(max_bytes=None if quarter is None else 3 * quarter)
        self._contents = SeenFilter(max_bytes=quarter)  # most pages are the first with their content: no need to look
        self._swapped_out_count = 0
        self._last_change = 0
        self._names: dict[HostId, str] = {}
        self._max_names = limits.names

    def open(self) -> None:
        """Open or make the store, and fill the filter of seen URLs."""
        self._store.open()
        written = self.get_meta("format")
        if written is not None and written != FORMAT:
            raise CorruptFolderError(f"{self._folder}: ledger format {written.decode()}, this program writes 1")
        if self._is_readonly:
            return
        if written is None:
            self.put_meta("format", FORMAT)
        self._swapped_out_count = self._store.committed_count("swapped_out")
        self._last_change = self.last_change()
        self._seen.fill(self._store.committed_count("urls"), self._store.committed_keys("urls"))
        self._contents.fill(self._store.committed_count("contents"), self._store.committed_keys("contents"))

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used."""
        return self._store.is_open

    # -- memory -----------------------------------------------------------------------------------

    def pending_count(self) -> int:
        """Return how many changes wait for the next commit, but for the few of robots.txt and names."""
        in_tables = sum(map(self._store.pending_count, ("urls", "contents", "changes", "signatures")))
        in_queue = self._store.pending_count("urls")  # whatever changes a queue changes the URL's row
        return in_tables + in_queue + len(self._live_hosts) + len(self._live_domains)

    @property
    def has_forgotten_signatures(self) -> bool:
        """Tell whether pages are compared with the newer ones only."""
        return self._signatures.has_forgotten

    def shrink(self) -> None:
        """Let go of what memory can do without."""
        self._names.clear()
        self._signatures.forget_older()

    # -- reads ------------------------------------------------------------------------------------

    def is_seen(self, url_id: UrlId) -> bool:
        """Tell whether a URL was ever admitted."""
        return url_id in self._seen and self._store.get("urls", url_id) is not None

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the catalog's row of a URL."""
        value = self._store.get("urls", url_id)
        return None if value is None else _decode_url(value)

    def host(self, name: str) -> HostRecord | None:
        """Return what is known of a host."""
        return self._host_by_id(host_id(name))

    def _host_by_id(self, key: HostId) -> HostRecord | None:
        live = self._live_hosts.get(key)
        if live is not None:
            return live
        value = self._store.get("hosts", key)
        return None if value is None else _decode_host(value)

    def domain(self, name: str) -> DomainRecord | None:
        """Return what is known of a registrable domain."""
        live = self._live_domains.get(name)
        if live is not None:
            return live
        value = self._store.get("domains", _domain_key(name))
        return None if value is None else _decode_domain(value)

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        return [_decode_robots(value) for _, value in self._store.first("robots", host_id, b"", _ALL)]

    def read_queue(self, host_id: HostId, after: tuple[int, int] | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host beyond a priority and seq, in order."""
        bound = host_id + (b"" if after is None or after[0] < -_PRIORITY_OFFSET else _place(*after))
        return [self._queued(host_id, value) for _, value in self._store.first("queue", host_id, bound, count)]

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host from the end of its queue, last first."""
        return [self._queued(host_id, value) for _, value in self._store.last("queue", host_id, count)]

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
            if len(self._names) >= self._max_names:
                self._names.clear()
            name = self._names[host] = record.name
        return name

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page that had this content."""
        if not self._is_readonly and content_hash not in self._contents:
            return None
        value = self._store.get("contents", content_hash)
        return None if value is None else _decode_content(value)

    def changes(self, after: int, count: int) -> list[Change]:
        """Return up to `count` entries of the change feed beyond a number, in order."""
        entries = self._store.first("changes", b"", after.to_bytes(8, "big"), count)
        return [Change(int.from_bytes(key, "big"), value[1:], ChangeKind(value[0])) for key, value in entries]

    def last_change(self) -> int:
        """Return the number of the last entry of the change feed."""
        last = self._store.last("changes", b"", 1)
        return int.from_bytes(last[0][0], "big") if last else 0

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page that a signature repeats."""
        return self._signatures.most_similar(signature)

    def archive_ends(self) -> dict[str, int]:
        """Return the committed length of every archive file."""
        entries = self._store.first("archives", b"", b"", _ALL)
        return {name.decode(): int.from_bytes(end, "big") for name, end in entries} | self._archive_ends

    def get_meta(self, name: str) -> bytes | None:
        """Return a named value."""
        return self._store.get("meta", name.encode())

    # -- changes ----------------------------------------------------------------------------------

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        """Queue the URLs whose id was never admitted before; return them."""
        new: list[QueuedUrl] = []
        for url in urls:
            if not self.is_seen(url.id):
                new.append(url)
                self._enqueue(url, record_of(url))
        return new

    def _enqueue(self, url: QueuedUrl, record: UrlRecord) -> None:
        self._seen.add(url.id)
        self._store.put("urls", url.id, _encode(record))
        self._store.put("queue", url.id[:8] + _place(url.priority, url.seq), url.id[8:])

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        """Put a URL (back) into its host's queue at its priority and seq."""
        if record is None:
            record = self.look_up(url.id) or record_of(url)
        for name in ("priority", "seq", "depth", "hops", "attempt", "not_before", "https_first"):
            setattr(record, name, getattr(url, name))
        record.state = UrlState.QUEUED
        self._enqueue(url, record)

    def finish(self, url: QueuedUrl, record: UrlRecord) -> None:
        """Take a URL out of its queue; `record` is what the catalog says of it from now on."""
        self._store.put("urls", url.id, _encode(record))
        self._store.put("queue", url.id[:8] + _place(url.priority, url.seq), None)

    def kill_queue(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        """Move all that is queued at a host to the dead letters; return how many."""
        killed = 0
        after: tuple[int, int] | None = None
        while batch := self.read_queue(host_id, after, 1000):
            for url in batch:
                record = self.look_up(url.id) or record_of(url)
                record.state, record.outcome, record.error, record.fetched_at = UrlState.DEAD, outcome, error, now
                self.finish(url, record)
            killed += len(batch)
            after = batch[-1].priority, batch[-1].seq
        return killed

    def put_host(self, record: HostRecord) -> None:
        """Keep a host; the record is read when it is written."""
        self._live_hosts[host_id(record.name)] = record

    def put_domain(self, record: DomainRecord) -> None:
        """Keep a registrable domain."""
        self._live_domains[record.name] = record

    def put_robots(self, record: RobotsRecord) -> None:
        """Keep robots.txt of an origin."""
        key = host_id(host_of(record.origin + "/")) + xxh3_64_digest(record.origin.encode())
        self._store.put("robots", key, _encode(record))

    def swap_out(self, name: str, until: float) -> None:
        """Let a host sleep until a time."""
        key = _microseconds(until) + host_id(name)
        if self._store.get("swapped_out", key) is None:
            self._swapped_out_count += 1
        self._store.put("swapped_out", key, name.encode())

    def swap_in_due(self, now: float, count: int) -> list[str]:
        """Return up to `count` sleeping hosts whose time has come, soonest first; they sleep no more."""
        until = _microseconds(now) + b"\xff" * 8
        due = [entry for entry in self._store.first("swapped_out", b"", b"", count) if entry[0] <= until]
        for key, _ in due:
            self._store.put("swapped_out", key, None)
        self._swapped_out_count -= len(due)
        return [name.decode() for _, name in due]

    def swapped_out(self) -> tuple[int, float]:
        """Return how many hosts sleep, and when the first is due."""
        if not self._swapped_out_count:
            return 0, float("inf")
        key, _ = self._store.first("swapped_out", b"", b"", 1)[0]
        return self._swapped_out_count, int.from_bytes(key[:8], "big") / 1e6

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Name the first page that has this content; return the one that is known already, if any."""
        first = self.first_with_content(content_hash)
        if first is None:
            self._contents.add(content_hash)
            self._store.put("contents", content_hash, _encode(page))
        return first

    def note_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        """Append to the change feed."""
        self._last_change += 1
        self._store.put("changes", _pack_number(self._last_change), _KINDS[kind] + url_id)

    def use_signatures(self, edition: str) -> None:
        """Compare by signatures of this edition."""
        self._signatures.use(edition)

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        """Keep the signature of a page that repeats no other."""
        self._signatures.put(url_id, signature)

    def put_archive_end(self, file: str, end: int) -> None:
        """Note how far an archive file belongs to what is committed."""
        known = self._archive_ends.get(file)
        if known is None:
            known = int.from_bytes(self._store.get("archives", file.encode()) or b"", "big")
        self._archive_ends[file] = max(end, known)

    def put_meta(self, name: str, value: bytes) -> None:
        """Keep a named value."""
        self._store.put("meta", name.encode(), value)

    # -- commit -----------------------------------------------------------------------------------

    def seal(self) -> Callable[[], None]:
        """Close the changes so far; return the function that writes them, in whatever thread. One at a time."""
        for key, host in self._live_hosts.items():
            self._store.put("hosts", key, _encode(host))
        for file, end in self._archive_ends.items():
            self._store.put("archives", file.encode(), end.to_bytes(8, "big"))
        self._archive_ends.clear()
        for name, domain in self._live_domains.items():
            self._store.put("domains", _domain_key(name), _encode(domain))
        write = self._store.seal()
        self._live_hosts, self._live_domains = {}, {}
        return write

    def commit(self) -> None:
        """Make all changes so far durable."""
        self.seal()()

    def close(self) -> None:
        """Commit and let go."""
        if self._store.is_open:
            if not self._is_readonly:
                self.commit()
            self._store.close()

    # -- all of it --------------------------------------------------------------------------------

    def hosts(self) -> Iterator[HostRecord]:
        """Return all hosts."""
        fresh = dict.fromkeys([*self._store.changed_keys("hosts"), *self._live_hosts])
        for key in fresh:
            record = self._host_by_id(key)
            if record is not None:
                yield record
        for key, value in self._store.committed("hosts"):
            if key not in fresh:
                yield _decode_host(value)

    def domains(self) -> Iterator[DomainRecord]:
        """Return all registrable domains."""
        live = {_domain_key(name): domain for name, domain in self._live_domains.items()}
        yield from live.values()
        sealed = [key for key in self._store.changed_keys("domains") if key not in live]
        for key in sealed:
            value = self._store.get("domains", key)
            if value is not None:
                yield _decode_domain(value)
        fresh = live.keys() | set(sealed)
        for key, value in self._store.committed("domains"):
            if key not in fresh:
                yield _decode_domain(value)

    def urls(self, host_id: HostId | None = None) -> Iterator[tuple[UrlId, UrlRecord]]:
        """Return the committed catalog, or a host's part of it, in order of id."""
        for key, value in self._store.committed("urls", host_id or b""):
            yield key, _decode_url(value)
