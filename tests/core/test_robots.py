from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.robots.answers import rules_from, unreachable
from gossamer.core.robots.rules import MAX_CRAWL_DELAY_S, MAX_ROBOTS_BYTES, _Reader, parse_robots, product_token
from gossamer.model.records import Outcome, Result

Vectors = Callable[[str], Any]
TOKEN = "gossamer"


def _allows(robots: str | bytes, path: str, token: str = TOKEN) -> bool:
    body = robots.encode() if isinstance(robots, str) else robots
    return parse_robots(body, token).is_allowed(path)


def test_without_rules_everything_is_allowed() -> None:
    assert _allows("", "/x")
    assert _allows("User-agent: *\nDisallow:\n", "/x")
    assert _allows("<!doctype html><html><title>Not here</title><p>User-agent: none of this</p></html>", "/x")


def test_robots_txt_itself_is_always_allowed() -> None:
    assert _allows("User-agent: *\nDisallow: /", "/robots.txt")


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n",
        "\ufeffUser-agent: *\nDisallow: /a\n".encode("utf-16-le"),
        "\ufeffUser-agent: *\nDisallow: /a\n".encode("utf-16-be"),
        b"User-agent: *\rDisallow: /a\r",
        b"User-agent: *\r\nDisallow: /a\r\n",
        b"user-agent:*\ndisallow:/a",
        b"USER-AGENT : *\n  DISALLOW :  /a  # why\n",
        b"useragent: *\ndisalow: /a\n",
        b"User agent: *\nDissallow: /a\n",
        b"User-agent *\nDisallow /a\n",
        b"User-agent: *\nNoindex: /b\nDisallow: a\n",
        b"\0\0User-agent: *\nDisallow: /a\n",
    ],
)
def test_odd_spellings_are_read(body: bytes) -> None:
    assert not _allows(body, "/a/b")
    assert _allows(body, "/b")


def test_groups_of_one_agent_are_merged() -> None:
    robots = (
        "User-agent: gossamer\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: Gossamer/2.0\nDisallow: /b\n"
    )
    assert not _allows(robots, "/a")
    assert not _allows(robots, "/b")
    assert _allows(robots, "/c")


def test_a_group_of_our_own_replaces_that_for_everybody() -> None:
    robots = "User-agent: *\nDisallow: /\nUser-agent: a\nUser-agent: gossamer\nAllow: /\n"
    assert _allows(robots, "/x")
    assert not _allows(robots, "/x", "other")


def test_the_longest_pattern_wins_and_allow_wins_a_tie() -> None:
    robots = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/*.pdf$\nAllow: /t\nDisallow: /t\n"
    assert not _allows(robots, "/a/x")
    assert _allows(robots, "/a/b/x")
    assert not _allows(robots, "/a/b/x.pdf")
    assert _allows(robots, "/a/b/x.pdf?y")
    assert _allows(robots, "/t")


def test_the_line_behind_a_decision_is_named() -> None:
    decision = parse_robots(b"# hello\nUser-agent: *\nDisallow: /a # secret\n", TOKEN).decide("/a/b")
    assert (decision.is_allowed, decision.line_number, decision.line) == (False, 3, "Disallow: /a # secret")
    assert parse_robots(b"", TOKEN).decide("/a").line_number == 0


def test_both_sides_are_brought_to_one_encoding() -> None:
    robots = "User-agent: *\nDisallow: /\u00e4\nDisallow: /%7Euser\nDisallow: /a%2fb\n"
    assert not _allows(robots, "/%C3%A4")
    assert not _allows(robots, "/~user/x")
    assert not _allows(robots, "/a%2Fb")
    assert _allows(robots, "/a/b")


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        ("0,5", 0.5),
        ("0", 0.0),
        ("86400", MAX_CRAWL_DELAY_S),
        ("1e309", MAX_CRAWL_DELAY_S),
        ("inf", MAX_CRAWL_DELAY_S),
        ("-1", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_crawl_delays_sane_and_absurd(text: str, delay_s: float | None) -> None:
    assert parse_robots(f"User-agent: *\nCrawl-delay: {text}\n".encode(), TOKEN).crawl_delay_s == delay_s


def test_the_crawl_delay_of_another_agent_is_not_ours() -> None:
    robots = b"User-agent: x\nCrawl-delay: 50\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 2\nDisallow: /a\n"
    assert parse_robots(robots, TOKEN).crawl_delay_s == 2.0


def test_a_long_line_is_cut_and_the_rest_is_read() -> None:
    robots = b"User-agent: *\nDisallow: /" + b"a" * 100_000 + b"\nDisallow: /b\n"
    assert not _allows(robots, "/b")
    assert not _allows(robots, "/" + "a" * 20_000)
    assert _allows(robots, "/a")


def test_an_endless_robots_txt_is_cut_at_its_last_whole_line() -> None:
    head = b"User-agent: *\nDisallow: /early\n"
    line = b"# " + b"x" * 998 + b"\n"
    body = (head + line * 1100)[: MAX_ROBOTS_BYTES - len(b"Disallow: /")] + b"Disallow: /only/here\nDisallow: /late\n"
    rules = parse_robots(body, TOKEN)
    assert not rules.is_allowed("/early")
    # Cut in the middle, the last line would read "Disallow: /".
    assert rules.is_allowed("/other")
    assert rules.is_allowed("/late")
    assert parse_robots(body[:MAX_ROBOTS_BYTES], TOKEN).is_allowed("/other")


def test_wildcards_take_linear_time() -> None:
    rules = parse_robots(b"User-agent: *\nDisallow: /" + b"*a" * 500 + b"*b\n", TOKEN)
    path = "/" + "a" * 2000
    started = time.perf_counter()
    for _ in range(20):
        assert rules.is_allowed(path)
    assert (time.perf_counter() - started) / 20 < 0.005
    assert not rules.is_allowed(path + "b")


def test_twenty_thousand_rules_are_quick() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /folder/%d/\n" % n for n in range(20_000))
    rules = parse_robots(body, TOKEN)
    started = time.perf_counter()
    for n in range(1000):
        assert not rules.is_allowed(f"/folder/{n}/x")
    assert time.perf_counter() - started < 0.5


def _matches_slowly(pattern: str, path: str) -> bool:
    """The definition, by recursion."""
    if pattern in ("", "$"):
        return pattern == "" or path == ""
    if pattern[0] == "*":
        return any(_matches_slowly(pattern[1:], path[n:]) for n in range(len(path) + 1))
    return path[:1] == pattern[0] and _matches_slowly(pattern[1:], path[1:])


@given(st.text("ab*/", max_size=7), st.booleans(), st.text("ab/", max_size=8))
def test_matching_agrees_with_its_definition(middle: str, is_anchored: bool, tail: str) -> None:
    pattern = "/" + middle + ("$" if is_anchored else "")
    rules = parse_robots(f"User-agent: *\nDisallow: {pattern}\n".encode(), TOKEN)
    assert rules.is_allowed("/" + tail) is not _matches_slowly(pattern, "/" + tail)


