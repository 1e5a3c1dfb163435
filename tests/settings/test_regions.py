"""From the texts of `--region` to rules."""

from __future__ import annotations

import pytest

from gossamer.core.cluster.regions import EVERY, RegionRule
from gossamer.core.url.identity import shard_of_domain
from gossamer.model.errors import UsageError
from gossamer.settings.load import merged, settings_for_node, to_toml
from gossamer.settings.regions import check_label, regions_of, rules_of, use_regions


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (".de=eu", "de"), ("*.de=eu", "de"), (".co.uk=eu", "co.uk"), ("example.org=eu", "example.org"),
        ("*.example.org=eu", "example.org"), (".example.org=eu", "example.org"), ("EXAMPLE.org=eu", "example.org"),
        ("*=eu", EVERY), (".рф=eu", "xn--p1ai"), ("127.0.0.1=eu", "127.0.0.1"), ("[::1]=eu", "[::1]"),
        (".localhost=eu", "localhost"), (".blogspot.com=eu", "blogspot.com"),
    ],
)  # fmt: skip
def test_a_rule_names_a_domain_or_the_end_of_one(text: str, name: str) -> None:
    assert rules_of(merged(("test", {"region": [text]}))) == (RegionRule(name, "eu"),)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["www.example.org=eu"], "part of the domain example.org, and all hosts of a domain"),
        (["*.www.example.org=eu"], "expected example.org=eu"),
        (["de=eu"], "de is a public suffix, below which every name is a domain; expected .de=eu"),
        (["co.uk=eu"], "expected .co.uk=eu"),
        ([".de"], "not a rule with a label; expected .de=LABEL, example.org=LABEL, country:DE,FR=LABEL or"),
        (["=eu"], "not a rule with a label"),
        ([".de="], "'' is not a label"),
        ([".de=e u"], "'e u' is not a label; expected up to 32 letters, digits and ._-"),
        ([".de=a,b"], "'a,b' is not a label"),
        (["shop*.com=eu"], "not a domain"),
        (["https://example.org=eu"], "not a domain"),
        (["ex ample.org=eu"], "not a domain"),
        (["..=eu"], "not a domain"),
        (["country:Germany=eu"], "'GERMANY' is not the code of a country; expected country:DE or country:DE,FR"),
        (["country:=eu"], "'' is not the code of a country"),
        (["country:DE,FR=eu", "country:FR=us"], "'country:FR=us': has no effect: 'country:DE,FR=eu' before it"),
        (["*=eu", "country:FR=us"], "has no effect"),
        ([".de=eu", "example.de=us"], "'example.de=us': has no effect: '.de=eu' before it matches the same domains"),
        ([".de=eu", ".de=us"], "has no effect"),
        (["*=eu", ".de=us"], "has no effect"),
        ([f".x{number}=l{number}" for number in range(64)], "64 labels; at most 63"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rule_is_said(texts: list[str], expected: str) -> None:
    with pytest.raises(UsageError) as error:
        merged(("test", {"region": texts}))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_strict_regions_need_regions() -> None:
    with pytest.raises(UsageError, match="expected --region RULE=LABEL as well"):
        merged(("test", {"strict_regions": True}))


def test_a_label_is_a_short_word() -> None:
    assert check_label("eu-west.1", "--label") == "eu-west.1"
    for wrong in ("", "-eu", "a,b", "x" * 33, "ä"):
        with pytest.raises(UsageError, match="--label"):
            check_label(wrong, "--label")


def test_the_rules_of_a_crawl_win_and_others_are_refused() -> None:
    stored = to_toml(merged(("test", {"region": [".de=eu", "*=us"], "strict_regions": True}))).encode()
    settings = settings_for_node(stored, "the crawl books", [("command line", {})])
    assert (settings.region, settings.strict_regions) == ((".de=eu", "*=us"), True)
    with pytest.raises(UsageError) as error:
        settings_for_node(stored, "the crawl books", [("command line", {"region": [".fr=eu"]})])
    assert str(error.value) == "--region is the same on all nodes; the crawl books has region = .de=eu, *=us"
    with pytest.raises(UsageError, match="--strict-regions is the same on all nodes"):
        settings_for_node(stored, "the crawl books", [("command line", {"strict_regions": False})])


def test_a_process_uses_the_regions_of_the_crawl_that_it_opened_last() -> None:
    plain, divided = merged(), merged(("test", {"region": [".org=eu"]}))
    without = shard_of_domain("example.org")
    regions = use_regions(divided)
    assert regions is not None
    assert shard_of_domain("example.org") in regions.shards_of("eu")
    assert use_regions(plain) is regions_of(plain) is None
    assert shard_of_domain("example.org") == without
