"""The crawl's one time line: the wall clock read once, plus monotonic time since.

Valid as a date, never runs backwards, and the same in every process of a machine, since
they share Linux's monotonic clock.
"""

from __future__ import annotations

import time

from msgspec import Struct


def lease_clock() -> float:
    """Return the time by which leases are counted: it goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class TimeLine(Struct, frozen=True):
    """Where the line starts: wall time and monotonic time of one instant."""

    wall_at_start: float
    monotonic_at_start: float

    @classmethod
    def begin(cls) -> TimeLine:
        """Start a time line now."""
        return cls(time.time(), time.monotonic())

    def now(self) -> float:
        return self.wall_at_start + (time.monotonic() - self.monotonic_at_start)