PIECES = (
    *("user-agent: a", "User-Agent:*", "useragent a2", " \0user agent : a b", "USER-AGENT: other", "user-agent: a"),
    *("allow: /x", "Disallow: /x", "dissalow:/y", "Disallaw /z", "\xa0disallow: /", "al", "us:", "dis", "crawl"),
    *("crawl-delay: 3", "Crawl delay 7", "sitemap: http://s/", "content-usage: x", "#allow: /", "\u017fitemap: x", ""),
)


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n", "\r", "\r\n", "#\n", " x\n"])), max_size=30))
def test_lines_that_are_passed_over_change_nothing(lines: list[tuple[str, str]]) -> None:
    text = "".join(piece + end for piece, end in lines)
    found, every = parse_robots(text.encode(), "a"), _Reader("a")
    offset = 0
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        every.seen.clear()
        every.read(line, offset)
        offset += len(line) + 1
    section = every.own if every.is_named else every.everybody
    assert (found.crawl_delay_s, found.sitemaps, found.usage) == (section.delay_s, every.sitemaps, every.usage)
    expected = sorted((offset, code % 2 == 1) for code in section.rules.values() for offset in [code // 2])
    lines_of = [text.replace("\r\n", "\n").replace("\r", "\n").count("\n", 0, offset) + 1 for offset, _ in expected]
    assert sorted((rule.line_number, rule.is_allowed) for rule in found.rules()) == sorted(
        zip(lines_of, (allows for _, allows in expected), strict=True)
    )


HOSTILE_LINES = {
    "blank": b"?\r" * 250_000,
    "comments": b"#\ra" * 170_000,
    "NUL": b"\0\n$" * 170_000,
    "agents": b"User-agent: gossamer\n\rUser-agent: *\n" * 14_000,
    "groups": b"User-agent: gossamer\nDisallow: /x\n" * 15_000,
    "delays": b"User-agent: *\n" + b"crawl-delay:1\n" * 36_000,
}


def _reading_s(text: bytes) -> float:
    taken = []
    for _ in range(3):
        began = time.process_time()
        parse_robots(text, "gossamer")
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.timed
def test_no_lines_take_longer_than_as_many_bytes_of_rules() -> None:
    rules = b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % number for number in range(32_000))
    honest_s = _reading_s(rules)  # others took twice as long when every line was read
    assert [name for name, text in HOSTILE_LINES.items() if _reading_s(text) > 1.5 * honest_s] == []


@given(st.binary(max_size=200))
def test_no_body_is_too_odd(body: bytes) -> None:
    for robots in (body, b"User-agent: *\nDisallow: " + body):
        rules = parse_robots(robots, TOKEN)
        assert rules.is_allowed("/robots.txt")
        assert rules.decide("/a?b").is_allowed is rules.is_allowed("/a?b")


@pytest.mark.parametrize(
    ("outcome", "meaning"),
    [
        (Outcome.OK, "rules"),
        (Outcome.CLIENT_ERROR, "allow"),
        (Outcome.REDIRECT, "allow"),  # the sixth hop
        (Outcome.BAD_REDIRECT, "allow"),
        (Outcome.RATE_LIMITED, "unreachable"),
        (Outcome.SERVER_ERROR, "unreachable"),
        (Outcome.TIMEOUT, "unreachable"),
        (Outcome.TLS_ERROR, "unreachable"),
        (Outcome.CONNECT_FAILED, "unreachable"),
        (Outcome.DNS_NOT_FOUND, "unreachable"),
        (Outcome.DISCONNECTED, "unreachable"),
    ],
)
def test_what_an_answer_means(outcome: Outcome, meaning: str) -> None:
    result = Result(1, outcome, robots=b"User-agent: *\nDisallow: /a")
    rules = rules_from(result, lambda text: parse_robots(text, TOKEN))
    got = "unreachable" if rules is None else "allow" if rules.is_allowed("/a") else "rules"
    assert got == meaning


def test_unreachable_robots_are_asked_again_soon_then_every_hour() -> None:
    waits = [unreachable(tries, 2.0, now=100.0).expires_at - 100.0 for tries in range(1, 6)]
    assert waits == [2.0, 8.0, 32.0, 3600.0, 3600.0]


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("User-agent: slowbot\nCrawl-delay: 60\n\nUser-agent: *\nDisallow: /x", None),
        ("User-agent: slowbot\nCrawl-delay: 60\nUser-agent: gossamer\nCrawl-delay: 3\nDisallow: /x", 3.0),
        ("User-agent: slowbot\nUser-agent: *\nCrawl-delay: 60\nDisallow: /x", 60.0),
        ("User-agent: *\nDisallow: /x\nCrawl-delay: 7\nUser-agent: slowbot\nCrawl-delay: 60", 7.0),
    ],
)
def test_a_delay_binds_those_named_before_it(text: str, delay_s: float | None) -> None:
    rules = parse_robots(text.encode(), "gossamer")
    assert rules.crawl_delay_s == delay_s
    assert not rules.is_allowed("/x"), "the rules of the group bind all the same"


