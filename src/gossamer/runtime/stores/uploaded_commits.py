"""Commits whose archive files go to a store on other machines before the ledger refers to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from gossamer.ports import CommitLog, SealedChanges
from gossamer.runtime.stores.outage import OutageControl, patiently
from gossamer.runtime.stores.uploads import PageUploads

_ARCHIVES = "archives"


def uploaded(commits: CommitLog, uploads: PageUploads | None, control: OutageControl) -> CommitLog:
    """Return the commits of a crawl: with uploads, if there are any."""
    return commits if uploads is None else UploadedCommits(commits, uploads, control)


class UploadedCommits:
    """See `gossamer.ports.CommitLog`."""

    def __init__(self, inner: CommitLog, uploads: PageUploads, control: OutageControl) -> None:
        self._inner = inner
        self._uploads = uploads
        self._control = control

    def seal(self) -> SealedChanges:
        """Close the changes so far. In the event loop."""
        sealed = self._inner.seal()
        ends = _archive_ends(sealed)
        return _Upload(self._uploads, ends, sealed, self._control) if ends else sealed

    def commit(self) -> None:
        """Close the changes so far and write them."""
        self.seal().write()

    def pending_count(self) -> int:
        """Return how many rows wait for the next commit."""
        return self._inner.pending_count()


class _Upload:
    """See `gossamer.ports.SealedChanges`."""

    def __init__(
        self, uploads: PageUploads, ends: Mapping[str, int], sealed: SealedChanges, control: OutageControl
    ) -> None:
        self._uploads = uploads
        self._ends = ends
        self._sealed = sealed
        self._control = control
        self._loop = asyncio.get_running_loop()
        self.by_shard = sealed.by_shard
        self.unsharded = sealed.unsharded

    def write(self) -> None:
        """Upload the archive files up to their new lengths, then make the changes durable."""
        patiently(lambda: self._uploads.upload(self._ends), self._control, self._loop)
        self._sealed.write()
        self._uploads.commit(self._ends)


def _archive_ends(sealed: SealedChanges) -> dict[str, int]:
    """Return the lengths of archive files that a commit makes durable."""
    rows = (row for row in sealed.unsharded() if row.table == _ARCHIVES and row.value is not None)
    return {row.key.decode(): int.from_bytes(row.value or b"", "big") for row in rows}
