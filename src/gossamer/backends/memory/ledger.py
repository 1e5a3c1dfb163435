"""The ledger in memory: for the simulator, for tests, and as the plainest statement of the contract."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gossamer.core.catalog import queued_from, record_of
from gossamer.core.dedup.index import NearIndex, index_of
from gossamer.core.url import host_id as id_of_host
from gossamer.core.url import host_of
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


class MemoryLedger:
    """See `gossamer.ports.Ledger` for the contract. `commit` has nothing to do."""

    def __init__(self) -> None:
        self._urls: dict[UrlId, UrlRecord] = {}
        self._queue: defaultdict[HostId, list[tuple[int, int, UrlId]]] = defaultdict(list)
        self._hosts: dict[HostId, HostRecord] = {}
        self._domains: dict[str, DomainRecord] = {}
        self._robots: dict[str, RobotsRecord] = {}
        self._swapped_out: list[tuple[float, str]] = []
        self._contents: dict[bytes, ContentRecord] = {}
        self._changes: list[Change] = []
        self._near: NearIndex | None = None
        self._signatures: list[tuple[UrlId, bytes]] = []
        self._archives: dict[str, int] = {}
        self._meta: dict[str, bytes] = {}

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        """Queue the URLs whose id was never admitted before; return them."""
        new = []
        for url in urls:
            if url.id not in self._urls:
                self._urls[url.id] = record_of(url)
                insort(self._queue[url.id[:8]], (url.priority, url.seq, url.id))
                new.append(url)
        return new

    def is_seen(self, url_id: UrlId) -> bool:
        """Tell whether a URL was ever admitted."""
        return url_id in self._urls

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        """Put a URL (back) into its host's queue at its priority and seq."""
        base = record or self._urls.get(url.id) or record_of(url)
        self._urls[url.id] = replace(
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
        entry = (url.priority, url.seq, url.id)
        queue = self._queue[url.id[:8]]
        if entry not in queue:
            insort(queue, entry)

    def finish(self, url: QueuedUrl, record: UrlRecord) -> None:
        """Take a URL out of its queue; `record` is what the catalog says of it from now on."""
        self._urls[url.id] = record
        queue = self._queue[url.id[:8]]
        entry = (url.priority, url.seq, url.id)
        if entry in queue:
            queue.remove(entry)

    def read_queue(self, host_id: HostId, after: tuple[int, int] | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host beyond a priority and seq, in order."""
        queue = self._queue.get(host_id, [])
        start = 0 if after is None else bisect_right(queue, (*after, b"\xff" * 17))
        return [
            queued_from(url_id, host_of(self._urls[url_id].url), self._urls[url_id])
            for _, _, url_id in queue[start : start + count]
        ]

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host from the end of its queue, last first."""
        return [
            queued_from(url_id, host_of(self._urls[url_id].url), self._urls[url_id])
            for _, _, url_id in reversed(self._queue.get(host_id, [])[-count:])
        ]

    def kill_queue(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        """Move all that is queued at a host to the dead letters; return how many."""
        queue = self._queue.pop(host_id, [])
        for _, _, url_id in queue:
            self._urls[url_id] = replace(
                self._urls[url_id], state=UrlState.DEAD, outcome=outcome, error=error, fetched_at=now
            )
        return len(queue)

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the catalog's row of a URL."""
        return self._urls.get(url_id)

    def host(self, name: str) -> HostRecord | None:
        """Return what is known of a host."""
        return self._hosts.get(id_of_host(name))

    def domain(self, name: str) -> DomainRecord | None:
        """Return what is known of a registrable domain."""
        return self._domains.get(name)

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        return [record for origin, record in self._robots.items() if id_of_host(host_of(origin + "/")) == host_id]

    def put_host(self, record: HostRecord) -> None:
        """Keep a host."""
        self._hosts[id_of_host(record.name)] = record

    def put_domain(self, record: DomainRecord) -> None:
        """Keep a registrable domain."""
        self._domains[record.name] = record

    def put_robots(self, record: RobotsRecord) -> None:
        """Keep robots.txt of an origin."""
        self._robots[record.origin] = record

    def swap_out(self, name: str, until: float) -> None:
        """Let a host sleep until a time."""
        at = bisect_left(self._swapped_out, (until, name))
        if self._swapped_out[at : at + 1] != [(until, name)]:
            self._swapped_out.insert(at, (until, name))

    def swap_in_due(self, now: float, count: int) -> list[str]:
        """Return up to `count` sleeping hosts whose time has come, soonest first; they sleep no more."""
        due = [entry for entry in self._swapped_out[:count] if entry[0] <= now]
        del self._swapped_out[: len(due)]
        return [name for _, name in due]

    def swapped_out(self) -> tuple[int, float]:
        """Return how many hosts sleep, and when the first is due."""
        return len(self._swapped_out), self._swapped_out[0][0] if self._swapped_out else float("inf")

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page that had this content."""
        return self._contents.get(content_hash)

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Name the first page that has this content; return the one that is known already, if any."""
        first = self._contents.get(content_hash)
        if first is None:
            self._contents[content_hash] = page
        return first

    def note_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        """Append to the change feed."""
        self._changes.append(Change(len(self._changes) + 1, url_id, kind))

    def changes(self, after: int, count: int) -> list[Change]:
        """Return up to `count` entries of the change feed beyond a number, in order."""
        return self._changes[after : after + count]

    def last_change(self) -> int:
        """Return the number of the last entry of the change feed."""
        return len(self._changes)

    def use_signatures(self, edition: str) -> None:
        """Compare by signatures of this edition."""
        known = self._meta.get("signatures", b"").decode()
        if known != edition or self._near is None:
            self._meta["signatures"] = edition.encode()
            self._near, self._signatures = index_of(edition), []

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page that a signature repeats."""
        assert self._near is not None, "use_signatures comes first"
        match = self._near.nearest(signature, lambda number: self._signatures[number][1])
        return Similar(self._signatures[match.number][0], match.similarity) if match is not None else None

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        """Keep the signature of a page that repeats no other."""
        assert self._near is not None, "use_signatures comes first"
        self._near.add(len(self._signatures), signature)
        self._signatures.append((url_id, signature))

    def put_archive_end(self, file: str, end: int) -> None:
        """Note how far an archive file belongs to what is committed."""
        self._archives[file] = max(end, self._archives.get(file, 0))

    def archive_ends(self) -> dict[str, int]:
        """Return the committed length of every archive file."""
        return dict(self._archives)

    def get_meta(self, name: str) -> bytes | None:
        """Return a named value."""
        return self._meta.get(name)

    def put_meta(self, name: str, value: bytes) -> None:
        """Keep a named value."""
        self._meta[name] = value

    def hosts(self) -> Iterator[HostRecord]:
        """Return all hosts."""
        return iter(list(self._hosts.values()))

    def domains(self) -> Iterator[DomainRecord]:
        """Return all registrable domains."""
        return iter(list(self._domains.values()))

    def urls(self, host_id: HostId | None = None) -> Iterator[tuple[UrlId, UrlRecord]]:
        """Return the catalog, or a host's part of it, in order of id."""
        return iter(sorted(item for item in self._urls.items() if item[0].startswith(host_id or b"")))

    def commit(self) -> None:
        """Do nothing: memory is as durable as it gets."""

    def close(self) -> None:
        """Do nothing."""