def test_bytes_that_are_no_utf_8_match_the_same_bytes_in_a_url() -> None:
    rules = parse_robots(b"User-agent: *\nDisallow: /priv\xe9/\nSitemap: http://h.test/\xe9.xml", "gossamer")
    assert not rules.is_allowed("/priv%E9/x")
    assert rules.is_allowed("/priv%C3%A9/x")
    line = rules.decide("/priv%e9/x").line
    assert line == "Disallow: /priv\ufffd/"
    assert msgspec.json.encode([line, *rules.sitemaps]), "what goes into events can be written"


@pytest.mark.parametrize(
    ("pattern", "path", "is_allowed"),
    [
        ("/a%24", "/a$b", False),
        ("/a%24", "/a%24b", False),
        ("/a%24", "/a", True),
        ("/a%2Ab", "/a*b", False),
        ("/a%2Ab", "/axb", True),
        ("/a*b", "/a*b", False),
        ("/a$", "/a", False),
        ("/a$", "/a$", True),
        ("/a$b", "/a$b", False),
        ("/a$b", "/a", True),
    ],
)
def test_an_escaped_dollar_or_star_stands_for_itself(pattern: str, path: str, is_allowed: bool) -> None:
    rules = parse_robots(f"User-agent: *\nDisallow: {pattern}".encode(), "gossamer")
    assert rules.is_allowed(path) is is_allowed


@pytest.mark.parametrize(
    ("agent", "token", "is_bound"),
    [
        ("MJ12bot", "mj12bot", True),
        ("360Spider", "360spider", True),
        ("MJ12bot/1.4", "mj12bot", True),
        ("gossamer2", "gossamer", True),  # by the letter of the RFC, a token ends before the digit
        ("MJ12bot", "mj13bot", False),
    ],
)
def test_names_with_digits(agent: str, token: str, is_bound: bool) -> None:
    rules = parse_robots(f"User-agent: {agent}\nDisallow: /\n".encode(), token)
    assert rules.is_allowed("/x") is not is_bound


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("Name/1.0 (+https://example.org)", "name"),
        ("My-Bot_2", "my-bot_2"),
        ("Mozilla/5.0 (compatible; Name2/1.0; +https://example.org)", "name2"),
        ("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", ""),
        ("1.0", ""),
        ("(a comment)", ""),
        ("", ""),
    ],
)
def test_the_name_that_robots_txt_can_address(user_agent: str, token: str) -> None:
    assert product_token(user_agent) == token
