"""What did a process that died leave in its archive file, and how is the file closed?

The archive is the write-ahead log: whole orders beyond the committed length are pages to be
finished, whatever comes after them is cut off. An order is whole when its response (or
revisit) record is; a request without one is part of a torn order. After `recover` the file
ends with a whole order; `seal` gives it its index and its final name. Both may be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gossamer.archive.cdxj import INDEXED_TYPES, final_name, index_file, part_path, write_index
from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.archive.writer import sync_folder
from gossamer.errors import CorruptFolderError


class RecoveredTail(Struct, frozen=True):
    """The whole records beyond the committed length."""

    path: Path
    start: int
    end: int  # length of the file now
    cut_bytes: int  # what was torn
    problem: str  # why it was cut, empty where it was not

    def records(self) -> Iterator[ArchivedRecord]:
        """Yield the records, warcinfo and requests too, one in memory at a time."""
        return iter(ArchiveReader(self.path, self.start))

    def orders(self) -> Iterator[tuple[ArchivedRecord | None, ArchivedRecord]]:
        """Yield request (None where there is none) and response or revisit of every order."""
        request = None
        for record in self.records():
            if record.type == "request":
                request = record
            elif record.type in INDEXED_TYPES:
                yield request, record
                request = None


def recover(path: Path, committed_length: int) -> RecoveredTail:
    """Cut the file behind its last whole order and return what lies beyond `committed_length`."""
    size = path.stat().st_size
    if size < committed_length:
        raise CorruptFolderError(
            f"{path}: {size} bytes, but {committed_length} were committed; restore the file or remove the folder"
        )
    reader = ArchiveReader(path, committed_length)
    end = committed_length
    for record in reader:
        if record.type in INDEXED_TYPES:
            end = reader.end
    if end < size:
        with path.open("r+b") as file:
            file.truncate(end)
            os.fsync(file.fileno())
    problem = reader.problem or ("request without a response" if end < size else "")
    return RecoveredTail(path=path, start=committed_length, end=end, cut_bytes=size - end, problem=problem)


def seal(open_path: Path, index_folder: Path) -> Path | None:
    """Index a file that nobody writes any more and give it its final name; remove it if it holds nothing."""
    if open_path.stat().st_size == 0:
        open_path.unlink()
        return None
    name = final_name(open_path)
    fd = os.open(open_path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    write_index(part_path(index_folder, name), index_file(open_path))
    sealed = open_path.with_name(name)
    open_path.rename(sealed)
    sync_folder(sealed.parent)
    return sealed
