"""Which archive files does a crawl have, and how are they opened? By its stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import RemoteArchive
from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.backends.registry import object_store_in, open_objects
from gossamer.model.records import ArchiveSpan

if TYPE_CHECKING:
    from gossamer.reading.node_folders import NodeFolders


def archive_files(archive: Path | None, stores: Sequence[str]) -> ArchiveFiles:
    """Return the archive files of a crawl that has these stores; its folder is None if it is on another machine."""
    url = object_store_in(stores)
    return ArchiveFiles(archive, (lambda: RemoteArchive(open_objects(url))) if url else None)


class CrawlArchive:
    """The archive files of a crawl: those in its folder or in the folders of its nodes, and those in its store."""

    def __init__(self, folders: NodeFolders, stores: Sequence[str]) -> None:
        self._folders = folders
        self._parts = {name: archive_files(folder.archive, stores) for name, folder in folders.found.items()}
        self._elsewhere = archive_files(None, stores)
        self._has_store = bool(object_store_in(stores))

    def part_of(self, file: str) -> ArchiveFiles:
        """Return the files of the node that has a file."""
        return self._parts.get("") or self._parts.get(self._folders.node_of(file)) or self._elsewhere

    def parts(self) -> Mapping[str, ArchiveFiles]:
        """Return the files in each folder that can be read, by node."""
        return self._parts

    def is_reachable(self, file: str) -> bool:
        """Return whether a file should be in a folder that can be read here, or in a store."""
        return self._has_store or self._folders.folder_of(file) is not None

    def records(self, file: str) -> ArchiveReader:
        """Return the records of a file; FileNotFoundError is raised by the first one."""
        return self.part_of(file).records(file)

    def read(self, span: ArchiveSpan) -> ArchivedRecord | None:
        """Return the record at a position, or None if there is no intact one."""
        return self.part_of(span.file).read(span)

    def local_paths(self) -> list[Path]:
        """Return the paths of the files in all folders."""
        return [path for files in self._parts.values() for path in files.local_paths()]
