"""What watches a run from beside it: once per second the gauges and conditions, every ten seconds the forecast."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gossamer.runtime.watch.conditions import Conditions
from gossamer.runtime.watch.figures_source import FiguresSource
from gossamer.runtime.watch.forecasting import Forecasting
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.machine import Machine

LOOK_S = 1.0


class RunWatch:
    def __init__(
        self,
        figures: FiguresSource,
        gauges: Gauges,
        conditions: Conditions,
        forecasting: Forecasting,
        measure: Callable[[], Machine],
    ) -> None:
        self._figures = figures
        self._gauges = gauges
        self._conditions = conditions
        self._forecasting = forecasting
        self._measure = measure

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_regularly())
            group.create_task(self._forecasting.run())

    async def _look_regularly(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Bring the gauges up to date, and report what has begun."""
        figures = self._figures.read()
        machine = self._measure()
        self._gauges.update(figures, machine)
        self._gauges.judge(self._figures.load())
        self._forecasting.age()
        self._conditions.look(figures, machine)
