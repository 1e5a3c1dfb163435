"""Known URLs that are due again: which hosts have some in memory, and is it their turn or that of new URLs?

With the requisites of pages, which are queued, they do not count against the limit on pages.

The engine reads them from the ledger when they are due (`engine/revisit/revisiting`); here they wait for their host's
turn, under the same rules as everything else: pace, robots.txt, addresses. They are in no queue and in no budget of
pages. Of the fetches a share is for known URLs, as long as there are both (`FetchShares`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Postponed
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import DomainSlot, HostSlot, HostState
from gossamer.core.revisit.shares import FetchShares
from gossamer.model.records import QueuedUrl, UrlId

KNOWN_SHARE = 0.5
_READY = HostState.READY
_BUSY = HostState.BUSY
_BLOCKED = HostState.BLOCKED


class Visits:
    """The hosts in memory that have known URLs to be fetched again."""

    def __init__(self, table: HostTable, limits: FrontierLimits, counts: Counts) -> None:
        self._table = table
        self._limits = limits
        self._counts = counts
        self.hosts: dict[str, HostSlot] = {}
        self.shares = FetchShares(KNOWN_SHARE)
        self.postponed: list[Postponed] = []

    def add(self, name: str, urls: Sequence[QueuedUrl], now: float) -> int:
        """Add URLs that are due at a host in memory; return how many of them were not there yet."""
        host = self._table.hosts[name]
        there = {entry[1] for entry in host.visits} | host.out
        new = [url for url in urls if url.id not in there]
        for url in new:
            host.push(url)
        if host.visits:
            self.hosts[name] = host
        if host.state is not _BUSY and host.state is not _BLOCKED:
            self._table.reschedule(host, now)
        return len(new)

    def domain_of(self, name: str) -> DomainSlot:
        """Return the domain of a host in memory."""
        return self._table.hosts[name].domain

    def unfinished(self, name: str) -> int:
        """Return how many known URLs of a host wait for its turn, with what is in flight there."""
        host = self._table.hosts.get(name)
        return 0 if host is None else len(host.visits) + host.in_flight

    def forget_if_none(self, name: str) -> None:
        """Forget a host if it has no known URLs left."""
        host = self.hosts.get(name)
        if host is not None and not host.visits:
            del self.hosts[name]

    def drop(self, name: str, now: float) -> None:
        """Forget the known URLs of a host that wait."""
        host = self.hosts.pop(name, None)
        if host is not None and host.visits:
            host.visits.clear()
            if host.state is not _BUSY and host.state is not _BLOCKED:
                self._table.reschedule(host, now)

    def remove(self, host: HostSlot, url_id: UrlId) -> None:
        """Forget one URL that waits, since its answer is there already."""
        host.visits = [entry for entry in host.visits if entry[1] != url_id]
        heapify(host.visits)

    def take_postponed(self) -> list[Postponed]:
        """Return the URLs that cannot be fetched before a time."""
        postponed = self.postponed
        self.postponed = []
        return postponed

    @property
    def are_wanted(self) -> bool:
        """Whether the next task should be for a known URL: it is their turn, or no more new pages are wanted."""
        return self.shares.is_known_turn or self._counts.is_page_limit_reached(self._limits)

    def ready(self, now: float) -> Iterator[HostSlot]:
        """Yield hosts with known URLs or requisites that may be contacted now, as they became ready."""
        bench = self._table.bench
        listed = bench.beyond_limits
        while listed:
            host = listed.popleft()
            host.is_listed = False
            if host.state is not _READY or self._table.hosts.get(host.name) is not host:
                continue
            if not host.visits and not host.is_requisite_next:
                continue
            gate = bench.gates.closed(host, now)
            if gate is None:
                yield host
            else:
                bench.move(host, _BLOCKED)
                bench.gates.stand_in_line(host, gate)
