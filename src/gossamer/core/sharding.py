"""Which shard does a domain belong to, and which node owns a shard?

Both by rendezvous over fixed points on a ring of hashes: when a node joins or leaves,
only its own share of the shards moves. The same answer on every machine and every run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from xxhash import xxh3_64_intdigest

POINTS_PER_NODE = 128


def shard_of(domain: str, shards: int) -> int:
    """Return the shard of a registrable domain: a jump consistent hash, so growing moves the fewest."""
    key = xxh3_64_intdigest(domain.encode())
    bucket, jump = -1, 0
    while jump < shards:
        bucket = jump
        key = (key * 2862933555777941757 + 1) & 0xFFFFFFFFFFFFFFFF
        jump = int((bucket + 1) * (1 << 31) / ((key >> 33) + 1))
    return bucket


class Ring:
    """Nodes on a ring, each at many points."""

    def __init__(self, nodes: Iterable[str]) -> None:
        points = sorted(
            (xxh3_64_intdigest(f"{node}#{n}".encode()), node) for node in set(nodes) for n in range(POINTS_PER_NODE)
        )
        self._positions = [position for position, _ in points]
        self._nodes = [node for _, node in points]

    def owner(self, shard: int) -> str:
        """Return the node that owns a shard."""
        if not self._nodes:
            raise ValueError("a ring without nodes owns nothing")
        at = bisect_right(self._positions, xxh3_64_intdigest(shard.to_bytes(8, "big")))
        return self._nodes[at % len(self._nodes)]
