"""Read-only view of a frontier, for reports and progress."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.workbench import HostSlot, HostState
from gossamer.core.links.requisite import queued_pages
from gossamer.model.records import HostRecord


class FrontierView:
    """The hosts in memory."""

    def __init__(self, table: HostTable) -> None:
        self._table = table

    def host(self, name: str) -> HostSlot | None:
        """Return a host if it is in memory."""
        return self._table.hosts.get(name)

    @property
    def has_dropped_exhausted(self) -> bool:
        """Whether hosts with queued URLs have left memory because their budget was used up."""
        return self._table.has_dropped_exhausted

    def hosts(self) -> list[HostSlot]:
        """Return the hosts in memory; the list does not change."""
        return list(self._table.hosts.values())

    def ahead(self, host: HostSlot, now: float) -> tuple[int, float, float]:
        """Return how many requests to a host are to be expected, the time between two of them, and before the first."""
        record = host.record
        limits = self._table.limits
        if record.is_blocked or record.is_dead:
            return 0, 0.0, 0.0
        requests = record.queued
        if limits.max_pages_per_host is not None:
            requests = min(requests, limits.max_pages_per_host - record.pages)
        budget = limits.domain_budget(host.domain.rank)
        if budget is not None:
            requests = min(requests, budget - host.domain.pages)
        if requests > 0 and not host.origins:
            requests += 1  # robots.txt
        interval_s = max(host.delay_s(), record.latency_s / host.connections)
        return max(0, requests), interval_s, max(0.0, record.next_at - now, record.parked_until - now)

    def records(self) -> Iterator[HostRecord]:
        """Return the record of every host in memory."""
        return (host.record for host in self._table.hosts.values())

    def host_states(self) -> dict[str, int]:
        """Return how many hosts are in each state."""
        return {state.name.lower(): self._table.bench.count[state] for state in HostState}

    def parked_urls(self, now: float, max_wait_s: float) -> int:
        """Return how many URLs wait for hosts that are not to be contacted within `max_wait_s`."""
        hosts = self._table.hosts.values()
        return sum(queued_pages(host.record) for host in hosts if _is_parked(host, now + max_wait_s))


def _is_parked(host: HostSlot, horizon: float) -> bool:
    if host.state is not HostState.WAITING:
        return False
    at = max(host.record.next_at, host.record.parked_until)
    return at > horizon or (not host.head and bool(host.deferred) and host.deferred[0][0] > horizon)
