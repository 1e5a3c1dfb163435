"""Which node is to own which shard? Rendezvous hashing: a node that comes or goes moves little more than its own share.

Every node computes the same from the names and labels of the live nodes; nobody is asked, and nobody decides. Ownership
itself follows later, by release and take: see `ports/shared_ledger`.

Hashing alone gives some of many nodes far more than others: with a hundred of them up to 1.4 times the mean, and a
crawl is as slow as its busiest node. So no node gets more than `MAX_LOAD` times the mean; what is over goes to the next
in the order of the hash. When one of a hundred nodes leaves, half as many shards again move as it had.

With regions (`core/cluster/regions`), the shards of a label are divided between the nodes that have it, and those
without a label between all nodes. If no live node has a label, its shards are divided between all nodes as well: they
crawl them, or, if regions are strict, only store what is found for them until a node with the label comes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby

from xxhash import xxh3_64_intdigest

from gossamer.core.cluster.regions import Regions
from gossamer.core.url.identity import SHARD_COUNT

ALL_SHARDS = range(SHARD_COUNT)
MAX_LOAD = 1.05


def share_of(
    name: str, labels: Mapping[str, frozenset[str]], regions: Regions | None, per_range: int = 1
) -> frozenset[int]:
    """Return the shards that a node is to own; `labels` are those of all live nodes, by name.

    With an engine that stores `per_range` shards together, a node is to own all of them or none.
    """
    names = tuple(labels)
    if regions is None:
        return shards_of(name, names, per_range=per_range)
    share: set[int] = set()
    for label in regions.labels:
        able = tuple(each for each in names if not label or label in labels[each]) or names
        if name in able:
            share |= shards_of(name, able, regions.shards_of(label), per_range)
    return frozenset(share)


def barred_from(labels: frozenset[str], regions: Regions | None) -> frozenset[int]:
    """Return the shards that a node with these labels may own, but not crawl, since regions are strict."""
    if regions is None or not regions.is_strict:
        return frozenset()
    lacking = [label for label in regions.labels if label and label not in labels]
    return frozenset(shard for label in lacking for shard in regions.shards_of(label))


def shards_of(name: str, names: tuple[str, ...], shards: range = ALL_SHARDS, per_range: int = 1) -> frozenset[int]:
    """Return which of some shards a node is to own, beside other nodes."""
    return _shares(names, shards, per_range)[names.index(name)]


@lru_cache(maxsize=64)
def _shares(names: tuple[str, ...], shards: range, per_range: int) -> tuple[frozenset[int], ...]:
    """Return the shares of all nodes. 50 ms for a hundred nodes, 1 ms for four."""
    shares: list[list[int]] = [[] for _ in names]
    counts = [0] * len(names)
    ranges = [list(some) for _, some in groupby(shards, lambda shard: shard // per_range)]
    max_count = math.ceil(MAX_LOAD * len(ranges) / len(names))
    for some in ranges:
        weights = [_weights(name)[some[0]] for name in names]
        best = weights.index(max(weights))
        if counts[best] == max_count:
            by_weight = sorted(range(len(names)), key=weights.__getitem__, reverse=True)
            best = next(number for number in by_weight if counts[number] < max_count)
        counts[best] += 1
        shares[best] += some
    return tuple(map(frozenset, shares))


@lru_cache(maxsize=512)
def _weights(name: str) -> tuple[int, ...]:
    """Return how much a node is entitled to each shard."""
    encoded = name.encode()
    return tuple(xxh3_64_intdigest(encoded, shard) for shard in ALL_SHARDS)
