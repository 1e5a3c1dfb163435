"""Forecasts how long a running crawl needs: one pass over the hosts in memory, every ten seconds.

A pass goes in slices, between which the event loop does its other work: 100,000 hosts take about 0.2 s in all. What is
swapped out is not read: the forecast says how many URLs that are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from gossamer.core.frontier import Frontier
from gossamer.runtime.gauges import Gauges
from gossamer.telemetry.forecast import Forecaster, ForecastLimits

FIRST_S = 2.0
EVERY_S = 10.0
SLICE_S = 0.004
_HOSTS_PER_LOOK = 64  # at the clock


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

    async def run(self) -> None:
        """Forecast until cancelled."""
        await asyncio.sleep(FIRST_S)
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Make one pass."""
        view, forecaster, now = self._frontier.view, Forecaster(self._max_wait_s()), self._now()
        begun, parked, seen = monotonic(), 0, 0
        for number, host in enumerate(view.hosts()):
            if number % _HOSTS_PER_LOOK == 0 and monotonic() - begun > SLICE_S:
                await asyncio.sleep(0)
                begun = monotonic()
            seen += host.record.queued
            urls, interval_s, wait_s = view.ahead(host, now)
            if urls:
                parked += host.record.parked_until > now
                forecaster.add(host.name, urls, interval_s, wait_s)
        forecaster.unknown_urls = max(0, self._frontier.counts.queued - seen)
        gauges = self._gauges
        gauges.parked_hosts, gauges.parked_urls = parked, forecaster.parked_urls
        gauges.forecast = forecaster.forecast(self._limits())
