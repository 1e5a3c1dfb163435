"""An unreachable robots.txt bans its origin; the other origins of the host go on, at the host's pace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from gossamer.core.limits import FrontierLimits
from gossamer.core.url import link_to
from gossamer.records import Order, OrderKind, Outcome, Result
from gossamer.sim.scenarios import ImaginedHost, ImaginedSites, Scenario
from tests.engine.test_crawl import Bench

BROKEN = [Outcome.TLS_ERROR, Outcome.CONNECT_FAILED, Outcome.SERVER_ERROR, Outcome.TIMEOUT]


def without_https(outcome: Outcome, hrefs: Sequence[str] = ()) -> ImaginedSites:
    """Return a host that answers over http only."""

    def says(order: Order, _now: float) -> Result | None:
        if order.url.startswith("https:"):
            return Result(order.id, outcome, status=503 if outcome is Outcome.SERVER_ERROR else 0)
        if order.kind is OrderKind.ROBOTS:
            return None
        links = [link_to(href) for href in hrefs] if order.url.endswith("a.test/") else []
        return Result(order.id, Outcome.OK, status=200, content_type="text/html", links=links)

    return ImaginedSites({"a.test": ImaginedHost(pages=1, says=says)})


def pages(scenario: Scenario) -> tuple[str, list[str]]:
    why, _, driver = scenario.run(max_wait_s=60.0)
    times = [request.at for request in driver.requests]
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times)), "the host's pace"
    return why, [request.url for request in driver.requests if not request.url.endswith("robots.txt")]


@pytest.mark.parametrize("outcome", BROKEN)
def test_http_is_fetched_while_https_is_broken(outcome: Outcome) -> None:
    scenario = Scenario(without_https(outcome), ["https://a.test/", "http://a.test/", "http://a.test/x"])
    assert pages(scenario) == ("parked", ["http://a.test/", "http://a.test/x"])


@pytest.mark.parametrize("limits", [FrontierLimits(), FrontierLimits(max_urls_in_memory=1)])
@pytest.mark.parametrize("queued", [20, 1200])
def test_http_is_fetched_however_many_urls_of_https_are_before_it(limits: FrontierLimits, queued: int) -> None:
    seeds = [*(f"https://a.test/{n}" for n in range(queued)), "http://a.test/last"]
    scenario = Scenario(without_https(Outcome.TLS_ERROR), seeds, limits)
    assert pages(scenario) == ("parked", ["http://a.test/last"])


def test_a_link_to_another_origin_does_not_wait_for_the_banned_one() -> None:
    bench = Bench("https://a.test/", "http://b.test/")
    for order in bench.orders():
        bench.end(order, Outcome.TLS_ERROR if order.host == "a.test" else Outcome.OK, robots=b"")
    (page,) = bench.orders(after_s=1.0)
    assert bench.crawl.frontier.record_of("a.test").parked_until > bench.now  # type: ignore[union-attr]
    bench.end(page, links=[link_to("http://a.test/")])
    assert [order.url for order in bench.orders(after_s=0.1)] == ["http://a.test/robots.txt"]


def test_what_was_left_for_later_is_fetched_when_its_robots_txt_can_be_reached_again() -> None:
    broken_until = 1_700_000_100.0

    def says(order: Order, now: float) -> Result | None:
        if order.url.startswith("https:") and now < broken_until:
            return Result(order.id, Outcome.TLS_ERROR)
        if order.kind is OrderKind.ROBOTS:
            return None
        return Result(order.id, Outcome.OK, status=200, content_type="text/html", content_hash=order.url_id[::-1])

    web = ImaginedSites({"a.test": ImaginedHost(pages=1, says=says)})
    seeds = [*(f"https://a.test/{n}" for n in range(1300)), *(f"http://a.test/{n}" for n in range(20))]
    for limits in (FrontierLimits(), FrontierLimits(max_urls_in_memory=1)):
        why, crawl, driver = Scenario(web, seeds, limits).run(max_wait_s=4000.0)
        asked = [request.url for request in driver.requests if not request.url.endswith("robots.txt")]
        assert (why, crawl.totals.pages, len(set(asked))) == ("exhausted", 1320, 1320)
        assert all(url.startswith("http:") for url in asked[:20])


def test_a_host_with_one_origin_is_parked_as_a_whole() -> None:
    scenario = Scenario(without_https(Outcome.TLS_ERROR), ["https://a.test/", "https://a.test/x"])
    why, asked = pages(scenario)
    assert (why, asked) == ("parked", [])
    assert any(event.event == "host_parked" for event in scenario.events)
