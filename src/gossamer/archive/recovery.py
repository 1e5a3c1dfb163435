"""What did a process that died leave in its archive files, and how are they closed?

The archive is the write-ahead log: whole tasks beyond the committed length are pages to be
finished. Only what is torn behind the last of them is cut off. A task is whole if its response
(or revisit) record is; a request without one is part of a torn task. What is cut off is not thrown away: it goes to
the folder `aside/`. After `recover` a file ends with a whole task; `close_file` gives it its index and its final
name. Both may be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.archive.cdxj import INDEXED_TYPES, final_name, index_file, part_path, write_index
from gossamer.archive.objects import MergedFiles
from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.archive.writer import sync_folder
from gossamer.model.errors import CorruptFolderError

ASIDE_FOLDER = "aside"


class RecoveredTail(Struct, frozen=True):
    """The whole records beyond the committed length."""

    path: Path
    start: int
    end: int  # length of the file now
    cut_bytes: int  # what was torn
    problem: str  # why it was cut; empty if it was not

    def records(self) -> Iterator[ArchivedRecord]:
        """Yield the records, warcinfo and requests too, one in memory at a time."""
        return iter(ArchiveReader(self.path, self.start))

    def tasks(self) -> Iterator[tuple[ArchivedRecord | None, ArchivedRecord]]:
        """Yield request (None if there is none) and response or revisit of every task."""
        request = None
        for record in self.records():
            if record.type == "request":
                request = record
            elif record.type in INDEXED_TYPES:
                yield request, record
                request = None


def recover(path: Path, committed_length: int) -> RecoveredTail:
    """Cut the file behind its last whole task and return what lies beyond `committed_length`."""
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
        _set_aside(path, end)
    problem = reader.problem or ("request without a response" if end < size else "")
    return RecoveredTail(path=path, start=committed_length, end=end, cut_bytes=size - end, problem=problem)


def cut_back(path: Path, committed_length: int) -> int:
    """Set everything beyond a length aside, whole or torn; return how many bytes that were."""
    size = path.stat().st_size
    if size < committed_length:
        raise CorruptFolderError(
            f"{path}: {size} bytes, but {committed_length} were committed; restore the file or remove the folder"
        )
    if size > committed_length:
        _set_aside(path, committed_length)
    return size - committed_length


def _set_aside(path: Path, start: int) -> None:
    """Move the end of an archive file to the folder beside the archive."""
    aside = path.parent.parent / ASIDE_FOLDER
    aside.mkdir(exist_ok=True)
    kept = aside / f"{final_name(path)}-{start}"
    import shutil

    with path.open("r+b") as file:
        file.seek(start)
        with kept.open("wb") as out:
            shutil.copyfileobj(file, out)
            out.flush()
            os.fsync(out.fileno())
        sync_folder(aside)
        file.truncate(start)
        os.fsync(file.fileno())


def seal(open_path: Path, index_folder: Path) -> Path | None:
    """Index a file that nobody writes any more and give it its final name; remove it if it is empty."""
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


def unfinished_files(archive: Path, committed: dict[str, int]) -> list[tuple[Path, int]]:
    """Return the files that are open or longer than what was committed, with the committed length."""
    found = []
    for path in sorted(archive.glob("*.warc.gz*")):
        name = path.name.removesuffix(".open")
        end = committed.get(name, 0)
        with suppress(FileNotFoundError):  # it was committed to its end, and has gone to a store
            if path.suffix == ".open" or name not in committed or path.stat().st_size > end:
                found.append((path, end))
    return found


def mend_parts(archive: Path, index_folder: Path) -> None:
    """Rebuild the indexes that name more than their archive files hold: a power cut has shortened those."""
    merged = MergedFiles(archive).all()
    for part in sorted(index_folder.glob("parts/*.cdxj")):
        path = archive / part.name.removesuffix(".cdxj")
        if path.name in merged:
            continue  # it is in a store, and may not be here any more
        size = path.stat().st_size if path.exists() else 0
        if _indexed_end(part) > size:
            lines = index_file(path) if size else []
            if lines:
                write_index(part, lines)
            else:
                part.unlink()
                path.unlink(missing_ok=True)


def _indexed_end(part: Path) -> int:
    """Return the end of the last capture that an index names."""
    end = 0
    with part.open("rb") as lines:
        for line in lines:
            capture = msgspec.json.decode(line.split(b" ", 2)[2])
            end = max(end, int(capture["offset"]) + int(capture["length"]))
    return end


def close_file(path: Path, index_folder: Path) -> int:
    """Give a file that nobody writes any more its index and its final name; return its length.

    A file without a single capture is removed, with its index.
    """
    lines = index_file(path)
    if not lines:
        path.unlink()
        part_path(index_folder, path.name.removesuffix(".open")).unlink(missing_ok=True)
        return 0
    length = path.stat().st_size
    if path.suffix == ".open":
        seal(path, index_folder)
    else:
        write_index(part_path(index_folder, path.name), lines)
    return length
