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
from itertools import chain, islice
from typing import Protocol

from msgspec import Struct

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.backends.registry import object_store_in, open_objects, open_page_store, page_store_in
from gossamer.backends.s3.pages import S3Pages
from gossamer.foundation import failpoints
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result, UrlId
from gossamer.ports import CommitLog, Ledger, SealedChanges
from gossamer.ports.catalog_store import CatalogStore
from gossamer.ports.page_store import PageCopy, PageStore
from gossamer.reading.archived_pages import ArchivedPage, ArchivedPages, stored_page
from gossamer.reading.catalog_rows import CatalogRows
from gossamer.runtime.stores.outage import OutageControl, patiently
from gossamer.runtime.stores.uploads import PageUploads
from gossamer.settings.model import S3Layout, Settings

BATCH_PAGES = 50
_READERS = min(4, os.cpu_count() or 1)  # inflating and hashing let other threads run


class PageBatch(Struct, frozen=True):
    """A part of what a store gets with a commit."""

    put: Callable[[], None]  # may be repeated; raises StoreUnavailableError
    pages: int = 0
    on_committed: Callable[[], None] | None = None  # is called when the ledger has the commit


class Publishing(Protocol):
    """What puts something into a store before a commit."""

    def take(self, sealed: SealedChanges) -> Iterator[PageBatch] | None:
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
        self._added: list[ArchivedPage] = []

    def on_result(self, task: FetchTask, result: Result) -> None:
        """Add the page of a result that the engine has completed."""
        if result.outcome is Outcome.OK and task.kind is FetchKind.PAGE:
            self.add(task.url_id)

    def add(self, url_id: UrlId) -> None:
        """Add a page to the next commit, if its row says that it is one."""
        page = stored_page(url_id, self._ledger.look_up(url_id), self._ledger)
        if page is not None:
            self._added.append(page)

    def take(self, _sealed: SealedChanges) -> Iterator[PageBatch] | None:
        """Return the pages that were added since the last call."""
        taken = self._added
        self._added = []
        return (
            (PageBatch(partial(self._store.put, pages), len(pages)) for pages in self._read(taken)) if taken else None
        )

    def _read(self, pages: Sequence[ArchivedPage]) -> Iterator[list[PageCopy]]:
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

    def take(self, sealed: SealedChanges) -> Iterator[PageBatch]:
        """Return the rows of a commit."""
        return self._batches(sealed, self._now())

    def _batches(self, sealed: SealedChanges, committed_at: float) -> Iterator[PageBatch]:
        rows = (row for rows in sealed.by_shard().values() for row in rows)
        for changes in self._rows.changes(rows, committed_at):
            yield PageBatch(partial(self._store.put, changes), len(changes.pages))
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
    if (url := object_store_in(settings.store)) and settings.s3_layout is S3Layout.PAGE:
        pages = ArchivedPages(files, settings.max_bytes, node, keeps_copies=True)
        publishers.append(Publisher(S3Pages(open_objects(url)), pages, ledger))
    return publishers


class UploadPublisher:
    """Uploads archive files before the ledger refers to them."""

    def __init__(self, uploads: PageUploads) -> None:
        self._uploads = uploads

    def take(self, sealed: SealedChanges) -> Iterator[PageBatch] | None:
        """Return the upload of the files up to the lengths that a commit makes durable."""
        rows = (row for row in sealed.unsharded() if row.table == "archives" and row.value is not None)
        ends = {row.key.decode(): int.from_bytes(row.value or b"", "big") for row in rows}
        upload = PageBatch(partial(self._uploads.upload, ends), on_committed=partial(self._uploads.commit, ends))
        return iter([upload]) if ends else None

    def close(self) -> None:
        """Nothing is open."""


class PublishedCommits:
    """Commits that put something into stores first; the last publisher begins. See `gossamer.ports.CommitLog`."""

    def __init__(self, inner: CommitLog, publishers: Sequence[Publishing], control: OutageControl) -> None:
        self._inner = inner
        self._publishers = publishers
        self._control = control

    def seal(self) -> SealedChanges:
        """Close the changes so far. In the event loop."""
        sealed = self._inner.seal()
        taken = [batches for publisher in self._publishers if (batches := publisher.take(sealed)) is not None]
        return _Publication(chain.from_iterable(reversed(taken)), sealed, self._control) if taken else sealed


class _Publication:
    """See `gossamer.ports.SealedChanges`."""

    def __init__(self, batches: Iterator[PageBatch], sealed: SealedChanges, control: OutageControl) -> None:
        self._batches = batches
        self._sealed = sealed
        self._control = control
        self._loop = asyncio.get_running_loop()
        self.by_shard = sealed.by_shard
        self.unsharded = sealed.unsharded

    def write(self) -> None:
        """Put everything into the stores, however long they are away, then make the changes durable. In a thread."""
        afterwards = []
        for batch in self._batches:
            patiently(batch.put, self._control, self._loop)
            self._control.stats.batches += batch.pages > 0
            self._control.stats.pages += batch.pages
            afterwards.append(batch.on_committed)
        self._sealed.write()
        for act in filter(None, afterwards):
            act()
