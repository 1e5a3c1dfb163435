"""What the operator requests of a shard's owner is queued again when the shard is taken, once."""

from __future__ import annotations

from collections import Counter
from math import nextafter

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.revival import is_requested
from gossamer.engine.crawl import Crawl
from gossamer.model.events import EventName
from gossamer.model.records import ArchiveSpan, Outcome, UrlState
from gossamer.model.state import ALL_PATTERNS, OperatorRequest
from gossamer.ports import Ledger
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import Scenario, many_hosts
from tests.engine.test_evidence import trap

HOSTS, PAGES = 6, 8
SHARD = shard_of(host_id("h3.test"))
DEEP = FrontierLimits(max_depth=40)


def crawled(ledger: Ledger) -> tuple[Crawl, VirtualDriver]:
    """Crawl to the end; what belongs to the shard is stored on node b."""
    crawl, driver = Scenario(many_hosts(HOSTS, PAGES), ["http://h0.test/"], DEEP, ledger=ledger).prepare()
    assert driver.run() == "exhausted"
    ledger.commit()
    for url_id, row in list(ledger.urls()):
        if shard_of(url_id) == SHARD:
            row.archived = ArchiveSpan("gossamer-b-20260101000000-00-00000.warc.gz", 1, 2)
            ledger.amend(url_id, row)
    give_up(crawl, driver, ledger)
    return crawl, driver


def give_up(crawl: Crawl, driver: VirtualDriver, ledger: Ledger) -> None:
    crawl.release([SHARD], driver.now)
    ledger.commit()


def test_pages_that_a_lost_node_had_stored_are_fetched_again_and_counted_once(ledger: Ledger) -> None:
    crawl, driver = crawled(ledger)
    before = crawl.totals.copy()
    request = OperatorRequest(driver.now, [SHARD], stored_on="b")
    lost = [row.url for _, row in ledger.urls() if is_requested(row, request)]
    assert len(lost) == PAGES
    crawl.take(SHARD, driver.now, [request])
    assert crawl.totals.pages == before.pages - PAGES
    assert crawl.totals.unique_hosts == before.unique_hosts - 1
    asked = len(driver.requests)
    assert driver.run() == "exhausted"
    again = Counter(each.url for each in driver.requests[asked:])
    assert {url: again[url] for url in lost} == dict.fromkeys(lost, 1)
    assert crawl.frontier.counts.pages == crawl.totals.pages == before.pages
    assert (crawl.totals.unique_hosts, crawl.totals.types) == (before.unique_hosts, before.types)
    host = ledger.host("h3.test")
    assert host is not None
    assert host.pages == PAGES


def test_a_request_that_is_fulfilled_does_nothing_any_more(ledger: Ledger) -> None:
    crawl, driver = crawled(ledger)
    requests = [OperatorRequest(driver.now, [SHARD], stored_on="b"), OperatorRequest(driver.now, [SHARD])]
    crawl.take(SHARD, driver.now, requests)
    assert driver.run() == "exhausted"
    give_up(crawl, driver, ledger)
    crawl.take(SHARD, driver.now, requests)
    assert crawl.frontier.counts.queued == 0


def test_a_request_of_another_node_or_shard_is_left_alone(ledger: Ledger) -> None:
    crawl, driver = crawled(ledger)
    other = (SHARD + 1) % 4096
    requests = [
        OperatorRequest(driver.now, [SHARD], stored_on="c"),
        OperatorRequest(driver.now, [other], stored_on="b"),
        OperatorRequest(driver.now, [SHARD], hosts=["h0.test"], stored_on="b"),
    ]
    crawl.take(SHARD, driver.now, requests)
    assert crawl.frontier.counts.queued == 0


@pytest.mark.parametrize(("outcomes", "revived"), [([], 1), (["timeout"], 1), (["dns_failed"], 0)])
def test_dead_letters_are_queued_again_by_outcome(ledger: Ledger, outcomes: list[str], revived: int) -> None:
    crawl, driver = crawled(ledger)
    url_id, row = next((url_id, row) for url_id, row in ledger.urls() if shard_of(url_id) == SHARD)
    row.state, row.outcome = UrlState.DEAD, Outcome.TIMEOUT.value
    ledger.amend(url_id, row)
    ledger.commit()
    crawl.totals.dead += 1
    crawl.take(SHARD, driver.now, [OperatorRequest(nextafter(row.fetched_at, 1e12), [SHARD], outcomes=outcomes)])
    assert crawl.frontier.counts.queued == revived
    assert crawl.totals.dead == 1 - revived


def test_a_pattern_in_quarantine_is_released_by_the_owner() -> None:
    bench = trap()
    (quarantine,) = bench.ledger.records(QUARANTINES)
    shard = shard_of(host_id(quarantine.host))
    bench.crawl.release([shard], bench.now)
    bench.ledger.commit()
    request = OperatorRequest(bench.now, [shard], pattern=quarantine.name)
    bench.crawl.take(shard, bench.now, [request, request])
    held = quarantine.held
    for _ in range(10):  # a slice per turn
        bench.crawl.tasks(bench.now)
    assert bench.crawl.frontier.counts.queued == held
    assert bench.crawl.totals.held == {}
    (event,) = bench.told(EventName.QUEUED_AGAIN)
    assert (event.rule, event.links) == (quarantine.name, held)
    assert bench.tasks(after_s=10.0)


@pytest.mark.parametrize(("later_s", "is_released"), [(1.0, True), (-1.0, False)])
def test_a_request_for_all_patterns_concerns_those_in_quarantine_when_it_was_made(
    later_s: float, is_released: bool
) -> None:
    bench = trap()
    (quarantine,) = bench.ledger.records(QUARANTINES)
    shard = shard_of(host_id(quarantine.host))
    bench.crawl.release([shard], bench.now)
    bench.ledger.commit()
    held = quarantine.held
    request = OperatorRequest(quarantine.since + later_s, [shard], pattern=ALL_PATTERNS)
    bench.crawl.take(shard, bench.now, [request, request])
    assert [event.rule for event in bench.told(EventName.QUEUED_AGAIN)] == [quarantine.name] * is_released
    for _ in range(10):
        bench.crawl.tasks(bench.now)
    assert bench.crawl.frontier.counts.queued == (held if is_released else 0)
