"""The archive files of a crawl, wherever they are: in its folder, or in an object store.

A local file has its final name, or is open (`….open`), and may be renamed or removed at any time while its crawl runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from gossamer.archive.objects import MergedFile, MergedFiles, RemoteArchive
from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.core.ledger.archive_names import is_archive_name
from gossamer.model.records import ArchiveSpan


class ArchiveFiles:
    """Opens archive files by name. The store is connected to when a file is not here."""

    def __init__(self, folder: Path | None, connect: Callable[[], RemoteArchive] | None = None) -> None:
        self.folder = folder
        self._connect = connect
        self._remote: RemoteArchive | None = None

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading. Raises FileNotFoundError."""
        if not is_archive_name(name):
            raise FileNotFoundError(f"{name!r} is not the name of an archive file")
        for suffix in ("", ".open", ""):
            with suppress(FileNotFoundError):
                if self.folder is not None:
                    return (self.folder / (name + suffix)).open("rb", buffering=0)
        if self._connect is None:
            raise FileNotFoundError(f"{self.folder}/{name}")
        if self._remote is None:
            self._remote = self._connect()
        return self._remote.open(name)

    def records(self, name: str, start: int = 0) -> ArchiveReader:
        """Return the records of a file; FileNotFoundError is raised by the first one."""
        return ArchiveReader(lambda: self.open(name), start)

    def read(self, span: ArchiveSpan) -> ArchivedRecord | None:
        """Return the record at a position, or None if there is no intact one."""
        try:
            return next(iter(self.records(span.file, span.offset)), None)
        except FileNotFoundError:
            return None

    def local_paths(self) -> list[Path]:
        """Return the paths of the files in the folder."""
        return [] if self.folder is None else sorted(self.folder.glob("*.warc.gz*"))

    def merged(self) -> dict[str, MergedFile]:
        """Return the files that are whole in the store, by name."""
        return {} if self.folder is None else MergedFiles(self.folder).all()
