"""Ranks of domains: who gives them, which counts, and what a crawl does with them."""

from __future__ import annotations

from collections import Counter

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits, scaled_budget
from gossamer.core.frontier.priority import QueueOrder
from gossamer.core.ledger.tables import RANKS
from gossamer.core.url.forms import link_to
from gossamer.engine.cluster.link_messages import NodeMessage, decode_message, encode_message
from gossamer.engine.rules import CrawlRules
from gossamer.model.state import DomainRank
from gossamer.ports import Ledger
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, Scenario, many_hosts

HOSTS, PAGES = 30, 20
SEEDS = [f"http://h{number}.test/" for number in range(HOSTS)]
RANKED = [DomainRank(f"h{number}.test", computed=(29 - number) / 29) for number in range(HOSTS)]


def one_by_one(ledger: Ledger, order: QueueOrder, rules: CrawlRules | None = None) -> Scenario:
    """Return a crawl over equal hosts that are always ready, with one request at a time."""
    return Scenario(
        many_hosts(HOSTS, PAGES),
        SEEDS,
        limits=FrontierLimits(connections=1),
        delay_s=0.0,
        order=order,
        rules=rules or CrawlRules(),
        ledger=ledger,
    )


def pages_of_thirds(driver: VirtualDriver, count: int) -> list[int]:
    """Return how many of the first pages were of the best, middle and last third of the hosts."""
    pages = [request for request in driver.requests if not request.url.endswith("robots.txt")]
    turns = Counter(int(request.host[1:].partition(".")[0]) // (HOSTS // 3) for request in pages[:count])
    return [turns[third] for third in range(3)]


def test_tiers_visit_important_domains_first(ledger: Ledger) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS).prepare()
    assert crawl.learn_ranks(RANKED, START) == HOSTS
    assert driver.run() == "exhausted"
    best, middle, last = pages_of_thirds(driver, 300)
    assert best > 170
    assert middle > 2 * last
    finished = {request.host: at for at, request in enumerate(driver.requests)}
    assert max(finished[f"h{number}.test"] for number in range(10)) < min(
        finished[f"h{number}.test"] for number in range(20, 30)
    )


def test_other_orders_do_not_mind_ranks(ledger: Ledger) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.BREADTH).prepare()
    crawl.learn_ranks(RANKED, START)
    driver.run()
    assert pages_of_thirds(driver, 300) == [100, 100, 100]


def test_hosts_that_are_ready_change_their_lane_while_a_crawl_runs(ledger: Ledger) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS).prepare()
    crawl.learn_ranks(RANKED, START)
    while len(driver.requests) < 100:
        driver.run(until=driver.now + 0.2)
    before = pages_of_thirds(driver, 1000)
    upside_down = [DomainRank(one.domain, 1 - one.computed) for one in RANKED]
    crawl.learn_ranks(upside_down, driver.now)
    while len(driver.requests) < 200:
        driver.run(until=driver.now + 0.2)
    gained = [now - then for now, then in zip(pages_of_thirds(driver, 1000), before, strict=True)]
    assert before[0] > 3 * before[2]
    assert gained[2] > 3 * gained[0]
    assert driver.run() == "exhausted"
    assert crawl.totals.pages == HOSTS * PAGES


def test_a_host_that_is_ready_and_rises_is_next(ledger: Ledger) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS).prepare()
    crawl.learn_ranks([DomainRank(one.domain, 0.0) for one in RANKED], START)
    while len(driver.requests) < 100:
        driver.run(until=driver.now + 0.03)
    risen, asked = driver.requests[58].host, len(driver.requests)
    assert risen not in {request.host for request in driver.requests[60:]}  # others come before it for long
    crawl.learn_ranks([DomainRank(risen, 1.0)], driver.now)
    while len(driver.requests) < asked + 30:
        driver.run(until=driver.now + 0.03)
    assert driver.requests[asked].host == risen
    assert sum(request.host == risen for request in driver.requests[asked:]) > 10


def test_a_host_that_is_found_later_has_the_rank_of_its_domain(ledger: Ledger) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS).prepare()
    crawl.learn_ranks([DomainRank("unknown.test", 0.93)], START)
    crawl.add_seeds([link_to("http://www.unknown.test/"), link_to("http://other.test/")], driver.now)
    ranks = {host.name: host.rank for host in ledger.hosts()}
    assert (ranks["www.unknown.test"], ranks["other.test"]) == (0.93, 0.5)


def test_a_rank_of_the_operator_counts_for_the_domain_whatever_is_computed(ledger: Ledger) -> None:
    rules = CrawlRules(host_ranks={"h3.test": 0.25, "h4.test": 0.5})
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS, rules).prepare()
    crawl.learn_ranks(RANKED, START)
    crawl.add_seeds([link_to("http://www.h3.test/")], driver.now)
    ranks = {host.name: host.rank for host in ledger.hosts()}
    assert [ranks[name] for name in ("h3.test", "www.h3.test", "h4.test")] == [0.25, 0.25, 0.5]
    assert ranks["h5.test"] == RANKED[5].computed
    stored = {one.domain: one for one in ledger.records(RANKS)}
    assert stored["h3.test"] == DomainRank("h3.test", RANKED[3].computed, 0.25)


