"""Searching a real crawl."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.core.url.forms import link_to
from gossamer.handover.export.documents import PageDocument, PageFacts, Storage, documents
from gossamer.handover.feed.feed import FeedEntry, FolderFeed
from gossamer.handover.search.search import FILE_NAME, Hit, SearchIndex, fts_query
from gossamer.handover.search.search_entries import ManyProcesses, ReadableFeed
from gossamer.model.errors import UsageError
from gossamer.model.records import ChangeKind
from gossamer.parse.text.article import Article
from gossamer.reading.folder import CrawlReader
from tests.reading.folders import Crawled, finished, ledger_of, small_web

__all__ = ["finished", "small_web"]


def found(folder: Path, words: str, most: int = 10) -> list[Hit]:
    with CrawlReader(folder) as crawl, SearchIndex(crawl.folder.path) as index:
        index.update(FolderFeed(crawl, for_search=True))
        return index.search(words, most)


def a_document(crawled: Crawled) -> PageDocument:
    with CrawlReader(crawled.path) as crawl:
        return next(document for document in documents(crawl) if not document.facts.duplicate_of)


class FakeFeed:
    """Pages of our own."""

    def __init__(
        self, *pages: tuple[str, str, str], op: str = "upsert", noindex: bool = False, original: str = ""
    ) -> None:
        self.entries = [_entry(number, *page, op=op, noindex=noindex) for number, page in enumerate(pages, 1)]
        for entry in self.entries:
            entry.duplicate_of = original
        self.position = 0

    def last(self) -> int:
        return len(self.entries)

    def read(self, after: int = 0) -> Iterator[FeedEntry]:
        for entry in self.entries[after:]:
            self.position = int(entry.cursor)
            yield entry


def _entry(number: int, url: str, title: str, text: str, *, op: str, noindex: bool) -> FeedEntry:
    empty = dict.fromkeys(
        "content_type declared_type charset redirect_to parent found_via seed etag last_modified content_hash "
        "payload_digest truncated duplicate_of near_duplicate_of directives usage".split(),
        "",
    )
    facts = PageFacts(
        url=url,
        fetched_at="2026-05-01T00:00:00.000Z",
        status=200,
        depth=0,
        bytes=1,
        similarity=0.0,
        spam=0.0,
        spam_signals=[],
        lastmod="",
        worker=0,
        seed_metadata={},
        meta={},
        redirected_from=[],
        redirects=[],
        redirect_loop=False,
        words=0,
        connect_ms=None,
        tls_ms=None,
        first_byte_ms=None,
        total_ms=None,
        storage=Storage("f", 0, 1, "urn:x"),
        **empty,
    )
    article = Article(title=title, text=text, noindex=noindex)
    document = PageDocument(facts, article) if op == "upsert" else None
    return FeedEntry(cursor=number, op=op, url=url, at="", document=document)


def searched(tmp_path: Path, feed: ReadableFeed, words: str) -> list[Hit]:
    with SearchIndex(tmp_path) as index:
        index.update(feed)
        return index.search(words)


def test_a_page_is_found_by_its_words(finished: Crawled) -> None:
    document = a_document(finished)
    words = re.findall(r"\w{6,}", document.article.title)[:3]
    hits = found(finished.path, " ".join(words), 50)
    assert document.facts.url in [hit.url for hit in hits]
    assert all("**" in hit.snippet or any(word.lower() in hit.title.lower() for word in words) for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_pages_that_repeat_each_other_are_one_match_which_names_them(finished: Crawled) -> None:
    with CrawlReader(finished.path) as crawl:
        copies = {d.facts.url: d for d in documents(crawl) if d.facts.duplicate_of}
    assert copies
    for url, document in copies.items():
        words = " ".join(re.findall(r"\w{5,}", document.article.title))
        hits = found(finished.path, words, 200)
        original = document.facts.duplicate_of
        (hit,) = [hit for hit in hits if {url, original} & {hit.url, *hit.copies}]
        assert {url, original} <= {hit.url, *hit.copies}
        assert hit.copies_found == len(hit.copies)


def test_a_copy_that_was_fetched_first_does_not_hide_the_original(tmp_path: Path) -> None:
    with SearchIndex(tmp_path) as index:
        index.update(FakeFeed(("http://mirror/", "T", "the old bridge"), noindex=True))
        index.update(FakeFeed(("", "", ""), ("http://author/", "T", "the old bridge"), original="http://mirror/"))
        assert [hit.url for hit in index.search("bridge")] == ["http://author/"], "the mirror is not to be indexed"


def test_a_near_copy_does_not_hide_words_that_only_the_original_has(tmp_path: Path) -> None:
    with SearchIndex(tmp_path) as index:
        index.update(FakeFeed(("http://mirror/", "T", "the old tunnel")))
        index.update(FakeFeed(("", "", ""), ("http://author/", "T", "the old bridge"), original="http://mirror/"))
        assert [(hit.url, hit.copies) for hit in index.search("bridge")] == [("http://author/", [])]
        assert [(hit.url, hit.copies) for hit in index.search("old")] == [("http://mirror/", ["http://author/"])]


def rows_of(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        facts = db.execute(
            "SELECT url, facts.title, date, language, pages.title, body FROM facts JOIN pages ON facts.id = pages.rowid"
        )
        return [*sorted(facts.fetchall()), *db.execute("SELECT cursor FROM state")]


def test_many_processes_make_the_same_index_as_one(finished: Crawled, tmp_path: Path) -> None:
    one, many = finished.copied(tmp_path / "one"), finished.copied(tmp_path / "many")
    for folder in (one, many):
        (folder / FILE_NAME).unlink(missing_ok=True)
        with CrawlReader(folder) as crawl, SearchIndex(folder) as index:
            feed, seen = FolderFeed(crawl, for_search=True), list[int]()
            source = ManyProcesses(folder, feed.last(), 2) if folder is many else None
            assert index.update(feed, source, seen.append) == feed.last() == seen[-1]
            assert index.update(feed, ManyProcesses(folder, feed.last(), 2)) == 0
    assert rows_of(many) == rows_of(one)
    assert len(rows_of(one)) > 20


def test_a_second_search_reads_only_what_is_new(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "copy")
    (folder / FILE_NAME).unlink(missing_ok=True)
    with CrawlReader(folder) as crawl, SearchIndex(folder) as index:
        feed = FolderFeed(crawl, for_search=True)
        assert index.update(feed) == feed.last()
        assert index.update(feed) == 0
        assert index.cursor() == feed.last()
        gone = index.search("a* OR e*", 1) or index.search("s*", 1)
    with ledger_of(folder) as ledger:
        ledger.record_change(link_to(gone[0].url).id, ChangeKind.GONE)
    assert gone[0].url not in [hit.url for hit in found(folder, "s*", 500)]


def test_the_title_counts_more(tmp_path: Path) -> None:
    feed = FakeFeed(
        ("http://a/", "Rivers", "The bridge stands over the river, an old bridge of stone, as all know."),
        ("http://b/", "Bridge", "Something about a river and stones and nothing else that one would look for."),
    )
    assert [hit.url for hit in searched(tmp_path, feed, "bridge")] == ["http://b/", "http://a/"]


def test_accents_and_case_do_not_matter(tmp_path: Path) -> None:
    feed = FakeFeed(("http://a/", "Brücke", "Die Brücke über den Fluß"))
    assert searched(tmp_path, feed, "BRUCKE")
    assert "**Brücke**" in searched(tmp_path, feed, "brücke")[0].snippet


def test_phrases_exclusions_and_beginnings(tmp_path: Path) -> None:
    feed = FakeFeed(("http://a/", "A", "the old bridge is closed"), ("http://b/", "B", "the bridge is old"))
    assert [hit.url for hit in searched(tmp_path, feed, '"old bridge"')] == ["http://a/"]
    assert [hit.url for hit in searched(tmp_path, feed, "bridge -closed")] == ["http://b/"]
    assert len(searched(tmp_path, feed, "brid*")) == 2
    assert searched(tmp_path, feed, "brid") == []


def test_scripts_without_spaces_are_searched_within(tmp_path: Path) -> None:
    feed = FakeFeed(("http://a/", "新聞", "市議会は月曜日、古い橋を春まで閉鎖することを決定した。"))
    hits = searched(tmp_path, feed, "古い橋")
    assert hits[0].snippet.startswith("市議会は月曜日、**古い橋**を春まで閉鎖する")
    assert searched(tmp_path, feed, "橋古") == []


def test_pages_that_say_noindex_are_left_out(tmp_path: Path) -> None:
    assert searched(tmp_path, FakeFeed(("http://a/", "T", "bridge"), noindex=True), "bridge") == []


def test_a_page_that_became_a_duplicate_goes(tmp_path: Path) -> None:
    with SearchIndex(tmp_path) as index:
        index.update(FakeFeed(("http://a/", "T", "bridge")))
        later = FakeFeed(("http://x/", "", ""), ("http://a/", "", ""), op="duplicate")
        index.update(later)
        assert index.search("bridge") == []


def test_accents_may_be_typed_apart(tmp_path: Path) -> None:
    with SearchIndex(tmp_path) as index:
        index.update(FakeFeed(("http://a/", "T", "two caf\u00e9s")))
        assert [hit.url for hit in index.search("cafe\u0301s")] == ["http://a/"]


@pytest.mark.parametrize("words", ["", "   ", '"', '""', "-", "***", "-x", "'", "()", '-"a b"'])
def test_nothing_to_search_for_is_said(words: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        fts_query(words)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.text(alphabet=st.characters(), max_size=20) | st.text(alphabet='"*-^:+(){}NEAROT ab', max_size=20))
def test_no_query_breaks_the_search(tmp_path: Path, words: str) -> None:
    problem = ""
    try:
        searched(tmp_path, FakeFeed(("http://a/", "T", "bridge a b")), words)
    except UsageError as error:
        problem = str(error)
    assert problem.startswith("nothing to search for") or not problem
