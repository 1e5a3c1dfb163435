"""What a part of the engine remembers of shards: it is loaded when one is taken, and forgotten when it is released."""

from __future__ import annotations

from collections.abc import Collection

from gossamer.model.records import HostRecord


class ShardMemory:
    """A part with such a memory; by default it is empty."""

    def load(self, shard: int | None) -> None:
        """Restore what an earlier run or owner stored of a shard, or of all of them (None)."""

    def load_host(self, host: HostRecord) -> None:
        """Restore what follows from the record of a host that has URLs queued."""

    def save(self) -> None:
        """Add what has changed since the last call to the ledger's pending changes."""

    def forget(self, shards: Collection[int]) -> None:
        """Forget shards."""
