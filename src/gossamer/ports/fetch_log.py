"""A log of fetches, one line each, in the order in which they ended."""

from __future__ import annotations

from typing import Protocol

from gossamer.model.records import Order, QueuedUrl, Result


class FetchLog(Protocol):
    """Records fetches that have ended."""

    def record(self, order: Order, url: QueuedUrl | None, result: Result, now: float) -> None:
        """Record a fetch. `url` is None for robots.txt, which is in no queue."""
        ...
