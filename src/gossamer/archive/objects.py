"""How the archive is laid out in an object store, and which of its files are there.

    segments/<file>/<start>-<end>.<run>-<commit>   bytes of an archive file that one commit added
    archive/<file>                                 a whole archive file, merged from its segments
    index/<file>.cdxj                              its index

`archive/objects.jsonl` in the crawl folder lists the merged files with their sizes and checksums, a line each; a line
is durable before the segments and the local file are removed. Reading tries the local file, then the merged object,
then the segments.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec
from msgspec import Struct

from gossamer.core.ledger.archive_names import checked_ends
from gossamer.model.errors import CorruptFolderError

if TYPE_CHECKING:
    from gossamer.ports.object_store import ObjectStore

LIST_NAME = "objects.jsonl"
LABEL_NAME = "label"
_BUFFER_BYTES = 1 << 18
_SEGMENT = r"segments/(?P<file>[^/]+)/(?P<start>\d+)-(?P<end>\d+)\.[^/]+"


class MergedFile(Struct, frozen=True):
    """A whole archive file in the store."""

    name: str
    size: int
    sha256: str
    tag: str


class Segment(Struct, frozen=True, order=True):
    """Bytes of an archive file in the store."""

    start: int
    end: int
    key: str


def archive_key(file: str) -> str:
    """Return the key of a merged archive file."""
    return f"archive/{file}"


def index_key(file: str) -> str:
    """Return the key of the index of an archive file."""
    return f"index/{file}.cdxj"


def segment_key(file: str, start: int, end: int, commit: str) -> str:
    """Return the key of a segment; keys sort as positions do. `commit` names run and number."""
    return f"{segments_of(file)}{start:012d}-{end:012d}.{commit}"


def segments_of(file: str) -> str:
    """Return how the keys of a file's segments begin."""
    return f"segments/{file}/"


def parse_segment(key: str) -> tuple[str, Segment] | None:
    """Return the archive file of a segment, and which bytes it has; None if the key is not that of a segment."""
    found = re.fullmatch(_SEGMENT, key)
    return None if found is None else (found["file"], Segment(int(found["start"]), int(found["end"]), key))


def read_label(archive: Path) -> str:
    """Return the label of a crawl folder's files in the store; empty if it has none yet.

    It is part of their names, so that crawls and nodes never write to each other's objects below one prefix.
    """
    path = archive / LABEL_NAME
    return path.read_text("utf-8").strip() if path.is_file() else ""


def write_label(archive: Path, label: str) -> None:
    """Store the label of a crawl folder, if it has none yet."""
    if not read_label(archive):
        unfinished = archive / f".{LABEL_NAME}.tmp"
        unfinished.write_text(f"{label}\n", "utf-8")
        unfinished.replace(archive / LABEL_NAME)


class MergedFiles:
    """The list of merged files of a crawl folder. Read once, when it is first needed."""

    def __init__(self, archive: Path) -> None:
        self._path = archive / LIST_NAME
        self._known: dict[str, MergedFile] | None = None

    def all(self) -> dict[str, MergedFile]:
        """Return the merged files by name. A line that a dead process has not finished does not count."""
        if self._known is None:
            self._known = {}
            lines = self._path.read_bytes().split(b"\n") if self._path.is_file() else []
            for line in lines[:-1]:
                try:
                    merged = msgspec.json.decode(line, type=MergedFile)
                except (msgspec.MsgspecError, ValueError) as error:
                    raise CorruptFolderError(f"{self._path}: a line is none of ours: {error}") from error
                self._known[merged.name] = merged
            checked_ends({name: merged.size for name, merged in self._known.items()}, str(self._path))
        return self._known

    def add(self, merged: MergedFile) -> None:
        """Add a file; durable on return."""
        known = self.all()
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(fd).st_size
            whole = os.pread(fd, size, 0).rpartition(b"\n")[0] if size else b""
            end = len(whole) + 1 if whole else 0
            os.ftruncate(fd, end)  # what a dead process has not finished
            os.pwrite(fd, msgspec.json.encode(merged) + b"\n", end)
            os.fsync(fd)
        finally:
            os.close(fd)
        known[merged.name] = merged


class RemoteArchive:
    """Reads archive files from an object store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._sizes: dict[str, int] = {}  # of merged files: they never change

    def open(self, name: str) -> BinaryIO:
        """Open an archive file: the merged object, or else its segments. Raises FileNotFoundError."""
        if name not in self._sizes:
            whole = self._store.find(archive_key(name))
            if whole is not None:
                self._sizes[name] = whole.size
        if name in self._sizes:
            extents = [Segment(0, self._sizes[name], archive_key(name))]
        else:
            extents = list(_joined(self._segments(name)))
        if not extents:
            raise FileNotFoundError(f"{self._store.url}: no {archive_key(name)}")
        raw = RangedFile(self._store, extents)
        return cast(BinaryIO, io.BufferedReader(raw, _BUFFER_BYTES))

    def _segments(self, name: str) -> Iterator[Segment]:
        for found in self._store.objects(segments_of(name)):
            parsed = parse_segment(found.key)
            if parsed is not None:
                yield parsed[1]


def _joined(segments: Iterator[Segment]) -> Iterator[Segment]:
    """Yield the segments that follow each other without a gap, from the beginning of the file."""
    end = 0
    for segment in segments:
        if segment.start != end:
            return
        yield segment
        end = segment.end


class RangedFile(io.RawIOBase):
    """A file whose bytes lie in one or more objects, read by ranges."""

    def __init__(self, store: ObjectStore, extents: Sequence[Segment]) -> None:
        self._store = store
        self._extents = extents
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position; return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._extents[-1].end}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer from one object; return how many bytes, 0 at the end."""
        at = self._position
        extent = next((each for each in self._extents if each.start <= at < each.end), None)
        if extent is None:
            return 0
        end = min(extent.end, at + len(buffer))
        data = self._store.read(extent.key, at - extent.start, end - extent.start)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
