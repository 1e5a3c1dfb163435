"""Puts an S3 store in order: uploads what is missing there, removes what dead processes have left.

What is removed belongs to this crawl or node (its files carry its label) and counts for nothing: segments of files that
are merged, segments of files that the ledger does not know, and parts of objects that were never composed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import archive_key, parse_segment, read_label
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.archive_names import archive_prefix
from gossamer.ports.object_store import ObjectStore
from gossamer.runtime.stores.segment_uploads import SegmentUploads
from gossamer.telemetry.text import plural

_SEGMENTS = "segments/"
_CHUNK_BYTES = 8 << 20


def mend_objects(folder: CrawlFolder, store: ObjectStore, ends: Mapping[str, int]) -> list[str]:
    """Return what was done. The caller owns the folder."""
    label = read_label(folder.archive)
    if not label:
        return []
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


def download_missing(folder: CrawlFolder, store: ObjectStore) -> int:
    """Fetch merged files back that are not here, to rebuild a ledger; return how many. The next run removes them."""
    missing = [
        merged
        for name, merged in ArchiveFiles(folder.archive).merged().items()
        if not (folder.archive / name).is_file()
    ]
    for merged in missing:
        unfinished = folder.archive / f".{merged.name}.tmp"
        with unfinished.open("wb") as file:
            for start in range(0, merged.size, _CHUNK_BYTES):
                file.write(store.read(archive_key(merged.name), start, min(merged.size, start + _CHUNK_BYTES)))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder.archive / merged.name)
    return len(missing)


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
