"""Which node is to own which shard?"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gossamer.core.cluster.assignment import barred_from, shards_of, share_of
from gossamer.core.cluster.regions import RegionRule, Regions
from gossamer.core.url.identity import SHARD_COUNT

RULES = [RegionRule("de", "eu"), RegionRule("org", "us")]
REGIONS, STRICT = Regions(RULES), Regions(RULES, is_strict=True)
NONE, EU, US = frozenset[str](), frozenset({"eu"}), frozenset({"us"})


def shares(labels: Mapping[str, frozenset[str]], regions: Regions | None) -> dict[str, frozenset[int]]:
    return {name: share_of(name, labels, regions) for name in labels}


@pytest.mark.parametrize("regions", [None, REGIONS, STRICT])
@pytest.mark.parametrize("labels", [[NONE], [EU], [EU, US], [EU, US, NONE], [EU | US, EU, NONE, NONE]])
def test_every_shard_has_exactly_one_owner(labels: list[frozenset[str]], regions: Regions | None) -> None:
    owned = shares({f"n{number}": each for number, each in enumerate(labels)}, regions)
    assert sorted(shard for each in owned.values() for shard in each) == list(range(SHARD_COUNT))


@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_no_node_has_much_more_than_the_others(count: int) -> None:
    names = tuple(f"n{number}" for number in range(count))
    most = max(len(shards_of(name, names)) for name in names)
    assert most <= 1.05 * SHARD_COUNT / count + 1


@pytest.mark.parametrize("count", [2, 4, 20, 100])
def test_a_node_that_leaves_moves_little_besides_its_own_share(count: int) -> None:
    names = tuple(f"n{number:03}" for number in range(count))
    gone, left = names[count // 2], names[: count // 2] + names[count // 2 + 1 :]
    moved = sum(len(shards_of(name, left) - shards_of(name, names)) for name in left)
    own = len(shards_of(gone, names))
    assert own <= moved <= 2 * own


def test_without_regions_labels_do_not_matter() -> None:
    assert shares({"a": EU, "b": NONE}, None) == {name: shards_of(name, ("a", "b")) for name in ("a", "b")}


def test_the_shards_of_a_label_go_to_the_nodes_that_have_it() -> None:
    owned = shares({"a": EU, "b": US, "c": NONE, "d": EU}, REGIONS)
    assert owned["a"] | owned["d"] >= set(REGIONS.shards_of("eu"))
    assert owned["b"] >= set(REGIONS.shards_of("us"))
    assert owned["c"] <= set(REGIONS.shards_of(""))
    assert all(owned[name] & set(REGIONS.shards_of("")) for name in owned), "all take part in shards without a label"


def test_a_node_can_have_several_labels() -> None:
    owned = shares({"a": EU | US, "b": NONE}, REGIONS)
    assert owned["a"] >= {*REGIONS.shards_of("eu"), *REGIONS.shards_of("us")}


def test_a_label_that_no_node_has_is_shared_by_all() -> None:
    owned = shares({"a": EU, "b": NONE, "c": NONE}, REGIONS)
    assert all(owned[name] & set(REGIONS.shards_of("us")) for name in owned)


def test_a_node_with_the_label_takes_over_what_others_had_and_nothing_else_moves() -> None:
    before = shares({"a": EU, "b": NONE}, REGIONS)
    after = shares({"a": EU, "b": NONE, "c": US}, REGIONS)
    assert after["c"] >= set(REGIONS.shards_of("us"))
    for name in ("a", "b"):
        assert after[name] <= before[name]
        assert before[name] - after[name] <= after["c"]


def test_with_strict_regions_a_node_must_not_crawl_what_it_lacks_the_label_for() -> None:
    assert barred_from(EU, STRICT) == set(STRICT.shards_of("us"))
    assert barred_from(EU | US, STRICT) == frozenset()
    assert barred_from(NONE, STRICT) == {*STRICT.shards_of("eu"), *STRICT.shards_of("us")}
    assert barred_from(NONE, REGIONS) == barred_from(NONE, None) == frozenset()


@pytest.mark.parametrize("per_range", [4, 64, 256])
def test_shards_that_are_stored_together_have_one_owner(per_range: int) -> None:
    labels = {f"n{number}": NONE for number in range(3)}
    owned = {name: share_of(name, labels, None, per_range) for name in labels}
    assert sorted(shard for each in owned.values() for shard in each) == list(range(SHARD_COUNT))
    for shards in owned.values():
        assert {shard // per_range for shard in shards} == {
            shard // per_range for shard in shards if shard % per_range == 0
        }
        assert len(shards) % per_range == 0
    assert max(map(len, owned.values())) <= 1.05 * SHARD_COUNT / 3 + per_range
