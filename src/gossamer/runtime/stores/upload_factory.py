"""How the uploads of a run are built, if one of its stores is S3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.archive.writer import MAX_FILE_BYTES
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.registry import object_store_in, open_objects
from gossamer.core.ledger.archive_names import archive_prefix
from gossamer.settings.model import S3Layout, Settings

if TYPE_CHECKING:
    from gossamer.runtime.stores.uploads import PageUploads

DEFAULT_SPOOL_BYTES = 4 << 30
_FILES_PER_SPOOL = 4  # so that some are closed, and can leave, when it is full


class UploadPlan(Struct, frozen=True):
    """What is uploaded, and how archive files are named and divided for it."""

    url: str  # empty if no store needs uploads
    run: str
    label: str  # part of archive files' names that is unique to a node, or to a crawl; empty if there is no need
    stays_local: bool
    spool_bytes: int
    max_file_bytes: int = MAX_FILE_BYTES

    @classmethod
    def of(cls, settings: Settings, folder: CrawlFolder, *, run: str, node: str) -> UploadPlan:
        """Return the plan of a run."""
        url = object_store_in(settings.store) if settings.s3_layout is S3Layout.SEGMENTS else ""
        spool = settings.spool or DEFAULT_SPOOL_BYTES
        if not url:
            return cls("", run, node, stays_local=True, spool_bytes=spool)
        import secrets

        from gossamer.archive.objects import read_label

        label = node or read_label(folder.archive) or secrets.token_hex(4)
        file_bytes = min(MAX_FILE_BYTES, spool // (_FILES_PER_SPOOL * (settings.workers or 1)))
        return cls(url, run, label, "warc" in settings.store, spool, file_bytes)

    @property
    def archive_prefix(self) -> str:
        """How the names of archive files begin."""
        return archive_prefix(self.label)


def build_uploads(plan: UploadPlan, folder: CrawlFolder, ends: Callable[[], Mapping[str, int]]) -> PageUploads | None:
    """Return the uploads of a run; None if there are none. `ends` reads the committed lengths of archive files."""
    if not plan.url:
        return None
    from gossamer.runtime.stores.segment_uploads import SegmentUploads

    return SegmentUploads(
        lambda: open_objects(plan.url),
        folder.archive,
        folder.index,
        run=plan.run,
        label=plan.label,
        stays_local=plan.stays_local,
        ends=ends,
    )
