from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import DomainSlot
from gossamer.model.records import HostRecord
from tests.core.slots import lone_host


def test_a_url_is_counted_in_all_and_at_its_host() -> None:
    counts, record = Counts(), HostRecord("a.test", "a.test")
    counts.enqueue(record)
    counts.enqueue(record, 5)
    counts.enqueue(record, -2)
    assert (counts.queued, record.queued) == (4, 4)


def test_what_is_queued_for_a_shard_of_others_counts_when_the_shard_is_taken() -> None:
    counts, record = Counts(), HostRecord("a.test", "a.test")
    counts.enqueue_stored(record, 3)
    assert (counts.queued, record.queued) == (0, 3)
    counts.load(record)
    assert counts.queued == 3
    counts.unload(record)
    assert (counts.queued, record.queued) == (0, 3)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["enqueue", "dequeue", "take", "release"]))))
def test_queued_is_the_sum_over_the_hosts_of_owned_shards(steps: list[tuple[int, str]]) -> None:
    counts, records = Counts(), [HostRecord(f"h{n}.test", f"h{n}.test") for n in range(4)]
    owned: set[int] = set()
    for number, step in steps:
        record = records[number]
        if step == "take" and number not in owned:
            owned.add(number)
            counts.load(record)
        elif step == "release" and number in owned:
            owned.remove(number)
            counts.unload(record)
        elif step == "enqueue":
            (counts.enqueue if number in owned else counts.enqueue_stored)(record, 2)
        elif step == "dequeue" and number in owned and record.queued:
            counts.enqueue(record, -1)
        assert counts.queued == sum(records[each].queued for each in owned)


def test_a_page_under_way_counts_at_its_host_and_its_domain() -> None:
    counts, domain = Counts(), DomainSlot("a.test")
    one, two = lone_host("one.a.test", domain), lone_host("two.a.test", domain)
    for host in (one, two, two):
        counts.begin_page(host)
    assert (counts.pages_in_flight, domain.pages_in_flight) == (3, 3)
    assert (one.pages_in_flight, two.pages_in_flight) == (1, 2)
    counts.end_page(two)
    assert (counts.pages_in_flight, domain.pages_in_flight, two.pages_in_flight) == (2, 2, 1)
    assert (counts.pages, domain.pages, two.record.pages) == (0, 0, 0), "an end is not a success"


def test_a_page_that_was_fetched_counts_at_its_host_and_its_domain() -> None:
    counts, domain = Counts(), DomainSlot("a.test", pages=7)
    host = lone_host("one.a.test", domain)
    counts.add_page(host)
    assert (counts.pages, domain.pages, host.record.pages) == (1, 8, 1)


@pytest.mark.parametrize(
    ("max_pages", "pages", "in_flight", "is_reached"),
    [
        (None, 10**9, 10**6, False),
        (5, 4, 0, False),
        (5, 5, 0, True),
        (5, 3, 2, True),
        (5, 3, 1, False),
        (0, 0, 0, True),
    ],
)
def test_what_is_in_flight_counts_towards_the_page_limit(
    max_pages: int | None, pages: int, in_flight: int, is_reached: bool
) -> None:
    counts = Counts(pages=pages, pages_in_flight=in_flight)
    assert counts.is_page_limit_reached(FrontierLimits(max_pages=max_pages)) is is_reached
