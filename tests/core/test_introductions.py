"""How many new hosts the pages at one address may lead to."""

from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.links.introductions import EARNED_HOSTS, FREE_HOSTS, UNLIMITED, Introductions, network_of_host
from gossamer.core.url.forms import link_to
from gossamer.model.records import QueuedUrl

PAGE = link_to("http://hub.test/")
HUB = PAGE.id[:8]


def _found(parent: bytes = PAGE.id) -> QueuedUrl:
    link = link_to("http://found.test/")
    return QueuedUrl(link.url, link.id, link.host, 0, 1, 1, parent=parent)


def _introductions(free: int) -> Introductions:
    return Introductions(FrontierLimits(max_hosts_per_address=free), set())


def test_an_address_may_lead_to_as_many_hosts_as_it_may_have() -> None:
    introductions = _introductions(10)
    assert introductions.room("192.0.2.1") == 10
    introductions.count(HUB, "192.0.2.1", 8)
    assert introductions.room("192.0.2.1") == 2
    assert introductions.room("192.0.2.2") == 10


def test_an_address_may_lead_to_few_hosts_at_first_also_if_it_may_have_many() -> None:
    assert _introductions(1000).room("192.0.2.1") == FREE_HOSTS


def test_every_host_that_answers_earns_more_for_the_address_whose_page_led_to_it() -> None:
    introductions = _introductions(10)
    introductions.count(HUB, "192.0.2.1", 10)
    introductions.count_answer(_found())
    assert introductions.room("192.0.2.1") == EARNED_HOSTS
    introductions.count_answer(_found(parent=link_to("http://other.test/").id))
    introductions.count_answer(_found(parent=b""))
    assert introductions.room("192.0.2.1") == EARNED_HOSTS, "an answer counts for the page that led to its host only"


def test_an_address_is_listed_as_soon_as_what_waits_there_may_go_on() -> None:
    introductions = _introductions(10)
    introductions.count(HUB, "192.0.2.1", 10 + EARNED_HOSTS)
    introductions.count_answer(_found())
    introductions.set_waiting("192.0.2.1", has_waiting=True)
    assert not introductions.earned, "it led to more than it may"
    introductions.count_answer(_found())
    assert introductions.earned == {"192.0.2.1"}
    introductions.set_waiting("192.0.2.1", has_waiting=False)
    assert not introductions.earned


def test_without_a_limit_there_is_always_room() -> None:
    introductions = _introductions(0)
    introductions.count(HUB, "192.0.2.1", 1_000_000)
    assert introductions.room("192.0.2.1") == UNLIMITED


def test_an_ipv6_address_counts_by_its_network_and_a_host_without_address_by_its_name() -> None:
    assert network_of_host("a.test", ("2001:db8::1",)) == network_of_host("b.test", ("2001:db8::2",))
    assert network_of_host("a.test", ("192.0.2.1", "192.0.2.2")) == "192.0.2.1"
    assert network_of_host("a.test", ()) == "a.test"
