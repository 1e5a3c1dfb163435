"""What follows from a page that says nearly the same as another."""

from __future__ import annotations

import pytest
from xxhash import xxh3_128_digest

from gossamer.core.dedup.minhash import minhash
from gossamer.core.dedup.scheme import NearDup
from gossamer.core.url.forms import link_to
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import FetchTask, QueuedUrl, UrlRecord
from tests.core.dedup.texts import text, with_changes
from tests.engine.test_crawl import Bench

FIRST = text(500)
NEAR = with_changes(FIRST, 2)
CHILD = link_to("http://child.test/")


def row(bench: Bench, task: FetchTask) -> UrlRecord:
    record = bench.ledger.look_up(task.url_id)
    assert record is not None
    return record


def crawled(bench: Bench, *texts: str, content_hash: bytes = b"") -> list[FetchTask]:
    """Let each seed say a text, in order."""
    tasks = bench.past_robots()
    for task, said in zip(tasks, texts, strict=True):
        bench.end(task, signature=minhash(said), content_hash=content_hash or xxh3_128_digest(said.encode()))
    return tasks


def seeds(count: int) -> list[str]:
    return [f"http://h{number}.test/" for number in range(count)]


def test_a_near_duplicate_names_the_page_it_repeats_and_how_much() -> None:
    bench = Bench(*seeds(2))
    first, second = crawled(bench, FIRST, NEAR)
    assert not row(bench, first).near_duplicate_of
    assert row(bench, second).near_duplicate_of == first.url_id
    assert 0.9 <= row(bench, second).similarity < 1
    assert bench.crawl.totals.near_duplicates == 1
    told = [event for event in bench.events if event.event is EventName.NEAR_DUPLICATE]
    assert [(event.url, event.target) for event in told] == [(second.url, first.url)]
    assert told[0].similarity == pytest.approx(row(bench, second).similarity, abs=1e-3)


def test_an_exact_duplicate_is_no_near_duplicate_too() -> None:
    bench = Bench(*seeds(3))
    _, second, third = crawled(bench, FIRST, FIRST, NEAR, content_hash=b"c" * 16)
    assert row(bench, second).duplicate_of
    assert row(bench, third).duplicate_of
    assert not row(bench, second).near_duplicate_of
    assert (bench.crawl.totals.duplicates, bench.crawl.totals.near_duplicates) == (2, 0)


def test_likeness_does_not_drift_from_copy_to_copy() -> None:
    bench = Bench(*seeds(3))
    further = with_changes(NEAR, 7, seed=2)
    first, near, far = crawled(bench, FIRST, NEAR, further)
    assert row(bench, near).near_duplicate_of == first.url_id
    assert not row(bench, far).near_duplicate_of, "like the second at best, which is not compared with"


def test_all_of_a_kind_point_to_the_first() -> None:
    bench = Bench(*seeds(6))
    first, *rest = crawled(bench, FIRST, *(with_changes(FIRST, 2, seed=n) for n in range(5)))
    assert {row(bench, task).near_duplicate_of for task in rest} == {first.url_id}


@pytest.mark.parametrize("follows", [True, False])
def test_links_of_near_duplicates_are_followed_as_those_of_copies_are(follows: bool) -> None:
    bench = Bench(*seeds(2), rules=CrawlRules(follows_duplicates=follows))
    first, second = bench.past_robots()
    bench.end(first, content_hash=b"1" * 16, signature=minhash(FIRST))
    bench.end(second, content_hash=b"2" * 16, signature=minhash(NEAR), links=[CHILD])
    assert bench.ledger.is_seen(CHILD.id) is follows


def test_a_page_that_says_nothing_repeats_nothing() -> None:
    bench = Bench(*seeds(2))
    crawled(bench, "", "")
    assert bench.crawl.totals.near_duplicates == 0


def test_nothing_is_compared_if_it_is_off() -> None:
    bench = Bench(*seeds(2), rules=CrawlRules(near_dup=NearDup.OFF))
    crawled(bench, FIRST, NEAR)
    assert bench.crawl.totals.near_duplicates == 0


def visit_again(bench: Bench, task: FetchTask, said: str) -> None:
    record = bench.ledger.look_up(task.url_id)
    assert record is not None
    url = QueuedUrl(task.url, task.url_id, task.host, record.priority, record.seq, record.depth)
    bench.ledger.requeue(url)
    again = bench.crawl.adopt(link_to(task.url), bench.now)
    assert again is not None
    bench.end(again, content_hash=xxh3_128_digest(said.encode()), signature=minhash(said))


def test_a_page_is_no_near_duplicate_of_itself_at_a_later_visit() -> None:
    bench = Bench(*seeds(1))
    (first,) = crawled(bench, FIRST)
    visit_again(bench, first, NEAR)
    assert not row(bench, first).near_duplicate_of
    assert bench.crawl.totals.near_duplicates == 0


def test_a_page_that_others_may_repeat_is_never_marked_later() -> None:
    bench = Bench(*seeds(3))
    other = text(500, seed=8)
    _, second, third = crawled(bench, FIRST, other, with_changes(other, 2))
    visit_again(bench, second, FIRST)
    assert row(bench, third).near_duplicate_of == second.url_id
    assert not row(bench, second).near_duplicate_of


def test_a_second_run_compares_with_the_pages_of_the_first() -> None:
    bench = Bench(*seeds(1))
    (first,) = crawled(bench, FIRST)
    later = Bench("http://later.test/", ledger=bench.ledger)
    (task,) = crawled(later, NEAR)
    assert row(later, task).near_duplicate_of == first.url_id
