"""The read side of a ledger: for reports, exports, `why` and the like. Readers may run in other processes.

`shard` selects one shard; None means all shards in the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from gossamer.core.ledger.tables import Record, RecordTable
from gossamer.core.url.identity import Identity
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
)
from gossamer.model.state import CrawlState


class Catalog(Protocol):
    """Everything known about URLs, hosts and domains, as committed."""

    identity: Identity  # how its ids are made

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the row of a URL."""
        ...

    def url_id(self, url: str) -> UrlId:
        """Return the id of a URL: of the row with this URL, or the one that it would get."""
        ...

    def host_id(self, name: str) -> HostId:
        """Return the id of a host."""
        ...

    def urls(self, host_id: HostId | None = None, after: UrlId = b"") -> Iterator[tuple[UrlId, UrlRecord]]:
        """Return the committed catalog, or a host's part of it, in order of id, after an id. Thread-safe."""
        ...

    def host(self, name: str) -> HostRecord | None:
        """Return what is known about a host."""
        ...

    def hosts(self, shard: int | None = None) -> Iterator[HostRecord]:
        """Return all hosts, in no particular order."""
        ...

    def domains(self, shard: int | None = None) -> Iterator[DomainRecord]:
        """Return all registrable domains, in no particular order."""
        ...

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        ...

    def read_queue(self, host_id: HostId, after: QueuePosition | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host after a position, in order. None: from the first."""
        ...

    def record(self, table: RecordTable[Record], key: bytes) -> Record | None:
        """Return a record by its key."""
        ...

    def records(self, table: RecordTable[Record], shard: int | None = None) -> Iterator[Record]:
        """Return all records of a table, in no particular order: see `core/ledger/tables`."""
        ...

    def crawl_state(self) -> CrawlState | None:
        """Return the crawl's state, or None if no crawl was started here."""
        ...

    def archive_ends(self) -> dict[str, int]:
        """Return the committed length of every archive file."""
        ...


class ChangeFeed(Protocol):
    """The change feed of a ledger that one machine writes: its entries are in one order."""

    def changes(self, after: int, count: int) -> list[Change]:
        """Return up to `count` entries of the change feed after a number, in order of their numbers."""
        ...

    def last_change(self) -> int:
        """Return the greatest number in the change feed; 0 if it is empty."""
        ...
