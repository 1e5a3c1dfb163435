from __future__ import annotations

import pytest

from gossamer.core.limits import FrontierLimits
from gossamer.core.robots import LINES_PER_SLICE
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


def _calls(cache: RobotsCache, text: bytes) -> int:
    """Return how many slices a text is read in."""
    return next(number for number in range(1, 1000) if cache.read_on(text))


def test_a_long_text_is_read_in_slices_and_then_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    long = _text("a") + b"Disallow: /\n" * 3 * LINES_PER_SLICE
    assert _calls(cache, long) == 5, "14,000 lines in slices of 4,000, and one in which the rules are made"
    monkeypatch.setattr("gossamer.core.robots_cache.parse_robots", None)
    assert not cache.read(long).is_allowed("/a/1")
    assert _calls(cache, long) == 1


def test_texts_that_are_read_at_the_same_time_continue_each_other() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    calls, unread = 0, {name: _text(name) for name in "abc"}
    while unread:
        unread = {name: text for name, text in unread.items() if not cache.read_on(text)}
        calls += 1
    assert calls <= 4, "two slices each, and one call to learn that another one has read it"
    rules = cache.read(_text("b"))
    assert (rules.is_allowed("/a/1"), rules.is_allowed("/b/1")) == (True, False)


def test_a_long_text_without_rules_is_not_read_for_ever() -> None:
    cache = RobotsCache(FrontierLimits(max_rules_bytes=1), TOKEN)
    texts = [b"Sitemap: %d\n" % number * 2 * LINES_PER_SLICE for number in range(2)]
    read = {number for _ in range(20) for number, text in enumerate(texts) if cache.read_on(text)}
    assert read == {0, 1}


def test_what_is_read_at_once_does_not_wait_for_the_slices_of_another() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    assert not cache.read_on(_text("a"))
    assert not cache.read(_text("b")).is_allowed("/b/1")
    assert not cache.read(_text("a")).is_allowed("/a/1")
