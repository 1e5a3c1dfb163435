"""Closing the changes so far, and making them durable.

`seal` is cheap and runs in the event loop; writing waits for a disk and may run in a thread, while
reads and further changes go on. A sealed commit is a value: the same rows can be sent by shard to
another machine's engine before, or instead of, the local write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gossamer.model.state import Row

__all__ = ["CommitLog", "Row", "SealedChanges"]


class SealedChanges(Protocol):
    """The changes of one commit. All become durable together or not at all."""

    def by_shard(self) -> Mapping[int, list[Row]]:
        """Return the rows that belong to a shard, sorted by table and key."""
        ...

    def unsharded(self) -> list[Row]:
        """Return the rows that belong to the crawl or to this node: contents, signatures, archives, state."""
        ...

    def write(self) -> None:
        """Make the changes durable. Called once; the next `seal` comes after it."""
        ...


class CommitLog(Protocol):
    """What the hub needs of a ledger."""

    def seal(self) -> SealedChanges:
        """Close the changes so far; one commit is in progress at a time."""
        ...
