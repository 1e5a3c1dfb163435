"""What is measured of the stores on other machines that a run feeds. Changed by the thread of the commit only."""

from __future__ import annotations

from msgspec import Struct, field

from gossamer.model.figures import Histogram


class StoreStats(Struct):
    """Measurements of all stores of a run."""

    flush_time: Histogram = field(default_factory=Histogram)  # of a write, until the store has it
    failed_writes: int = 0
    pages: int = 0  # of stores that get single pages, like the next
    batches: int = 0
