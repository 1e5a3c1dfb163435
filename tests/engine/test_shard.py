"""A shard can be released and taken again, in the middle of a crawl, and nothing is lost, doubled or hurried."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.records import FetchKind, Outcome, UrlState
from gossamer.ports import Ledger
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, Scenario, many_hosts
from tests.engine.test_crawl import Bench

HOSTS, PAGES = 12, 15
SHARD = shard_of(host_id("h3.test"))
DEEP = FrontierLimits(max_depth=40)  # each host is found on the one before


def asked(driver: VirtualDriver, host: str) -> list[float]:
    return [request.at for request in driver.requests if request.host == host]


def check_whole_and_polite(driver: VirtualDriver, ledger: Ledger) -> None:
    ledger.commit()
    states = [row.state for _, row in ledger.urls()]
    assert states == [UrlState.DONE] * (HOSTS * PAGES)
    at: defaultdict[str, list[float]] = defaultdict(list)
    for request in driver.requests:
        at[request.host].append(request.at)
    gaps = [later - earlier for times in at.values() for earlier, later in pairwise(sorted(times))]
    assert min(gaps) >= 1.0


@pytest.mark.parametrize("away_s", [0.0, 3.0, 60.0])
def test_a_shard_that_was_away_is_crawled_to_its_end(ledger: Ledger, away_s: float) -> None:
    scenario = Scenario(many_hosts(HOSTS, PAGES), ["http://h0.test/"], DEEP, ledger=ledger)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 12.3)
    queued = crawl.frontier.counts.queued
    crawl.release([SHARD], driver.now)
    ledger.commit()
    assert crawl.frontier.counts.queued < queued
    assert not crawl.frontier.has_host("h3.test")
    before = len(asked(driver, "h3.test"))
    driver.run(until=driver.now + away_s)
    assert len(asked(driver, "h3.test")) == before, "it has another owner"
    crawl.take(SHARD, driver.now)
    assert driver.run() == "exhausted"
    assert crawl.frontier.counts.queued == 0
    check_whole_and_polite(driver, ledger)


def test_links_to_a_released_shard_wait_until_it_is_taken(ledger: Ledger) -> None:
    crawl, driver = Scenario(many_hosts(HOSTS, PAGES), ["http://h0.test/"], DEEP, ledger=ledger).prepare()
    crawl.release([SHARD], driver.now)
    assert driver.run() == "exhausted"
    assert not asked(driver, "h3.test")
    assert not asked(driver, "h4.test"), "h3 leads to it"
    crawl.take(SHARD, driver.now)
    assert driver.run() == "exhausted"
    check_whole_and_polite(driver, ledger)


def test_swapped_out_hosts_of_a_released_shard_stay_out(ledger: Ledger) -> None:
    limits = FrontierLimits(max_hosts_in_memory=2)
    seeds = [f"http://h{n}.test/" for n in range(HOSTS)]
    crawl, driver = Scenario(many_hosts(HOSTS, PAGES), seeds, limits, ledger=ledger).prepare()
    crawl.release([SHARD], driver.now)
    driver.run(until=START + 30.0)
    assert not asked(driver, "h3.test")
    crawl.take(SHARD, driver.now)
    assert driver.run() == "exhausted"
    check_whole_and_polite(driver, ledger)


def test_an_answer_that_comes_after_its_shard_was_released_is_dropped() -> None:
    bench = Bench("http://a.test/", "http://b.test/")
    tasks = bench.past_robots()
    (lost,) = [task for task in tasks if task.host == "a.test"]
    shard = shard_of(host_id("a.test"))
    bench.crawl.release([shard], bench.now)
    bench.end(lost)
    bench.crawl.learn_address("a.test", ("10.0.0.1",), bench.now + 60.0, bench.now)
    assert bench.state_of("http://a.test/")[0] is UrlState.QUEUED
    bench.crawl.take(shard, bench.now)
    assert [task.host for task in bench.tasks(after_s=0.9)] == []
    (again,) = bench.tasks(after_s=0.2)
    assert (again.url, again.kind) == ("http://a.test/", FetchKind.PAGE)


def test_a_name_that_is_looked_up_while_its_shard_leaves_takes_its_connection_until_it_ends() -> None:
    bench = Bench("http://a.test/")
    assert bench.crawl.tasks(bench.now) == []
    assert bench.crawl.take_resolves() == ["a.test"]
    bench.crawl.release([shard_of(host_id("a.test"))], bench.now)
    assert bench.crawl.frontier.in_flight == 1
    bench.crawl.learn_address("a.test", ("10.0.0.1",), bench.now + 60.0, bench.now)
    assert bench.crawl.frontier.in_flight == 0


def test_a_shard_that_comes_back_waits_for_the_look_up_that_is_still_going_on() -> None:
    bench = Bench("http://a.test/")
    bench.crawl.tasks(bench.now)
    assert bench.crawl.take_resolves() == ["a.test"]
    shard = shard_of(host_id("a.test"))
    for _ in range(3):
        bench.crawl.release([shard], bench.now)
        bench.crawl.take(shard, bench.now)
        assert bench.crawl.tasks(bench.now) == []
        assert bench.crawl.take_resolves() == []
    assert bench.crawl.frontier.in_flight == 1
    bench.crawl.learn_address("a.test", ("10.0.0.1",), bench.now + 60.0, bench.now)
    (task,) = bench.crawl.tasks(bench.now + 2.0)
    assert (task.kind, task.host) == (FetchKind.ROBOTS, "a.test")


def test_a_name_that_cannot_be_found_after_its_shard_was_released_is_not_counted() -> None:
    bench = Bench("http://a.test/")
    bench.crawl.tasks(bench.now)
    assert bench.crawl.take_resolves() == ["a.test"]
    bench.crawl.release([shard_of(host_id("a.test"))], bench.now)
    bench.crawl.fail_address("a.test", Outcome.DNS_FAILED, "no answer", bench.now)
    assert (bench.crawl.totals.fetches, bench.crawl.totals.errors) == (0, 0)
    assert bench.crawl.frontier.in_flight == 0
