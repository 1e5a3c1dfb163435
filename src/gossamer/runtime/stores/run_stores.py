"""The stores on other machines that a run feeds from its archive: before its commits, and beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.model.commands import Submit
from gossamer.model.records import UrlId
from gossamer.runtime.hub.observer import OnResult, all_of
from gossamer.runtime.recovery.recovery import OnFinished
from gossamer.runtime.stores.outage import OutageControl
from gossamer.runtime.stores.upload_factory import UploadPlan

if TYPE_CHECKING:
    from gossamer.ports import CommitLog
    from gossamer.runtime.stores.publishing import CatalogPublisher, Publisher, Publishing
    from gossamer.runtime.stores.upload_watch import UploadWatch
    from gossamer.runtime.stores.uploads import PageUploads


def commit_at_once(ledger: CommitLog, publishers: Sequence[Publishing]) -> None:
    """Put what goes with a commit into the stores, and commit. Raises StoreUnavailableError at once if one is away."""
    sealed = ledger.seal()
    for publisher in publishers:
        for batch in publisher.take(sealed) or ():
            batch.put()
    sealed.write()


class RunStores(Struct, frozen=True):
    """Stores that get single pages, catalogs, feeds, and uploads of archive files, as far as the settings name any."""

    publishers: Sequence[Publisher]
    catalogs: Sequence[CatalogPublisher]
    feeds: Sequence[Publishing]
    uploads: PageUploads | None
    plan: UploadPlan
    outage: OutageControl

    @property
    def on_result(self) -> OnResult | None:
        """What must learn of every result."""
        return reduce(all_of, (publisher.on_result for publisher in self.publishers), None)

    @property
    def on_finished(self) -> OnFinished | None:
        """What must learn of every answer that was read back."""
        return self._add if self.publishers else None

    def _add(self, url_id: UrlId) -> None:
        for publisher in self.publishers:
            publisher.add(url_id)

    def commits(self, inner: CommitLog) -> CommitLog:
        """Return commits that feed the stores first."""
        if not self.all and self.uploads is None:
            return inner
        from gossamer.runtime.stores.publishing import PublishedCommits, UploadPublisher

        uploads = [] if self.uploads is None else [UploadPublisher(self.uploads)]
        return PublishedCommits(inner, [*self.all, *uploads], self.outage)

    @property
    def all(self) -> Sequence[Publishing]:
        """What gets something before a commit."""
        return [*self.publishers, *self.catalogs, *self.feeds]

    def watch(self, submit: Submit, warn: Callable[[str, str], None]) -> UploadWatch | None:
        """Return what does the work that no commit waits for."""
        if self.uploads is None:
            return None
        from gossamer.runtime.stores.upload_watch import UploadWatch, WatchLimits

        return UploadWatch(self.uploads, WatchLimits(self.plan.spool_bytes), submit, warn)
