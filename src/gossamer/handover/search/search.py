"""Full-text search over a crawl: SQLite's FTS5 in `search.sqlite`, updated from the change feed.

The index is updated before every search, from the cursor that it stores: pages and cursor
change in one transaction, so the process may be killed at any time. Not indexed are pages
with noindex, and what is gone. The best match comes first (bm25, a word in the title counts
five times). Pages that repeat each other are one match, which names them: which was fetched
first says nothing about whose text it is, and a copy must not hide an original. Scripts that
do not separate words by spaces are indexed character by character and searched as phrases.
What is indexed of a page is in `search_entries`.
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

from gossamer.handover.feed.node_feed import NodeFeed
from gossamer.handover.search.search_entries import (
    GAP,
    EntrySource,
    IndexEntry,
    OneProcess,
    ReadableFeed,
    entry_of,
    spaced,
)
from gossamer.model.errors import GossamerError, UsageError

FILE_NAME = "search.sqlite"
VERSION = 2  # an index of another version is rebuilt
TITLE_WEIGHT = 5.0
SNIPPET_WORDS = 24
MAX_COPIES = 10
MARK = "**"
_BATCH = 500  # of the feed of many machines
_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",  # a power cut may cost the last batch, which the cursor in it knows
    "PRAGMA cache_size = -64000",
)
_BUSY_TIMEOUT_S = 30.0
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')
_WORD = re.compile(r"\w+")

_SCHEMA = (
    "DROP TABLE IF EXISTS pages",
    "DROP TABLE IF EXISTS facts",
    "DROP TABLE IF EXISTS state",
    'CREATE VIRTUAL TABLE pages USING fts5(title, body, tokenize = "unicode61 remove_diacritics 2")',
    "CREATE TABLE facts (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, title TEXT NOT NULL, date TEXT NOT NULL, "
    "language TEXT NOT NULL, original TEXT NOT NULL)",
    "CREATE TABLE state (cursor INTEGER NOT NULL)",
    "INSERT INTO state VALUES (0)",
    f"PRAGMA user_version = {VERSION}",
)
_QUERY = f"""
SELECT facts.id, facts.url, facts.original, -bm25(pages, {TITLE_WEIGHT}, 1.0) AS score
FROM pages JOIN facts ON facts.id = pages.rowid WHERE pages MATCH ? ORDER BY score DESC, facts.original, facts.url
"""  # noqa: S608 - numbers of our own


_SHOWN = f"""
SELECT facts.title, facts.date, facts.language, snippet(pages, 1, ?, ?, ' … ', {SNIPPET_WORDS})
FROM pages JOIN facts ON facts.id = pages.rowid WHERE pages MATCH ? AND pages.rowid = ?
"""  # noqa: S608 - likewise


class Hit(Struct, frozen=True):
    """A page that matches."""

    url: str
    title: str
    date: str  # published, modified or fetched: the first that is known
    language: str
    snippet: str  # the words found are between `**`
    score: float
    copies: list[str] = []  # other matches that repeat it or that it repeats, wholly or nearly: the first ones
    copies_found: int = 0


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
        for setting in _SETTINGS:
            db.execute(setting)
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
            self._apply([entry_of(entry) for entry in batch], feed.position_text)

    def update(
        self, feed: ReadableFeed, source: EntrySource | None = None, on_batch: Callable[[int], None] = lambda _: None
    ) -> int:
        """Read what is new in the feed, by `source` if one is given; return how many changes.

        `on_batch` is called with the number of changes read so far.
        """
        after = self.cursor()
        if after > feed.last():
            raise GossamerError(f"{self._path}: belongs to another crawl; if it is removed, it will be rebuilt")
        reached = after
        for until, entries in (source or OneProcess(feed)).batches(after):
            self._apply(entries, until)
            reached = until
            on_batch(reached - after)
        return reached - after

    def _apply(self, entries: Sequence[IndexEntry], cursor: int | str) -> None:
        with self._transaction():
            for entry in entries:
                if entry.op != "unchanged":
                    self._remove(entry.url)
                if entry.is_indexed:
                    self._add(entry)
            self._open.execute("UPDATE state SET cursor = ?", (cursor,))

    def _remove(self, url: str) -> None:
        db = self._open
        for (number,) in db.execute("SELECT id FROM facts WHERE url = ?", (url,)).fetchall():
            db.execute("DELETE FROM pages WHERE rowid = ?", (number,))
            db.execute("DELETE FROM facts WHERE id = ?", (number,))

    def _add(self, entry: IndexEntry) -> None:
        added = self._open.execute(
            "INSERT INTO facts (url, title, date, language, original) VALUES (?, ?, ?, ?, ?)",
            (entry.url, entry.title, entry.date, entry.language, entry.original),
        )
        self._open.execute("INSERT INTO pages (rowid, title, body) VALUES (?, ?, ?)", (added.lastrowid, *entry.words))

    def search(self, words: str, limit: int = 10) -> list[Hit]:
        """Return the best matches."""
        query = fts_query(words)
        groups: dict[str, tuple[int, str, float, list[str]]] = {}
        with closing(self._open.execute(_QUERY, (query,))) as rows:
            for number, url, original, score in rows:
                group = groups.get(original or url)
                if group is not None:
                    group[3].append(url)
                elif len(groups) < limit:
                    groups[original or url] = number, url, score, []
        return [self._hit(query, *group) for group in groups.values()]

    def _hit(self, query: str, number: int, url: str, score: float, copies: list[str]) -> Hit:
        title, date, language, snippet = self._open.execute(_SHOWN, (MARK, MARK, query, number)).fetchone()
        text = _readable(snippet)
        return Hit(url, title, date, language, text, round(score, 4), copies[:MAX_COPIES], len(copies))


def fts_query(words: str) -> str:
    """Return a user's query in FTS5's syntax: words and "phrases", -without, prefix*.

    Everything else is ignored, so the only invalid query is an empty one.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word in _TERM.findall(unicodedata.normalize("NFC", words.replace("\0", " "))):
        parts = _WORD.findall(spaced(phrase or word))
        if parts:
            star = "*" if word.endswith("*") else ""
            (unwanted if minus else wanted).append('"' + " ".join(parts) + '"' + star)
    if not wanted:
        raise UsageError(f'nothing to search for in {words[:80]!r}; expected a word or a "phrase"')
    return " AND ".join(wanted) if not unwanted else f"({' AND '.join(wanted)}) NOT {' NOT '.join(unwanted)}"


def _readable(snippet: str) -> str:
    return " ".join(snippet.replace(GAP, "").split())
