"""Which node is to own which shard? Rendezvous hashing: a node that comes or goes moves only its own share.

Every node computes the same from the names and labels of the live nodes; nobody is asked, and nobody decides. Ownership
itself follows later, by release and take: see `ports/shared_ledger`.

With regions (`core/regions`), the shards of a label are divided between the nodes that have it, and those without a
label between all nodes. If no live node has a label, its shards are divided between all nodes as well: they crawl them,
or, if regions are strict, only store what is found for them until a node with the label comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from xxhash import xxh3_64_intdigest

from gossamer.core.identity import SHARD_COUNT
from gossamer.core.regions import Regions

ALL_SHARDS = range(SHARD_COUNT)


def share_of(name: str, labels: Mapping[str, frozenset[str]], regions: Regions | None) -> frozenset[int]:
    """Return the shards that a node is to own; `labels` are those of all live nodes, by name."""
    names = tuple(labels)
    if regions is None:
        return shards_of(name, names)
    share: set[int] = set()
    for label in regions.labels:
        able = tuple(each for each in names if not label or label in labels[each]) or names
        if name in able:
            share |= shards_of(name, able, regions.shards_of(label))
    return frozenset(share)


def barred_from(labels: frozenset[str], regions: Regions | None) -> frozenset[int]:
    """Return the shards that a node with these labels may own, but not crawl, since regions are strict."""
    if regions is None or not regions.is_strict:
        return frozenset()
    lacking = [label for label in regions.labels if label and label not in labels]
    return frozenset(shard for label in lacking for shard in regions.shards_of(label))


@lru_cache(maxsize=256)
def shards_of(name: str, names: tuple[str, ...], shards: range = ALL_SHARDS) -> frozenset[int]:
    """Return which of some shards a node is to own, beside other nodes. 0.1 µs per shard and node."""
    others = [other for other in names if other != name]
    return frozenset(shard for shard in shards if all(_wins(name, other, shard) for other in others))


def _wins(name: str, other: str, shard: int) -> bool:
    return (_weight(name, shard), name) > (_weight(other, shard), other)


def _weight(name: str, shard: int) -> int:
    return xxh3_64_intdigest(name.encode(), shard)
