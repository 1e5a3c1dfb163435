"""Is the event loop held? A thread looks, since the loop cannot say so itself.

If the loop has not run for `HELD_S`, the thread prints where the loop's thread is, and has a `warning` event emitted
when the loop runs again. If the thread itself was late, the whole process stood still (it was stopped, or C code
held the interpreter's lock), and the loop is given another look. Costs: one wake-up per second.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

HELD_S = 5.0
LOOK_S = 1.0
RULE = "loop_held"
_FRAMES = 8
_PACKAGE = Path(__file__).parents[2]


class Watchdog:
    """Watches the running loop from a thread; use as `with Watchdog(...)`, in the loop's thread."""

    def __init__(
        self,
        last_run_at: Callable[[], float],
        on_held: Callable[[str], None],
        warn: Callable[[str, str], None],
        *,
        held_s: float = HELD_S,
        look_s: float = LOOK_S,
    ) -> None:
        self._last_run_at = last_run_at  # when the loop last ran, by time.monotonic
        self._on_held = on_held  # called in the thread, at once
        self._warn = warn  # called in the loop: the name of a rule and a text
        self._held_s = held_s
        self._look_s = look_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        reported_at = 0.0  # when the loop had last run before the hold that was reported
        looked_at = monotonic()
        while not self._ended.wait(self._look_s):
            now = monotonic()
            last = self._last_run_at()
            was_late = now - looked_at > self._look_s + self._held_s / 2
            looked_at = now
            if now - last > self._held_s and last != reported_at and not was_late:
                reported_at = last
                self._report(now - last)

    def _report(self, held_s: float) -> None:
        text = f"the event loop has been held for {held_s:.1f} s, at {self._place()}"
        self._on_held(text)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._warn, RULE, text)

    def _place(self) -> str:
        """Return the innermost calls of the loop's thread, the innermost first."""
        frame = sys._current_frames().get(self._loop_thread)
        stack = traceback.extract_stack(frame)[-_FRAMES:] if frame is not None else []
        return " < ".join(f"{_short(call.filename)}:{call.lineno} {call.name}" for call in reversed(stack))


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(_PACKAGE)) if path.is_relative_to(_PACKAGE) else path.name
