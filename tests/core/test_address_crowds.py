from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_crowds import AddressCrowds

NOW = 1_000.0


def test_hosts_up_to_the_limit_are_contacted_at_once_and_further_ones_one_per_second() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=2))
    assert [crowds.first_contact_at("10.0.0.1", NOW) - NOW for _ in range(5)] == [0, 0, 1, 2, 3]
    assert crowds.first_contact_at("10.0.0.2", NOW) == NOW, "another address is not affected"
    assert crowds.first_contact_at("10.0.0.1", NOW + 60) == NOW + 61


def test_addresses_of_one_ipv6_network_count_together() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=1))
    assert crowds.first_contact_at("2001:db8::1", NOW) == NOW
    assert crowds.first_contact_at("2001:db8::ffff:2", NOW) == NOW + 1
    assert crowds.first_contact_at("2001:db8:0:1::1", NOW) == NOW


def test_there_can_be_no_limit() -> None:
    crowds = AddressCrowds(FrontierLimits(max_hosts_per_address=0))
    assert {crowds.first_contact_at("10.0.0.1", NOW) for _ in range(5000)} == {NOW}
