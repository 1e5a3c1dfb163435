"""Politeness over whole crawls in virtual time: robots.txt renewed and unreachable, gates, restarts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.identity import host_id
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.sim.driver import ImaginedRequest
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts

DAY_S = 24 * 3600.0
Says = Callable[[FetchTask, float], Result | None]
FORBIDS_3 = b"User-agent: *\nDisallow: /3\n"


def _asked(requests: list[ImaginedRequest], host: str) -> list[float]:
    return [request.at for request in requests if request.host == host]


def _slow_site(says: Says, pages: int = 60) -> Scenario:
    """Return the crawl of one host that takes days: an hour between two requests."""
    web = ImaginedSites({"h.test": ImaginedHost(pages=pages, fanout=pages, robots=FORBIDS_3, says=says)})
    return Scenario(web, ["http://h.test/"], delay_s=3600.0)


def test_robots_are_renewed_by_their_validators() -> None:
    conditions: list[tuple[str, str]] = []

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is not FetchKind.ROBOTS:
            return None
        conditions.append((task.etag, task.last_modified))
        if task.etag:
            return Result(task.id, Outcome.NOT_MODIFIED, status=304)
        result = Result(task.id, Outcome.OK, status=200, robots=FORBIDS_3)
        result.etag, result.last_modified = '"v1"', "yesterday"
        return result

    scenario = _slow_site(says)
    why, crawl, _ = scenario.run(max_wait_s=1e9)
    assert why == "exhausted"
    assert conditions == [("", ""), ('"v1"', "yesterday"), ('"v1"', "yesterday")]
    assert crawl.totals.robots_disallowed == 11, "/3 and /30 to /39 are still forbidden"
    (kept,) = scenario.ledger.robots(host_id("h.test"))
    assert (kept.status, kept.body, kept.etag) == (200, FORBIDS_3, '"v1"')
    assert kept.expires_at > START + 2 * DAY_S


def test_a_last_good_copy_stands_in_for_a_day_and_no_longer() -> None:
    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS and now > START + DAY_S / 2:
            return Result(task.id, Outcome.SERVER_ERROR, status=503)
        return None

    scenario = _slow_site(says, pages=100)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 5 * DAY_S, max_wait_s=1e9)
    pages = [request.at for request in driver.requests if not request.url.endswith("robots.txt")]
    assert pages[-1] < START + 2 * DAY_S + 3700
    assert sum(at > START + DAY_S + 3700 for at in pages) > 5, "the copy was used on the second day"
    assert crawl.frontier.counts.queued > 30, "and nothing was dropped"
    forbidden = [request.url for request in driver.requests if "/3" in request.url]
    assert forbidden == []


def test_a_copy_kept_by_the_ledger_stands_in_after_a_restart() -> None:
    is_down = False

    def says(task: FetchTask, _now: float) -> Result | None:
        down = is_down and task.kind is FetchKind.ROBOTS
        return Result(task.id, Outcome.TIMEOUT) if down else None

    web = ImaginedSites({"h.test": ImaginedHost(pages=30, fanout=30, robots=FORBIDS_3, says=says)})
    first = Scenario(web, ["http://h.test/"])
    _, driver = first.prepare()
    driver.run(until=START + 5)
    is_down = True
    again = Scenario(web, [], ledger=first.ledger, started_at=START + DAY_S + 3600)
    crawl, later = again.prepare()
    later.run(until=again.started_at + 3600)
    assert crawl.frontier.counts.queued == 0
    assert not any("/3" in request.url for request in later.requests)


def test_robots_that_are_rate_limited_are_asked_for_when_they_say() -> None:
    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS and now < START + 100:
            return Result(task.id, Outcome.RATE_LIMITED, status=429, retry_after_s=120)
        return None

    web = ImaginedSites({"h.test": ImaginedHost(pages=3, says=says)})
    why, _, driver = Scenario(web, ["http://h.test/"]).run()
    assert why == "exhausted"
    first, second, *_ = _asked(driver.requests, "h.test")
    assert 120 <= second - first < 121
    assert len(driver.requests) == 2 + 3


def test_a_shorter_crawl_delay_holds_once_it_is_known() -> None:
    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is not FetchKind.ROBOTS:
            return None
        delay = 7200 if now < START + DAY_S / 2 else 5
        return Result(task.id, Outcome.OK, status=200, robots=f"User-agent: *\nCrawl-delay: {delay}\n".encode())

    web = ImaginedSites({"h.test": ImaginedHost(pages=40, fanout=40, says=says)})
    why, _, driver = Scenario(web, ["http://h.test/"], delay_s=1.0).run(max_wait_s=1e9)
    assert why == "exhausted"
    gaps = [later - earlier for earlier, later in pairwise(_asked(driver.requests, "h.test"))]
    assert gaps[0] >= 3600, "an absurd delay counts as an hour"
    assert 5 <= gaps[-1] < 6


@pytest.mark.parametrize("by", ["address", "domain"])
def test_an_address_or_a_domain_has_a_pace_of_its_own(by: str) -> None:
    web = ImaginedSites()
    for number in range(20):
        address = "127.0.0.1" if by == "address" else f"127.0.0.{number}"
        name = f"h{number}.test" if by == "address" else f"h{number}.one.test"
        web.hosts[name] = ImaginedHost(pages=4, address=address, latency_s=0.05 + 0.07 * number)
    web.hosts["free.example"] = ImaginedHost(pages=200, fanout=200, address="127.1.0.1")
    limits = FrontierLimits(address_delay_s=2.0) if by == "address" else FrontierLimits(domain_delay_s=2.0)
    scenario = Scenario(web, [f"http://{host}/" for host in web.hosts], limits=limits, delay_s=0.5)
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    assert crawl.totals.pages == 280
    shared = sorted(request.at for request in driver.requests if request.host != "free.example")
    assert len(shared) == 100
    gaps = [later - earlier for earlier, later in pairwise(shared)]
    assert min(gaps) >= 2.0 - 1e-6
    assert max(gaps) < 2.0 + 0.1 + 0.7, "a delay after it arrived; no other time is wasted"


def test_an_address_that_was_asked_just_before_a_restart_is_not_asked_early() -> None:
    web = many_hosts(4, 6, address="127.0.0.1")
    limits = FrontierLimits(address_delay_s=10.0)
    first = Scenario(web, ["http://h0.test/"], limits=limits, delay_s=0.1)
    crawl, driver = first.prepare()
    driver.run(until=START + 35)
    crawl.save_state(1.0, 1.0, driver.now)
    again = Scenario(web, [], limits=limits, delay_s=0.1, ledger=first.ledger, started_at=driver.now)
    _, later = again.prepare()
    later.run(until=again.started_at + 60)
    assert min(request.at for request in later.requests) >= max(r.at for r in driver.requests) + 10.0


def test_retry_after_outlives_a_restart() -> None:
    def says(task: FetchTask, now: float) -> Result | None:
        is_third = task.url.endswith("/2") and now < START + 50
        return Result(task.id, Outcome.RATE_LIMITED, status=429, retry_after_s=90) if is_third else None

    web = ImaginedSites({"h.test": ImaginedHost(pages=8, says=says)})
    first = Scenario(web, ["http://h.test/"])
    _, driver = first.prepare()
    driver.run(until=START + 20)
    refused_at = max(_asked(driver.requests, "h.test"))
    again = Scenario(web, [], ledger=first.ledger, started_at=START + 20, was_clean=False)
    _, later = again.prepare()
    later.run(until=START + 600)
    assert _asked(later.requests, "h.test")[0] >= refused_at + 90


def test_one_host_with_a_minute_of_delay_and_many_urls_costs_the_others_nothing() -> None:
    def run(with_slow: bool) -> tuple[float, int]:
        web = many_hosts(200, 10)
        seeds = [f"http://{host}/" for host in web.hosts]
        if with_slow:
            robots = b"User-agent: *\nCrawl-delay: 60\n"
            web.hosts["slow.test"] = ImaginedHost(pages=20_000, fanout=1000, robots=robots, address="127.9.9.9")
            seeds.append("http://slow.test/")
        _, driver = Scenario(web, seeds).prepare()
        driver.run(until=START + 400)
        fast = [request.at for request in driver.requests if request.host != "slow.test"]
        return max(fast) - START, len(fast)

    alone, beside = run(False), run(True)
    assert beside[1] == alone[1] == 200 * 11
    assert beside[0] <= alone[0] + 1.0
