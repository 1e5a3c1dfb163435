"""How far is a verb that reads a whole crawl? One line on a terminal, and none elsewhere.

    export  5,000 of 14,040 pages  36 %  12 s left

Counting costs a comparison; the line is written at most five times per second, and is gone when the work is done.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self, TextIO, TypeVar

from gossamer.telemetry.text import count, duration, raw_stream

EVERY_S = 0.2
_CHECK_EVERY = 16  # steps between two readings of the clock
_CLEAR = "\r\x1b[K"
T = TypeVar("T")


class ProgressLine:
    """A line about work of a known (or, with 0, unknown) length; use it with `with`."""

    def __init__(
        self,
        verb: str,
        total: int,
        unit: str = "",
        out: TextIO | None = None,
        *,
        shown: Callable[[float], str] = count,
    ) -> None:
        self._verb = verb
        self._total = total
        self._unit = f" {unit}" if unit else ""
        self._shown = shown  # a number as it is read
        self._out = raw_stream(out or sys.stderr)
        self._is_shown = self._out.isatty() and os.environ.get("TERM", "") != "dumb"
        self._began = self._next = 0.0
        self._done = 0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._next = self._began + EVERY_S
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            self._write(_CLEAR)

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items and count them."""
        if not self._is_shown:
            yield from items
            return
        for item in items:
            self.step()
            yield item

    def step(self) -> None:
        """Count one more."""
        self._done += 1
        if self._done % _CHECK_EVERY == 0:
            self.show(self._done)

    def show(self, done: int) -> None:
        """Show how much is done, at most five times per second."""
        self._done = done
        if not self._is_shown:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            columns = self._columns()
            self._write(_CLEAR + self.text(now - self._began)[: columns - 1])

    def text(self, seconds: float) -> str:
        """Return the line after that many seconds."""
        done = self._done
        total = self._total
        if total <= 0:
            return f"{self._verb}  {self._shown(done)}{self._unit}"
        share = min(1.0, done / total)
        left = seconds * (1 - share) / share if share else 0.0
        rest = f"  {duration(left)} left" if share and seconds > 1 else ""
        return f"{self._verb}  {self._shown(done)} of {self._shown(total)}{self._unit}  {100 * share:.0f} %{rest}"

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:  # the terminal is gone: no reason to stop
            self._is_shown = False
