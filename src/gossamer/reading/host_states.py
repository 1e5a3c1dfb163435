"""In which state is each host of a crawl, according to the ledger? One pass over the hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gossamer.core.frontier.limits import scaled_budget
from gossamer.core.links.requisite import queued_pages
from gossamer.core.politeness.pace import Pace
from gossamer.model.records import DomainRecord, HostRecord
from gossamer.reading.aggregates import Leaders
from gossamer.settings.model import Settings
from gossamer.telemetry.forecast import Forecaster
from gossamer.telemetry.text import plural

OVER_BUDGET = "over_budget"  # of a host with queued URLs, none of which its budgets allow
HOST_STATES = ("ready", "waiting", "parked", "swapped_out", "dead", "blocked", "idle")
_WITH_WORK = frozenset({"ready", "waiting", "parked", "swapped_out"})
_PARKED_SHOWN = 5


def host_state_of(host: HostRecord, now: float) -> str:
    if host.is_blocked:
        return "blocked"
    if host.is_dead:
        return "dead"
    if not host.queued:
        return "idle"
    if host.parked_until > now:
        return "parked"
    if host.swapped_out_until > now:
        return "swapped_out"
    return "waiting" if host.next_at > now else "ready"


class PageBudgets:
    """How many URLs the budgets of hosts and domains still allow, in one pass over hosts."""

    def __init__(self, settings: Settings, domains: Iterable[DomainRecord]) -> None:
        self._per_host = settings.max_pages_per_host
        self._per_domain = settings.max_pages_per_domain
        self._is_by_rank = settings.domain_budget_by_rank
        # Pages of domains, with the URLs of those hosts that were asked for before.
        self._used = {domain.name: domain.pages for domain in domains} if self._per_domain is not None else {}

    def take(self, host: HostRecord) -> int:
        """Return how many of a host's queued URLs will be fetched, if all of them are pages."""
        urls = host.queued
        if self._per_host is not None:
            urls = min(urls, max(0, self._per_host - host.pages))
        if self._per_domain is not None:
            budget = scaled_budget(self._per_domain, host.rank) if self._is_by_rank else self._per_domain
            used = self._used.get(host.domain, 0)
            urls = min(urls, max(0, budget - used))
            self._used[host.domain] = used + urls
        return max(urls, min(host.queued, host.requisites))  # to which no budget applies


class HostTally:
    """The hosts counted by state, what is queued at them, and when the first of them may be contacted."""

    def __init__(
        self, now: float, max_wait_s: float, pace: Pace | None = None, budgets: PageBudgets | None = None
    ) -> None:
        self._now = now
        self._horizon = now + max_wait_s
        self.states = dict.fromkeys((*HOST_STATES, OVER_BUDGET), 0)
        self.next_at = float("inf")
        self.urls_queued = 0
        self.requisites_queued = 0
        self.urls_parked = 0  # queued at hosts that may not be contacted within `max_wait_s`
        self.urls_over_budget = 0  # queued, and not fetched by the budgets of hosts and domains
        self._budgets = budgets
        self._pace = pace or Pace(0.0, 1)
        self.ahead = Forecaster(max_wait_s)
        self.parked: Leaders[HostRecord] = Leaders(_PARKED_SHOWN)  # with the most URLs

    def add(self, host: HostRecord) -> None:
        """Count a host."""
        state = host_state_of(host, self._now)
        urls = host.queued
        if self._budgets is not None and state in _WITH_WORK:
            urls = self._budgets.take(host)
            state = state if urls else OVER_BUDGET
            self.urls_over_budget += host.queued - urls
            self.ahead.over_budget_urls = self.urls_over_budget
        self.states[state] += 1
        self.urls_queued += queued_pages(host)
        self.requisites_queued += host.requisites
        if max(host.next_at, host.parked_until) > self._horizon:
            self.urls_parked += queued_pages(host)
        if state == "parked":
            self.parked.offer(host.queued, host)
        if state in _WITH_WORK:
            next_at = max(self._now, host.next_at, host.parked_until)
            self.next_at = min(self.next_at, next_at)
            # The delay is that of the last request: a pace that was made slower since counts, too.
            interval_s = max(host.delay_s, self._pace.floor_s(host.name, None), host.latency_s)
            self.ahead.add(host.name, urls, interval_s, next_at - self._now)


def left_alone(hosts: Iterable[HostRecord], names: Collection[str]) -> str:
    """Return for people what a block of hosts or domains concerns. One pass over the hosts."""
    known: set[str] = set()
    queued = 0
    for host in hosts:
        found = {host.name, host.domain}.intersection(names)
        known |= found
        queued += host.queued if found else 0
    unknown = [name for name in names if name not in known]
    hint = f"; no host of this crawl yet: {', '.join(unknown)}" if unknown else ""
    return f"{plural(queued, 'queued URL')} left alone{hint}"
