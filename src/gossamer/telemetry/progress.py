"""What a crawl is doing while it runs: a live view on a terminal, plain lines elsewhere.

The view is drawn anew at most four times per second. A plain line has the time and the average speed, and appears at
least every `PLAIN_INTERVAL_S` in which the crawl is not paused; on request every 50 pages too, with each heartbeat.
Other lines go through `screen`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from time import time
from typing import TextIO

from gossamer.model.figures import Figures
from gossamer.telemetry.screen import Screen
from gossamer.telemetry.text import count, duration, plural, size

TERMINAL_INTERVAL_S = 0.25
PLAIN_INTERVAL_S = 30.0
LOOK_INTERVAL_S = 1.0


class Progress:
    """Shows the figures of a crawl until it is cancelled or ended."""

    def __init__(self, screen: Screen | TextIO | None = None, *, every_beat: bool = False) -> None:
        self.screen = screen if isinstance(screen, Screen) else Screen(screen or sys.stderr)
        self._every_beat = every_beat
        self._has_colors = "NO_COLOR" not in os.environ
        self._printed_at_s = 0.0  # in the time of the run
        self._is_over = False

    async def run(self, read: Callable[[], Figures]) -> None:
        """Show until cancelled."""
        try:
            while True:
                await asyncio.sleep(TERMINAL_INTERVAL_S if self.screen.is_terminal else LOOK_INTERVAL_S)
                self.show(read())
        finally:
            self.end()

    def end(self) -> None:
        """Remove the view for good: the crawl is stopping, and further lines must be readable."""
        self._is_over = True
        self.screen.show([])

    def show(self, figures: Figures) -> None:
        """Show the view on a terminal; elsewhere print a line if the last one is old."""
        if self.screen.is_terminal:
            self._show_view(figures)
        elif figures.run_seconds - self._printed_at_s >= PLAIN_INTERVAL_S:
            self._print_plain(figures)

    def _show_view(self, figures: Figures) -> None:
        if self._is_over:
            return
        from gossamer.telemetry.view import view_of

        room = self.screen.size()
        lines = view_of(figures, room.columns, has_colors=self._has_colors)
        self.screen.show(lines[: max(1, room.lines - 1)])

    def on_beat(self, figures: Figures) -> None:
        """Print a plain line if one is wanted with every heartbeat."""
        if self._every_beat and not self.screen.is_terminal:
            self._print_plain(figures)

    def _print_plain(self, figures: Figures) -> None:
        self._printed_at_s = figures.run_seconds
        at = datetime.fromtimestamp(time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        average = f"{figures.run_pages_per_second:.1f}/s on average"
        self.screen.print(f"{at} {progress_line(figures)} · {average}")


def progress_line(figures: Figures) -> str:
    from gossamer.telemetry.view import time_left

    totals = figures.totals
    rate = figures.rates.get("10s")
    goal = f"/{count(figures.max_pages)}" if figures.max_pages else ""
    left = time_left(figures)
    parts = [
        f"{count(totals.pages)}{goal} page{'' if (figures.max_pages or totals.pages) == 1 else 's'}",
        f"{rate.pages if rate is not None else figures.run_pages_per_second:.0f}/s",
        f"{count(figures.urls_queued)} queued",
        *([plural(totals.visits, "visit")] if figures.revisits is not None else []),
        f"{figures.in_flight} in flight",
        plural(totals.unique_domains, "domain"),
        plural(totals.errors, "error"),
        size(totals.bytes),
        duration(figures.run_seconds),
        *([f"bound by {figures.bound_by.resource}"] if figures.bound_by is not None else []),
        *([left] if left else []),
    ]
    return " · ".join(parts)
