"""All captures in some archive files, as far as these go, in the order of the index.

The crawl's own index has nearly all of them. Files that it does not know (the node that wrote them has lost its folder,
and they are in a store) are read, one at a time, and their lines merged in.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from gossamer.archive.cdxj import index_lines_of, merge_index, write_index
from gossamer.handover.search.index import index_lines
from gossamer.reading.archive_access import CrawlArchive
from gossamer.reading.view import CrawlView


class _Capture(Struct, frozen=True):
    """Where a line of the index says that its record is."""

    filename: str
    offset: str
    length: str


_decode = msgspec.json.Decoder(_Capture).decode


@contextmanager
def whole_index(crawl: CrawlView, archive: CrawlArchive, ends: Mapping[str, int]) -> Iterator[Iterator[bytes]]:
    """Return the lines of all captures that lie before the ends of the archive files."""
    known = {_capture(line).filename for line in index_lines(crawl)}
    with ExitStack() as stack:
        sources: list[Iterable[bytes]] = [index_lines(crawl)]
        if unknown := sorted(ends.keys() - known):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="gossamer-")))
            path = _read_index(archive, {name: ends[name] for name in unknown}, folder)
            sources.append(stack.enter_context(path.open("rb")))
        yield _captures_within(heapq.merge(*sources), ends)


def _read_index(archive: CrawlArchive, ends: Mapping[str, int], folder: Path) -> Path:
    """Write the index of archive files as far as their ends; return its path."""
    paths = []
    for name, end in ends.items():
        records = takewhile(lambda record: record.offset < end, archive.records(name))  # noqa: B023 - read at once
        paths.append(folder / f"{name}.cdxj")
        write_index(paths[-1], index_lines_of(records, name))
    whole = folder / "whole"
    merge_index(paths, whole)
    return whole


def _captures_within(lines: Iterable[bytes], ends: Mapping[str, int]) -> Iterator[bytes]:
    """Yield the lines whose records lie before the ends of their files, equal ones once."""
    previous = b""
    for line in lines:
        capture = _capture(line)
        if line != previous and int(capture.offset) + int(capture.length) <= ends.get(capture.filename, 0):
            yield line
        previous = line


def _capture(line: bytes) -> _Capture:
    return _decode(line.split(b" ", 2)[2])
