"""The index of all captures, sorted, whole or filtered.

While a crawl runs, its index is in several files: they are merged, and the WARC files that
are still being written are indexed as far as they are committed. Memory: one line per file.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from gossamer.archive.cdxj import INDEX_NAME, INDEXED_TYPES, PARTS_FOLDER, merge_index, record_line, sorted_lines
from gossamer.archive.reader import ArchiveReader
from gossamer.handover.where import ANYTHING, Selection
from gossamer.model.records import FetchKind, Source, UrlRecord, UrlState
from gossamer.ports import Catalog
from gossamer.reading.view import CrawlView

_OPEN_AT_ONCE = 400  # files


def index_lines(crawl: CrawlView, selection: Selection = ANYTHING) -> Iterator[bytes]:
    """Yield the lines of the index in its order, with their newlines."""
    is_filtered = selection is not ANYTHING and bool(selection.tests or selection.languages)
    for line in _merged(crawl):
        if not is_filtered or _is_wanted(line, selection, crawl.ledger):
            yield line


def _merged(crawl: CrawlView) -> Iterator[bytes]:
    """Yield all lines in order, equal ones once."""
    # A file that is closed meanwhile is indexed before it is renamed, and an index is removed once the whole has it:
    # in this order (files that are being written, indexes of files, the whole) nothing is missed.
    unfinished = _unfinished(crawl)
    with ExitStack() as stack:
        paths = [path for path in _index_files(crawl) if path.exists()]
        if len(paths) > _OPEN_AT_ONCE:
            whole = Path(stack.enter_context(TemporaryDirectory(prefix="gossamer-"))) / INDEX_NAME
            merge_index(paths, whole)
            paths = [whole]
        files: list[Iterable[bytes]] = []
        for path in paths:
            with suppress(FileNotFoundError):  # merged into the whole by a crawl that has just ended
                files.append(stack.enter_context(path.open("rb")))
        previous = b""
        for line in heapq.merge(*files, *unfinished):
            if line != previous:
                yield line
            previous = line


def _index_files(crawl: CrawlView) -> Iterator[Path]:
    for folder in crawl.folders.found.values():
        yield from sorted((folder.index / PARTS_FOLDER).glob("*.cdxj"))
        yield folder.index / INDEX_NAME


def _unfinished(crawl: CrawlView) -> list[list[bytes]]:
    """Return the sorted lines of each file that is being written, as far as it is committed."""
    ends = crawl.ledger.archive_ends()
    found = []
    folders = crawl.folders.found.values()
    for path in sorted(path for folder in folders for path in folder.archive.glob("*.warc.gz.open")):
        name = path.name.removesuffix(".open")
        with suppress(FileNotFoundError):
            records = (record for record in ArchiveReader(path) if record.offset < ends.get(name, 0))
            lines = sorted_lines(record_line(record, name) for record in records if record.type in INDEXED_TYPES)
            found.append([line.encode() + b"\n" for line in lines])
    return found


def _is_wanted(line: bytes, selection: Selection, ledger: Catalog) -> bool:
    _, stamp, text = line.split(b" ", 2)
    row = _row(json.loads(text), stamp.decode(), ledger)
    return selection.wants(row) and selection.has_language(row.language)


def _row(capture: dict[str, Any], stamp: str, ledger: Catalog) -> UrlRecord:
    """Return the row of the captured URL as it was at the capture, as far as the line shows."""
    known = ledger.look_up(ledger.url_id(capture["url"]))
    row = known if known is not None else _unknown(capture["url"])
    mime = capture.get("mime", "")
    return replace(
        row,
        status=int(capture["status"]),
        content_type=row.content_type if mime == "warc/revisit" else mime,
        fetched_at=datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp(),
    )


def _unknown(url: str) -> UrlRecord:
    """Return a row for what is not in the catalog: robots.txt."""
    return UrlRecord(
        url=url,
        state=UrlState.DONE,
        depth=0,
        source=Source.LINK,
        kind=FetchKind.ROBOTS,
        parent=b"",
        priority=0,
        seq=0,
        hops=0,
        attempt=0,
        not_before=0.0,
        found_at=0.0,
    )
