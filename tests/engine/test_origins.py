"""An unreachable robots.txt bans its origin; the other origins of the host go on, at the host's pace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.forms import link_to
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.ports import Ledger
from gossamer.sim.scenarios import ImaginedHost, ImaginedSites, Scenario
from tests.engine.test_crawl import Bench

BROKEN = [Outcome.TLS_ERROR, Outcome.CONNECT_FAILED, Outcome.SERVER_ERROR, Outcome.TIMEOUT]


def without_https(outcome: Outcome, hrefs: Sequence[str] = ()) -> ImaginedSites:
    """Return a host that answers over http only."""

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.url.startswith("https:"):
            return Result(task.id, outcome, status=503 if outcome is Outcome.SERVER_ERROR else 0)
        if task.kind is FetchKind.ROBOTS:
            return None
        links = [link_to(href) for href in hrefs] if task.url.endswith("a.test/") else []
        return Result(task.id, Outcome.OK, status=200, content_type="text/html", links=links)

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
    for task in bench.tasks():
        bench.end(task, Outcome.TLS_ERROR if task.host == "a.test" else Outcome.OK, robots=b"")
    (page,) = bench.tasks(after_s=1.0)
    assert bench.crawl.frontier.record_of("a.test").parked_until > bench.now  # type: ignore[union-attr]
    bench.end(page, links=[link_to("http://a.test/")])
    assert [task.url for task in bench.tasks(after_s=0.1)] == ["http://a.test/robots.txt"]


def test_what_was_left_for_later_is_fetched_when_its_robots_txt_can_be_reached_again() -> None:
    broken_until = 1_700_000_100.0

    def says(task: FetchTask, now: float) -> Result | None:
        if task.url.startswith("https:") and now < broken_until:
            return Result(task.id, Outcome.TLS_ERROR)
        if task.kind is FetchKind.ROBOTS:
            return None
        return Result(task.id, Outcome.OK, status=200, content_type="text/html", content_hash=task.url_id[::-1])

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


@pytest.mark.parametrize("retry_after_s", [600.0, -1.0])
def test_a_host_that_asks_to_be_left_alone_is_left_alone_with_all_its_origins(retry_after_s: float) -> None:
    bench = Bench("https://a.test/", "http://b.test/")
    for task in bench.tasks():
        is_refused = task.host == "a.test"
        outcome, status = (Outcome.RATE_LIMITED, 429) if is_refused else (Outcome.OK, 200)
        bench.end(task, outcome, status=status, robots=b"", retry_after_s=retry_after_s)
    (page,) = bench.tasks(after_s=1.0)
    bench.end(page, links=[link_to("http://a.test/")])
    assert [task.url for task in bench.tasks(after_s=1.0)] == []


# -- after a restart ------------------------------------------------------------------------------


def banned(ledger: Ledger) -> Bench:
    """Return a crawl whose only origin is banned, for an hour."""
    bench = Bench("https://a.test/", ledger=ledger)
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.TLS_ERROR, status=0)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    ledger.commit()
    return bench


def test_after_a_restart_only_the_banned_origin_waits() -> None:
    ledger = MemoryLedger()
    first = banned(ledger)
    again = Bench("http://a.test/x", ledger=ledger, now=first.now + 10)
    assert [task.url for task in again.tasks(after_s=2.0)] == ["http://a.test/robots.txt"]
    task = again.crawl.task(again.crawl.tasks_out()[0])
    assert task is not None
    again.end(task, robots=b"")
    (page,) = again.tasks(after_s=2.0)
    assert page.url == "http://a.test/x"
    again.end(page)
    assert again.tasks(after_s=3000.0) == [], "https is banned for an hour"
    assert [task.url for task in again.tasks(after_s=700.0)] == ["https://a.test/robots.txt"]


def test_a_ban_that_is_over_is_not_restored() -> None:
    ledger = MemoryLedger()
    first = banned(ledger)
    again = Bench(ledger=ledger, now=first.now + 3601)
    assert [task.url for task in again.tasks(after_s=2.0)] == ["https://a.test/robots.txt"]


def test_dead_letters_that_are_queued_again_do_not_wait_for_a_ban() -> None:
    ledger = MemoryLedger()
    bench = Bench("https://a.test/", "https://a.test/x", ledger=ledger)
    (robots,) = bench.tasks()
    bench.end(robots, robots=b"")
    (page,) = bench.tasks(after_s=1.0)
    bench.end(page, Outcome.CLIENT_ERROR, status=404)
    bench.now += 3 * 86400
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.TLS_ERROR, status=0)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    ledger.commit()
    fresh = Scenario(ImaginedSites(), [], ledger=ledger).engine()
    assert fresh.retry_dead(lambda _: True, bench.now) == 1
    ledger.commit()
    again = Bench(ledger=ledger, now=bench.now + 1)
    assert [task.url for task in again.tasks(after_s=2.0)] == ["https://a.test/robots.txt"]


def test_an_unreachable_robots_txt_that_is_ignored_bans_nothing_after_a_restart() -> None:
    ledger, limits = MemoryLedger(), FrontierLimits(is_unreachable_robots_allowed=True)
    bench = Bench("https://a.test/", ledger=ledger, limits=limits)
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.TIMEOUT, status=0)
    ledger.commit()
    again = Bench(ledger=ledger, limits=limits, now=bench.now + 10)
    assert [task.url for task in again.tasks(after_s=2.0)] == ["https://a.test/"]
