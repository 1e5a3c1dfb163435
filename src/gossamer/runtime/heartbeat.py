"""Emits the figures of a running crawl as an event, every 50 pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.runtime.figures_source import FiguresSource

PAGES_PER_BEAT = 50
LOOK_INTERVAL_S = 0.1


class Heartbeat:
    """The heartbeats of one run."""

    def __init__(self, crawl: Crawl, figures: FiguresSource, emitter: EventEmitter, now: Callable[[], float]) -> None:
        self._crawl = crawl
        self._figures = figures
        self._emitter = emitter
        self._now = now

    def emit(self) -> None:
        """Emit the current figures."""
        self._emitter.heartbeat(self._figures.read(), self._now())

    async def run(self) -> None:
        """Emit a heartbeat whenever 50 more pages are fetched, until cancelled."""
        due_at = self._crawl.totals.pages + PAGES_PER_BEAT
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            pages = self._crawl.totals.pages
            if pages >= due_at:
                due_at = pages - pages % PAGES_PER_BEAT + PAGES_PER_BEAT
                self.emit()
