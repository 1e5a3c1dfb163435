"""Forecasts how long a running crawl needs: one pass over the hosts in memory, every ten seconds.

A pass goes in slices, between which the event loop does its other work: 100,000 hosts take about 0.3 s in all. With
more than 20,000 hosts passes are rarer, so that they take less than 1 % of a core; with few hosts a pass costs next to
nothing, and is made every second. What is swapped out is not read: the forecast says how many URLs that are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import monotonic

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.model.figures import ParkedHost
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
        view = self._frontier.view
        forecaster = Forecaster(self._max_wait_s())
        now = self._now()
        begun = monotonic()
        parked = 0
        seen = 0
        first: ParkedHost | None = None
        hosts = view.hosts()
        gates = GateLoads(self._frontier.limits)
        for number, host in enumerate(hosts):
            if number % _HOSTS_PER_LOOK == 0 and monotonic() - begun > SLICE_S:
                await asyncio.sleep(0)
                begun = monotonic()
            seen += host.record.queued
            urls, interval_s, wait_s = view.ahead(host, now)
            if urls:
                if host.record.parked_until > now:
                    parked += 1
                    if first is None or now + wait_s < first.until:
                        first = ParkedHost(host.name, now + wait_s, host.record.park_reason)
                forecaster.add(host.name, urls, interval_s, wait_s)
                if gates.have_delay:
                    gates.add(host.record, urls)
        forecaster.min_s = gates.min_s()
        forecaster.unknown_urls = max(0, self._frontier.counts.queued - seen)
        self._gauges.parked_hosts = parked
        self._gauges.parked_urls = forecaster.parked_urls
        self._gauges.next_parked = first
        self._last = forecaster, self._limits(), now
        self.age()
        return len(hosts)

    def age(self) -> None:
        """Let the time pass in the last forecast. 0.1 ms, once per second."""
        if self._last is not None:
            forecaster, limits, made_at = self._last
            self._gauges.forecast = forecaster.forecast(limits, self._now() - made_at)
