"""Puts finished pages into a page store before the ledger is committed.

    a page is finished     `add`: its row is remembered until the next commit
    a commit is sealed     its pages are those that were added before
    it is written          its pages are read from the archive, which is synced, and put into the store in batches;
                           only then is the ledger written

So a row that is durable in the ledger has its page in the store. What a dead process had archived and not committed is
finished by recovery, added like any other page, and put again, which changes nothing if it is there.

If the store cannot be reached, the commit waits for it in its thread, and fetching is paused (`runtime/outage`): no
page is dropped, memory does not grow, and what is in flight goes to the archive.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.backends.s3.pages import S3Pages
from gossamer.inspect.archive_access import open_s3, s3_url
from gossamer.inspect.archived_pages import ArchivedPages, StoredPage, stored_page
from gossamer.ports import CommitLog, Ledger, SealedChanges
from gossamer.ports.page_store import PageCopy, PageStore
from gossamer.records import Order, OrderKind, Outcome, Result, UrlId
from gossamer.runtime.outage import OutageControl, patiently
from gossamer.runtime.sinks import open_page_store, page_store_in
from gossamer.settings.model import S3Layout, Settings

BATCH_PAGES = 50
_READERS = min(4, os.cpu_count() or 1)  # inflating and hashing let other threads run


class Publisher:
    """The pages that the store does not have yet."""

    def __init__(self, store: PageStore, pages: ArchivedPages, ledger: Ledger, control: OutageControl) -> None:
        self._store = store
        self._pages = pages
        self._ledger = ledger
        self._control = control
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

    def take(self) -> list[StoredPage]:
        """Return the pages that were added since the last call."""
        taken, self._added = self._added, []
        return taken

    def put_added(self) -> None:
        """Put the pages that were added into the store. Raises StoreUnavailableError at once if it is away."""
        for batch in self._read(self.take()):
            self._store.put(batch)

    def put_patiently(self, pages: Sequence[StoredPage], loop: asyncio.AbstractEventLoop) -> None:
        """Put pages into the store, however long it is away, unless the crawl is stopped. In a thread."""
        for batch in self._read(pages):
            patiently(partial(self._store.put, batch), self._control, loop)
            self._control.stats.batches += 1
            self._control.stats.pages += len(batch)

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


def open_publishers(
    settings: Settings, files: ArchiveFiles, node: str, ledger: Ledger, control: OutageControl
) -> list[Publisher]:
    """Return the publishers of a crawl: one for each store that gets single pages."""
    publishers = []
    if store := page_store_in(settings.store):
        pages = ArchivedPages(files, settings.max_bytes, node)
        publishers.append(Publisher(open_page_store(store, is_patient=False), pages, ledger, control))
    if (url := s3_url(settings.store)) and settings.s3_layout is S3Layout.PAGE:
        pages = ArchivedPages(files, settings.max_bytes, node, keeps_copies=True)
        publishers.append(Publisher(S3Pages(open_s3(url)), pages, ledger, control))
    return publishers


def published(commits: CommitLog, publishers: Sequence[Publisher]) -> CommitLog:
    """Return the commits of a crawl: with its pages, for each store that gets them."""
    for publisher in publishers:
        commits = PublishedCommits(commits, publisher)
    return commits


class PublishedCommits:
    """Commits that put their pages into a store first. See `gossamer.ports.CommitLog`."""

    def __init__(self, inner: CommitLog, publisher: Publisher) -> None:
        self._inner = inner
        self._publisher = publisher

    def seal(self) -> SealedChanges:
        """Close the changes so far. In the event loop."""
        pages, sealed = self._publisher.take(), self._inner.seal()
        return _Publication(self._publisher, pages, sealed, asyncio.get_running_loop()) if pages else sealed

    def commit(self) -> None:
        """Close the changes so far and write them."""
        self.seal().write()

    def pending_count(self) -> int:
        """Return how many rows wait for the next commit."""
        return self._inner.pending_count()


class _Publication:
    """See `gossamer.ports.SealedChanges`."""

    def __init__(
        self,
        publisher: Publisher,
        pages: Sequence[StoredPage],
        sealed: SealedChanges,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._publisher = publisher
        self._pages = pages
        self._sealed = sealed
        self._loop = loop
        self.by_shard, self.unsharded = sealed.by_shard, sealed.unsharded

    def write(self) -> None:
        """Put the pages into the store, then make the changes durable."""
        self._publisher.put_patiently(self._pages, self._loop)
        self._sealed.write()
