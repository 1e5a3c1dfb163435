"""Full-text search over a crawl: SQLite's FTS5 in `search.sqlite`, updated from the change feed.

The index is updated before every search, from the cursor that it stores: pages and cursor
change in one transaction, so the process may be killed at any time. Not indexed are pages
with noindex, duplicates, and what is gone. The best match comes first (bm25, a word in the
title counts five times). Scripts that do not separate words by spaces are indexed character
by character and searched as phrases.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from gossamer.errors import GossamerError, UsageError
from gossamer.handover.feed import Feed, FeedEntry
from gossamer.handover.node_feed import NodeFeed

FILE_NAME = "search.sqlite"
VERSION = 1  # an index of another version is rebuilt
TITLE_WEIGHT = 5.0
SNIPPET_WORDS = 24
MARK = "**"
_BATCH = 500
_BUSY_TIMEOUT_S = 30.0
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_SIGN = re.compile(f"([{_UNSPACED}])")
_GAP = "\u200b"  # separates words for SQLite, and is invisible
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')
_MARKS = re.compile(r"^(?:#{1,6}|-) ", re.MULTILINE)
_WORD = re.compile(r"\w+")

_SCHEMA = (
    "DROP TABLE IF EXISTS pages",
    "DROP TABLE IF EXISTS facts",
    "DROP TABLE IF EXISTS state",
    'CREATE VIRTUAL TABLE pages USING fts5(title, body, tokenize = "unicode61 remove_diacritics 2")',
    "CREATE TABLE facts (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, title TEXT NOT NULL, date TEXT NOT NULL, "
    "language TEXT NOT NULL)",
    "CREATE TABLE state (cursor INTEGER NOT NULL)",
    "INSERT INTO state VALUES (0)",
    f"PRAGMA user_version = {VERSION}",
)
_QUERY = f"""
SELECT facts.url, facts.title, facts.date, facts.language, snippet(pages, 1, ?, ?, ' … ', {SNIPPET_WORDS}),
       -bm25(pages, {TITLE_WEIGHT}, 1.0) AS score
FROM pages JOIN facts ON facts.id = pages.rowid WHERE pages MATCH ? ORDER BY score DESC, facts.url LIMIT ?
"""  # noqa: S608 - numbers of our own


class Hit(Struct, frozen=True):
    """A page that matches."""

    url: str
    title: str
    date: str  # published, modified or fetched: the first that is known
    language: str
    snippet: str  # the words found are between `**`
    score: float


class SearchIndex:
    """The search index of a crawl folder; use it with `with`. The constructor does no I/O."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> SearchIndex:
        try:
            self._db = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
            self._make_tables()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if isinstance(error, sqlite3.Error):
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> GossamerError:
        return GossamerError(f"{self._path}: cannot be used: {error}; if it is removed, it will be rebuilt")

    def _make_tables(self) -> None:
        """Create the tables, unless they exist; another process may be doing the same."""
        db = self._open
        db.execute("PRAGMA journal_mode = WAL")
        if self._version() == VERSION:
            return
        with self._transaction():
            if self._version() != VERSION:
                for statement in _SCHEMA:
                    db.execute(statement)

    def _version(self) -> int:
        return int(self._open.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._open.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._open.execute("ROLLBACK")
            raise
        self._open.execute("COMMIT")

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    def cursor(self) -> int:
        """Return how far the change feed was read."""
        try:
            return int(self._stored_cursor())
        except ValueError:
            raise GossamerError(f"{self._path}: belongs to a crawl on many machines; choose another folder") from None

    def _stored_cursor(self) -> str:
        return str(self._open.execute("SELECT cursor FROM state").fetchone()[0])

    def update_from_nodes(self, feed: NodeFeed) -> None:
        """Read what is new in the feed of a crawl on many machines."""
        feed.start_after(self._stored_cursor(), str(self._path))
        entries = feed.read()
        while batch := list(islice(entries, _BATCH)):
            self._apply(batch, feed.position_text)

    def update(self, feed: Feed, on_batch: Callable[[int], None] = lambda _: None) -> int:
        """Read what is new in the feed; return how many changes. `on_batch` is called with the number so far."""
        after, done = self.cursor(), 0
        if after > feed.last():
            raise GossamerError(f"{self._path}: belongs to another crawl; if it is removed, it will be rebuilt")
        entries = feed.read(after)
        while True:
            batch = list(islice(entries, _BATCH))
            self._apply(batch, feed.position)
            done += len(batch)
            on_batch(done)
            if len(batch) < _BATCH:
                return done

    def _apply(self, entries: Sequence[FeedEntry], cursor: int | str) -> None:
        with self._transaction():
            for entry in entries:
                if entry.op != "unchanged":
                    self._remove(entry.url)
                if entry.document is not None and not _is_barred(entry):
                    self._add(entry)
            self._open.execute("UPDATE state SET cursor = ?", (cursor,))

    def _remove(self, url: str) -> None:
        db = self._open
        for (number,) in db.execute("SELECT id FROM facts WHERE url = ?", (url,)).fetchall():
            db.execute("DELETE FROM pages WHERE rowid = ?", (number,))
            db.execute("DELETE FROM facts WHERE id = ?", (number,))

    def _add(self, entry: FeedEntry) -> None:
        document = entry.document
        assert document is not None
        article = document.article
        date = article.published or article.modified or document.facts.fetched_at
        added = self._open.execute(
            "INSERT INTO facts (url, title, date, language) VALUES (?, ?, ?, ?)",
            (entry.url, article.title, date, document.language),
        )
        self._open.execute(
            "INSERT INTO pages (rowid, title, body) VALUES (?, ?, ?)",
            (added.lastrowid, _spaced(article.title), _spaced(_MARKS.sub("", article.text))),
        )

    def search(self, words: str, limit: int = 10) -> list[Hit]:
        """Return the best matches."""
        query = fts_query(words)
        with closing(self._open.execute(_QUERY, (MARK, MARK, query, limit))) as rows:
            return [
                Hit(url, title, date, language, _readable(snippet), round(score, 4))
                for url, title, date, language, snippet, score in rows
            ]


def _is_barred(entry: FeedEntry) -> bool:
    """Return whether a page must not be indexed."""
    document = entry.document
    return document is not None and (document.article.noindex or "noindex" in document.facts.directives)


def fts_query(words: str) -> str:
    """Return a user's query in FTS5's syntax: words and "phrases", -without, prefix*.

    Everything else is ignored, so the only invalid query is an empty one.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word in _TERM.findall(unicodedata.normalize("NFC", words.replace("\0", " "))):
        parts = _WORD.findall(_spaced(phrase or word))
        if parts:
            star = "*" if word.endswith("*") else ""
            (unwanted if minus else wanted).append('"' + " ".join(parts) + '"' + star)
    if not wanted:
        raise UsageError(f'nothing to search for in {words[:80]!r}; expected a word or a "phrase"')
    return " AND ".join(wanted) if not unwanted else f"({' AND '.join(wanted)}) NOT {' NOT '.join(unwanted)}"


def _spaced(text: str) -> str:
    """Return text with the characters of scripts without spaces as separate words."""
    return _SIGN.sub(rf"{_GAP}\1{_GAP}", text)


def _readable(snippet: str) -> str:
    return " ".join(snippet.replace(_GAP, "").split())
