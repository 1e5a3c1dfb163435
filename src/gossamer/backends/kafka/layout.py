"""How the rows of a crawl are divided into partitions of Cassandra, and its links into those of a Kafka topic.

A *range* is a run of shards; each has a partition of the topic. Nodes are given whole ranges, so a node reads the links
of its own shards only. In Cassandra a range is divided further, into `buckets`: the more URLs are expected, the more of
them, so that no partition grows beyond about 100 MB. Both are decided when a crawl starts, and never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from msgspec import Struct

from gossamer.core.url.identity import SHARD_COUNT, key_ranges, shard_of
from gossamer.model.errors import UsageError

MAX_PARTITIONS = 1024
MAX_BUCKETS = 256
DIVIDED = frozenset({"urls", "queue", "changes"})  # tables with a row per URL


class Layout(Struct, frozen=True):
    """See the module."""

    partitions: int = 64  # of the topic: ranges of shards
    buckets: int = 1

    @property
    def shards_per_range(self) -> int:
        """How many shards a range has."""
        return SHARD_COUNT // self.partitions

    @property
    def parts(self) -> int:
        """How many partitions each table has in Cassandra."""
        return self.partitions * self.buckets

    def range_of(self, shard: int) -> int:
        """Return the range of a shard."""
        return shard // self.shards_per_range

    def part_of(self, table: str, key: bytes) -> int:
        """Return where a row of a shard is."""
        first = self.range_of(shard_of(key)) * self.buckets
        return first + key[-1] % self.buckets if table in DIVIDED else first

    def part_of_hash(self, key: bytes) -> int:
        """Return where something is whose key is a hash."""
        return int.from_bytes(key[:4], "big") * self.parts >> 32

    def parts_with(self, first_byte: int) -> range:
        """Return where there may be hashes that begin with a byte."""
        low = bytes((first_byte, 0, 0, 0))
        high = bytes((first_byte, 255, 255, 255))
        return range(self.part_of_hash(low), self.part_of_hash(high) + 1)

    def slices(self, table: str, shards: Collection[int]) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield where the rows of shards are: part, first key, and the key after the last."""
        for number, some in groupby(sorted(shards), self.range_of):
            ranges = list(key_ranges(list(some)))
            for bucket in range(self.buckets if table in DIVIDED else 1):
                yield from ((number * self.buckets + bucket, first, after) for first, after in ranges)


def check_layout(layout: Layout, what: str) -> None:
    """Refuse a division that cannot be."""
    if layout.partitions not in {1 << bits for bits in range(MAX_PARTITIONS.bit_length())}:
        raise UsageError(
            f"{what}: {layout.partitions} partitions; expected a power of two from 1 to {MAX_PARTITIONS:,}"
        )
    if not 1 <= layout.buckets <= MAX_BUCKETS:
        raise UsageError(f"{what}: {layout.buckets} buckets; expected a number from 1 to {MAX_BUCKETS}")
