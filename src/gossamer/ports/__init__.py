"""What the engine needs from the outside, as contracts. One suite per port proves every backend the same.

    frontier_store   seen URLs, queues, hosts, and what was learned about them    engine
    catalog          the read side: reports, exports, `why`                       reading, handover
    contents         "first known here": equal contents and similar texts         engine, workers
    commit           closing the changes so far and making them durable           hub
    page_sink        where the bytes of pages go                                  workers
    page_store       where copies of finished pages go, outside of the folder     hub
    event_sink       where events go, and a line per fetch if requested           session, engine

A component asks for the smallest of these that it uses. `Ledger` is all that one ledger implements.
"""

from __future__ import annotations

from typing import Protocol

from gossamer.ports.catalog import Catalog, ChangeFeed
from gossamer.ports.commit import CommitLog, Row, SealedChanges
from gossamer.ports.contents import Contents, Signatures
from gossamer.ports.event_sink import EventSink, FetchLog
from gossamer.ports.frontier_store import FrontierStore, HostStore, QueueStore, RecordStore, StateStore
from gossamer.ports.page_sink import FetchedPage, PageSink


class Ledger(FrontierStore, Catalog, ChangeFeed, Contents, Signatures, CommitLog, Protocol):
    """The crawl's persistent state: everything that one ledger implements.

    Changes are visible to every later read at once, and durable after the next commit: all changes
    up to a commit become durable together or not at all. One process writes. Returned lists have the
    order of the arguments. Only the write of a commit waits for a disk.
    """

    def commit(self) -> None:
        """Make all changes so far durable: `seal` and `write` in one."""
        ...

    def pending_count(self) -> int:
        """Return approximately how many rows wait for the next commit."""
        ...

    def close(self) -> None:
        """Commit and release the store."""
        ...


__all__ = [
    "Catalog",
    "ChangeFeed",
    "CommitLog",
    "Contents",
    "EventSink",
    "FetchLog",
    "FetchedPage",
    "FrontierStore",
    "HostStore",
    "Ledger",
    "PageSink",
    "QueueStore",
    "RecordStore",
    "Row",
    "SealedChanges",
    "Signatures",
    "StateStore",
]
