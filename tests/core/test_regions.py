"""Which label does a domain have, and which shards belong to a label?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.cluster.regions import EVERY, RegionRule, Regions, joined_labels, labels_in
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import SHARD_COUNT, divide, domain_id, host_id, id_in_shard, shard_of, shard_of_domain
from gossamer.model.state import DomainHome

EU_US = Regions([RegionRule("example.de", "us"), RegionRule("de", "eu"), RegionRule("example.org", "us")])


@pytest.mark.parametrize(
    ("domain", "label"),
    [
        ("other.de", "eu"), ("example.de", "us"), ("de", "eu"), ("example.org", "us"), ("example.com", ""),
        ("made.example", ""), ("notexample.org", ""), ("127.0.0.1", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_first_rule_that_matches_decides(domain: str, label: str) -> None:
    assert EU_US.label_of(domain) == label


def test_a_rule_for_every_domain_leaves_earlier_ones_in_force() -> None:
    regions = Regions([RegionRule("de", "eu"), RegionRule(EVERY, "us")])
    assert (regions.label_of("a.de"), regions.label_of("a.fr"), regions.label_of("[::1]")) == ("eu", "us", "us")


@given(st.integers(1, 63))
def test_every_shard_has_one_label_and_labels_have_equally_many(count: int) -> None:
    regions = Regions([RegionRule(f"d{number}", f"l{number}") for number in range(count)])
    ranges = [regions.shards_of(label) for label in regions.labels]
    assert [shard for shards in ranges for shard in shards] == list(range(SHARD_COUNT))
    sizes = [len(shards) for shards in ranges]
    assert max(sizes) - min(sizes) <= 1
    assert [regions.label_of_shard(shards.start) for shards in ranges] == list(regions.labels)
    assert [regions.label_of_shard(shards.stop - 1) for shards in ranges] == list(regions.labels)


def test_the_division_never_changes() -> None:
    # Nodes of one crawl may run different versions, and rows stay where they are.
    assert EU_US.labels == ("", "us", "eu")
    assert [EU_US.shards_of(label) for label in EU_US.labels] == [range(1365), range(1365, 2730), range(2730, 4096)]
    divide(EU_US)
    assert host_id("www.example.org").hex() == "79db06eb65a46aa4"
    assert shard_of_domain("other.de") == 3428


@given(st.from_regex(r"[a-z]{1,12}\.(de|org|fr)", fullmatch=True))
def test_hosts_and_urls_of_a_domain_are_in_a_shard_of_its_label(domain: str) -> None:
    divide(EU_US)
    shard = shard_of_domain(domain)
    assert EU_US.label_of_shard(shard) == EU_US.label_of(domain)
    assert {shard_of(host_id(f"www.{domain}")), shard_of(domain_id(domain))} == {shard}
    assert shard_of(link_to(f"http://a.b.{domain}/x").id) == shard


def test_domains_of_a_label_spread_over_its_shards() -> None:
    divide(EU_US)
    counts = Counter(shard_of_domain(f"d{number}.de") for number in range(13_660))
    assert len(counts) > 0.99 * 1366
    assert max(counts.values()) < 40


def test_without_regions_ids_are_as_ever() -> None:
    before = host_id("www.example.org")
    divide(EU_US)
    assert host_id("www.example.org") != before
    divide(None)
    assert host_id("www.example.org") == before


def test_labels_of_a_node_travel_as_one_text() -> None:
    assert joined_labels(["eu", "fast", "eu"]) == "eu,fast"
    assert labels_in("eu,fast") == {"eu", "fast"}
    assert labels_in(joined_labels([])) == frozenset()


BY_COUNTRY = [
    RegionRule("country:US", "us", ("US",)),
    RegionRule("de", "eu"),
    RegionRule("country:FR,DE", "eu", ("FR", "DE")),
]


@pytest.mark.parametrize(
    ("domain", "country", "label"),
    [
        ("a.de", "", "eu"), ("a.de", "US", "us"), ("a.de", "FR", "eu"), ("a.org", "", ""), ("a.org", "DE", "eu"),
        ("a.org", "US", "us"), ("a.org", "JP", ""),
    ],
)  # fmt: skip
def test_rules_by_country_match_in_their_order_when_the_country_is_known(domain: str, country: str, label: str) -> None:
    assert Regions(BY_COUNTRY).label_of(domain, country) == label


def test_a_domain_with_another_home_has_ids_in_the_range_of_its_label() -> None:
    regions = Regions(BY_COUNTRY)
    divide(regions)
    first = host_id("www.a.org")
    assert shard_of(first) in regions.shards_of("")
    countries = regions.learn_homes([DomainHome(b"", "a.org", "us", "US"), DomainHome(b"", "b.de", "eu")])
    assert (countries, regions.homes) == ({"a.org": "US"}, {"a.org": "us"}), "b.de is at home"
    assert shard_of(host_id("www.a.org")) in regions.shards_of("us")
    assert host_id("www.a.org")[2:] == first[2:], "only the shard differs"
    assert id_in_shard(shard_of(first), "www.a.org") == first
    assert regions.label_of("a.org") == "us"
    assert regions.without_homes().label_of("a.org") == ""
