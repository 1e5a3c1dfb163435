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
    cache = RobotsCache(FrontierLimits())
    small = b"User-agent: *\nDisallow: /a\n"
    assert cache.read(small, TOKEN) is cache.read(bytes(bytearray(small)), TOKEN)
    assert cache.read(_text("a"), TOKEN) is cache.read(_text("a"), TOKEN)
    assert cache.read(_text("b"), TOKEN) is not cache.read(_text("a"), TOKEN)


def test_large_rules_are_limited_in_all_and_the_least_recently_used_are_shed() -> None:
    cache = RobotsCache(FrontierLimits(max_rules_bytes=3_000_000))
    files = [cache.read(_text(f"host{n}"), TOKEN) for n in range(20)]
    kept = [rules for rules in files if not rules.is_shed]
    assert sum(rules.size_bytes for rules in kept) == cache.large_bytes <= 3_000_000
    assert kept == files[-len(kept) :]
    cache.use(kept[0])
    cache.read(_text("other"), TOKEN)
    assert [rules.is_shed for rules in kept[:2]] == [False, True]


def test_rules_that_were_shed_decide_nothing_until_they_are_read_again() -> None:
    cache = RobotsCache(FrontierLimits(max_rules_bytes=1))
    rules, _ = cache.read(_text("a"), TOKEN), cache.read(_text("b"), TOKEN)
    assert rules.is_shed
    assert (rules.crawl_delay_s, rules.rule_count) == (7.0, MANY), "what concerns the whole host stays"
    with pytest.raises(RuntimeError, match="not restored"):
        rules.is_allowed("/a/1")
    assert cache.read(_text("a"), TOKEN) is rules, "whoever shares them has them again"
    assert not rules.is_allowed("/a/1")
