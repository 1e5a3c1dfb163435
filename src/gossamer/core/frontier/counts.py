"""How many URLs are queued, and how many pages are done or in flight? Limits are checked against these counts.

Each is changed by one method here and nowhere else: the total, and the host's share in its record.
Invariant: `queued` is the sum of `HostRecord.queued` over all hosts of the shards that are owned; so is `requisites`.
"""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import HostSlot
from gossamer.model.records import HostRecord


class Counts(Struct):
    queued: int = 0  # URLs in the ledger that are waiting or in flight
    pages: int = 0  # fetched successfully, over all runs
    pages_in_flight: int = 0
    domains_left: int | None = None  # to be reached by the first pass, which ends then; None: no limit
    requisites: int = 0  # of what is queued

    def enqueue(self, record: HostRecord, count: int = 1) -> None:
        """Count URLs that were queued at a host; a negative count removes them."""
        record.queued += count
        self.queued += count

    def enqueue_requisites(self, record: HostRecord, count: int) -> None:
        """Count how many of the URLs that were queued at a host are requisites; a negative count removes them."""
        record.requisites += count
        self.requisites += count

    @staticmethod
    def enqueue_stored(record: HostRecord, count: int, requisites: int = 0) -> None:
        """Count URLs queued at a host whose shard is not owned yet: `load` counts them when it is."""
        record.queued += count
        record.requisites += requisites

    def load(self, record: HostRecord) -> None:
        self.queued += record.queued
        self.requisites += record.requisites

    def unload(self, record: HostRecord) -> None:
        """Forget what is queued at a host of a shard that was released."""
        self.queued -= record.queued
        self.requisites -= record.requisites

    def begin_page(self, host: HostSlot) -> None:
        self.pages_in_flight += 1
        host.pages_in_flight += 1
        host.domain.pages_in_flight += 1

    def end_page(self, host: HostSlot) -> None:
        """Count a task for a page that ended, whatever the outcome."""
        self.pages_in_flight -= 1
        host.pages_in_flight -= 1
        host.domain.pages_in_flight -= 1

    def add_page(self, host: HostSlot) -> None:
        self.pages += 1
        host.record.pages += 1
        host.domain.pages += 1

    @staticmethod
    def change_pages(host: HostSlot, by: int) -> None:
        """Count a page of a host more or less because of another visit: no budget of the crawl is used for it."""
        host.record.pages += by
        host.domain.pages += by

    def take_back_pages(self, count: int) -> None:
        """Count pages less that are to be fetched again, of hosts whose shard is not owned yet."""
        self.pages -= count

    def is_page_limit_reached(self, limits: FrontierLimits) -> bool:
        """Return whether fetched pages and those in flight reach the limit; those in flight may still fail.

        Each page in flight may be the first one of a domain, so there are no more than domains are wanted.
        """
        if self.domains_left is not None and self.pages_in_flight >= self.domains_left > 0:
            return True
        return limits.max_pages is not None and self.pages + self.pages_in_flight >= limits.max_pages
