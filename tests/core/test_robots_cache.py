from __future__ import annotations

import pytest

from gossamer.core.limits import FrontierLimits
from gossamer.core.robots_cache import RobotsCache

TOKEN = "gossamer"
MANY = 2000


def _text(name: str) -> bytes:
    return b"User-agent: *\nCrawl-delay: 7\n" + b"".join(
        b"Disallow: /%s/%d\n" % (name.encode(), n) for n in range(MANY)
    )


def test_equal_texts_are_one_object() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    small = b"User-agent: *\nDisallow: /a\n"
    assert cache.read(small) is cache.read(bytes(bytearray(small)))
    assert cache.read(_text("a")) is cache.read(_text("a"))
    assert cache.read(_text("b")) is not cache.read(_text("a"))


def test_large_rules_are_limited_in_all_and_the_least_recently_used_are_shed() -> None:
    cache = RobotsCache(FrontierLimits(max_rules_bytes=3_000_000), TOKEN)
    files = [cache.read(_text(f"host{n}")) for n in range(20)]
    kept = [rules for rules in files if not rules.is_shed]
    assert sum(rules.size_bytes for rules in kept) == cache.large_bytes <= 3_000_000
    assert kept == files[-len(kept) :]
    cache.use(kept[0])
    cache.read(_text("other"))
    assert [rules.is_shed for rules in kept[:2]] == [False, True]


def test_rules_that_were_shed_decide_nothing_until_they_are_read_again() -> None:
    cache = RobotsCache(FrontierLimits(max_rules_bytes=1), TOKEN)
    rules, _ = cache.read(_text("a")), cache.read(_text("b"))
    assert rules.is_shed
    assert (rules.crawl_delay_s, rules.rule_count) == (7.0, MANY), "what concerns the whole host stays"
    with pytest.raises(RuntimeError, match="not restored"):
        rules.is_allowed("/a/1")
    assert cache.read(_text("a")) is rules, "whoever shares them has them again"
    assert not rules.is_allowed("/a/1")


def test_a_text_that_was_read_ahead_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    cache.read_ahead(_text("a"))
    monkeypatch.setattr("gossamer.core.robots_cache.parse_robots", None)
    assert not cache.read(_text("a")).is_allowed("/a/1")


def test_another_text_than_the_one_read_ahead_is_read() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    cache.read_ahead(_text("a"))
    rules = cache.read(_text("b"))
    assert (rules.is_allowed("/a/1"), rules.is_allowed("/b/1")) == (True, False)
