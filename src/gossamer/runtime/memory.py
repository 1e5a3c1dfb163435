"""Does a crawl stay below its ceiling of memory, and what is done where it comes near?

All that can be counted is bounded from the start (`settings/budget`). How large an answer is, is known when
it is there; so a crawl begins with as many requests at once as may all get the largest body, and makes
more with every answer, up to as many as answers of the size seen lately have room for, in their own part or
in what the others leave free: as TCP does, twice
as many with each round until memory was short for the first time, then one more. Where it is short there are half
as many, and what can be done without is let go, at most once a second. A crawl is never stopped
for its memory.

Pure: told what is in use, tells what to do. Costs 2 µs, 20 times a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gossamer.settings.budget import shown

SHORT: Final = 0.9  # of the ceiling
ROOM: Final = 0.75
RELIEF_S: Final = 1.0
LATELY: Final = 64  # answers, when it is about their size


class Use(Struct, frozen=True, gc=False):
    """What a crawl uses, and did so far."""

    private_bytes: int
    in_flight: int
    answers: int
    answer_bytes: int  # of all of them, on the wire and decoded


class Window:
    """How many requests may be out at once."""

    def __init__(self, least: int, most: int, body_bytes: int) -> None:
        self._least = least
        self._most = most
        self._body_bytes = body_bytes  # that all answers in flight may take together, whatever else is in use
        self._free_bytes = 0.0
        self._size = float(least)
        self._answers = 0  # up to `LATELY`
        self._mean_bytes = 0.0  # of one of these
        self._was_short = False

    @property
    def size(self) -> int:
        """Requests at once."""
        return int(self._size)

    def note_free(self, size: float) -> None:
        """Take note of how much memory nobody uses."""
        self._free_bytes = size
        self._size = min(self._size, self._room())

    def note_answers(self, count: int, size: int) -> None:
        """Take note of answers, and of their bytes: larger ones leave room for fewer."""
        self._answers = min(LATELY, self._answers + count)
        share = min(1.0, count / self._answers)  # the first ones count in full
        self._mean_bytes += share * (size / count - self._mean_bytes)
        self._size = min(self._size, self._room())

    def widen(self, answers: int) -> None:
        """Allow more, after so many answers."""
        more = answers / self._size if self._was_short else answers
        self._size = min(self._size + more, self._room())

    def halve(self) -> None:
        """Allow half as many."""
        self._was_short = True
        self._size = max(self._least, self._size / 2)

    def _room(self) -> float:
        size = max(self._body_bytes, self._free_bytes)
        return min(self._most, max(self._least, size / max(1.0, self._mean_bytes)))


class MemoryGuard:
    """Watches one ceiling."""

    def __init__(
        self, ceiling: int, window: Window, *, relieve: Callable[[], None], shrink: Callable[[], None]
    ) -> None:
        self._ceiling = ceiling
        self.window = window
        self._relieve = relieve  # costs time, but no quality
        self._shrink = shrink  # what can be done without
        self._before: Use | None = None
        self._next_relief_at = 0.0
        self._has_warned = False

    def note(self, use: Use, now: float) -> str:
        """Take note of what is in use; return a warning, once, or ''."""
        before, self._before = self._before or use, use
        answers = use.answers - before.answers
        self.window.note_free(ROOM * self._ceiling - use.private_bytes)
        if answers:
            self.window.note_answers(answers, use.answer_bytes - before.answer_bytes)
        if use.private_bytes < ROOM * self._ceiling:
            # A window that is not used says nothing about a larger one.
            if 2 * use.in_flight >= self.window.size:
                self.window.widen(answers)
        elif use.private_bytes >= SHORT * self._ceiling and now >= self._next_relief_at:
            self._next_relief_at = now + RELIEF_S
            self.window.halve()
            self._relieve()
            if use.private_bytes > self._ceiling:
                self._shrink()
        if use.private_bytes <= self._ceiling or self._has_warned:
            return ""
        self._has_warned = True
        return (
            f"{use.private_bytes / (1 << 20):.0f}M of memory in use, over the ceiling of {shown(self._ceiling)}: "
            "fewer requests at once, smaller caches"
        )
