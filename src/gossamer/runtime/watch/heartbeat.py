"""Emits the figures of a running crawl as an event, exactly every 50 pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.figures import Figures
from gossamer.runtime.watch.figures_source import FiguresSource

OnBeat: TypeAlias = Callable[[Figures], None]


class Heartbeat:
    """The heartbeats of one run; the hub calls `emit` when pages are a multiple of `hub.PAGES_PER_BEAT`."""

    def __init__(
        self,
        figures: FiguresSource,
        emitter: EventEmitter,
        now: Callable[[], float],
        on_beat: OnBeat | None = None,
    ) -> None:
        self._figures = figures
        self._emitter = emitter
        self._now = now
        self._on_beat = on_beat

    def emit(self) -> None:
        figures = self._figures.read()
        self._emitter.heartbeat(figures, self._now())
        if self._on_beat is not None:
            self._on_beat(figures)
