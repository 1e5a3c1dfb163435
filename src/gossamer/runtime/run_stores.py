"""The stores on other machines that a run feeds from its archive: before its commits, and beside them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from gossamer.ports import CommitLog
from gossamer.runtime.control import Submit
from gossamer.runtime.hub_observer import OnResult
from gossamer.runtime.outage import OutageControl
from gossamer.runtime.publishing import Publisher, published
from gossamer.runtime.recovery import OnFinished
from gossamer.runtime.upload_factory import UploadPlan
from gossamer.runtime.upload_watch import UploadWatch
from gossamer.runtime.uploaded_commits import uploaded
from gossamer.runtime.uploads import PageUploads


class RunStores(Struct, frozen=True):
    """A page store, and uploads of archive files: each of them if the settings name one."""

    publisher: Publisher | None
    uploads: PageUploads | None
    plan: UploadPlan
    outage: OutageControl

    @property
    def on_result(self) -> OnResult | None:
        """What must learn of every result."""
        return None if self.publisher is None else self.publisher.on_result

    @property
    def on_finished(self) -> OnFinished | None:
        """What must learn of every answer that was read back."""
        return None if self.publisher is None else self.publisher.add

    def commits(self, inner: CommitLog) -> CommitLog:
        """Return commits that feed the stores first."""
        return uploaded(published(inner, self.publisher), self.uploads, self.outage)

    def watch(self, submit: Submit, warn: Callable[[str, str], None]) -> UploadWatch | None:
        """Return what does the work that no commit waits for."""
        if self.uploads is None:
            return None
        return UploadWatch(self.uploads, max_bytes=self.plan.spool_bytes, submit=submit, warn=warn)
