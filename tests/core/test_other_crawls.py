"""Crawls of one process share the pace of a host. Each has a clock of its own."""

from __future__ import annotations

import pytest

from gossamer.core.politeness.arrival import MAX_TRANSIT_S
from gossamer.core.politeness.other_crawls import GRACE_S, KEPT_S, MAX_HOSTS, POLL_S, CrawlContacts, HostContacts

HOST = "a.test"
AHEAD_S = 1000.0  # of the second crawl's clock


class Crawl:
    """A crawl with a delay, by the clock that the test reads."""

    def __init__(self, shared: HostContacts, delay_s: float = 1.0, offset_s: float = 0.0, connections: int = 1) -> None:
        self.contacts = CrawlContacts(shared, offset_s)
        self.delay_s, self.offset_s, self.connections = delay_s, offset_s, connections

    def free_at(self, at: float) -> float:
        free_at = self.contacts.free_at(HOST, self.delay_s, self.connections, at + self.offset_s)
        return round(free_at - self.offset_s, 6)

    def begin(self, at: float) -> None:
        self.contacts.begin(HOST, at + self.delay_s + self.offset_s, at + self.offset_s)

    def end(self, asked_at: float) -> None:
        self.contacts.end(HOST, asked_at + self.offset_s, asked_at + self.delay_s + self.offset_s)


@pytest.fixture
def shared() -> HostContacts:
    return HostContacts()


def test_a_crawl_alone_waits_for_nobody(shared: HostContacts) -> None:
    one = Crawl(shared)
    one.begin(10.0)
    assert one.free_at(10.0) == 10.0


@pytest.mark.parametrize(("first_s", "second_s", "expected"), [(1.0, 1.0, 11.0), (5.0, 1.0, 15.0), (1.0, 5.0, 15.0)])
def test_the_longer_delay_counts(shared: HostContacts, first_s: float, second_s: float, expected: float) -> None:
    one, two = Crawl(shared, first_s), Crawl(shared, second_s, AHEAD_S)
    one.begin(9.9)
    one.end(10.0)
    assert two.free_at(10.2) == expected
    assert two.free_at(expected) == expected


def test_another_host_is_not_concerned(shared: HostContacts) -> None:
    one, two = Crawl(shared), Crawl(shared)
    one.begin(10.0)
    assert two.contacts.free_at("b.test", 1.0, 1, 10.0) == 10.0


def test_while_a_request_is_out_there_is_no_other_beyond_the_connections(shared: HostContacts) -> None:
    one, two, many = Crawl(shared, 0.0), Crawl(shared, 0.0), Crawl(shared, 0.0, connections=2)
    one.begin(10.0)
    assert two.free_at(20.0) == 20.0 + POLL_S
    assert many.free_at(20.0) == 20.0
    one.end(20.05)
    assert two.free_at(20.0 + POLL_S) == 20.0 + POLL_S


def test_until_the_end_of_a_request_its_transit_counts(shared: HostContacts) -> None:
    one, two = Crawl(shared), Crawl(shared, connections=2)
    one.begin(10.0)
    assert two.free_at(10.5) == 11.0 + MAX_TRANSIT_S


def test_crawls_take_turns(shared: HostContacts) -> None:
    one, two = Crawl(shared), Crawl(shared)
    one.begin(10.0)
    assert two.free_at(10.05) == 11.0 + MAX_TRANSIT_S
    one.end(10.01)
    assert one.free_at(11.02) == 11.0 + MAX_TRANSIT_S + GRACE_S, "the other one has waited since its last turn"
    assert two.free_at(11.1) == 11.1
    two.begin(11.1)
    two.end(11.2)
    assert one.free_at(12.2) == 12.2


def test_who_does_not_come_loses_its_turn(shared: HostContacts) -> None:
    one, two = Crawl(shared), Crawl(shared)
    one.begin(10.0)
    until = two.free_at(10.05)
    one.end(10.01)
    assert one.free_at(until + GRACE_S) == until + GRACE_S


def test_a_crawl_that_is_over_leaves_its_delays_and_nothing_else(shared: HostContacts) -> None:
    one, two = Crawl(shared), Crawl(shared)
    one.begin(10.0)
    one.contacts.close()
    assert two.free_at(10.5) == 11.0 + MAX_TRANSIT_S
    assert two.free_at(11.1) == 11.1
    two.contacts.close()
    assert len(shared.crawls) == 1


def test_what_is_old_is_forgotten(shared: HostContacts) -> None:
    one = CrawlContacts(shared, 0.0)
    for number in range(MAX_HOSTS):
        one.begin(f"{number}.test", 1.0, 0.0)
        one.end(f"{number}.test", 0.0, 1.0)
    one.begin("last.test", 0.0, 2 * KEPT_S)
    assert [*shared.crawls[1]] == ["last.test"]
