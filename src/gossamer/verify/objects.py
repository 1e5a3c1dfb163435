"""Does an S3 store have every archive file that a crawl has merged there, with its size and checksum?

A file that is not in the crawl folder any more is read once, for its records and its SHA-256 together. One that is here
as well is compared by size and tag, without reading it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import BinaryIO, cast

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import MergedFile, archive_key, index_key
from gossamer.reading.archive_access import open_s3, s3_url

ReportProblem = Callable[[str, str], None]


class HashedFile:
    """A file that is read once from its beginning: its SHA-256 is known at its end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move: before anything is read."""
        return self._file.seek(offset, whence)

    def read(self, size: int) -> bytes:
        """Read on."""
        data = self._file.read(size)
        self._hash.update(data)
        return data

    @property
    def sha256(self) -> str:
        """The checksum of what was read, in hex."""
        return self._hash.hexdigest()


class HashedOpening:
    """Opens a file as one whose checksum is known afterwards."""

    def __init__(self, files: ArchiveFiles, name: str) -> None:
        self._files = files
        self._name = name
        self._opened: HashedFile | None = None

    def __call__(self) -> BinaryIO:
        """Open the file."""
        self._opened = HashedFile(self._files.open(self._name))
        return cast(BinaryIO, self._opened)

    def report(self, merged: MergedFile | None, report: ReportProblem) -> None:
        """Report if the bytes that were read are not those that were merged."""
        if merged is not None and self._opened is not None and self._opened.sha256 != merged.sha256:
            report(self._name, "its bytes in the store are not those that were stored there (SHA-256 differs)")


def check_objects(files: ArchiveFiles, stores: Sequence[str], report: ReportProblem) -> int:
    """Report merged files and indexes that the store does not have as they were stored; return how many there are."""
    merged = files.merged()
    url = s3_url(stores)
    if not url or not merged:
        return 0
    store = open_s3(url)
    for name, known in sorted(merged.items()):
        found = store.find(archive_key(name))
        if found is None:
            report(name, f"is not in {store.url}{_cure(files, name)}")
        elif found.size != known.size:
            report(name, f"has {found.size} bytes in {store.url}, but {known.size} were stored{_cure(files, name)}")
        elif found.tag != known.tag or found.metadata.get("sha256") != known.sha256:
            report(name, f"was replaced in {store.url}: it has another checksum{_cure(files, name)}")
        if store.find(index_key(name)) is None:
            report(name, f"its index is not in {store.url}")
    return len(merged)


def _cure(files: ArchiveFiles, name: str) -> str:
    is_here = any(path.name == name for path in files.local_paths())
    return "; --mend uploads it again" if is_here else ""
