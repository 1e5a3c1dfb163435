"""Seen URLs, queues, hosts and what was learned about them: what the engine reads and changes while it crawls.

`shard` selects one shard; None means all shards in the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from gossamer.core.ledger.tables import Record, RecordTable
from gossamer.model.records import (
    ChangeKind,
    DomainRecord,
    HostId,
    HostRecord,
    QueuedUrl,
    QueuePosition,
    RobotsRecord,
    UrlId,
    UrlRecord,
)
from gossamer.model.state import CrawlState, ShardState
from gossamer.ports.commit import Row


class QueueStore(Protocol):
    """The exact set of seen URLs, and what is queued per host."""

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        """Queue the URLs that were never admitted before; return them. A repeated URL in the list counts once.

        A URL whose id belongs to another URL is returned, and stored, with another id.
        """
        ...

    def find(self, url_id: UrlId, url: str, *, is_requisite: bool = False) -> tuple[UrlId, bool]:
        """Return the id that a URL has or would get, and whether it was ever admitted; `url_id` is its first."""
        ...

    def is_seen(self, url_id: UrlId) -> bool:
        """Return whether a URL was ever admitted."""
        ...

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the catalog's row of a URL."""
        ...

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        """Put a URL (back) into its host's queue at its position, replacing an entry there."""
        ...

    def finish(self, url: QueuedUrl, record: UrlRecord | None) -> None:
        """Remove a URL from its queue; `record` is its row from now on. None: as if it had never been admitted."""
        ...

    def amend(self, url_id: UrlId, record: UrlRecord) -> None:
        """Replace the row of a URL that is not queued."""
        ...

    def read_queue(self, host_id: HostId, after: QueuePosition | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host after a position, in order. None: from the first."""
        ...

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host from the end of its queue, last first."""
        ...

    def kill_queue(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        """Move all that is queued at a host to the dead letters; return how many."""
        ...

    def record_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        """Append to the change feed. Numbers grow over all runs, and are never used twice."""
        ...


class HostStore(Protocol):
    """Hosts, domains, robots.txt, and hosts that were swapped out of memory."""

    def identify(self, name: str, taken: Mapping[HostId, str] = ...) -> HostId:
        """Return the id of a host that is new: another than its first if that belongs to another host.

        `taken` are hosts that are new, too.
        """
        ...

    def host(self, name: str) -> HostRecord | None:
        """Return the record under a host's id. Compare its name: another host can have the same id."""
        ...

    def domain(self, name: str) -> DomainRecord | None:
        """Return what is known about a registrable domain."""
        ...

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        ...

    def put_host(self, record: HostRecord, key: HostId | None = None) -> None:
        """Store a host. The record is read when a commit is sealed: a later change before that counts.

        The key is that of its name, unless it is in a shard where it does not belong.
        """
        ...

    def put_domain(self, record: DomainRecord) -> None:
        """Store a registrable domain."""
        ...

    def put_robots(self, record: RobotsRecord) -> None:
        """Store robots.txt of an origin."""
        ...

    def hosts(self, shard: int | None = None) -> Iterator[HostRecord]:
        """Return all hosts, in no particular order."""
        ...

    def domains(self, shard: int | None = None) -> Iterator[DomainRecord]:
        """Return all registrable domains, in no particular order."""
        ...

    def swap_out(self, name: str, until: float) -> None:
        """Record that a host is swapped out until a time; it has at most one such time."""
        ...

    def swap_in_due(self, now: float, count: int) -> list[str]:
        """Remove and return up to `count` swapped-out hosts that are due, soonest first, then in order of host id."""
        ...

    def swapped_out(self) -> tuple[int, float]:
        """Return how many hosts are swapped out, and when the first is due (infinity if there is none)."""
        ...


class RecordStore(Protocol):
    """Tables of records that every ledger stores in the same way: see `core/ledger/tables`."""

    def record(self, table: RecordTable[Record], key: bytes) -> Record | None:
        """Return a record by its key."""
        ...

    def records(self, table: RecordTable[Record], shard: int | None = None) -> Iterator[Record]:
        """Return all records of a table, in no particular order."""
        ...

    def first_records(
        self, table: RecordTable[Record], prefix: bytes, after: bytes = b"", count: int = 1000
    ) -> list[Record]:
        """Return the first records whose keys have a prefix and come after a key, in order of their keys.

        The prefix contains the table's `group_bytes`.
        """
        ...

    def put_record(self, table: RecordTable[Record], record: Record) -> None:
        """Store a record as it is now, in place of the one with its key."""
        ...

    def remove_record(self, table: RecordTable[Record], key: bytes) -> None:
        """Remove the record with a key, if there is one."""
        ...


class StateStore(Protocol):
    """The state of the crawl and of its shards."""

    def crawl_state(self) -> CrawlState | None:
        """Return the crawl's state, or None if no crawl was started here. The caller may change it."""
        ...

    def put_crawl_state(self, state: CrawlState) -> None:
        """Store the crawl's state as it is now."""
        ...

    def shard_state(self, shard: int) -> ShardState:
        """Return the state of a shard; the ledger updates it on admission and when the feed is appended to."""
        ...

    def next_seq(self) -> int:
        """Return the greatest `next_seq` of all shards: where an owner of all of them continues."""
        ...


class FrontierStore(QueueStore, HostStore, RecordStore, StateStore, Protocol):
    """All that the engine needs of a ledger, except contents and signatures."""

    def take_shard(self, shard: int) -> None:
        """Become the owner of a shard: its swapped-out hosts are due again. All shards are owned at first."""
        ...

    def release_shard(self, shard: int) -> None:
        """Give up a shard: its rows stay, its swapped-out hosts are no longer due."""
        ...

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Add rows of a shard that are durable elsewhere, unless there are rows with their keys.

        They are no part of a commit. May run in a thread; `take_shard` follows, and makes them visible.
        """
        ...

    def drop_rows(self, shards: Collection[int]) -> None:
        """Remove all rows of released shards; what is pending is committed. No part of a commit either."""
        ...

    def put_archive_end(self, file: str, end: int) -> None:
        """Record how far an archive file belongs to what the next commit makes durable."""
        ...
