"""What a crawl is doing while it runs: one line that is rewritten on a terminal, plain lines elsewhere.

A plain line has the time and the average speed, and appears at least every `PLAIN_INTERVAL_S`; on request every
50 pages too, with each heartbeat.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from time import time
from typing import TextIO

from gossamer.figures import Figures
from gossamer.telemetry.text import count, duration, raw_stream, size

TERMINAL_INTERVAL_S = 0.2
PLAIN_INTERVAL_S = 30.0
LOOK_INTERVAL_S = 1.0
RATE_WINDOW_S = 5.0


class Progress:
    """Prints the figures of a crawl until it is cancelled."""

    def __init__(self, out: TextIO | None = None, *, every_beat: bool = False) -> None:
        self._out = raw_stream(out or sys.stderr)
        self._every_beat = every_beat
        self._is_terminal = self._out.isatty()
        self._recent: deque[Figures] = deque()  # of the last seconds, oldest first
        self._printed_at_s = 0.0  # in the time of the run

    async def run(self, read: Callable[[], Figures]) -> None:
        """Print until cancelled."""
        try:
            while True:
                await asyncio.sleep(TERMINAL_INTERVAL_S if self._is_terminal else LOOK_INTERVAL_S)
                self.show(read())
        finally:
            if self._is_terminal:
                self._out.write("\r\x1b[K")
                self._out.flush()

    def show(self, figures: Figures) -> None:
        """Print the line on a terminal; elsewhere only if the last one is old."""
        if self._is_terminal:
            self._write(f"\r\x1b[K{self.line(figures)[: self._width()]}")
        elif figures.run_seconds - self._printed_at_s >= PLAIN_INTERVAL_S:
            self._print_plain(figures)

    def on_beat(self, figures: Figures) -> None:
        """Print a plain line if one is wanted with every heartbeat."""
        if self._every_beat and not self._is_terminal:
            self._print_plain(figures)

    def _print_plain(self, figures: Figures) -> None:
        self._printed_at_s = figures.run_seconds
        at = datetime.fromtimestamp(time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        average = f"{figures.run_pages_per_second:.1f}/s on average"
        self._write(f"{at} {self.line(figures)} · {average}\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _width(self) -> int:
        # One column is left free: a line that fills the last one wraps on some terminals.
        try:
            return os.get_terminal_size(self._out.fileno()).columns - 1
        except OSError:
            return 79

    def line(self, figures: Figures) -> str:
        """Return figures in one line; the rate is that of the last five seconds."""
        self._recent.append(figures)
        while len(self._recent) > 2 and figures.run_seconds - self._recent[0].run_seconds > RATE_WINDOW_S:
            self._recent.popleft()
        return progress_line(figures, figures.pages_per_second_since(self._recent[0]))


def progress_line(figures: Figures, pages_per_second: float) -> str:
    """Return figures in one line."""
    totals = figures.totals
    goal = f"/{count(figures.max_pages)}" if figures.max_pages else ""
    parts = [
        f"{count(totals.pages)}{goal} pages",
        f"{pages_per_second:.0f}/s",
        f"{count(figures.urls_queued)} queued",
        f"{figures.in_flight} in flight",
        f"{count(totals.unique_domains)} domains",
        f"{count(totals.errors)} errors",
        size(totals.bytes),
        duration(figures.run_seconds),
        _bound_by(figures),
    ]
    return " · ".join(parts)


def _bound_by(figures: Figures) -> str:
    """Return what the crawl waits for."""
    if figures.hosts.get("ready"):
        return "busy"
    if figures.in_flight:
        return "waiting for answers"
    waiting = figures.hosts.get("waiting", 0)
    return f"waiting politely for {count(waiting)} host{'s' * (waiting != 1)}"
