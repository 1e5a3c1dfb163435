"""Archive files on their way to an object store: a segment per file and commit, then the whole file.

The files in `archive/` are the spool. Before a commit, the bytes that it adds to each file go out as one segment. A
file that is closed, and committed to its end, is merged into one object: parts of 5 MiB and more are copied from its
segments within the store, the rest is read from the local file. Then, in this order: the line in the list of merged
files is made durable, the segments are removed, and so is the local file unless the archive is to stay here too. A
death between any two of these steps is made good by `tidy`, which may be repeated.

Files of an earlier run have no segments that are known here: they are uploaded from the local file.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from gossamer.archive.cdxj import index_file, part_path
from gossamer.archive.objects import (
    MergedFile,
    MergedFiles,
    Segment,
    archive_key,
    index_key,
    segment_key,
    segments_of,
    write_label,
)
from gossamer.archive.writer import OPEN_SUFFIX
from gossamer.foundation import failpoints
from gossamer.ports.object_store import MIN_PART_BYTES, ObjectStore, Part, StoredObject

MAX_SEGMENT_BYTES = 64 << 20  # in memory at a time, per upload
WHOLE_BYTES = 32 << 20  # smaller files are one request
PART_BYTES = 32 << 20
_AT_ONCE = 4


class SegmentUploads:
    """See `gossamer.runtime.stores.uploads.PageUploads`."""

    def __init__(
        self,
        connect: Callable[[], ObjectStore],
        archive: Path,
        index: Path,
        *,
        run: str,
        label: str,
        stays_local: bool,
        ends: Callable[[], Mapping[str, int]],
    ) -> None:
        self._connect = connect
        self._archive = archive
        self._index = index
        self._run = run
        self._label = label
        self._stays_local = stays_local
        self._read_ends = ends  # of the ledger; called once, when the crawl begins
        self._store: ObjectStore | None = None
        self._merged = MergedFiles(archive)
        self._segments: dict[str, list[Segment]] = {}  # of files that are not merged yet
        self._committed: dict[str, int] = {}  # of files that are not merged yet
        self._number = 1
        self._to_clear: list[str] = []  # merged, but not yet removed here
        self._lock = threading.Lock()
        self._tidying = threading.Lock()

    def begin(self) -> None:
        """Learn from the ledger what earlier runs have committed: their files are in the spool, or merged."""
        write_label(self._archive, self._label)
        known = self._merged.all()
        self._committed = {name: end for name, end in self._read_ends().items() if name not in known}
        if not self._stays_local:
            self._to_clear = [name for name in known if (self._archive / name).is_file()]

    # -- before and after a commit ----------------------------------------------------------------

    def upload(self, ends: Mapping[str, int]) -> None:
        """Upload what a commit adds to the archive files."""
        merged = self._merged.all()
        parts = [part for name, end in ends.items() if name not in merged for part in self._new_parts(name, end)]
        if len(parts) == 1:
            self._upload_segment(*parts[0])
        elif parts:
            with ThreadPoolExecutor(_AT_ONCE, "segments") as threads:
                for _ in threads.map(lambda part: self._upload_segment(*part), parts):
                    pass
        failpoints.reach("after_upload")

    def _new_parts(self, name: str, end: int) -> list[tuple[str, int, int]]:
        known = self._segments.setdefault(name, [])
        start = known[-1].end if known else 0
        return [(name, at, min(end, at + MAX_SEGMENT_BYTES)) for at in range(start, end, MAX_SEGMENT_BYTES)]

    def _upload_segment(self, name: str, start: int, end: int) -> None:
        key = segment_key(name, start, end, f"{self._run}-{self._number:08d}")
        self._connected().put(key, self._read_local(name, start, end))
        with self._lock:
            self._segments[name].append(Segment(start, end, key))
            self._segments[name].sort()

    def commit(self, ends: Mapping[str, int]) -> None:
        """Record what is committed."""
        self._committed.update(ends)
        self._number += 1

    # -- afterwards -------------------------------------------------------------------------------

    def tidy(self) -> bool:
        """Merge one file, or finish what a dead process has left of that; return whether there was one."""
        with self._tidying:
            if not self._to_clear:
                name = next((name for name in sorted(self._committed) if self._is_whole(name)), None)
                if name is None:
                    return False
                self.merge(self._archive / name)
                self._to_clear.append(name)
            self._clear(self._archive / self._to_clear[-1])
            self._to_clear.pop()
            return True

    def _is_whole(self, name: str) -> bool:
        """Return whether a file is closed, and committed to its end."""
        path = self._archive / name
        return path.is_file() and path.stat().st_size == self._committed[name]

    def merge(self, path: Path) -> None:
        """Write a whole file and its index to the store, and add it to the list of merged files."""
        store = self._connected()
        size = path.stat().st_size
        sha256 = _sha256(path)
        about = {"sha256": sha256}
        try:
            whole = self._write_whole(path, plan_parts(self._segments.get(path.name, ()), size), about)
        except FileNotFoundError:  # somebody has removed a segment
            whole = self._write_whole(path, plan_parts((), size), about)
        store.put(index_key(path.name), self._index_of(path))
        failpoints.reach("after_merge")
        self._merged.add(MergedFile(path.name, size, sha256, whole.tag))
        self._committed.pop(path.name, None)

    def _write_whole(self, path: Path, parts: list[Part], about: Mapping[str, str]) -> StoredObject:
        store = self._connected()
        key = archive_key(path.name)
        if parts[-1].end <= WHOLE_BYTES and not any(part.source for part in parts):
            return store.put(key, path.read_bytes(), about)
        return store.compose(key, lambda start, end: _read_range(path, start, end), parts, about)

    def _index_of(self, path: Path) -> bytes:
        part = part_path(self._index, path.name)
        if part.is_file():
            return part.read_bytes()
        return "".join(f"{line}\n" for line in index_file(path)).encode()  # it was folded into the whole already

    def _clear(self, path: Path) -> None:
        """Remove the segments of a merged file, then its local file."""
        store = self._connected()
        store.remove([found.key for found in store.objects(segments_of(path.name))])
        failpoints.reach("after_segments_removed")
        if not self._stays_local:
            path.unlink(missing_ok=True)
        self._segments.pop(path.name, None)

    def spool_bytes(self) -> int:
        """Return how many bytes of archive files are not merged yet."""
        paths = [self._archive / name for name in [*self._committed]]
        return sum(_size(path) or _size(path.with_name(path.name + OPEN_SUFFIX)) for path in paths)

    def _read_local(self, name: str, start: int, end: int) -> bytes:
        """Return bytes of a file that is open, or closed at this moment."""
        try:
            return _read_range(self._archive / (name + OPEN_SUFFIX), start, end)
        except FileNotFoundError:
            return _read_range(self._archive / name, start, end)

    def _connected(self) -> ObjectStore:
        if self._store is None:
            self._store = self._connect()
        return self._store


def plan_parts(segments: list[Segment] | tuple[()], size: int) -> list[Part]:
    """Return the parts of an object of some size: copies of large segments, and what is between them, read locally.

    Every part except the last has at least `MIN_PART_BYTES`. Segments that leave a gap, or reach beyond the size, are
    not used.
    """
    parts: list[Part] = []
    at = 0  # where the bytes begin that no part has yet
    for segment in segments:
        missing = MIN_PART_BYTES - (segment.start - at) if segment.start > at else 0
        start = segment.start + max(0, missing)
        if segment.start < at or segment.end > size or segment.end - start < MIN_PART_BYTES:
            continue
        parts += _read_parts(at, start)
        parts.append(Part(start, segment.end, segment.key, start - segment.start))
        at = segment.end
    return parts + _read_parts(at, size)


def _read_parts(start: int, end: int) -> list[Part]:
    """Return parts that are read locally; the last one has the rest, up to twice the usual size."""
    count = max(1, (end - start) // PART_BYTES) if end > start else 0
    bounds = [*(start + number * PART_BYTES for number in range(count)), end]
    return [Part(begin, finish) for begin, finish in pairwise(bounds)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _read_range(path: Path, start: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(end - start)
    if len(data) != end - start:
        raise OSError(f"{path}: {start + len(data)} bytes, expected {end}")
    return data


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
