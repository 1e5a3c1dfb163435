"""Links by their targets, whatever their number: they wait in a temporary SQLite file, which is gone when it is closed.

A target is in it once, with what became of it; its links are the pages on which it was found, with their anchor texts.
Memory: the cache of SQLite, 8 MB.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

from gossamer.handover.findings.links import GraphLink
from gossamer.model.errors import DiskFullError
from gossamer.model.records import UrlId
from gossamer.reading.why.fates import Fate

_CACHE_KIB = 8000
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE targets (
    number INTEGER PRIMARY KEY, id BLOB UNIQUE, name TEXT, url TEXT,
    outcome TEXT, status INTEGER, error TEXT, chain TEXT, is_loop INTEGER, is_checked INTEGER
);
CREATE TABLE links (target INTEGER, page TEXT, text TEXT, rel TEXT, nofollow INTEGER, element TEXT);
CREATE VIEW found AS SELECT links.rowid AS place, * FROM links JOIN targets ON number = target;
"""
_IDS = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE ids (id BLOB PRIMARY KEY, number INTEGER) WITHOUT ROWID;
BEGIN;
"""
_COLUMNS = "url, page, text, rel, nofollow, outcome, status, error, chain, is_loop, element, is_checked"
_ALL_LINKS = f"SELECT {_COLUMNS} FROM found ORDER BY is_checked DESC, name, url, page, place"  # noqa: S608
_LINKS_OF = f"SELECT {_COLUMNS} FROM found WHERE name = ? ORDER BY url, page, place"  # noqa: S608 - constants


class LinkRow(Struct, frozen=True, rename={"from_url": "from", "is_loop": "loop", "is_checked": "checked"}):
    """A link with what became of its target."""

    to: str
    from_url: str
    text: str
    rel: str
    nofollow: bool
    outcome: str
    status: int
    error: str
    chain: list[str]
    is_loop: bool
    element: str = "a"  # that refers to it: a for all links, else img, script, link, css, …
    is_checked: bool = True


class LinkGroup(Struct, frozen=True, gc=False):
    """The links to one target, or to the targets in one domain."""

    name: str
    targets: int
    links: int
    pages: int


class LinkCounts(Struct, frozen=True, gc=False):
    """How many links were found."""

    targets: int
    links: int
    pages: int  # that have them
    not_checked: int = 0  # targets that could not be checked; not among the others


class OutcomeCount(Struct, frozen=True, gc=False):
    """How many targets and links ended in one way."""

    outcome: str
    status: int
    targets: int
    links: int
    is_checked: bool = True


class LinkTable:
    """Links by target. Use with `with`."""

    def __enter__(self) -> LinkTable:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._db.executescript(_TABLES)
        self._db.execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def add_target(self, key: UrlId, name: str, url: str, fate: Fate) -> int:
        """Return the number of a target; the first of equal ids stays."""
        chain = msgspec.json.encode(fate.chain).decode()
        row = (key, name, url, fate.outcome, fate.status, fate.error, chain, fate.is_loop, fate.is_checked)
        with enough_room():
            self._db.execute("INSERT OR IGNORE INTO targets VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            return int(self._db.execute("SELECT number FROM targets WHERE id = ?", (key,)).fetchone()[0])

    def add(self, target: int, link: GraphLink, element: str = "a") -> None:
        """Add a link to a target."""
        with enough_room():
            row = (target, link.from_url, link.text, link.rel, link.nofollow, element)
            self._db.execute("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?)", row)

    def index(self) -> None:
        """Make what was added ready to be read."""
        with enough_room():
            self._db.execute("CREATE INDEX by_target ON links (target)")
            self._db.execute("CREATE INDEX by_name ON targets (name)")

    def counts(self) -> LinkCounts:
        """Return how many links there are."""
        row = next(
            self._rows("SELECT count(DISTINCT target), count(*), count(DISTINCT page) FROM found WHERE is_checked")
        )
        left = next(self._rows("SELECT count(DISTINCT target) FROM found WHERE NOT is_checked"))
        return LinkCounts(*row, *left)

    def outcomes(self) -> list[OutcomeCount]:
        """Return how many targets and links ended in which way, the most frequent first."""
        rows = self._rows(
            "SELECT outcome, status, count(DISTINCT target), count(*) AS links, is_checked FROM found"
            " GROUP BY is_checked, outcome, status ORDER BY is_checked DESC, links DESC, outcome, status"
        )
        return [OutcomeCount(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]

    def groups(self) -> Iterator[LinkGroup]:
        """Yield the groups of links, the largest first."""
        rows = self._rows(
            "SELECT name, count(DISTINCT target), count(*) AS links, count(DISTINCT page)"
            " FROM found GROUP BY name ORDER BY max(is_checked) DESC, links DESC, name"
        )
        return (LinkGroup(*row) for row in rows)

    def links(self, name: str | None = None) -> Iterator[LinkRow]:
        """Yield the links of one group, or all of them by group and target."""
        rows = self._rows(_ALL_LINKS) if name is None else self._rows(_LINKS_OF, name)
        for url, page, text, rel, nofollow, outcome, status, error, chain, is_loop, element, is_checked in rows:
            hops = msgspec.json.decode(chain, type=list[str])
            what = (outcome, status, error, hops, bool(is_loop), element, bool(is_checked))
            yield LinkRow(url, page, text, rel, bool(nofollow), *what)

    def first_page(self, key: UrlId) -> str:
        """Return the first page that links to a target; empty if none does."""
        question = "SELECT page FROM links JOIN targets ON number = target WHERE id = ? ORDER BY links.rowid LIMIT 1"
        row = self._db.execute(question, (key,)).fetchone()
        return str(row[0]) if row is not None else ""

    def _rows(self, question: str, *values: str) -> Iterator[tuple[Any, ...]]:
        with enough_room():
            yield from self._db.execute(question, values)


class SeenIds:
    """A set of ids on disk, each with a number. Use with `with`."""

    def __enter__(self) -> SeenIds:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._db.executescript(_IDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def put(self, key: UrlId, number: int = 0) -> None:
        """Add an id with a number, or change its number."""
        with enough_room():
            self._db.execute("INSERT OR REPLACE INTO ids VALUES (?, ?)", (key, number))

    def update(self, keys: Iterable[UrlId]) -> None:
        """Add ids."""
        for key in keys:
            self.put(key)

    def count(self, key: UrlId) -> None:
        """Add 1 to the number of an id; a new one has 1."""
        with enough_room():
            self._db.execute("INSERT INTO ids VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET number = number + 1", (key,))

    def number(self, key: UrlId) -> int:
        """Return the number of an id; 0 if it was not added."""
        row = self._db.execute("SELECT number FROM ids WHERE id = ?", (key,)).fetchone()
        return int(row[0]) if row is not None else 0

    def __contains__(self, key: UrlId) -> bool:
        return self._db.execute("SELECT 1 FROM ids WHERE id = ?", (key,)).fetchone() is not None

    def items(self) -> Iterator[tuple[UrlId, int]]:
        """Yield all ids with their numbers, in order."""
        with enough_room():
            yield from self._db.execute("SELECT id, number FROM ids ORDER BY id")


@contextmanager
def enough_room() -> Iterator[None]:
    """Turn a full disk into an error that says where there is no room."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise
        raise DiskFullError(f"the folder for temporary files: {error}; TMPDIR names another one") from error
