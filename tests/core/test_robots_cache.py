from __future__ import annotations

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.robots.cache import RobotsCache, SlicedReader
from gossamer.core.robots.rules import LINES_PER_SLICE

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


def _calls(reader: SlicedReader, text: bytes) -> int:
    """Return how many slices a text is read in."""
    return next(number for number in range(1, 1000) if reader.read_on(text))


def test_a_long_text_is_read_in_slices_and_then_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    long = _text("a") + b"Disallow: /\n" * 3 * LINES_PER_SLICE
    assert _calls(cache.reader(), long) == 5, "14,000 lines in slices of 4,000, and one in which the rules are made"
    monkeypatch.setattr("gossamer.core.robots.cache.parse_robots", None)
    assert not cache.read(long).is_allowed("/a/1")
    assert _calls(cache.reader(), long) == 1


def test_readers_do_not_disturb_each_other() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    readers = {name: cache.reader() for name in "abc"}
    calls, unread = 0, {name: _text(name) for name in "abc"}
    while unread:
        unread = {name: text for name, text in unread.items() if not readers[name].read_on(text)}
        calls += 1
    assert calls == 2
    rules = cache.read(_text("b"))
    assert (rules.is_allowed("/a/1"), rules.is_allowed("/b/1")) == (True, False)


def test_a_long_text_without_rules_stays_in_memory_until_it_is_used() -> None:
    cache = RobotsCache(FrontierLimits(max_rules_bytes=1), TOKEN)
    reader, text = cache.reader(), b"Sitemap: a\n" * 2 * LINES_PER_SLICE
    _calls(reader, text)
    assert reader.read_on(text)


def test_a_text_that_was_read_at_once_meanwhile_is_counted_once() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    reader = cache.reader()
    assert not reader.read_on(_text("a"))
    rules = cache.read(_text("a"))
    assert reader.read_on(_text("a"))
    _calls(reader, _text("b"))
    assert cache.large_bytes == rules.size_bytes + cache.read(_text("b")).size_bytes


def test_one_host_reads_its_long_text_again_at_a_time() -> None:
    cache = RobotsCache(FrontierLimits(), TOKEN)
    one, other = ("a.test", "http://a.test"), ("b.test", "http://b.test")
    assert cache.begin_restoring(one, 10.0)
    assert not cache.begin_restoring(other, 10.5)
    assert cache.begin_restoring(one, 10.9)
    assert not cache.begin_restoring(other, 11.5)
    cache.end_restoring(other)
    assert not cache.begin_restoring(other, 11.5), "only its owner ends it"
    cache.end_restoring(one)
    assert cache.begin_restoring(other, 11.5)
    assert cache.begin_restoring(one, 12.6), "the other one did not go on for a second"
