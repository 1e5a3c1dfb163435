"""Does an S3 store have every archive file that a crawl has merged there, with its size and checksum? How is it mended?

A file that is not in the crawl folder any more is read once, for its records and its SHA-256 together. One that is here
as well is compared by size and tag, without reading it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import TracebackType
from typing import BinaryIO, cast

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import MergedFile, archive_key, index_key, parse_segment, read_label
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.registry import object_store_in, open_objects
from gossamer.core.ledger.archive_names import archive_prefix
from gossamer.ports.object_store import ObjectStore
from gossamer.reading.archive_access import CrawlArchive
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.runtime.stores.segment_uploads import SegmentUploads
from gossamer.telemetry.text import plural
from gossamer.verify.agreement import Agreement, OnBytes, ReportProblem

_SEGMENTS = "segments/"


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


def find(crawl: CrawlView, found: Agreement, _on_bytes: OnBytes) -> None:
    """Compare merged files and indexes with what the store has. See `gossamer.verify.agreement.Check`."""
    if url := object_store_in(crawl.settings.store):
        for files in CrawlArchive(crawl.folders, crawl.settings.store).parts().values():
            if merged := files.merged():
                found.objects += len(merged)
                _compare(files, merged, open_objects(url), found.add_problem)


def _compare(files: ArchiveFiles, merged: Mapping[str, MergedFile], store: ObjectStore, report: ReportProblem) -> None:
    """Report what the store does not have as it was stored."""
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


def _cure(files: ArchiveFiles, name: str) -> str:
    is_here = any(path.name == name for path in files.local_paths())
    return "; --mend uploads it again" if is_here else ""


def mend(crawl: CrawlReader) -> list[str]:
    """Upload what is missing, and remove what dead processes have left. See `gossamer.verify.agreement.Check`.

    What is removed belongs to this crawl or node (its files have its label) and counts for nothing: segments of files
    that are merged, segments of files that the ledger does not know, and parts of objects that were never composed.
    """
    folder = crawl.folder
    url = object_store_in(crawl.settings.store)
    label = read_label(folder.archive) if url else ""
    if not label:
        return []
    store = open_objects(url)
    ends = crawl.ledger.archive_ends()
    done = _upload_missing(folder, store, label)
    own = f"{archive_prefix(label)}-"
    merged = ArchiveFiles(folder.archive).merged()
    useless = []
    for found in store.objects(_SEGMENTS + own):
        parsed = parse_segment(found.key)
        if parsed is not None and (parsed[0] in merged or not ends.get(parsed[0])):
            useless.append(found.key)
    store.remove(useless)
    if useless:
        done.append(f"{store.url}: {plural(len(useless), 'segment')} that no commit refers to removed")
    if aborted := store.abort_unfinished(archive_key(own)):
        done.append(f"{store.url}: {plural(aborted, 'upload')} that never finished removed")
    return done


def _upload_missing(folder: CrawlFolder, store: ObjectStore, label: str) -> list[str]:
    """Upload merged files again that the store does not have as they were stored, if they are still here."""
    uploads = SegmentUploads(
        lambda: store, folder.archive, folder.index, run="mend", label=label, stays_local=True, ends=dict
    )
    done = []
    for name, known in ArchiveFiles(folder.archive).merged().items():
        path = folder.archive / name
        if not path.is_file() or path.stat().st_size != known.size:
            continue
        found = store.find(archive_key(name))
        if found is None or found.size != known.size or found.tag != known.tag:
            uploads.merge(path)
            done.append(f"{name}: uploaded to {store.url} again")
    return done
