from __future__ import annotations

from collections import Counter

import pytest

from gossamer.core.sharding import Ring, shard_of

DOMAINS = [f"domain-{n}.test" for n in range(5000)]


def test_a_shard_is_the_same_everywhere() -> None:
    assert [shard_of(domain, 64) for domain in DOMAINS[:6]] == [shard_of(domain, 64) for domain in DOMAINS[:6]]
    assert shard_of("example.org", 1) == 0


def test_shards_are_about_equally_full() -> None:
    sizes = Counter(shard_of(domain, 16) for domain in DOMAINS)
    assert set(sizes) == set(range(16))
    assert max(sizes.values()) < 1.3 * len(DOMAINS) / 16


def test_few_domains_move_when_shards_are_added() -> None:
    moved = [domain for domain in DOMAINS if shard_of(domain, 16) != shard_of(domain, 17)]
    assert len(moved) < 1.4 * len(DOMAINS) / 17
    assert {shard_of(domain, 17) for domain in moved} == {16}


def test_only_the_share_of_a_node_that_joins_moves() -> None:
    before, after = Ring(["a", "b", "c"]), Ring(["c", "a", "d", "b"])
    moved = [shard for shard in range(1024) if before.owner(shard) != after.owner(shard)]
    assert {after.owner(shard) for shard in moved} == {"d"}
    assert 0.15 < len(moved) / 1024 < 0.35


def test_only_the_share_of_a_node_that_leaves_moves() -> None:
    before, after = Ring(["a", "b", "c"]), Ring(["a", "c"])
    moved = [shard for shard in range(1024) if before.owner(shard) != after.owner(shard)]
    assert {before.owner(shard) for shard in moved} == {"b"}


def test_an_empty_ring_owns_nothing() -> None:
    with pytest.raises(ValueError, match="without nodes"):
        Ring([]).owner(1)
