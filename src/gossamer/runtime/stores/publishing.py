"""Puts finished pages into a page store, and rows into a catalog, before the ledger is committed.

    a page is finished     `add`: its row is remembered until the next commit
    a commit is sealed     its pages are those that were added before
    it is written          its pages are read from the archive, which is synced, and put into the store in batches;
                           only then is the ledger written

A catalog (`CatalogPublisher`) needs no archive: what it gets is in the rows of the commit itself.

So a row that is durable in the ledger has its page in the store. What a dead process had archived and not committed is
finished by recovery, added like any other page, and put again, which changes nothing if it is there.

If the store cannot be reached, the commit waits for it in its thread, and fetching is paused
(`runtime/stores/outage`): no page is dropped, memory does not grow, and what is in flight goes to the archive.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Protocol

from msgspec import Struct

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.backends.s3.pages import S3Pages
from gossamer.foundation import failpoints
from gossamer.model.records import Order, OrderKind, Outcome, Result, UrlId
from gossamer.ports import CommitLog, Ledger, SealedChanges
from gossamer.ports.catalog_store import CatalogStore
from gossamer.ports.page_store import PageCopy, PageStore
from gossamer.reading.archive_access import open_s3, s3_url
from gossamer.reading.archived_pages import ArchivedPages, StoredPage, stored_page
from gossamer.reading.catalog_rows import CatalogRows
from gossamer.runtime.stores.outage import OutageControl, patiently
from gossamer.runtime.stores.sinks import open_page_store, page_store_in
from gossamer.settings.model import S3Layout, Settings

BATCH_PAGES = 50
_READERS = min(4, os.cpu_count() or 1)  # inflating and hashing let other threads run


class Batch(Struct, frozen=True):
    """A part of what a store gets with a commit."""

    put: Callable[[], None]  # may be repeated; raises StoreUnavailableError
    pages: int = 0


class Publishing(Protocol):
    """What puts something into a store before a commit."""

    def take(self, sealed: SealedChanges) -> Iterator[Batch] | None:
        """Return what goes with a commit; None: nothing. In the event loop; the batches are made when they are read."""
        ...

    def close(self) -> None:
        """Release the store."""
        ...


class Publisher:
    """The pages that the store does not have yet."""

    def __init__(self, store: PageStore, pages: ArchivedPages, ledger: Ledger) -> None:
        self._store = store
        self._pages = pages
        self._ledger = ledger
        self._added: list[StoredPage] = []

    def on_result(self, order: Order, result: Result) -> None:
        """Add the page of a result that the engine has completed."""
        if result.outcome is Outcome.OK and order.kind is OrderKind.PAGE:
            self.add(order.url_id)

    def add(self, url_id: UrlId) -> None:
        """Add a page to the next commit, if its row says that it is one."""
        page = stored_page(url_id, self._ledger.look_up(url_id), self._ledger)
        if page is not None:
            self._added.append(page)

    def take(self, _sealed: SealedChanges) -> Iterator[Batch] | None:
        """Return the pages that were added since the last call."""
        taken = self._added
        self._added = []
        return (Batch(partial(self._store.put, pages), len(pages)) for pages in self._read(taken)) if taken else None

    def _read(self, pages: Sequence[StoredPage]) -> Iterator[list[PageCopy]]:
        """Yield batches of pages, the next of which is read while the store has the one before."""
        with ThreadPoolExecutor(_READERS, "publish") as readers:
            ahead = iter(pages)
            batch = [readers.submit(self._pages.read, page) for page in islice(ahead, BATCH_PAGES)]
            while batch:
                following = [readers.submit(self._pages.read, page) for page in islice(ahead, BATCH_PAGES)]
                yield [read.result() for read in batch]
                batch = following

    def close(self) -> None:
        """Release the store."""
        self._store.close()


class CatalogPublisher:
    """Puts what a commit changes into a catalog."""

    def __init__(self, store: CatalogStore, rows: CatalogRows, now: Callable[[], float]) -> None:
        self._store = store
        self._rows = rows
        self._now = now

    def take(self, sealed: SealedChanges) -> Iterator[Batch]:
        """Return the rows of a commit."""
        return self._batches(sealed, self._now())

    def _batches(self, sealed: SealedChanges, committed_at: float) -> Iterator[Batch]:
        rows = (row for rows in sealed.by_shard().values() for row in rows)
        for changes in self._rows.changes(rows, committed_at):
            yield Batch(partial(self._store.put, changes), len(changes.pages))
        failpoints.reach("after_catalog")

    def close(self) -> None:
        """Release the catalog."""
        self._store.close()


def open_publishers(settings: Settings, files: ArchiveFiles, node: str, ledger: Ledger) -> list[Publisher]:
    """Return the publishers of a crawl: one for each store that gets single pages."""
    publishers = []
    if store := page_store_in(settings.store):
        pages = ArchivedPages(files, settings.max_bytes, node)
        publishers.append(Publisher(open_page_store(store, is_patient=False), pages, ledger))
    if (url := s3_url(settings.store)) and settings.s3_layout is S3Layout.PAGE:
        pages = ArchivedPages(files, settings.max_bytes, node, keeps_copies=True)
        publishers.append(Publisher(S3Pages(open_s3(url)), pages, ledger))
    return publishers


def published(commits: CommitLog, publishers: Sequence[Publishing], control: OutageControl) -> CommitLog:
    """Return the commits of a crawl: each puts something into stores first."""
    for publisher in publishers:
        commits = PublishedCommits(commits, publisher, control)
    return commits


class PublishedCommits:
    """Commits that put their pages into a store first. See `gossamer.ports.CommitLog`."""

    def __init__(self, inner: CommitLog, publisher: Publishing, control: OutageControl) -> None:
        self._inner = inner
        self._publisher = publisher
        self._control = control

    def seal(self) -> SealedChanges:
        """Close the changes so far. In the event loop."""
        sealed = self._inner.seal()
        batches = self._publisher.take(sealed)
        return sealed if batches is None else _Publication(batches, sealed, self._control)

    def commit(self) -> None:
        """Close the changes so far and write them."""
        self.seal().write()

    def pending_count(self) -> int:
        """Return how many rows wait for the next commit."""
        return self._inner.pending_count()


class _Publication:
    """See `gossamer.ports.SealedChanges`."""

    def __init__(self, batches: Iterator[Batch], sealed: SealedChanges, control: OutageControl) -> None:
        self._batches = batches
        self._sealed = sealed
        self._control = control
        self._loop = asyncio.get_running_loop()
        self.by_shard = sealed.by_shard
        self.unsharded = sealed.unsharded

    def write(self) -> None:
        """Put everything into the store, however long it is away, then make the changes durable. In a thread."""
        for batch in self._batches:
            patiently(batch.put, self._control, self._loop)
            self._control.stats.batches += batch.pages > 0
            self._control.stats.pages += batch.pages
        self._sealed.write()
