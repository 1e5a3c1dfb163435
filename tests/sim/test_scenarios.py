"""Whole crawls in virtual time: what the servers saw decides."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder
from gossamer.core.frontier.workbench import HostState
from gossamer.core.links.scope import Reach
from gossamer.core.politeness.pace import PaceRule
from gossamer.core.url.forms import host_of, link_to
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result, UrlState
from gossamer.ports import Ledger
from gossamer.sim.driver import ImaginedAnswer, ImaginedRequest, VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts


def pages_of(driver: VirtualDriver) -> list[str]:
    return [request.url for request in driver.requests if not request.url.endswith("/robots.txt")]


def requests_to(driver: VirtualDriver, host: str) -> list[ImaginedRequest]:
    return [request for request in driver.requests if request.host == host]


def states(ledger: Ledger) -> Counter[UrlState]:
    ledger.commit()
    return Counter(record.state for _, record in ledger.urls())


def redirect(task: FetchTask, target: str, status: int = 302) -> Result:
    return Result(task.id, Outcome.REDIRECT, status=status, redirect_to=target)


def failure(task: FetchTask, outcome: Outcome, status: int = 0, retry_after_s: float = -1.0) -> Result:
    return Result(task.id, outcome, status=status, retry_after_s=retry_after_s)


def site(host: ImaginedHost) -> ImaginedSites:
    return ImaginedSites({"a.test": host})


Says = Callable[[FetchTask, float], Result | None]


def on_page(path: str, answer: Callable[[FetchTask], Result]) -> Says:
    """Return a server that answers one path in its own way."""
    return lambda task, _now: answer(task) if task.url.endswith(path) else None


# -- order ---------------------------------------------------------------------------------------


def test_breadth_gives_every_domain_a_page_before_any_gets_the_next() -> None:
    web = many_hosts(30, 20)
    scenario = Scenario(web, [f"http://h{n}.test/" for n in range(30)], FrontierLimits(connections=1), delay_s=0.0)
    why, _, driver = scenario.run()
    assert why == "exhausted"
    pages: Counter[str] = Counter()
    for url in pages_of(driver):
        behind = [host for host in web.hosts if pages[host] < min(20, pages[host_of(url)])]
        assert not behind, f"{url} came before {behind}"
        pages[host_of(url)] += 1
    assert set(pages.values()) == {20}


def test_a_ready_domain_with_fewer_pages_always_goes_first() -> None:
    web = many_hosts(60, 12)
    for n, host in enumerate(web.hosts.values()):
        host.latency_s = 0.05 + 0.03 * (n % 7)
    scenario = Scenario(web, [f"http://h{n}.test/" for n in range(60)], FrontierLimits(connections=7), delay_s=0.5)
    crawl, driver = scenario.prepare()
    next_task = crawl.frontier.next_task

    def watched(now: float, *, beyond_limits: bool = False) -> FetchTask | None:
        task = next_task(now, beyond_limits=beyond_limits)
        if task is not None and task.kind is FetchKind.PAGE:
            hosts = crawl.frontier._hosts
            ready = [host.domain.pages for host in hosts.values() if host.state is HostState.READY]
            assert hosts[task.host].domain.pages <= min(ready, default=1 << 30)
        return task

    crawl.frontier.next_task = watched  # type: ignore[method-assign]
    assert driver.run() == "exhausted"
    assert len(pages_of(driver)) == 60 * 12


def sequence_over_one_connection(order: QueueOrder, limits: FrontierLimits) -> list[str]:
    """Return the URLs that a crawl over one connection requests, in their order."""
    web = many_hosts(20, 40, fanout=7)
    _, _, driver = Scenario(web, ["http://h0.test/", "http://h7.test/"], limits, delay_s=0.0, order=order).run()
    return [request.url for request in driver.requests]


def sequence_with_little_room() -> list[str]:
    """Return the pages that a crawl requests if few hosts fit into memory, in their order."""
    return _pages_with_room_for(FrontierLimits(connections=4, max_hosts_in_memory=3, max_urls_in_memory=1))


def in_another_process(expression: str, hash_seed: int) -> list[str]:
    """Evaluate an expression in a process that hashes texts in its own way, so that every set has another order."""
    program = f"import json; from tests.sim.test_scenarios import *; print(json.dumps({expression}))"
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    project = Path(__file__).parents[2]
    found: list[str] = json.loads(
        subprocess.check_output([sys.executable, "-c", program], env=environment, cwd=project)
    )
    return found


@pytest.mark.parametrize("order", QueueOrder)
def test_a_crawl_over_one_connection_is_the_same_every_time(order: QueueOrder) -> None:
    first = sequence_over_one_connection(order, FrontierLimits(connections=1, max_depth=50))
    assert len(first) == 20 * 41
    expression = f"sequence_over_one_connection(QueueOrder.{order.name}, FrontierLimits(connections=1, max_depth=50))"
    assert in_another_process(expression, hash_seed=1) == first
    little = FrontierLimits(connections=1, max_depth=50, max_urls_in_memory=1)
    assert sequence_over_one_connection(order, little) == first, "refilling changed the order"


def test_committing_and_reading_back_changes_no_order(tmp_path: Path) -> None:
    def sequence(ledger: Ledger, limits: FrontierLimits, every: int = 0) -> list[str]:
        web = many_hosts(10, 30, fanout=9)
        for host in web.hosts.values():
            host.says = lambda _task, _now: ledger.commit() if every and len(driver.requests) % every == 0 else None
        _, driver = Scenario(
            web, [f"http://h{n}.test/" for n in range(0, 10, 3)], limits, delay_s=0.0, ledger=ledger
        ).prepare()
        driver.run()
        return [request.url for request in driver.requests]

    local = LocalLedger(tmp_path / "state")
    local.open()
    expected = sequence(MemoryLedger(), FrontierLimits(connections=1))
    assert sequence(local, FrontierLimits(connections=1, max_urls_in_memory=1), every=7) == expected
    local.close()


def _pages_with_room_for(limits: FrontierLimits) -> list[str]:
    web = many_hosts(40, 15)
    for n in range(0, 40, 5):
        # These refuse for a while, longer than a host stays in memory where there is little room.
        web.hosts[f"h{n}.test"].says = lambda task, now: (
            failure(task, Outcome.RATE_LIMITED, 429, 400.0) if START + 3 < now < START + 6 else None
        )
    scenario = Scenario(web, [f"http://h{n}.test/" for n in range(40)], limits, delay_s=1.0)
    why, crawl, driver = scenario.run(max_wait_s=1000.0)
    assert why == "exhausted"
    assert crawl.frontier.counts.queued == 0
    return pages_of(driver)


def test_a_crawl_with_room_for_few_hosts_fetches_the_same_pages() -> None:
    roomy = _pages_with_room_for(FrontierLimits(connections=4))
    cramped = sequence_with_little_room()
    assert set(cramped) == set(roomy)
    assert len(set(cramped)) == 40 * 15
    assert in_another_process("sequence_with_little_room()", hash_seed=2) == cramped


# -- politeness -----------------------------------------------------------------------------------


def _check_pace(driver: VirtualDriver, host: str, delay_s: float) -> None:
    sent = sorted(request.at for request in requests_to(driver, host))
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    assert min(gaps, default=delay_s) >= delay_s - 1e-6


def test_a_slow_host_costs_the_others_nothing() -> None:
    def run(*, with_slow: bool) -> tuple[float, VirtualDriver]:
        web = many_hosts(1000, 5)
        seeds = [f"http://h{n}.test/" for n in range(1000)]
        if with_slow:
            web.hosts["slow.test"] = ImaginedHost(
                pages=60, fanout=60, robots=b"User-agent: *\nCrawl-delay: 60\n", address="10.9.9.9"
            )
            seeds.insert(0, "http://slow.test/")
        why, _, driver = Scenario(web, seeds, FrontierLimits(connections=64)).run()
        assert why == "exhausted"
        return max(request.until for request in driver.requests if request.host != "slow.test") - START, driver

    alone_s, _ = run(with_slow=False)
    beside_s, driver = run(with_slow=True)
    assert beside_s < alone_s * 1.02 + 0.1
    _check_pace(driver, "slow.test", 60.0)
    assert len(requests_to(driver, "slow.test")) == 61
    assert len(driver.requests) == 1000 * 6 + 61


def test_the_delay_runs_from_the_moment_a_request_is_sent() -> None:
    _, _, driver = Scenario(site(ImaginedHost(pages=20, sent_after_s=2.5, latency_s=3.0)), ["http://a.test/"]).run()
    _check_pace(driver, "a.test", 1.0)
    starts = [request.at - 2.5 for request in driver.requests]
    ends = [request.until for request in driver.requests]
    assert all(start >= end - 1e-6 for start, end in zip(starts[1:], ends, strict=False)), "one connection a host"


@pytest.mark.parametrize("sent_after_s", [0.1, 2.0])
def test_two_connections_keep_the_pace_of_one(sent_after_s: float) -> None:
    web = site(ImaginedHost(pages=40, latency_s=5.0, sent_after_s=sent_after_s))
    why, _, driver = Scenario(web, ["http://a.test/"], host_connections=2).run()
    assert why == "exhausted"
    _check_pace(driver, "a.test", 1.0)
    edges = sorted(
        [(r.at - sent_after_s, 1) for r in driver.requests] + [(r.until - 1e-6, -1) for r in driver.requests]
    )
    flying = most = 0
    for _, step in edges:
        flying += step
        most = max(most, flying)
    assert most == 2
    one_at_a_time_s = 41 * 5.0
    assert driver.now - START < 0.7 * one_at_a_time_s


def test_429_holds_the_whole_host_for_as_long_as_it_says() -> None:
    refused_at: list[float] = []

    def says(task: FetchTask, now: float) -> Result | None:
        if task.url.endswith("/3") and not refused_at:
            refused_at.append(now)
            return failure(task, Outcome.RATE_LIMITED, 429, 90.0)
        return None

    web = site(ImaginedHost(pages=20, says=says))
    web.hosts["b.test"] = ImaginedHost(pages=20, address="10.0.0.2")
    scenario = Scenario(web, ["http://a.test/", "http://b.test/"])
    why, _, driver = scenario.run()
    assert why == "exhausted"
    after = [request.at for request in requests_to(driver, "a.test") if request.at > refused_at[0] + 1.0]
    assert min(after) >= refused_at[0] + 90.0
    assert max(request.at for request in requests_to(driver, "b.test")) < refused_at[0] + 30.0
    assert states(scenario.ledger) == {UrlState.DONE: 40}
    parked = [event for event in scenario.events if event.event is EventName.HOST_PARKED]
    assert [event.host for event in parked] == ["a.test"]


def test_robots_unreachable_parks_the_host_until_it_recovers() -> None:
    def says(task: FetchTask, now: float) -> Result | None:
        is_down = task.kind is FetchKind.ROBOTS and now < START + 20
        return failure(task, Outcome.SERVER_ERROR, 503) if is_down else None

    scenario = Scenario(site(ImaginedHost(pages=5, says=says)), ["http://a.test/"])
    why, _, driver = scenario.run()
    assert why == "exhausted"
    robots = [request.at for request in driver.requests if request.url.endswith("/robots.txt")]
    assert 3 <= len(robots) <= 5
    assert min(request.at for request in driver.requests if not request.url.endswith("/robots.txt")) > robots[-1]
    assert states(scenario.ledger) == {UrlState.DONE: 5}


def test_a_crawl_is_over_when_the_rest_is_parked_for_longer_than_it_may_wait() -> None:
    web = site(ImaginedHost(pages=5, robots_status=503))
    web.hosts["b.test"] = ImaginedHost(pages=5, address="10.0.0.2")
    scenario = Scenario(web, ["http://a.test/", "http://a.test/x/1", "http://b.test/"])
    why, crawl, driver = scenario.run(max_wait_s=300.0)
    assert why == "parked"
    assert crawl.frontier.view.parked_urls(driver.now, 300.0) == 2
    assert states(scenario.ledger) == {UrlState.DONE: 5, UrlState.QUEUED: 2}
    assert driver.now - START < 300


def test_a_host_whose_robots_lead_to_a_parked_host_is_parked_with_it() -> None:
    web = site(ImaginedHost(pages=5))
    web.hosts["a.test"].says = lambda task, _now: (
        redirect(task, "http://b.test/robots.txt") if task.kind is FetchKind.ROBOTS else None
    )
    web.hosts["b.test"] = ImaginedHost(
        address="10.0.0.2", says=lambda task, _now: failure(task, Outcome.RATE_LIMITED, 429, 3000.0)
    )
    why, _, driver = Scenario(web, ["http://b.test/", "http://a.test/"]).run(max_wait_s=300.0)
    assert why == "parked"
    assert driver.now - START < 300


def test_hosts_at_one_address_share_its_connections() -> None:
    web = many_hosts(40, 4)
    for host in web.hosts.values():
        host.address, host.latency_s = "10.0.0.1", 1.0
    scenario = Scenario(web, [f"http://h{n}.test/" for n in range(40)], FrontierLimits(address_connections=3))
    why, _, driver = scenario.run()
    assert why == "exhausted"
    starts = sorted((request.at - 0.5, request.until) for request in driver.requests)
    for at, _ in starts:
        assert sum(start <= at < end - 1e-6 for start, end in starts) <= 3


def test_a_pace_rule_lets_one_site_go_faster() -> None:
    web = many_hosts(2, 30)
    rules = [PaceRule("h1.test", delay_s=0.1)]
    _, _, driver = Scenario(web, ["http://h0.test/", "http://h1.test/"], pace_rules=rules).run()
    last = {host: max(request.until for request in requests_to(driver, host)) - START for host in web.hosts}
    assert last["h1.test"] < 5.0
    assert last["h0.test"] > 29.0


# -- robots.txt, redirects ------------------------------------------------------------------------


def test_robots_come_first_and_are_kept() -> None:
    web = site(ImaginedHost(pages=30, robots=b"User-agent: *\nDisallow: /1\nDisallow: /2$\n"))
    scenario = Scenario(web, ["http://a.test/"])
    _, crawl, driver = scenario.run()
    assert driver.requests[0].url == "http://a.test/robots.txt"
    assert not [url for url in pages_of(driver) if url.startswith("http://a.test/1") or url == "http://a.test/2"]
    denied = [event for event in scenario.events if event.event is EventName.ROBOTS_DISALLOW]
    assert {event.line for event in denied} == {2, 3}
    assert crawl.totals.robots_disallowed == len(denied)


def test_robots_are_asked_for_again_after_a_day() -> None:
    web = site(ImaginedHost(pages=30, fanout=30))
    _, _, driver = Scenario(web, ["http://a.test/"], delay_s=3600.0).run(max_wait_s=1e9)
    robots = [request.at for request in driver.requests if request.url.endswith("/robots.txt")]
    assert len(robots) == 2
    assert 24 * 3600 <= robots[1] - robots[0] <= 26 * 3600


def test_each_origin_of_a_host_has_its_own_robots() -> None:
    web = site(ImaginedHost(pages=1, says=lambda task, _now: None))
    web.hosts["a.test"].says = lambda task, _now: (
        Result(task.id, Outcome.OK, status=200, robots=b"User-agent: *\nDisallow: /")
        if task.url == "http://a.test:8080/robots.txt"
        else None
    )
    _, _, driver = Scenario(web, ["http://a.test/", "http://a.test:8080/", "https://a.test/"]).run()
    assert sorted(pages_of(driver)) == ["http://a.test/", "https://a.test/"]
    assert sum(request.url.endswith("/robots.txt") for request in driver.requests) == 3
    _check_pace(driver, "a.test", 1.0)


def test_a_redirect_to_another_host_goes_by_that_hosts_robots() -> None:
    web = ImaginedSites(
        {
            "a.test": ImaginedHost(
                pages=1,
                says=lambda task, _now: (
                    None if task.kind is FetchKind.ROBOTS else redirect(task, "http://b.test" + task.url[13:])
                ),
            ),
            "b.test": ImaginedHost(pages=1, robots=b"User-agent: *\nDisallow: /secret\n", address="10.0.0.2"),
        }
    )
    scenario = Scenario(web, ["http://a.test/", "http://a.test/secret"])
    _, crawl, driver = scenario.run()
    seen = [request.url for request in requests_to(driver, "b.test")]
    assert seen == ["http://b.test/robots.txt", "http://b.test/"]
    assert (crawl.totals.pages, crawl.totals.robots_disallowed) == (1, 1)
    record = scenario.ledger.look_up(link_to("http://a.test/").id)
    assert record is not None
    assert (record.state, record.redirect_to) == (UrlState.DONE, "http://b.test/")


def test_an_endless_chain_of_redirects_ends_after_five() -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        return redirect(task, f"http://a.test/{int(task.url.rpartition('/')[2] or 0) + 1}")

    scenario = Scenario(site(ImaginedHost(says=says)), ["http://a.test/"])
    why, _, driver = scenario.run()
    assert why == "exhausted"
    assert len(pages_of(driver)) == 6
    last = scenario.ledger.look_up(link_to("http://a.test/5").id)
    assert last is not None
    assert (last.state, last.outcome, last.depth) == (UrlState.DEAD, "too_many_redirects", 0)


@pytest.mark.parametrize("limit", [0, 7])
def test_as_many_redirects_are_followed_as_the_operator_allows(limit: int) -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        return redirect(task, f"http://a.test/{int(task.url.rpartition('/')[2] or 0) + 1}")

    rules = CrawlRules(max_redirects=limit)
    scenario = Scenario(site(ImaginedHost(says=says)), ["http://a.test/"], rules=rules)
    _, _, driver = scenario.run()
    assert len(pages_of(driver)) == 1 + limit


@pytest.mark.parametrize("target", [1, 20, 60])
def test_a_target_of_domains_is_met_exactly_with_many_requests_at_once(target: int) -> None:
    why, crawl, _ = Scenario(
        many_hosts(100, 3), [f"http://h{n}.test/" for n in range(100)], target_domains=target
    ).run()
    assert (why, crawl.totals.unique_domains) == ("target_domains", target)


def test_a_redirect_to_itself_is_a_loop() -> None:
    says = on_page("/0", lambda task: redirect(task, task.url))
    scenario = Scenario(site(ImaginedHost(says=says)), ["http://a.test/0"])
    _, _, driver = scenario.run()
    assert len(pages_of(driver)) == 1
    record = scenario.ledger.look_up(link_to("http://a.test/0").id)
    assert record is not None
    assert (record.state, record.outcome) == (UrlState.DEAD, "redirect_loop")


def test_a_redirect_that_only_changes_the_spelling_is_followed() -> None:
    says = on_page("utm_source=x", lambda task: redirect(task, "http://a.test/0"))
    scenario = Scenario(site(ImaginedHost(pages=1, says=says)), ["http://a.test/0?utm_source=x"])
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    assert pages_of(driver) == ["http://a.test/0?utm_source=x", "http://a.test/0"]
    assert (crawl.totals.pages, crawl.frontier.counts.queued) == (1, 0)
    assert states(scenario.ledger) == {UrlState.DONE: 1}


def test_the_target_of_a_seed_joins_the_scope_and_nothing_else_does() -> None:
    web = ImaginedSites(
        {
            "a.test": ImaginedHost(says=on_page("a.test/", lambda task: redirect(task, "http://www.b.test/"))),
            "www.b.test": ImaginedHost(pages=3, address="10.0.0.2", cross_links=["http://c.test/"]),
            "c.test": ImaginedHost(pages=3, address="10.0.0.3"),
        }
    )
    scenario = Scenario(web, ["http://a.test/"], reach=Reach.HOST)
    _, crawl, driver = scenario.run()
    assert [host_of(url) for url in pages_of(driver)] == ["a.test"] + ["www.b.test"] * 3
    crawl.save_state(0.0, 0.0, driver.now)
    again, _ = Scenario(web, [], reach=Reach.HOST, ledger=scenario.ledger).prepare()
    assert again._admission._intake.scope.refusal("http://www.b.test/x", "www.b.test") is None, (
        "the scope is remembered"
    )
    assert again._admission._intake.scope.refusal("http://c.test/x", "c.test") == "out_of_scope"


# -- failures -------------------------------------------------------------------------------------


def test_a_name_that_does_not_exist_ends_in_the_dead_letters() -> None:
    web = site(ImaginedHost(pages=3))
    scenario = Scenario(web, ["http://gone.test/1", "http://gone.test/2", "http://a.test/"])
    why, crawl, _ = scenario.run()
    assert why == "exhausted"
    assert states(scenario.ledger) == {UrlState.DONE: 3, UrlState.DEAD: 2}
    record = scenario.ledger.look_up(link_to("http://gone.test/2").id)
    assert record is not None
    assert record.outcome == "dns_not_found"
    assert crawl.frontier.counts.queued == 0
    assert crawl.totals.dead == 2


def test_a_failing_page_is_tried_four_times_with_growing_waits_and_the_host_goes_on() -> None:
    web = site(ImaginedHost(pages=40, fanout=40, status=lambda url, _now: 500 if url.endswith("/3") else 200))
    scenario = Scenario(web, ["http://a.test/"])
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    tries = [request.at for request in driver.requests if request.url.endswith("/3")]
    waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert len(tries) == 4
    assert [wait >= least for wait, least in zip(waits, (2.0, 8.0, 32.0), strict=True)] == [True] * 3
    assert states(scenario.ledger) == {UrlState.DONE: 39, UrlState.DEAD: 1}
    assert crawl.totals.retries == 3
    others = [request.at for request in driver.requests if not request.url.endswith("/3")]
    assert max(others) < START + 60


def test_a_few_urls_that_always_fail_stall_no_host() -> None:
    broken = {f"http://a.test/{number}" for number in (3, 117, 119, 281)}
    web = site(ImaginedHost(pages=300, fanout=300, status=lambda url, _now: 500 if url in broken else 200))
    scenario = Scenario(web, ["http://a.test/"])
    why, _, driver = scenario.run()
    assert why == "exhausted"
    assert states(scenario.ledger) == {UrlState.DONE: 296, UrlState.DEAD: 4}
    assert not [event for event in scenario.events if event.event is EventName.HOST_PARKED]
    tries = {url: [request.at for request in driver.requests if request.url == url] for url in broken}
    waits = [later - earlier for each in tries.values() for earlier, later in itertools.pairwise(each)]
    assert [len(each) for each in tries.values()] == [4] * 4
    assert max(waits) < 40.0, "2, 8 and 32 s"
    others = [request.at for request in driver.requests if request.url not in broken]
    assert max(later - earlier for earlier, later in itertools.pairwise(others)) < 3.2


def test_urls_that_are_tried_again_at_the_end_of_a_crawl_do_not_slow_their_host() -> None:
    broken = [f"http://a.test/{number}" for number in (3, 117, 281)]
    web = site(ImaginedHost(pages=300, fanout=300, status=lambda url, _now: 500 if url in broken else 200))
    scenario = Scenario(web, ["http://a.test/"], FrontierLimits(retry_wait_s=0.1), delay_s=0.0)
    _, _, driver = scenario.run()
    for url in broken:
        tries = [request.at for request in driver.requests if request.url == url]
        waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
        assert waits == pytest.approx([0.1, 0.4, 1.6], abs=0.3)


def test_a_host_that_fails_at_every_url_is_left_alone_at_its_retries_too() -> None:
    down_at = START + 30
    web = site(ImaginedHost(pages=40, fanout=40, status=lambda _url, now: 500 if now > down_at else 200))
    scenario = Scenario(web, ["http://a.test/"])
    _, _, driver = scenario.run(max_wait_s=1e9)
    later = [request.at for request in driver.requests if request.at > down_at]
    assert sum(at < down_at + 600 for at in later) <= 15
    assert {round(event.wait_s) for event in scenario.events if event.event is EventName.HOST_PARKED} >= {60, 120, 240}


def test_no_url_is_tried_again_if_the_operator_wants_no_retries() -> None:
    web = site(ImaginedHost(pages=40, fanout=40, status=lambda url, _now: 500 if url.endswith("/3") else 200))
    scenario = Scenario(web, ["http://a.test/"], FrontierLimits(retries=0))
    _, crawl, driver = scenario.run()
    assert [request.url for request in driver.requests].count("http://a.test/3") == 1
    assert crawl.totals.retries == 0
    assert states(scenario.ledger) == {UrlState.DONE: 39, UrlState.DEAD: 1}


def test_five_failures_in_a_row_park_the_host() -> None:
    web = site(ImaginedHost(pages=40, fanout=40, status=lambda url, _now: 200 if url.endswith("/") else 500))
    scenario = Scenario(web, ["http://a.test/"])
    scenario.run(max_wait_s=1e9)
    parked = [event for event in scenario.events if event.event is EventName.HOST_PARKED]
    assert parked
    assert parked[0].wait_s == 60.0
    assert "5 failures in a row" in parked[0].reason


@pytest.mark.parametrize(
    "outcome", [Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT, Outcome.DISCONNECTED, Outcome.TLS_ERROR]
)
def test_a_bare_domain_without_https_is_tried_over_http_at_once(outcome: Outcome) -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        return failure(task, outcome) if task.url.startswith("https:") else None

    scenario = Scenario(
        site(ImaginedHost(pages=3, says=says)), ["https://a.test/"], is_https_first=True, reach=Reach.PREFIX
    )
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    assert [request.url for request in driver.requests][:3] == [
        "https://a.test/robots.txt",
        "http://a.test/robots.txt",
        "http://a.test/",
    ]
    assert driver.requests[1].at - driver.requests[0].at < 1.2, "at once, but for the delay"
    assert crawl.totals.pages == 3
    assert crawl.frontier.counts.queued == 0


def test_domains_without_https_are_no_errors_of_the_crawl() -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        return failure(task, Outcome.CONNECT_FAILED) if task.url.startswith("https:") else None

    web = many_hosts(40, 1, says=says, cross_links=())
    scenario = Scenario(web, [f"https://h{n}.test/" for n in range(40)], is_https_first=True, reach=Reach.PREFIX)
    _, crawl, _ = scenario.run()
    totals = crawl.totals
    assert (totals.pages, totals.fetches, totals.errors, totals.dead) == (40, 120, 0, 0)
    assert totals.outcomes == {"ok": 80, "no_https": 40}
    assert states(scenario.ledger) == {UrlState.DONE: 80}
    hosts = list(scenario.ledger.hosts())
    assert {(host.fetches, host.errors, host.failures_in_a_row, host.backoff) for host in hosts} == {(3, 0, 0, 0)}
    asked = Counter(event.event for event in scenario.events if event.url.endswith("/robots.txt"))
    assert asked == {EventName.HTTPS_MISSING: 40, EventName.ROBOTS_FETCHED: 40}
    row = scenario.ledger.look_up(link_to("https://h7.test/").id)
    assert row is not None
    assert (row.outcome, row.redirect_to) == ("no_https", "http://h7.test/")


def test_a_domain_with_neither_is_one_dead_letter() -> None:
    web = site(ImaginedHost(pages=1, says=lambda task, _now: failure(task, Outcome.TLS_ERROR)))
    _, crawl, driver = Scenario(web, ["https://a.test/"], is_https_first=True, reach=Reach.PREFIX).run()
    assert [request.url for request in driver.requests][:2] == ["https://a.test/robots.txt", "http://a.test/robots.txt"]
    assert crawl.totals.errors == len(driver.requests) - 1


def test_only_a_guess_falls_back_to_http() -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        return failure(task, Outcome.CONNECT_FAILED) if task.url.startswith("https:") else None

    why, crawl, _ = Scenario(site(ImaginedHost(pages=3, says=says)), ["https://a.test/"]).run()
    assert why == "parked"
    assert (crawl.totals.pages, crawl.frontier.counts.queued) == (0, 1)


# -- limits ---------------------------------------------------------------------------------------


def _status_of_host(number: int, url: str, _now: float) -> int:
    return 404 if (number + len(url)) % 3 == 0 else 200


@pytest.mark.parametrize("connections", [1, 50])
def test_max_pages_is_exact(connections: int) -> None:
    web = many_hosts(30, 20)
    for n, host in enumerate(web.hosts.values()):
        host.status = partial(_status_of_host, n)
    scenario = Scenario(
        web, [f"http://h{n}.test/" for n in range(30)], FrontierLimits(connections=connections, max_pages=57)
    )
    why, crawl, _ = scenario.run()
    assert (why, crawl.totals.pages) == ("max_pages", 57)


def _pages_by_host(ledger: Ledger) -> Counter[str]:
    ledger.commit()
    return Counter(host_of(record.url) for _, record in ledger.urls() if record.outcome == "ok")


def test_budgets_are_exact_and_raising_them_goes_on() -> None:
    web = ImaginedSites()
    for n in range(6):
        for part in ("www", "blog"):
            web.hosts[f"{part}.d{n}.test"] = ImaginedHost(pages=10, address=f"10.0.{n}.{len(part)}")
    seeds = [f"http://{host}/" for host in web.hosts]
    scenario = Scenario(web, seeds, FrontierLimits(max_pages_per_host=4, max_pages_per_domain=6))
    why, crawl, driver = scenario.run()
    assert why == "budgets"
    pages = _pages_by_host(scenario.ledger)
    by_domain: Counter[str] = Counter()
    for host, count in pages.items():
        assert count <= 4
        by_domain[host.partition(".")[2]] += count
    assert set(by_domain.values()) == {6}
    crawl.save_state(0.0, 0.0, driver.now)
    more = Scenario(web, [], FrontierLimits(max_pages_per_host=10), ledger=scenario.ledger, started_at=driver.now)
    why, _, second = more.run()
    assert why == "exhausted"
    assert set(_pages_by_host(scenario.ledger).values()) == {10}
    both = Counter(pages_of(driver) + pages_of(second))
    assert set(both.values()) == {1}, "nothing twice"


def test_hosts_with_used_up_budgets_make_room_for_others() -> None:
    web = many_hosts(30, 10)
    limits = FrontierLimits(max_pages_per_host=2, max_hosts_in_memory=3)
    scenario = Scenario(web, [f"http://h{n}.test/" for n in range(30)], limits)
    why, _, _ = scenario.run()
    assert why == "budgets"
    assert set(_pages_by_host(scenario.ledger).values()) == {2}
    assert len(_pages_by_host(scenario.ledger)) == 30


def test_domains_with_used_up_budgets_make_room_for_others() -> None:
    web = ImaginedSites()
    for n in range(12):
        for part in ("x", "y", "z"):
            web.hosts[f"{part}.d{n}.test"] = ImaginedHost(pages=5, address=f"10.0.{n}.{ord(part)}")
    limits = FrontierLimits(max_pages_per_domain=1, max_hosts_in_memory=3)
    scenario = Scenario(web, [f"http://{host}/" for host in web.hosts], limits)
    why, _, _ = scenario.run()
    assert why == "budgets"
    assert sum(_pages_by_host(scenario.ledger).values()) == 12


def test_the_depth_limit_is_kept() -> None:
    web = site(ImaginedHost(pages=10_000, fanout=2))
    _, _, driver = Scenario(web, ["http://a.test/"], FrontierLimits(max_depth=3), delay_s=0.0).run()
    assert len(pages_of(driver)) == 1 + 2 + 4 + 8


class _LinksHome(ImaginedSites):
    """Every page links to the first one too."""

    def answer(self, task: FetchTask, now: float) -> ImaginedAnswer:
        answer = super().answer(task, now)
        answer.result.links = [*answer.result.links, link_to("http://a.test/")]
        return answer


def test_a_url_is_fetched_again_only_after_its_cooldown() -> None:
    web = _LinksHome({"a.test": ImaginedHost(pages=16, fanout=3)})
    scenario = Scenario(web, ["http://a.test/"], FrontierLimits(max_pages=20), rules=CrawlRules(cooldown_s=10.0))
    scenario.run()
    times = defaultdict(list)
    for event in scenario.events:
        if event.event is EventName.FETCH_OK:
            times[event.url].append(event.ts)
    gaps = [later - earlier for at in times.values() for earlier, later in itertools.pairwise(at)]
    assert gaps
    assert min(gaps) >= 10.0
    assert [event for event in scenario.events if event.event is EventName.COOLDOWN_SKIP]


# -- the first pass -------------------------------------------------------------------------------


def _hub(links: Sequence[str]) -> ImaginedHost:
    return ImaginedHost(pages=1, cross_links=links, address="10.0.0.99")


def _fails_up_to(number: int, url: str, _now: float) -> int:
    return 404 if int(url.rpartition("/")[2]) <= number else 200


def test_the_first_pass_tries_reserves_if_a_domain_fails() -> None:
    web = ImaginedSites({"hub.test": _hub([f"http://d{n}.test/{m}" for m in range(1, 6) for n in range(10)])})
    for n in range(10):
        # Domain n has n pages that fail before the first good one.
        web.hosts[f"d{n}.test"] = ImaginedHost(
            pages=1,
            address=f"10.0.1.{n}",
            status=partial(_fails_up_to, n),
        )
    scenario = Scenario(web, ["http://hub.test/"], target_domains=99)
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    # The first URL and three reserves: domains 0 to 3.
    assert crawl.totals.unique_domains == 1 + 4
    fetched = Counter(host_of(url) for url in pages_of(driver))
    assert fetched == {"hub.test": 1, **{f"d{n}.test": min(n + 1, 4) for n in range(10)}}


def test_the_first_pass_stops_at_its_target() -> None:
    web = many_hosts(50, 5)
    scenario = Scenario(web, ["http://h0.test/"], FrontierLimits(connections=1, max_depth=50), target_domains=20)
    why, crawl, driver = scenario.run()
    assert why == "target_domains"
    assert crawl.totals.unique_domains == 20
    assert len(pages_of(driver)) == 20
    again, _ = Scenario(web, [], ledger=scenario.ledger, target_domains=20).prepare()
    crawl.save_state(0.0, 0.0, driver.now)
    assert again.tasks(driver.now) == []
    assert again.why_over(driver.now, 300.0) == "target_domains", "a reached target stays reached"


def test_after_the_target_the_normal_policy_goes_on_if_asked() -> None:
    web = many_hosts(10, 5)
    rules = CrawlRules(continues_after_target=True)
    why, crawl, driver = Scenario(web, ["http://h0.test/"], target_domains=4, rules=rules).run()
    assert why == "exhausted"
    assert crawl.totals.unique_domains == 10
    assert Counter(pages_of(driver)) == {f"http://h{n}.test/{m or ''}": 1 for n in range(10) for m in range(5)}
    assert crawl.totals.pages == 50


def test_a_redirect_within_a_domain_does_not_use_up_its_reserves() -> None:
    web = ImaginedSites({"hub.test": _hub(["http://d.test/1", "http://d.test/2", "http://e.test/1"])})

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.url.endswith("/1"):
            return redirect(task, "http://www.d.test/gone")
        return failure(task, Outcome.CLIENT_ERROR, 404) if task.url.endswith("/gone") else None

    web.hosts["d.test"] = ImaginedHost(pages=1, says=says, address="10.0.0.1")
    web.hosts["www.d.test"] = ImaginedHost(pages=1, says=says, address="10.0.0.2")
    web.hosts["e.test"] = ImaginedHost(pages=1, address="10.0.0.3")
    why, crawl, driver = Scenario(web, ["http://hub.test/"], target_domains=99).run()
    assert why == "exhausted"
    assert [url for url in pages_of(driver) if "d.test" in url] == [
        "http://d.test/1",
        "http://www.d.test/gone",
        "http://d.test/2",
    ]
    assert crawl.totals.unique_domains == 3


# -- stopping and going on ------------------------------------------------------------------------


def _flying(driver: VirtualDriver) -> set[str]:
    return {request.url for request in driver.requests if request.until > driver.now}


@pytest.mark.parametrize(
    "limits",
    [FrontierLimits(max_depth=50), FrontierLimits(max_depth=50, max_hosts_in_memory=4, max_urls_in_memory=1)],
)
@pytest.mark.parametrize("stop_after_s", [0.01, 3.3, 11.7])
def test_a_crawl_that_is_taken_up_again_loses_nothing(limits: FrontierLimits, stop_after_s: float) -> None:
    web = many_hosts(20, 12)
    scenario = Scenario(web, ["http://h0.test/", "http://h9.test/"], limits)
    crawl, first = scenario.prepare()
    assert first.run(until=START + stop_after_s) == "time"
    flying = _flying(first)
    crawl.save_state(0.0, 0.0, first.now)
    again = Scenario(web, ["http://h0.test/"], limits, ledger=scenario.ledger, started_at=first.now, was_clean=False)
    why, resumed, second = again.run()
    assert why == "exhausted"
    assert states(scenario.ledger) == {UrlState.DONE: 240}
    both = Counter(pages_of(first) + pages_of(second))
    assert set(both) == {f"http://h{n}.test/{m or ''}" for n in range(20) for m in range(12)}
    assert {url for url, count in both.items() if count > 1} <= flying, "only what was in flight is fetched again"
    assert resumed.totals.pages == 240
    for host in {request.host for request in second.requests}:
        before = max((r.at for r in requests_to(first, host) if r.at <= first.now), default=0.0)
        assert min(r.at for r in requests_to(second, host)) >= before + 1.0 - 1e-6


def test_a_killed_crawl_goes_on_from_its_last_commit(tmp_path: Path) -> None:
    web = many_hosts(10, 20)
    limits = FrontierLimits(connections=6, max_hosts_in_memory=4, max_urls_in_memory=1)
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    crawl, first = Scenario(web, ["http://h0.test/", "http://h5.test/"], limits, ledger=ledger).prepare()
    first.run(until=START + 8.0)
    crawl.save_state(0.0, 0.0, first.now)
    ledger.commit()
    committed = {record.url for _, record in ledger.urls() if record.state is UrlState.DONE}
    first.run(until=START + 12.0)
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "state" / "data.mdb", tmp_path / "copy")
    ledger.close()
    killed = LocalLedger(tmp_path / "copy")
    killed.open()
    scenario = Scenario(web, [], limits, ledger=killed, started_at=first.now, was_clean=False)
    why, resumed, second = scenario.run()
    assert why == "exhausted"
    assert states(killed) == {UrlState.DONE: 200}
    assert not committed & set(pages_of(second))
    assert resumed.totals.pages == 200
    assert min(request.at for request in second.requests) >= first.now + 1.0 - 1e-6, "all count as asked at restart"
    killed.close()


def test_promises_outlive_a_restart() -> None:
    web = site(ImaginedHost(pages=5, says=on_page("/2", lambda task: failure(task, Outcome.RATE_LIMITED, 429, 600.0))))
    scenario = Scenario(web, ["http://a.test/"])
    crawl, first = scenario.prepare()
    assert first.run(max_wait_s=300.0) == "parked"
    refused_at = next(request.until for request in first.requests if request.url.endswith("/2"))
    crawl.save_state(0.0, 0.0, first.now)
    again = Scenario(web, [], ledger=scenario.ledger, started_at=first.now + 5)
    _, second = again.prepare()
    second.run(max_wait_s=1e9, until=first.now + 3000)
    assert min(request.at for request in second.requests) >= refused_at + 600.0


def test_a_clock_set_back_freezes_nobody() -> None:
    web = site(ImaginedHost(pages=5))
    scenario = Scenario(web, ["http://a.test/"])
    crawl, first = scenario.prepare()
    first.run(until=START + 2.5)
    crawl.save_state(0.0, 0.0, first.now)
    a_year_ago = START - 365 * 86400
    why, _, second = Scenario(web, [], ledger=scenario.ledger, started_at=a_year_ago).run()
    assert why == "exhausted"
    assert second.now < a_year_ago + 60
    assert states(scenario.ledger) == {UrlState.DONE: 5}


def test_work_that_a_lost_worker_had_is_done_by_another() -> None:
    lost: set[str] = set()

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.url in lost or len(lost) >= 8:
            return None
        lost.add(task.url)
        return failure(task, Outcome.WORKER_LOST)

    web = many_hosts(5, 8, says=says)
    scenario = Scenario(web, ["http://h0.test/"])
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    assert states(scenario.ledger) == {UrlState.DONE: 40}
    assert crawl.totals.errors == 0
    for host in web.hosts:
        _check_pace(driver, host, 1.0)
