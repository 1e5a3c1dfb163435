"""Forecasts how long a running crawl needs: one pass over the hosts in memory, every ten seconds.

A pass goes in slices, between which the event loop does its other work: 100,000 hosts take about 0.3 s in all. With
more than 20,000 hosts passes are rarer, so that they take less than 1 % of a core; with few hosts a pass costs next to
nothing, and is made every second. What is swapped out is not read: the forecast says how many URLs that are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from math import ceil
from time import monotonic

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import HostSlot
from gossamer.model.figures import NextRetry, ParkedHost
from gossamer.model.records import HostRecord
from gossamer.runtime.watch.gauges import Gauges
from gossamer.telemetry.forecast import Forecaster, ForecastLimits

FIRST_S = 2.0
EVERY_S = 10.0
EVERY_S_FEW = 1.0
FEW_HOSTS = 500  # 1 ms, 60 ms
MANY_HOSTS = 20_000
SLICE_S = 0.004
_HOSTS_PER_LOOK = 64  # at the clock


class GateLoads:
    """How many requests go to each address and domain, if these have a delay of their own."""

    def __init__(self, limits: FrontierLimits) -> None:
        self._limits = limits
        self.have_delay = limits.has_gate_delay
        self._at_address: Counter[str] = Counter()
        self._in_domain: Counter[str] = Counter()

    def add(self, record: HostRecord, urls: int) -> None:
        """Add the requests to a host."""
        self._in_domain[record.domain] += urls
        if record.addresses:
            self._at_address[record.addresses[0]] += urls

    def min_s(self) -> float:
        """Return how long the one takes that takes longest."""
        address_s = self._limits.address_delay_s * max(self._at_address.values(), default=0)
        return max(address_s, self._limits.domain_delay_s * max(self._in_domain.values(), default=0))


class _Pass:
    """One pass over the hosts in memory."""

    def __init__(self, frontier: Frontier, limits: ForecastLimits, max_wait_s: float, now: float) -> None:
        self._frontier = frontier
        self._view = frontier.view
        self._limits = limits
        self._forecaster = Forecaster(max_wait_s)
        self._max_wait_s = max_wait_s
        self._gates = GateLoads(frontier.limits)
        self._has_budgets = frontier.limits.has_budgets
        self._left: dict[str, int] = {}  # pages that the budgets of domains allow, besides those of hosts before
        self._seen = 0
        self.now = now
        self.parked_hosts = 0
        self.next_parked: ParkedHost | None = None
        self.next_retry: NextRetry | None = None

    def add(self, host: HostSlot) -> None:
        """Add a host. 1.5 µs."""
        self._seen += host.record.queued
        ahead = self._view.ahead(host, self.now)
        urls = self._within_budget(host, ahead.urls) if self._has_budgets else ahead.urls
        self._forecaster.over_budget_urls += ahead.urls - urls
        if not urls:
            return
        if host.record.parked_until > self.now:
            self.parked_hosts += 1
            if self.next_parked is None or self.now + ahead.wait_s < self.next_parked.until:
                self.next_parked = ParkedHost(host.name, self.now + ahead.wait_s, host.record.park_reason)
        if ahead.retries and (first := self._view.next_retry(host)) is not None:
            self._forecaster.retried_urls += ahead.retries
            if self.next_retry is None or first[0] < self.next_retry.at:
                self.next_retry = NextRetry(first[1], first[0])
        # It was parked for longer than the crawl waits, or will be if it fails once more: it may never come back.
        if ahead.is_failing and max(ahead.wait_s, ahead.park_s) > self._max_wait_s:
            self._forecaster.add_parked(urls)
            return
        untried = max(0, urls - ahead.retries)
        more = ahead.more_requests + untried * (self._limits.requests_per_url - 1.0)
        self._forecaster.add(host.name, urls, ahead.interval_s, ahead.wait_s, more_requests=more, last_s=ahead.last_s)
        if self._gates.have_delay:
            self._gates.add(host.record, urls)

    def _within_budget(self, host: HostSlot, urls: int) -> int:
        """Return how many of a host's URLs will be fetched, if as many of them are pages as of those before."""
        pages_per_url = self._limits.pages_per_url
        own = self._view.budget_left(host)
        if own is not None:
            urls = min(urls, ceil(own / pages_per_url))
        of_domain = self._view.domain_budget_left(host)
        if of_domain is not None:
            left = self._left.setdefault(host.domain.name, ceil(of_domain / pages_per_url))
            urls = min(urls, left)
            self._left[host.domain.name] = left - urls
        return urls

    def end(self) -> Forecaster:
        """Return the forecaster, with what concerns no single host."""
        forecaster = self._forecaster
        forecaster.settle()
        forecaster.min_s = self._gates.min_s()
        forecaster.unknown_urls = max(0, self._frontier.counts.queued - self._seen)
        return forecaster


class Forecasting:
    """Brings the forecast up to date while a crawl runs."""

    def __init__(
        self,
        frontier: Frontier,
        gauges: Gauges,
        limits: Callable[[], ForecastLimits],
        max_wait_s: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._frontier = frontier
        self._gauges = gauges
        self._limits = limits
        self._max_wait_s = max_wait_s
        self._now = now
        self._last: tuple[Forecaster, ForecastLimits, float] | None = None

    async def run(self) -> None:
        """Forecast until cancelled."""
        await asyncio.sleep(FIRST_S)
        while True:
            hosts = await self.look()
            await asyncio.sleep(EVERY_S * max(1.0, hosts / MANY_HOSTS) if hosts > FEW_HOSTS else EVERY_S_FEW)

    async def look(self) -> int:
        """Make one pass; return over how many hosts."""
        limits = self._limits()
        looked = _Pass(self._frontier, limits, self._max_wait_s(), self._now())
        hosts = self._frontier.view.hosts()
        begun = monotonic()
        for number, host in enumerate(hosts):
            if number % _HOSTS_PER_LOOK == 0 and monotonic() - begun > SLICE_S:
                await asyncio.sleep(0)
                begun = monotonic()
            looked.add(host)
        gauges = self._gauges
        forecaster = looked.end()
        gauges.parked_hosts = looked.parked_hosts
        gauges.parked_urls = forecaster.parked_urls
        gauges.retried_urls = forecaster.retried_urls
        gauges.over_budget_urls = forecaster.over_budget_urls
        gauges.next_parked = looked.next_parked
        gauges.next_retry = looked.next_retry
        self._last = forecaster, limits, looked.now
        self.age()
        return len(hosts)

    def age(self) -> None:
        """Let the time pass in the last forecast. 0.1 ms, once per second."""
        if self._last is not None:
            forecaster, limits, made_at = self._last
            self._gauges.forecast = forecaster.forecast(limits, self._now() - made_at)
