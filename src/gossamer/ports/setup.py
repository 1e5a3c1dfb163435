"""What creates the things that a ledger, a catalog or a feed needs on its servers, before a crawl uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

MAX_PARTITIONS = 1024
DEFAULT_PARTITIONS = 64
WANTED_COPIES = 3


class SetupOptions(Struct, frozen=True):
    """How things are created; None: as is right for the servers that there are."""

    replication: int | None = None
    partitions: int | None = None
    buckets: int | None = None

    def copies(self, servers: int) -> int:
        """Return how many copies there are to be of everything."""
        return self.replication or max(1, min(WANTED_COPIES, servers))


class Setup(Protocol):
    """What the module of a backend provides: one function."""

    def init(self, url: str, options: SetupOptions) -> Sequence[str]:
        """Create what is missing, check versions and rights; return lines that say what was created and what was there.

        May be called again: what is there is left as it is. Raises UsageError if something cannot be created or used.
        """
        ...