def test_ranks_survive_a_restart_and_are_written_only_if_they_change(ledger: Ledger) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS).prepare()
    crawl.learn_ranks(RANKED, START)
    driver.run(until=START + 2)
    crawl.save_state(0.0, 0.0, driver.now)
    ledger.commit()
    again = one_by_one(ledger, QueueOrder.TIERS).engine()
    again.restore(driver.now, was_clean=False)
    lanes = {host.name: host.lane for host in again.frontier.view.hosts()}
    assert {lanes[f"h{number}.test"] for number in range(10)} == {0}
    assert {lanes[f"h{number}.test"] for number in range(20, 30)} == {2}
    assert again.learn_ranks(RANKED, driver.now) == 0
    assert again.learn_ranks([*RANKED[1:], DomainRank("h0.test", 0.0)], driver.now) == 1
    assert next(host.lane for host in again.frontier.view.hosts() if host.name == "h0.test") == 2


@pytest.mark.parametrize("is_owner", [True, False])
def test_ranks_in_a_letter_reach_the_owner_of_the_domain(ledger: Ledger, is_owner: bool) -> None:
    crawl, driver = one_by_one(ledger, QueueOrder.TIERS).prepare()
    message = decode_message(encode_message(NodeMessage(ranks=[DomainRank("h3.test", 0.75)])))
    if not is_owner:
        crawl.begin_as_node(driver.now)
    crawl.receive(message, driver.now)
    forwarded = [rank for sent in crawl.messages.take_outbox().values() for rank in sent.ranks]
    record = ledger.host("h3.test")
    assert record is not None
    assert (record.rank, forwarded) == ((0.75, []) if is_owner else (0.5, [DomainRank("h3.test", 0.75)]))


def test_a_node_sends_the_operators_ranks_with_its_seeds(ledger: Ledger) -> None:
    crawl = one_by_one(ledger, QueueOrder.TIERS, CrawlRules(host_ranks={"h3.test": 0.25})).engine()
    crawl.begin_as_node(START)
    crawl.add_seeds([link_to(url) for url in SEEDS], START)
    messages = list(crawl.messages.take_outbox().values())
    assert sum(len(message.links) for message in messages) == HOSTS
    assert [rank for message in messages for rank in message.ranks] == [DomainRank("h3.test", given=0.25)]
    owner, _ = one_by_one(MemoryLedger(), QueueOrder.TIERS).prepare()
    for message in messages:
        owner.receive(message, START)
    record = owner.frontier.record_of("h3.test")
    assert record is not None
    assert record.rank == 0.25


def budgets_by_rank(ledger: Ledger, limits: FrontierLimits, pages: int = 60) -> Scenario:
    limits.max_pages_per_domain, limits.scales_domain_budget = 10, True
    limits.derive()
    return Scenario(many_hosts(4, pages), SEEDS[:4], limits=limits, delay_s=0.1, ledger=ledger)


def test_a_budget_is_a_quarter_to_four_times_as_large_by_rank() -> None:
    assert [scaled_budget(1000, rank) for rank in (0.0, 0.25, 0.5, 0.75, 1.0)] == [250, 500, 1000, 2000, 4000]
    assert scaled_budget(1, 0.0) == 1
    limits = FrontierLimits(max_pages_per_domain=8)
    assert (limits.domain_budget(1.0), limits.budget_range()) == (8, None)
    limits.scales_domain_budget = True
    assert (limits.domain_budget(1.0), limits.budget_range()) == (32, (2, 32))


def test_important_domains_have_more_pages_and_nothing_is_lost(ledger: Ledger) -> None:
    crawl, driver = budgets_by_rank(ledger, FrontierLimits()).prepare()
    crawl.learn_ranks([DomainRank("h0.test", 0.0), DomainRank("h1.test", 1.0), DomainRank("h2.test", 0.75)], START)
    assert driver.run() == "budgets"
    assert {one.name: one.pages for one in ledger.domains()} == {
        "h0.test": 2,
        "h1.test": 40,
        "h2.test": 20,
        "h3.test": 10,
    }
    ledger.commit()
    queued = sum(host.queued for host in ledger.hosts())
    rows = [row for _, row in ledger.urls()]
    assert len(rows) == crawl.totals.pages + queued
    assert not crawl.totals.dead


@pytest.mark.parametrize("is_crowded", [False, True])
def test_a_budget_that_is_raised_or_lowered_by_a_new_rank_counts_at_once(ledger: Ledger, is_crowded: bool) -> None:
    limits = FrontierLimits(max_hosts_in_memory=2) if is_crowded else FrontierLimits()
    crawl, driver = budgets_by_rank(ledger, limits).prepare()
    crawl.learn_ranks([DomainRank(f"h{number}.test", 0.0) for number in range(4)], START)
    assert driver.run() == "budgets"
    assert crawl.totals.pages == 8
    assert crawl.frontier.view.has_dropped_exhausted is is_crowded
    crawl.learn_ranks([DomainRank("h0.test", 0.5), DomainRank("h1.test", 1.0)], driver.now)
    assert driver.run() == "budgets"
    assert {one.name: one.pages for one in ledger.domains()} == {
        "h0.test": 10,
        "h1.test": 40,
        "h2.test": 2,
        "h3.test": 2,
    }
    crawl.learn_ranks([DomainRank("h0.test", 0.0), DomainRank("h1.test", 0.0)], driver.now)
    assert driver.run() == "budgets"
    assert crawl.totals.pages == 54
