"""A terminal with a view of a few lines at its end, and other lines that are printed above it.

Every change is one write: back to the beginning of the view, the new lines, the view again. The cursor is always below
the view at the beginning of a line, so that whatever ends the process, the next prompt has a line of its own. Lines
may come from any thread.

The lines above belong to others, and must never be overwritten. The view has at least one row per line, on every
terminal. If the terminal was made so narrow that a line does not fit any more, it may have more: some terminals wrap
such lines, others cut them, and one that wrapped them may join rows again when it is made wider, whatever was written
there since. Hence the way back is one row per line; after such a change these rows are cleared, and the view begins
anew below a blank row. A rest of the old view may be left above it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TextIO

from msgspec import Struct

from gossamer.telemetry.text import raw_stream, safe

_UP = "\x1b[{}A"
_CLEAR_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"
MAX_WAITING = 200  # lines that wait for the next refresh
_UNKNOWN = os.terminal_size((80, 24))


class ViewLine(Struct, frozen=True):
    """A line of the view, as it is read and as it is written, with colours."""

    text: str
    styled: str


class Screen:
    """Writes to a terminal, or plain lines to anything else."""

    def __init__(self, out: TextIO, size: Callable[[], os.terminal_size] | None = None) -> None:
        self._out = raw_stream(out)
        self._size = size or self._measured
        self.is_terminal = self._out.isatty() and os.environ.get("TERM", "") != "dumb"
        self._lock = threading.Lock()
        self._shown: list[int] = []  # lengths of the lines of the view
        self._waiting: list[str] = []
        self._has_view = False  # it is shown from time to time

    def size(self) -> os.terminal_size:
        """Return how large the terminal is now."""
        return self._size()

    def _measured(self) -> os.terminal_size:
        try:
            measured = os.get_terminal_size(self._out.fileno())
        except (OSError, ValueError):
            return _UNKNOWN
        return measured if measured.columns and measured.lines else _UNKNOWN

    def print(self, line: str, *, at_once: bool = True) -> None:
        """Print a line above the view; if not at once, with the next refresh."""
        with self._lock:
            self._waiting.append(safe(line))
            if at_once or not self._has_view or len(self._waiting) >= MAX_WAITING:
                self._write(self._back() + self._printed())

    def show(self, lines: Sequence[ViewLine]) -> None:
        """Replace the view; without lines it is removed."""
        with self._lock:
            self._has_view = bool(lines) and self.is_terminal
            back = self._back()
            printed = self._printed()
            self._shown = [len(line.text) for line in lines] if self.is_terminal else []
            # Lines are overwritten in place, so that nothing flickers.
            view = "".join(f"{line.styled}{_CLEAR_LINE}\n" for line in lines)
            self._write(f"{back}{printed}{view}{_CLEAR_BELOW}" if self.is_terminal else printed)

    def _back(self) -> str:
        """Return the control sequence to the beginning of the view, which counts as removed."""
        if not self._shown:
            return ""
        back = "\r" + _UP.format(len(self._shown))
        is_whole = max(self._shown) < self.size().columns
        self._shown = []
        return back if is_whole else f"{back}{_CLEAR_BELOW}\n"

    def _printed(self) -> str:
        """Return the lines that wait, and clear the view if there are any."""
        if not self._waiting:
            return ""
        lines = self._waiting
        self._waiting = []
        clear = _CLEAR_BELOW if self.is_terminal else ""
        return clear + "".join(f"{line}\n" for line in lines)

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
