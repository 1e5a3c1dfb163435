from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_crowds import AddressCrowds

NOW = 1_000.0


def test_hosts_up_to_the_limit_are_contacted_at_once_and_further_ones_one_per_second() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=2))
    assert [crowds.first_contact_at("10.0.0.1", "a.test", NOW) - NOW for _ in range(5)] == [0, 0, 1, 2, 3]
    assert crowds.first_contact_at("10.0.0.2", "a.test", NOW) == NOW, "another address is not affected"
    assert crowds.first_contact_at("10.0.0.1", "a.test", NOW + 60) == NOW + 61


def test_addresses_of_one_ipv6_network_count_together() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=1))
    assert crowds.first_contact_at("2001:db8::1", "a.test", NOW) == NOW
    assert crowds.first_contact_at("2001:db8::ffff:2", "a.test", NOW) == NOW + 1
    assert crowds.first_contact_at("2001:db8:0:1::1", "a.test", NOW) == NOW


def test_there_can_be_no_limit() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=0))
    assert {crowds.first_contact_at("10.0.0.1", "a.test", NOW) for _ in range(5000)} == {NOW}


def test_the_names_of_one_domain_delay_its_neighbours_by_a_turn_each() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=4))
    waits = [crowds.first_contact_at("10.0.0.1", "many.test", NOW) - NOW for _ in range(6)]
    assert waits == [0, 0, 0, 1, 2, 3], "it leaves a quarter of the places"
    assert crowds.first_contact_at("10.0.0.1", "few.test", NOW) == NOW
    assert [crowds.first_contact_at("10.0.0.1", "few.test", NOW) - NOW for _ in range(2)] == [2, 4]
    assert crowds.first_contact_at("10.0.0.1", "third.test", NOW) == NOW + 3
    assert crowds.first_contact_at("10.0.0.1", "fourth.test", NOW + 60) == NOW + 61, "the others are over"


def test_an_address_is_shared_as_soon_as_a_second_domain_is_there() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=0))
    assert not crowds.is_shared("10.0.0.1")
    for number in range(3):
        crowds.first_contact_at("10.0.0.1", "one.test", NOW)
        assert not crowds.is_shared("10.0.0.1"), number
    crowds.record_tenant("10.0.0.1", "other.test")
    assert crowds.is_shared("10.0.0.1")
