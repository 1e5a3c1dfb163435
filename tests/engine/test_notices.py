"""Notices that pages have changed: what becomes due, what is new, what is refused, and never too early."""

from __future__ import annotations

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.revisit.schedule import RevisitRules
from gossamer.core.url.forms import link_to
from gossamer.engine.cluster.link_messages import NodeMessage, message_of
from gossamer.engine.revisit.notices import NOTICED, NoticeCounts
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, Source
from tests.engine.test_crawl import Bench

PAGE, OTHER = "http://a.test/", "http://a.test/other"
HOUR_S = 3600.0
RULES = CrawlRules(revisits=RevisitRules())


def fetched(rules: CrawlRules) -> Bench:
    """Return a crawl that has fetched one page."""
    bench = Bench(PAGE, rules=rules)
    (task,) = bench.past_robots()
    bench.end(task, content_hash=b"1" * 16)
    assert bench.tasks(after_s=1.0) == []
    return bench


def report(bench: Bench, *urls: str) -> NoticeCounts:
    return bench.crawl.accept_notice([link_to(url) for url in urls], bench.now)


def test_a_known_page_is_due_again_but_not_before_its_shortest_interval() -> None:
    bench = fetched(RULES)
    assert report(bench, PAGE) == NoticeCounts(due=1)
    assert bench.tasks(after_s=HOUR_S / 2) == []
    tasks = bench.tasks(after_s=HOUR_S)
    while not [task for task in tasks if task.url == PAGE] and tasks:  # robots.txt may have to be asked again
        for task in tasks:
            bench.end(task, robots=b"")
        tasks = bench.tasks(after_s=2.0)
    assert [task.url for task in tasks] == [PAGE]


def test_without_revisits_a_known_page_is_not_fetched_again() -> None:
    bench = fetched(CrawlRules())
    assert report(bench, PAGE) == NoticeCounts(known=1)
    assert bench.tasks(after_s=40 * 24 * HOUR_S) == []


def test_an_unknown_page_is_a_link_with_its_source() -> None:
    bench = fetched(RULES)
    assert report(bench, OTHER) == NoticeCounts(new=1)
    row = bench.ledger.look_up(link_to(OTHER).id)
    assert row is not None
    assert (row.source, row.depth) == (Source.NOTICE, 1)
    assert [task.url for task in bench.tasks(after_s=1.0)] == [OTHER]
    assert report(bench, OTHER) == NoticeCounts(known=1), "it is queued already"


def test_what_the_rules_refuse_is_counted_and_an_event() -> None:
    bench = fetched(RULES)
    packed = "http://a.test/x.zip"
    counts = report(bench, packed, OTHER)
    assert counts.new == 1
    (event,) = bench.told(EventName.EXCLUDED_BY_RULE)
    assert counts.refused == {"extension": 1}
    assert "extension" in (event.rule, event.reason)
    assert report(bench, packed).refused == counts.refused, "also if it was refused just before"


def test_a_notice_in_a_letter_has_the_same_effect() -> None:
    bench, expected = fetched(RULES), fetched(RULES)
    report(expected, PAGE, OTHER)
    bench.crawl.receive(NodeMessage(links=[message_of(link_to(url), NOTICED) for url in (PAGE, OTHER)]), bench.now)
    for url in (PAGE, OTHER):
        row, other = (each.ledger.look_up(link_to(url).id) for each in (bench, expected))
        assert row is not None
        assert other is not None
        assert (row.source, row.revisit and row.revisit.due_at) == (
            other.source,
            other.revisit and other.revisit.due_at,
        )
    page = bench.ledger.look_up(link_to(PAGE).id)
    before = fetched(RULES).ledger.look_up(link_to(PAGE).id)
    assert page is not None
    assert page.revisit is not None
    assert before is not None
    assert before.revisit is not None
    assert page.revisit.due_at < before.revisit.due_at


@pytest.mark.parametrize("hosts", [2, 4, 5])
def test_pages_are_fetched_again_though_memory_has_room_for_the_rules_of_one_host(hosts: int) -> None:
    pages = [f"http://h{number}.test/" for number in range(hosts)]
    limits, ledger = FrontierLimits(max_rules_bytes=1), MemoryLedger()
    bench = Bench(*pages, rules=RULES, ledger=ledger, limits=limits)
    for task in bench.tasks():
        rules = b"".join(b"Disallow: /%s/%d\n" % (task.host.encode(), number) for number in range(2000))
        bench.end(task, robots=b"User-agent: *\n" + rules)
    fetched_pages: set[str] = set()
    while len(fetched_pages) < hosts:
        for task in bench.tasks(after_s=1.0):
            bench.end(task, content_hash=task.url_id)
            fetched_pages.add(task.url)
    report(bench, *pages)
    bench.crawl.save_state(1.0, 1.0, bench.now)
    again = Bench(rules=RULES, ledger=ledger, limits=limits, now=bench.now + 2 * HOUR_S)
    fetched_again: set[str] = set()
    for _ in range(100 * hosts):
        for task in again.tasks(after_s=0.05):
            assert task.kind is FetchKind.PAGE
            again.end(task, content_hash=task.url_id)
            fetched_again.add(task.url)
    assert fetched_again == set(pages)
