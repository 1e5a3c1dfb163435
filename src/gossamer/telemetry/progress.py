"""What the crawl is doing, while it runs: one line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TextIO

from msgspec import Struct

from gossamer.telemetry.text import count, duration, size

TERMINAL_INTERVAL_S = 0.2
PLAIN_INTERVAL_S = 5.0
RATE_WINDOW_S = 5.0


class Glance(Struct, frozen=True):
    """The state of a crawl at one moment."""

    seconds: float
    pages: int
    max_pages: int | None
    bytes: int
    queued: int
    in_flight: int
    errors: int
    domains: int
    hosts_ready: int
    hosts_waiting: int


class Progress:
    """Prints glances until it is stopped."""

    def __init__(self, look: Callable[[], Glance], out: TextIO = sys.stderr) -> None:
        self._look = look
        self._out = out
        self._is_terminal = out.isatty()
        self._recent: deque[tuple[float, int]] = deque()

    async def run(self) -> None:
        """Print until cancelled."""
        try:
            while True:
                await asyncio.sleep(TERMINAL_INTERVAL_S if self._is_terminal else PLAIN_INTERVAL_S)
                self._print(self._look())
        finally:
            if self._is_terminal:
                self._out.write("\r\x1b[K")
                self._out.flush()

    def _print(self, glance: Glance) -> None:
        line = self.line(glance)
        self._out.write(f"\r\x1b[K{line[: self._width()]}" if self._is_terminal else line + "\n")
        self._out.flush()

    def _width(self) -> int:
        # One column is left free: a line that fills the last one wraps on some terminals.
        try:
            return os.get_terminal_size(self._out.fileno()).columns - 1
        except OSError:
            return 79

    def line(self, glance: Glance) -> str:
        """Return a glance in one line."""
        goal = f"/{count(glance.max_pages)}" if glance.max_pages else ""
        parts = [
            f"{count(glance.pages)}{goal} pages",
            f"{self._rate(glance):.0f}/s",
            f"{count(glance.queued)} queued",
            f"{glance.in_flight} in flight",
            f"{count(glance.domains)} domains",
            f"{count(glance.errors)} errors",
            size(glance.bytes),
            duration(glance.seconds),
            self._bound_by(glance),
        ]
        return " · ".join(parts)

    def _rate(self, glance: Glance) -> float:
        self._recent.append((glance.seconds, glance.pages))
        while len(self._recent) > 2 and glance.seconds - self._recent[0][0] > RATE_WINDOW_S:
            self._recent.popleft()
        since, pages = self._recent[0]
        return (glance.pages - pages) / (glance.seconds - since) if glance.seconds > since else 0.0

    @staticmethod
    def _bound_by(glance: Glance) -> str:
        """Say what the crawl waits for."""
        if glance.hosts_ready:
            return "busy"
        if glance.in_flight:
            return "waiting for answers"
        return f"waiting politely for {count(glance.hosts_waiting)} hosts"
