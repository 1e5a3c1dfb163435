"""Which pages does a crawl have, and where are their bytes?

Pages come in archive order: file by file, each read once from its beginning, so a disk reads
sequentially whatever the order of the catalog. A page occurs once, by the record that its row
in the catalog names; uncommitted pages are not included. Memory: one record.

A record without a body (a revisit, a 304) refers to an earlier one: that is found by the row
of the URL that it refers to, or else by the index.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from msgspec import Struct

from gossamer.archive.cdxj import INDEX_NAME, INDEXED_TYPES, PARTS_FOLDER
from gossamer.archive.reader import ArchivedRecord, exchange_of
from gossamer.archive.surt import surt
from gossamer.fetch.body import decode
from gossamer.model.errors import UsageError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import ArchiveSpan, FetchKind, Outcome, Source, UrlId, UrlRecord
from gossamer.reading.archive_access import CrawlArchive
from gossamer.reading.view import OpenCrawl
from gossamer.settings.stores import has_archive

PAGE_OUTCOMES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})
_REVISIT_MIME = "warc/revisit"
_SLICE = 20_000  # positions in memory at a time, about 3 MB


class ExportedPage(Struct):
    """A row of the catalog and the archive record of its last visit."""

    url_id: UrlId
    row: UrlRecord
    span: ArchiveSpan
    record: ArchivedRecord


def is_page(row: UrlRecord) -> bool:
    """Return whether a row is of a page that was fetched and stored."""
    return row.outcome in PAGE_OUTCOMES and is_answer(row)


def is_answer(row: UrlRecord) -> bool:
    """Return whether a row is of a request for a page, whatever its result; sitemaps and our own probes are not."""
    return row.kind is FetchKind.PAGE and row.source is not Source.PROBE


class ExportedPages:
    """The pages of a crawl that is open for reading."""

    def __init__(self, crawl: OpenCrawl, max_bytes: int = 0) -> None:
        if not has_archive(crawl.settings.store):
            raise UsageError(f"{crawl.name}: has no WARC archive (--store {', '.join(crawl.settings.store)})")
        self._crawl = crawl
        self._files = CrawlArchive(crawl.folders, crawl.settings.store)
        self._max_bytes = max_bytes or crawl.settings.max_bytes  # of a decoded body

    def in_archive_order(self, is_wanted: Callable[[UrlRecord], bool]) -> Iterator[ExportedPage]:
        """Yield the wanted pages, oldest file first."""
        for name, end in sorted(self._crawl.ledger.archive_ends().items()):
            for record in self._records(name, end):
                key = self._crawl.ledger.url_id(record.target)
                row = self._crawl.ledger.look_up(key)
                if row is None or row.archived is None or not is_wanted(row):
                    continue
                if row.archived.offset == record.offset and row.archived.file == name:
                    yield ExportedPage(key, row, row.archived, record)

    def of_hosts(self, names: Iterable[str], is_wanted: Callable[[UrlRecord], bool]) -> Iterator[ExportedPage]:
        """Yield the wanted pages of some hosts, in archive order by slices: nothing else is read."""
        rows = (item for name in names for item in self._crawl.ledger.urls(self._crawl.ledger.host_id(name)))
        places = ((row.archived.file, row.archived.offset, key) for key, row in rows if row.archived and is_wanted(row))
        while part := sorted(islice(places, _SLICE)):
            for _, _, key in part:
                row = self._crawl.ledger.look_up(key)
                page = self.at(key, row) if row is not None and is_wanted(row) else None
                if page is not None:
                    yield page

    def at(self, key: UrlId, row: UrlRecord) -> ExportedPage | None:
        """Return the page of one row; None if it has no record."""
        record = self._files.read(row.archived) if row.archived is not None else None
        return None if record is None or row.archived is None else ExportedPage(key, row, row.archived, record)

    def before(self, key: UrlId, row: UrlRecord, moment: float) -> ExportedPage | None:
        """Return the last answer of a URL before a moment; None if the index has none that can be read.

        A 304 that does not say which body it confirms is passed over: the answer before it has that body.
        """
        limit = datetime.fromtimestamp(moment, UTC).strftime("%Y%m%d%H%M%S")
        for stamp, line in sorted(self._dated(row.url), key=itemgetter(0), reverse=True):
            span = ArchiveSpan(line["filename"], int(line["offset"]), int(line["length"]))
            record = self._files.read(span) if stamp <= limit else None
            if record is None or record.date >= moment:
                continue
            if record.payload_digest or record.block[9:12] != b"304":
                return ExportedPage(key, row, span, record)
        return None

    def is_indexed(self, url: str) -> bool:
        """Return whether the whole index is here and has a capture of a URL; those of a run may come when it ends."""
        return not self._crawl.folders.elsewhere and bool(self._dated(url))

    def _dated(self, url: str) -> list[tuple[str, dict[str, Any]]]:
        folders = self._crawl.folders.found.values()
        return [capture for folder in folders for capture in dated_captures(folder.index, url)]

    def is_reachable(self, row: UrlRecord) -> bool:
        """Return whether the bytes of a row, if it has any, are where they can be read."""
        return row.archived is None or self._files.is_reachable(row.archived.file)

    def elsewhere(self, is_wanted: Callable[[UrlRecord], bool]) -> int:
        """Return how many of the wanted pages have their bytes where they cannot be read."""
        ledger = self._crawl.ledger
        if all(map(self._files.is_reachable, ledger.archive_ends())):
            return 0
        return sum(is_wanted(row) for _, row in ledger.urls() if not self.is_reachable(row))

    def exchange(self, page: ExportedPage) -> Exchange:
        """Return what was received, decoded; for a revisit with the body that it refers to."""
        original = self._original(page.record, page.row.url)
        exchange = exchange_of(page.record, None, original)
        if original is not None and exchange.status == 304:
            earlier = exchange_of(original)
            exchange.headers = earlier.headers
        decoded = decode(exchange.body, exchange.header("content-encoding"), self._max_bytes)
        exchange.content = decoded.content
        exchange.is_decoded = decoded.is_decoded
        return exchange

    def _records(self, name: str, end: int) -> Iterator[ArchivedRecord]:
        """Yield the answers in a file, as far as it is committed."""
        with suppress(FileNotFoundError):
            for record in self._files.records(name):
                if record.offset >= end:
                    return
                if record.type in INDEXED_TYPES:
                    yield record

    # -- what a record without a body refers to ---------------------------------------------------

    def _original(self, record: ArchivedRecord, url: str) -> ArchivedRecord | None:
        if record.type == "revisit":
            target = record.fields.get("warc-refers-to-target-uri", url)
            digest = record.payload_digest
        elif record.block[9:12] == b"304":
            target = url
            digest = b""
        else:
            return None
        row = self._crawl.ledger.look_up(self._crawl.ledger.url_id(target))
        known = self._files.read(row.archived) if row is not None and row.archived is not None else None
        if known is not None and _has_body(known) and (not digest or known.payload_digest == digest):
            return known
        return self._indexed(target, digest)

    def _indexed(self, url: str, digest: bytes) -> ArchivedRecord | None:
        """Return the last full answer of a URL in the index, with a certain payload if one is given."""
        folders = self._crawl.folders.found.values()
        for line in reversed([line for folder in folders for line in captures(folder.index, url)]):
            if line.get("mime") == _REVISIT_MIME or line.get("status") == "304":
                continue
            found = self._files.read(ArchiveSpan(line["filename"], int(line["offset"]), int(line["length"])))
            if found is not None and (not digest or found.payload_digest == digest):
                return found
        return None


def _has_body(record: ArchivedRecord) -> bool:
    return record.type == "response" and record.block[9:12] != b"304"


def captures(index_folder: Path, url: str) -> list[dict[str, Any]]:
    """Return the index entries of a URL, oldest first. Bisects the files: 40 µs each."""
    return [line for _, line in dated_captures(index_folder, url)]


def dated_captures(index_folder: Path, url: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the index entries of a URL with their times (YYYYMMDDhhmmss), oldest first."""
    prefix = f"{surt(url)} ".encode()
    found: set[bytes] = set()
    for path in [index_folder / INDEX_NAME, *sorted((index_folder / PARTS_FOLDER).glob("*.cdxj"))]:
        found.update(_lines_with(path, prefix))
    parts = [line.split(b" ", 2) for line in sorted(found)]
    dated = [(stamp.decode(), json.loads(fields)) for _, stamp, fields in parts]
    return [(stamp, fields) for stamp, fields in dated if fields["url"] == url]


def _lines_with(path: Path, prefix: bytes) -> list[bytes]:
    """Return the lines of a sorted file that begin with a prefix."""
    try:
        if not path.stat().st_size:
            return []
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            start = _first_at_least(text, prefix)
            lines = []
            while start < len(text):
                end = text.find(b"\n", start)
                line = text[start : end if end >= 0 else len(text)]
                if not line.startswith(prefix):
                    break
                lines.append(line)
                start += len(line) + 1
            return lines
    except FileNotFoundError:  # merged into the whole by a crawl that has just ended
        return []


def _first_at_least(text: mmap.mmap, key: bytes) -> int:
    """Return where the first line begins that is not less than a key."""
    low = 0
    high = len(text)
    while low < high:
        middle = (low + high) // 2
        start = text.rfind(b"\n", low, middle) + 1 or low
        if text[start : start + len(key)] < key:
            end = text.find(b"\n", middle)
            low = end + 1 if end >= 0 else len(text)
        else:
            high = start
    return low
