"""How many new hosts the pages at one address may lead to."""

from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.links.introductions import (
    EARNED_HOSTS,
    FREE_HOSTS,
    UNLIMITED,
    Introducer,
    Introductions,
    introducer_of,
)
from gossamer.core.url.forms import link_to
from gossamer.model.records import QueuedUrl

PAGE = link_to("http://hub.test/")
HUB = PAGE.id[:8]
HERE = Introducer("192.0.2.1", "hub.test")
ELSEWHERE = Introducer("192.0.2.2", "hub.test")


def _found(parent: bytes = PAGE.id) -> QueuedUrl:
    link = link_to("http://found.test/")
    return QueuedUrl(link.url, link.id, link.host, 0, 1, 1, parent=parent)


def _introductions(free: int) -> Introductions:
    return Introductions(FrontierLimits(max_hosts_per_address=free), set())


def test_a_domain_may_lead_to_as_many_hosts_as_may_be_at_an_address() -> None:
    introductions = _introductions(10)
    assert introductions.room(HERE) == 10
    introductions.count(HUB, HERE, 8)
    assert introductions.room(HERE) == 2
    assert introductions.room(ELSEWHERE) == 10


def test_an_address_may_lead_to_few_hosts_at_first_also_if_it_may_have_many() -> None:
    assert _introductions(1000).room(HERE) == FREE_HOSTS


def test_whoever_leads_to_too_many_hosts_leaves_its_neighbours_half_of_the_rest_each() -> None:
    introductions = _introductions(16)
    rooms = []
    for number in range(6):
        neighbour = Introducer(HERE.network, f"neighbour{number}.test")
        rooms.append(introductions.room(neighbour))
        introductions.count(bytes([number]) * 8, neighbour, 1000)
    assert rooms == [16, 8, 4, 2, 1, 1]
    assert introductions.room(HERE) == 1


def test_nobody_else_can_use_up_what_a_domain_has_earned() -> None:
    introductions = _introductions(16)
    introductions.count(b"liar....", Introducer(HERE.network, "liar.test"), 1000)
    introductions.count(HUB, HERE, introductions.room(HERE))
    assert introductions.room(HERE) == 0
    introductions.count_answer(_found())
    assert introductions.room(HERE) == EARNED_HOSTS


def test_every_host_that_answers_earns_more_for_the_address_whose_page_led_to_it() -> None:
    introductions = _introductions(10)
    introductions.count(HUB, HERE, 10)
    introductions.count_answer(_found())
    assert introductions.room(HERE) == EARNED_HOSTS
    introductions.count_answer(_found(parent=link_to("http://other.test/").id))
    introductions.count_answer(_found(parent=b""))
    assert introductions.room(HERE) == EARNED_HOSTS, "an answer counts for the page that led to its host only"


def test_an_address_is_listed_as_soon_as_what_waits_there_may_go_on() -> None:
    introductions = _introductions(10)
    introductions.count(HUB, HERE, 10 + EARNED_HOSTS)
    introductions.count_answer(_found())
    introductions.set_waiting(HERE, has_waiting=True)
    assert not introductions.earned, "it led to more than it may"
    introductions.count_answer(_found())
    assert list(introductions.earned) == [HERE]
    introductions.set_waiting(HERE, has_waiting=False)
    assert not introductions.earned


def test_without_a_limit_there_is_always_room() -> None:
    introductions = _introductions(0)
    introductions.count(HUB, HERE, 1_000_000)
    assert introductions.room(HERE) == UNLIMITED


def test_an_ipv6_address_counts_by_its_network_and_a_host_without_address_by_its_name() -> None:
    one, other = (introducer_of(f"{name}.test", "test", (f"2001:db8::{name}",)) for name in "ab")
    assert one == other == Introducer("2001:db8::/64", "test")
    assert introducer_of("a.test", "a.test", ("192.0.2.1", "192.0.2.2")).network == "192.0.2.1"
    assert introducer_of("a.test", "a.test", ()).network == "a.test"
