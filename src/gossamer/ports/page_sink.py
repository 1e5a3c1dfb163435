"""Where the bytes of pages go.

A worker has a sink per `--store`. For each complete answer it calls, in this order: `prepare` (CPU only, in the
thread that reads the answer), the parser, then `write` (one answer at a time: in the event loop, or in a thread if it
has over 8 MB). About once per second the hub requests `sync`, and the ledger refers to what was written only after it
has returned; `sync` and `close` run in a separate thread.
"""

from __future__ import annotations

from typing import Protocol

from gossamer.exchanges import FetchedPage, Volume
from gossamer.records import Result

__all__ = ["FetchedPage", "PageSink", "Volume"]


class PageSink(Protocol):
    """Stores pages. Raises a GossamerError if it can store no more: the worker stops then."""

    @property
    def volume(self) -> Volume:
        """What it has compressed so far; nothing if it does not compress."""
        ...

    def prepare(self, page: FetchedPage) -> None:
        """Compute what needs no result, such as digests; other readers of the answer may use it."""
        ...

    def write(self, page: FetchedPage, result: Result) -> None:
        """Store an answer. On return it survives the death of this process; where it is goes into `result`."""
        ...

    def sync(self) -> None:
        """Return when all that was written before the call survives a power cut."""
        ...

    def close(self) -> None:
        """Finish what is open."""
        ...
