"""Where do events go, and a line per fetch if one is requested?"""

from __future__ import annotations

from typing import Protocol

from gossamer.model.events import Event
from gossamer.model.records import FetchTask, QueuedUrl, Result


class EventSink(Protocol):
    """Accepts events in the order in which they happen."""

    def emit(self, event: Event) -> None:
        """Accept an event; it is written by the next flush, or at once if recovery depends on it."""
        ...

    def flush(self) -> None:
        """Write the events accepted so far."""
        ...

    def mark(self) -> tuple[str, int]:
        """Return the name of the file, and its length with everything accepted so far."""
        ...

    def close(self) -> None:
        """Flush and release the file."""
        ...


class FetchLog(Protocol):
    """Records fetches in the order in which they ended."""

    def record(self, task: FetchTask, url: QueuedUrl | None, result: Result, now: float) -> None:
        """Record a fetch. `url` is None for robots.txt, which is in no queue."""
        ...
