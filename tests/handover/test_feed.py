"""The change feed of real crawls."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.url.forms import host_of, link_to
from gossamer.handover.export.documents import documents
from gossamer.handover.export.stored import captures
from gossamer.handover.feed.feed import CursorFile, FeedEntry, FolderFeed, check_cursor, cursor_from
from gossamer.model.errors import UsageError
from gossamer.model.records import ChangeKind
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.reading.folders import Crawled, crawl, finished, ledger_of, small_web
from tests.servers.web import RunningWeb

__all__ = ["finished", "small_web"]


def entries(path: Path, after: int = 0) -> list[FeedEntry]:
    with CrawlReader(path) as inspection:
        return list(FolderFeed(inspection).read(after))


def test_every_page_is_in_the_feed_once(finished: Crawled) -> None:
    found = entries(finished.path)
    assert [entry.cursor for entry in found] == list(range(1, len(found) + 1))
    urls = Counter(entry.url for entry in found)
    assert set(urls.values()) == {1}
    pages = [url for url, row in finished.rows().items() if row.outcome == "ok" and row.kind == 0]
    assert {entry.url for entry in found if entry.op in ("upsert", "duplicate")} == set(pages)


def test_an_entry_says_what_became_of_the_page(finished: Crawled) -> None:
    rows, found = finished.rows(), entries(finished.path)
    assert {entry.op for entry in found} == {"upsert", "duplicate", "gone"}
    for entry in found:
        row = rows[entry.url]
        if entry.op == "upsert":
            assert entry.document is not None
            assert entry.document.facts.url == entry.url
            assert entry.document.article.text
        elif entry.op == "duplicate":
            assert entry.duplicate_of in rows
            assert (entry.similarity == 1.0) is bool(row.duplicate_of)
        else:
            assert entry.op == "gone"
            assert row.status in (404, 410)


def test_a_line_has_the_document_only_if_it_is_new(finished: Crawled) -> None:
    for entry in entries(finished.path):
        line = json.loads(entry.to_json())
        assert ("document" in line) is (entry.op == "upsert")
        assert ("duplicate_of" in line) is (entry.op == "duplicate")


def test_reading_goes_on_after_a_cursor(finished: Crawled) -> None:
    whole = [int(entry.cursor) for entry in entries(finished.path)]
    assert [entry.cursor for entry in entries(finished.path, 100)] == whole[100:]
    assert entries(finished.path, whole[-1]) == []


def test_an_upsert_of_a_page_that_is_gone_by_now_is_left_out(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "copy")
    first = entries(folder)[0]
    link = link_to(first.url)
    with ledger_of(folder) as ledger:
        row = ledger.look_up(link.id)
        assert row is not None
        row.status, row.outcome = 404, "client_error"
        ledger.finish(queued_from(link.id, host_of(first.url), row), row)
        ledger.record_change(link.id, ChangeKind.GONE)
    found = [entry for entry in entries(folder) if entry.url == first.url]
    assert [entry.op for entry in found] == ["gone"]


def test_following_waits_while_the_crawl_runs_and_ends_with_it(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    last = len(entries(path))
    owner = CrawlFolder(path)
    waits = []

    def wait() -> None:
        waits.append(feed.position)
        if len(waits) == 2:
            owner.release()

    with CrawlReader(path) as inspection:
        feed = FolderFeed(inspection)
        owner.lock()
        assert [entry.cursor for entry in feed.follow(last - 3, wait)] == [last - 2, last - 1, last]
    assert waits == [last, last]


def test_a_page_that_did_not_change_is_unchanged_and_keeps_its_document(tmp_path: Path) -> None:
    with RunningWeb(preset("small", pages=30, slow=0.0)) as web:
        crawl(web, tmp_path / "crawl", cooldown_sec=1)
        first = entries(tmp_path / "crawl")
        time.sleep(1.1)
        crawl(web, tmp_path / "crawl", cooldown_sec=1)
    later = entries(tmp_path / "crawl", len(first))
    assert Counter(entry.op for entry in later)["unchanged"] > 0
    assert not [entry for entry in later if entry.op == "upsert"]
    with CrawlReader(tmp_path / "crawl") as inspection:
        found = {document.facts.url: document for document in documents(inspection)}
        seen_again = [entry for entry in later if entry.op == "unchanged"]
        assert any(found[entry.url].facts.status == 304 for entry in seen_again)
        for entry in seen_again:
            assert found[entry.url].article.text  # of the answer before
            assert captures(inspection.folder.index, entry.url)


def test_a_cursor_file_is_kept_whole(tmp_path: Path) -> None:
    kept = CursorFile(tmp_path / "cursor")
    assert kept.load() == 0
    kept.save(12)
    kept.save(13)
    assert kept.load() == 13
    assert [path.name for path in tmp_path.iterdir()] == ["cursor"]


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "9" * 30])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a cursor"):
        cursor_from(text, "--after")


def test_a_cursor_of_another_crawl_is_refused(finished: Crawled) -> None:
    with CrawlReader(finished.path) as inspection:
        feed = FolderFeed(inspection)
        check_cursor(feed.last(), feed)
        with pytest.raises(UsageError, match="beyond the last change"):
            check_cursor(feed.last() + 1, feed)
