"""How pages reach a page store: before their rows are durable, and however long the store is away."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.model.commands import Command, Pause, Resume
from gossamer.model.errors import CorruptFolderError, StoreUnavailableError
from gossamer.ports import Row, SealedChanges
from gossamer.ports.page_store import PageCopy
from gossamer.reading.archived_pages import ArchivedPages, stored_page
from gossamer.reading.folder import CrawlReader
from gossamer.runtime.hub.config import HubLimits
from gossamer.runtime.hub.run import Run
from gossamer.runtime.stores.outage import OutageControl
from gossamer.runtime.stores.publishing import BATCH_PAGES, PublishedCommits, Publisher
from gossamer.runtime.stores.run_stores import commit_at_once
from tests.reading.folders import Crawled, crawl, small_web
from tests.servers.web import RunningWeb

__all__ = ["small_web"]


@pytest.fixture(scope="module")
def crawled(small_web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawl(small_web, tmp_path_factory.mktemp("crawl") / "out")


@pytest.fixture
def reader(crawled: Crawled) -> Iterator[CrawlReader]:
    with CrawlReader(crawled.path) as reader:
        yield reader


class PagesInMemory:
    """A page store that is away for some calls."""

    def __init__(self, *, away: int = 0) -> None:
        self.batches: list[list[PageCopy]] = []
        self.away = away

    def put(self, pages: Sequence[PageCopy]) -> None:
        if self.away:
            self.away -= 1
            raise StoreUnavailableError("memory: away")
        self.batches.append(list(pages))

    def close(self) -> None:
        self.batches.clear()


class RecordingRun(Run):
    def __init__(self, *, is_stopped: bool = False) -> None:
        super().__init__(HubLimits())
        self.commands: list[Command] = []
        if is_stopped:
            self.stop("signal")

    def submit(self, command: Command, answer: asyncio.Future[Any] | None = None) -> None:
        assert answer is None
        self.commands.append(command)


class Commits:
    """Commits that record how many pages the store had when they were written."""

    def __init__(self, store: PagesInMemory) -> None:
        self._store = store
        self.written: list[int] = []

    def seal(self) -> SealedChanges:
        return self

    def by_shard(self) -> Mapping[int, list[Row]]:
        return {}

    def unsharded(self) -> list[Row]:
        return []

    def write(self) -> None:
        self.written.append(sum(map(len, self._store.batches)))


class Publishing:
    """A publisher with all pages of a crawl."""

    def __init__(self, reader: CrawlReader, store: PagesInMemory, of: RecordingRun) -> None:
        self.store, self.of = store, of
        self.warnings: list[str] = []
        self.control = OutageControl(of, self._warn, retry_s=0.0, warn_every_s=0.0)
        archived = ArchivedPages(ArchiveFiles(reader.folder.archive), 10_000_000, "n1")
        self.publisher = Publisher(store, archived, reader.ledger)
        self.commits = Commits(store)
        for url_id, _ in reader.ledger.urls():
            self.publisher.add(url_id)

    def _warn(self, _rule: str, text: str) -> None:
        self.warnings.append(text)

    def commit(self) -> None:
        async def commit() -> None:
            sealed = PublishedCommits(self.commits, [self.publisher], self.control).seal()
            await asyncio.to_thread(sealed.write)

        asyncio.run(commit())


def test_the_ledger_is_written_when_the_store_has_all_pages_in_batches(reader: CrawlReader, crawled: Crawled) -> None:
    run = Publishing(reader, PagesInMemory(), RecordingRun())
    run.commit()
    pages = crawled.summary.pages
    assert run.commits.written == [pages]
    sizes = [len(batch) for batch in run.store.batches]
    assert sizes == [BATCH_PAGES] * (pages // BATCH_PAGES) + [pages % BATCH_PAGES]
    assert run.of.commands == []
    run.commit()
    assert sum(map(len, run.store.batches)) == pages, "a page goes with one commit"


def test_a_page_is_what_the_catalog_and_the_archive_have(reader: CrawlReader, crawled: Crawled) -> None:
    run = Publishing(reader, PagesInMemory(), RecordingRun())
    commit_at_once(run.commits, [run.publisher])
    rows = {row.url: row for _, row in reader.ledger.urls()}
    copies = 0
    for page in [page for batch in run.store.batches for page in batch]:
        row = rows[page.url]
        assert (page.title, page.depth, page.links, page.size) == (
            row.title,
            row.depth,
            row.links_found,
            row.content_bytes,
        )
        assert (page.visit, page.status, page.node, page.crawled_at) == (1, 200, "n1", row.fetched_at)
        assert page.duplicate_of == row.duplicate_of
        copies += page.content is None
        if page.content is not None:
            assert len(page.content) == page.size
            assert page.content_hash == hashlib.sha256(page.content).hexdigest()
            assert hashlib.sha1(page.content, usedforsecurity=False).digest()[:16] == row.content_hash
    assert copies == crawled.summary.duplicates > 0


def test_an_outage_pauses_the_crawl_warns_again_and_loses_nothing(reader: CrawlReader, crawled: Crawled) -> None:
    run = Publishing(reader, PagesInMemory(away=3), RecordingRun())
    run.commit()
    assert run.commits.written == [crawled.summary.pages]
    assert run.of.commands == [Pause("store"), Resume("store")]
    assert len(run.warnings) == 3
    assert all("memory: away" in text and "fetching is paused" in text for text in run.warnings)


def test_nothing_is_written_if_the_crawl_is_stopped_during_an_outage(reader: CrawlReader) -> None:
    run = Publishing(reader, PagesInMemory(away=1000), RecordingRun(is_stopped=True))
    with pytest.raises(StoreUnavailableError, match=r"memory: away; .*resume"):
        run.commit()
    assert run.commits.written == []


def test_a_store_that_is_away_at_the_start_is_not_waited_for(reader: CrawlReader) -> None:
    run = Publishing(reader, PagesInMemory(away=1), RecordingRun())
    with pytest.raises(StoreUnavailableError):
        commit_at_once(run.commits, [run.publisher])
    assert run.commits.written == []


def test_a_page_that_is_not_in_the_archive_is_an_error(reader: CrawlReader, tmp_path: Path) -> None:
    pages = ArchivedPages(ArchiveFiles(tmp_path), 10_000_000)
    found = (stored_page(url_id, row, reader.ledger) for url_id, row in reader.ledger.urls())
    page = next(page for page in found if page is not None)
    with pytest.raises(CorruptFolderError, match="no record at"):
        pages.read(page)
