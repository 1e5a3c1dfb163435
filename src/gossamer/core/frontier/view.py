"""Read-only view of a frontier, for reports and progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.workbench import HostSlot, HostState
from gossamer.core.links.requisite import queued_pages
from gossamer.core.politeness.pace import park_after, usual_delay_s
from gossamer.core.robots.requests import first_wait_s, is_banned
from gossamer.model.records import HostRecord

# The same words as for a crawl that is read from outside (`reading/host_states`).
SHOWN_AS: Mapping[HostState, str] = {
    HostState.IDLE: "idle",
    HostState.WAITING: "waiting",
    HostState.READY: "ready",
    HostState.BUSY: "busy",
    HostState.BLOCKED: "at_limit",  # of connections, its own or those of its address or domain
    HostState.BUDGET_EXHAUSTED: "over_budget",
    HostState.OPTED_OUT: "blocked",
}


class HostAhead(Struct, gc=False):
    """What is queued at a host, and how long it takes."""

    urls: int = 0
    interval_s: float = 0.0  # between two requests
    wait_s: float = 0.0  # before the first
    more_requests: int = 0  # than one for each URL
    retries: int = 0  # URLs that wait to be tried again
    last_s: float = 0.0  # until the last attempt at these, if each of them fails
    park_s: float = 0.0  # for which it is parked if it fails once more
    is_failing: bool = False  # there was no answer to the last request: it may never come back


class FrontierView:
    def __init__(self, table: HostTable) -> None:
        self._table = table

    def host(self, name: str) -> HostSlot | None:
        return self._table.hosts.get(name)

    def waits_for(self, host: HostSlot) -> str:
        """Return what a host in line at a gate waits for, in words; empty if it waits for nothing."""
        return self._table.bench.gates.described_wait(host) if host.state is HostState.BLOCKED else ""

    @property
    def has_dropped_exhausted(self) -> bool:
        """Whether hosts with queued URLs have left memory because their budget was used up."""
        return self._table.has_dropped_exhausted

    def hosts(self) -> list[HostSlot]:
        """Return the hosts in memory; the list does not change."""
        return list(self._table.hosts.values())

    def ahead(self, host: HostSlot, now: float) -> HostAhead:
        """Return what is to be expected of a host: its URLs that will be fetched, and when."""
        record = host.record
        if record.is_blocked or record.is_dead or not record.queued:
            return HostAhead()
        delay_s = usual_s = host.delay_s()
        ahead = HostAhead(record.queued)
        ahead.wait_s = max(0.0, record.next_at - now, record.parked_until - now)
        if record.backoff:  # each success halves the delay: all that remains takes about as long as the present one
            usual_s = usual_delay_s(record, host.floor_s)
            ahead.wait_s += delay_s - usual_s
        ahead.interval_s = max(usual_s, record.latency_s / host.connections)
        if record.failures_in_a_row or record.robots_tries:
            ahead.is_failing = True
            ahead.park_s = park_after(record.failures_in_a_row + 1)
        if not host.origins:
            ahead.more_requests = 1  # robots.txt
        if host.deferred:
            self._add_retries(host, ahead, now)
        return ahead

    def _add_retries(self, host: HostSlot, ahead: HostAhead, now: float) -> None:
        """Add what follows from URLs that wait to be tried again.

        Most that failed once fail at every attempt; but if a host failed as a whole, it was not the URLs' fault.
        """
        limits = self._table.limits
        first_s = first_wait_s(host, limits)
        is_down = park_after(host.record.failures_in_a_row) > 0
        for at, _, _, url in host.deferred:
            if url.attempt and not is_banned(host, url.url, now):
                ahead.retries += 1
                further = 0 if is_down else max(0, limits.retries - url.attempt)
                ahead.more_requests += further
                further_s = sum(first_s * 4.0 ** (url.attempt + number) for number in range(min(further, 10)))
                ahead.last_s = max(ahead.last_s, at - now + further_s)
        if not host.head and host.horizon is None and not host.in_flight:
            ahead.wait_s = max(ahead.wait_s, host.deferred[0][0] - now)

    def next_retry(self, host: HostSlot) -> tuple[float, str] | None:
        """Return when the first URL of a host is tried again, and which; None if none waits for that."""
        return min(((at, url.url) for at, _, _, url in host.deferred if url.attempt), default=None)

    def budget_left(self, host: HostSlot) -> int | None:
        """Return how many pages of a host its own budget allows; None: any number."""
        per_host = self._table.limits.max_pages_per_host
        return None if per_host is None else max(0, per_host - host.record.pages)

    def domain_budget_left(self, host: HostSlot) -> int | None:
        """Return how many pages of a host's domain the budget of that allows; None: any number."""
        budget = self._table.limits.domain_budget(host.domain.rank)
        return None if budget is None else max(0, budget - host.domain.pages)

    def over_budget_urls(self, pages_per_url: float) -> int:
        """Return how many URLs at hosts in memory their budgets do not allow. One pass over them."""
        of_domains: dict[str, float] = {}
        over = 0.0
        for host in self._table.hosts.values():
            record = host.record
            if record.is_blocked or record.is_dead or not record.queued:
                continue
            own = self.budget_left(host)
            urls = float(record.queued) if own is None else min(record.queued, own / pages_per_url)
            of_domain = self.domain_budget_left(host)
            if of_domain is not None:
                left = of_domains.setdefault(host.domain.name, of_domain / pages_per_url)
                urls = min(urls, left)
                of_domains[host.domain.name] = left - urls
            over += record.queued - max(urls, min(record.queued, record.requisites))
        return round(over)

    def records(self) -> Iterator[HostRecord]:
        return (host.record for host in self._table.hosts.values())

    def host_states(self) -> dict[str, int]:
        """Return how many hosts in memory are in which state, by the words that everything shows."""
        return {SHOWN_AS[state]: self._table.bench.count[state] for state in HostState}

    def parked_urls(self, now: float, max_wait_s: float) -> int:
        """Return how many URLs wait for hosts that are not to be contacted within `max_wait_s`."""
        hosts = self._table.hosts.values()
        return sum(queued_pages(host.record) for host in hosts if _is_parked(host, now + max_wait_s))


def _is_parked(host: HostSlot, horizon: float) -> bool:
    if host.state is not HostState.WAITING:
        return False
    at = max(host.record.next_at, host.record.parked_until)
    return at > horizon or (not host.head and bool(host.deferred) and host.deferred[0][0] > horizon)
