"""What is new, changed, repeated or gone since a reader's last visit?

The ledger has a numbered list of finished visits; an entry becomes visible with the commit
that finishes its page, also after a crash. A cursor is such a number: a reader continues
after the last entry that it has processed. Delivery is at least once, in order, without gaps.

An entry records what happened; its document is the page as it is when the entry is read.
If the page has changed again since, the later entry has the same document; if it is gone,
the earlier entry is omitted, since the later one reports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from gossamer.handover.export.documents import DocumentMaker, PageDocument, iso_time
from gossamer.handover.export.stored import ExportedPages, is_page
from gossamer.model.errors import UsageError
from gossamer.model.records import Change, ChangeKind, UrlRecord
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import OpenCrawl

_BATCH = 500
_encode = msgspec.json.Encoder().encode
OPS = {
    ChangeKind.UPSERT: "upsert",
    ChangeKind.UNCHANGED: "unchanged",
    ChangeKind.GONE: "gone",
    ChangeKind.DUPLICATE: "duplicate",
}


class FeedEntry(Struct, kw_only=True):
    """One change."""

    cursor: int | str
    op: str  # upsert, unchanged, gone, duplicate
    url: str
    at: str
    duplicate_of: str = ""  # of a duplicate: the page that it repeats
    similarity: float = 0.0  # to that page; 1 if the content is the same
    document: PageDocument | None = None  # of an upsert, and of a duplicate if it was asked for

    def to_json(self) -> bytes:
        """Return it as one JSON object on one line."""
        line = _Line(cursor=self.cursor, op=self.op, url=self.url, at=self.at)
        if self.op == OPS[ChangeKind.DUPLICATE]:
            line.duplicate_of = self.duplicate_of
            line.similarity = self.similarity
        if self.document is not None:
            line.document = Raw(self.document.to_json())
        return _encode(line)


class _Line(Struct, kw_only=True):
    cursor: int | str
    op: str
    url: str
    at: str
    duplicate_of: str | UnsetType = UNSET
    similarity: float | UnsetType = UNSET
    document: Raw | UnsetType = UNSET


class EntryMaker:
    """Makes entries of changes."""

    def __init__(self, crawl: OpenCrawl, *, has_copies: bool = False, for_search: bool = False) -> None:
        self._crawl = crawl
        self._has_copies = has_copies  # whether duplicates have documents, too
        self._pages = ExportedPages(crawl)
        self._maker = DocumentMaker(crawl, self._pages, for_search=for_search)

    def is_elsewhere(self, change: Change) -> bool:
        """Return whether the document of a change would need bytes that cannot be read here."""
        row = self._crawl.ledger.look_up(change.url_id) if self._has_document(change) else None
        return row is not None and is_page(row) and not self._pages.is_reachable(row)

    def _has_document(self, change: Change) -> bool:
        return change.kind is ChangeKind.UPSERT or (self._has_copies and change.kind is ChangeKind.DUPLICATE)

    def make(self, change: Change, cursor: int | str) -> FeedEntry | None:
        """Return the entry of a change; None if a later one reports what has become of its page."""
        row = self._crawl.ledger.look_up(change.url_id)
        if row is None:
            return None
        entry = FeedEntry(cursor=cursor, op=OPS[change.kind], url=row.url, at=iso_time(row.fetched_at))
        if change.kind is ChangeKind.DUPLICATE:
            self._add_original(entry, row)
        if self._has_document(change):
            page = self._pages.at(change.url_id, row) if is_page(row) else None
            if page is None:
                return None
            entry.document = self._maker.make(page)
        return entry

    def _add_original(self, entry: FeedEntry, row: UrlRecord) -> None:
        is_same = bool(row.duplicate_of)
        entry.duplicate_of = self._maker.url_of(row.duplicate_of or row.near_duplicate_of)
        entry.similarity = 1.0 if is_same else round(row.similarity, 4)


class FolderFeed:
    """The changes of a crawl in a folder that is open for reading."""

    def __init__(self, crawl: CrawlReader, *, has_copies: bool = False, for_search: bool = False) -> None:
        self._crawl = crawl
        self._entries = EntryMaker(crawl, has_copies=has_copies or for_search, for_search=for_search)
        self.position = 0  # how far was read, including the entries that were omitted
        self.cursor_text = ""  # the cursor of the reader, as it is stored; empty: it has got nothing

    def deliver(self, entry: FeedEntry) -> None:
        """Record that the reader has an entry."""
        self.cursor_text = str(entry.cursor)

    def last(self) -> int:
        """Return the cursor of the newest entry; 0 if there is none."""
        return self._crawl.ledger.last_change()

    def read(self, after: int = 0, until: int | None = None) -> Iterator[FeedEntry]:
        """Yield the committed entries after a cursor, up to another one if it is given."""
        self.position = after
        while changes := self._crawl.ledger.changes(self.position, _BATCH):
            for change in changes:
                if until is not None and change.seq > until:
                    return
                entry = self._entries.make(change, change.seq)
                self.position = change.seq
                if entry is not None:
                    yield entry

    def follow(self, after: int, wait: Callable[[], Any]) -> Iterator[FeedEntry]:
        """Yield entries as long as the crawl runs; `wait` is called whenever there is nothing new."""
        while True:
            # Checked before reading: what a crawl committed before it released the folder is read below.
            is_running = self._crawl.folder.owner() is not None
            yield from self.read(after)
            after = self.position
            if not is_running:
                return
            wait()


class CursorFile:
    """A cursor that outlives its reader: a number (of a cluster: one per shard) in a file, replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> int:
        """Return the cursor; 0 if there is no file yet."""
        return cursor_from(self.text(), str(self._path))

    def text(self) -> str:
        """Return what the file contains; 0 if there is no file yet."""
        try:
            return self._path.read_text("ascii", "replace").strip()
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                raise UsageError(f"{self._path}: no such folder: {self._path.parent}") from None
            return "0"
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be read: {error.strerror or error}") from error

    def save(self, cursor: int | str) -> None:
        """Store the cursor durably."""
        unfinished = self._path.with_name(f".{self._path.name}.tmp")
        try:
            with unfinished.open("w", encoding="ascii") as file:
                file.write(f"{cursor}\n")
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path)
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror or error}") from error


def cursor_from(text: str, where: str) -> int:
    """Return the cursor in a text."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"{where}: {text[:40]!r} is not a cursor; expected the number of the last line, or 0")
    return int(text)


def check_cursor(cursor: int, feed: FolderFeed) -> None:
    """Raise if a cursor cannot belong to this crawl."""
    if cursor > feed.last():
        raise UsageError(f"cursor {cursor}: beyond the last change, {feed.last()}; does it belong to another crawl?")
