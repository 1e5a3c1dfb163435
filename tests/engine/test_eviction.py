"""A full queue evicts the lowest priority of all hosts, and says so."""

from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.eviction import MAX_READS
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import FetchTask, UrlState
from gossamer.ports import Ledger
from tests.engine.test_crawl import Bench

LIMITS = FrontierLimits(max_depth=100)


def full_bench(ledger: Ledger, max_queued: int = 60) -> tuple[Bench, list[FetchTask]]:
    """Return a crawl with 20 shallow URLs of a.test and one task each at a.test and b.test."""
    rules = CrawlRules(max_queued=max_queued)
    bench = Bench("http://a.test/", "http://b.test/", ledger=ledger, limits=LIMITS, rules=rules)
    tasks = bench.past_robots()
    first, second = sorted(tasks, key=lambda task: task.host)
    bench.end(first, links=[link_to(f"http://a.test/shallow/{n}") for n in range(40)])
    bench.end(second, links=[link_to("http://b.test/next")])
    (_, deeper) = sorted(bench.tasks(after_s=1.0), key=lambda task: task.host)
    return bench, [deeper]


def test_the_lowest_priority_goes_wherever_it_is_queued(ledger: Ledger) -> None:
    bench, (deeper,) = full_bench(ledger)
    assert deeper.url == "http://b.test/next"
    bench.end(deeper, links=[link_to(f"http://b.test/deep/{n}") for n in range(30)])
    states = {n: bench.state_of(f"http://b.test/deep/{n}")[0] for n in range(30)}
    dead = [n for n, state in states.items() if state is UrlState.DEAD]
    assert dead == list(range(30 - len(dead), 30)), "the last of the deepest"
    assert len(dead) == 10
    assert {bench.state_of(f"http://a.test/shallow/{n}")[0] for n in range(40)} == {UrlState.QUEUED}, "a longer queue"
    assert bench.crawl.frontier.counts.queued == 60


def test_what_is_evicted_is_said_and_named(ledger: Ledger) -> None:
    bench, (deeper,) = full_bench(ledger)
    bench.end(deeper, links=[link_to(f"http://b.test/deep/{n}") for n in range(30)])
    (event,) = bench.told(EventName.EVICTED)
    assert (event.rule, event.links, bench.crawl.totals.evicted) == ("max_queued", 10, 10)
    row = bench.ledger.look_up(link_to("http://b.test/deep/29").id)
    assert row is not None
    assert (row.outcome, "max_queued 60" in row.error) == ("evicted", True)
    bench.crawl.warn_of_left_out(bench.now)
    assert [(event.reason, event.links) for event in bench.told(EventName.WARNING)] == [("evicted", 10)]


def test_the_lowest_priority_of_an_earlier_run_goes_too(ledger: Ledger) -> None:
    bench, (deeper,) = full_bench(ledger, max_queued=1000)
    bench.end(deeper, links=[link_to(f"http://b.test/deep/{n}") for n in range(30)])
    bench.crawl.give_back(bench.crawl.tasks_out(), bench.now)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    ledger.commit()
    again = Bench("http://c.test/", ledger=ledger, limits=LIMITS, rules=CrawlRules(max_queued=50), now=bench.now)
    assert again.crawl.frontier.counts.queued == 50
    dead = [n for n in range(30) if again.state_of(f"http://b.test/deep/{n}")[0] is UrlState.DEAD]
    assert dead == list(range(30 - again.crawl.totals.evicted, 30))
    assert dead


def test_a_retried_dead_letter_counts_as_evicted_no_longer(ledger: Ledger) -> None:
    bench, (deeper,) = full_bench(ledger)
    bench.end(deeper, links=[link_to(f"http://b.test/deep/{n}") for n in range(30)])
    bench.crawl.save_state(0.0, 0.0, bench.now)
    ledger.commit()
    again = Bench(ledger=ledger, limits=LIMITS, now=bench.now)
    again.crawl.retry_dead(lambda row: True, bench.now)
    assert again.crawl.totals.evicted == 0


def test_one_page_reads_a_bounded_number_of_queues_and_the_next_one_goes_on() -> None:
    rules = CrawlRules(max_queued=10)
    bench = Bench("http://a.test/", "http://b.test/", limits=LIMITS, rules=rules)
    first, second = bench.past_robots()
    hosts = 3 * MAX_READS
    bench.end(first, links=[link_to(f"http://h{n}.test/") for n in range(hosts)])
    evicted = bench.crawl.totals.evicted
    assert 0 < evicted <= MAX_READS
    bench.end(second)
    assert evicted < bench.crawl.totals.evicted <= 2 * MAX_READS


def test_a_released_shard_is_not_shortened(ledger: Ledger) -> None:
    bench, (deeper,) = full_bench(ledger, max_queued=41)
    bench.crawl.release([shard_of(host_id("a.test"))], bench.now)
    bench.end(deeper, links=[link_to(f"http://b.test/deep/{n}") for n in range(60)])
    assert bench.crawl.totals.evicted > 0
    assert {bench.state_of(f"http://a.test/shallow/{n}")[0] for n in range(40)} == {UrlState.QUEUED}
