"""Which archive files does a crawl have, and how are they opened? By its stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import RemoteArchive
from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.errors import UsageError
from gossamer.records import ArchiveSpan
from gossamer.settings.extras import pip_install
from gossamer.settings.stores import S3, scheme_of

if TYPE_CHECKING:
    from gossamer.inspect.node_folders import NodeFolders
    from gossamer.ports.object_store import ObjectStore


def archive_files(archive: Path | None, stores: Sequence[str]) -> ArchiveFiles:
    """Return the archive files of a crawl that has these stores; its folder is None if it is on another machine."""
    url = s3_url(stores)
    return ArchiveFiles(archive, (lambda: RemoteArchive(open_s3(url))) if url else None)


class CrawlArchive:
    """The archive files of a crawl: those in its folder or in the folders of its nodes, and those in its store."""

    def __init__(self, folders: NodeFolders, stores: Sequence[str]) -> None:
        self._folders = folders
        self._parts = {name: archive_files(folder.archive, stores) for name, folder in folders.found.items()}
        self._elsewhere = archive_files(None, stores)
        self._has_store = bool(s3_url(stores))

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


def s3_url(stores: Sequence[str]) -> str:
    """Return the S3 store among several; empty if there is none."""
    return next((store for store in stores if scheme_of(store) == S3), "")


def open_s3(url: str) -> ObjectStore:
    """Return the objects of an S3 store."""
    if find_spec("boto3") is None:
        raise UsageError(f"s3:// needs the package boto3: {pip_install('s3')}")
    from gossamer.backends.s3.store import S3Store

    return S3Store(url)
