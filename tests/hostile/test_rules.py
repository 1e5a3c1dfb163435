"""robots.txt (B), sitemaps (S), cookies, waits and validators (C)."""

from __future__ import annotations

import time

import pytest

from gossamer.core.robots.rules import parse_robots
from gossamer.model.records import UrlState
from tests.hostile.crawling import Aftermath


def paths(after: Aftermath, name: str) -> set[str]:
    return {seen.path for seen in after.server.requests(name)}


def is_waiting(after: Aftermath, name: str) -> None:
    """The page stays queued and was never asked for."""
    assert after.row(name).state is UrlState.QUEUED
    assert paths(after, name) == set()


def test_b01_an_endless_robots_txt_counts_as_far_as_it_is_read(after: Aftermath) -> None:
    assert paths(after, "b01") == {"/", "/open"}
    assert after.row("b01", "/secret").outcome == "robots_denied"


def test_b02_a_robots_loop_is_as_if_there_were_none(after: Aftermath) -> None:
    assert after.times_asked("b02", "/robots.txt") == 6
    assert paths(after, "b02") == {"/", "/open", "/secret"}
    assert [event["reason"] for event in after.told("b02", "warning")] == ["robots_loop"]


def test_b03_robots_that_fail_forbid_everything_for_now(after: Aftermath) -> None:
    is_waiting(after, "b03")
    assert after.times_asked("b03", "/robots.txt") >= 2
    assert after.told("b03", "host_parked")


@pytest.mark.parametrize("name", ["b04a", "b04b", "b04c", "b04d"])
def test_b04_no_robots_allow_everything(after: Aftermath, name: str) -> None:
    assert paths(after, name) == {"/", "/open", "/secret"}


def test_b05_robots_that_say_too_many_requests_are_waited_for(after: Aftermath) -> None:
    is_waiting(after, "b05")
    assert after.times_asked("b05", "/robots.txt") == 1
    assert after.host("b05").parked_until - after.events[-1]["ts"] > 50


def test_b06_robots_in_html_say_nothing(after: Aftermath) -> None:
    assert paths(after, "b06") == {"/", "/open", "/secret"}


def test_b07_a_bomb_of_wildcards(after: Aftermath) -> None:
    assert after.row("b07", "/secret").outcome == "robots_denied"
    assert after.row("b07", "/" + "a" * 2000).outcome == "ok"
    rules = parse_robots(b"User-agent: *\nDisallow: /" + b"*a" * 12 + b"b\n", "gossamer")
    started = time.process_time()
    for _ in range(100):
        assert rules.is_allowed("/" + "a" * 2000)
    assert (time.process_time() - started) / 100 < 0.001


def test_b08_robots_that_never_come(after: Aftermath) -> None:
    is_waiting(after, "b08")
    assert after.told("b08", "robots_unreachable")


def test_b09_robots_elsewhere_count_here(after: Aftermath) -> None:
    assert paths(after, "b09") == {"/", "/open"}
    assert after.row("b09", "/secret").outcome == "robots_denied"
    assert paths(after, "b09private") == set()
    assert any(event["host"] == "169.254.169.254" and "blocked" in event["reason"] for event in after.events)


def test_b09_what_another_host_forbids_is_not_requested_as_a_robots_txt(after: Aftermath) -> None:
    assert "/secret" not in paths(after, "b09victim")
    assert paths(after, "b09forger") == {"/", "/open", "/secret"}, "as if it had no robots.txt"
    assert [event["reason"] for event in after.told("b09forger", "warning")] == ["robots_elsewhere"]


def test_b10_absurd_delays(after: Aftermath) -> None:
    for name in ("b10a", "b10b"):
        assert paths(after, name) == {"/", "/open"}
    for name in ("b10c", "b10d"):
        is_waiting(after, name)
        assert 3000 < after.host(name).next_at - time.time() <= 3600
        assert [event["reason"] for event in after.told(name, "warning")] == ["crawl_delay_capped"]


def test_s01_an_index_that_lists_itself(after: Aftermath) -> None:
    asked = [seen.path for seen in after.server.requests("s01") if seen.path.startswith("/sitemap")]
    assert len(asked) == len(set(asked)) <= 8


def test_s02_entities_are_not_expanded(after: Aftermath) -> None:
    assert "refused" in after.row("s02", "/sitemap.xml").error
    assert not any("ha" in row.url.rpartition("/")[2] for row in after.rows("s02"))


def test_s03_nothing_else_is_opened(after: Aftermath) -> None:
    assert "/evil.dtd" not in paths(after, "s03")
    assert not any("root" in row.url for row in after.rows("s03"))


def test_s04_a_sitemap_bomb(after: Aftermath) -> None:
    row = after.row("s04", "/sitemap.xml.gz")
    assert "well-formed" in row.error or "52428800" in row.error  # zeros are no XML: it stops at the first
    assert after.row("s04").outcome == "ok"


def test_s05_a_sitemap_speaks_for_its_own_domain(after: Aftermath) -> None:
    assert after.row("s05", "/from-sitemap").outcome == "ok"
    assert paths(after, "s05other") == set()
    assert any(event["reason"] == "sitemap_of_another" for event in after.told("s05other"))
    assert len(after.rows("s05")) == 5


def test_s06_deep_nesting(after: Aftermath) -> None:
    assert "levels" in after.row("s06", "/sitemap.xml").error
    assert after.row("s06", "/from-sitemap").outcome == "ok"


def test_c01_cookies_are_never_sent(after: Aftermath) -> None:
    assert paths(after, "c01a") == {"/", "/2", "/3"}
    assert all(b"\r\ncookie:" not in seen.head.lower() for seen in after.server.seen)
    assert after.row("c01b").outcome == "header_too_large"


@pytest.mark.parametrize(("name", "least", "most"), [("c02a", 99, 101), ("c02b", 190, 201), ("c02d", 86_390, 86_400)])
def test_c02_the_whole_host_waits_as_long_as_it_says(after: Aftermath, name: str, least: float, most: float) -> None:
    (parked,) = after.told(name, "host_parked")
    assert least <= parked["wait_s"] <= most
    assert len(paths(after, name)) == 2  # "/" and the one that was refused


def test_c02_garbage_means_a_growing_wait(after: Aftermath) -> None:
    waits = [parked["wait_s"] for parked in after.told("c02c", "host_parked")]
    assert 0 < waits[0] < 3600
    assert waits == sorted(waits)
