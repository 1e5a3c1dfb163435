"""What a node of a cluster may do at an address that other nodes contact too."""

from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_permits import (
    LINGER_S,
    REPORT_AGAIN_S,
    VALID_S,
    AddressAsk,
    AddressGrant,
    AddressPermits,
    rules_of,
)
from gossamer.core.politeness.arrival import MAX_TRANSIT_S
from gossamer.core.politeness.gates import SharedSlot
from tests.core.slots import lone_host

NOW = 1000.0
NAME = "10.0.0.1"


def permits_of(members: int, **limits: float) -> AddressPermits:
    permits = AddressPermits(FrontierLimits(**limits))  # type: ignore[arg-type]
    permits.members = members
    return permits


def slot(in_flight: int, waiting: int = 0) -> SharedSlot:
    found = SharedSlot(NAME, in_flight)
    for number in range(waiting):
        found.blocked.append(lone_host(f"h{number}.test"))
    return found


def test_half_of_a_limit_is_divided_and_the_rest_is_asked_for() -> None:
    permits = permits_of(2, address_connections=20)
    assert rules_of(FrontierLimits(address_connections=20)).pool == 10
    assert not permits.is_closed(slot(4), NOW)
    assert permits.asks({NAME: slot(4)}, NOW) == {}
    assert permits.is_closed(slot(5), NOW)
    assert permits.asks({NAME: slot(5, waiting=3)}, NOW) == {NAME: AddressAsk(in_use=0, wanted=3, kept=3)}
    permits.grant(NAME, AddressGrant(2), NOW)
    assert not permits.is_closed(slot(6), NOW)
    assert permits.is_closed(slot(7), NOW)


def test_what_is_needed_no_longer_is_kept_for_a_while_and_returned_once() -> None:
    permits = permits_of(2, address_connections=20)
    permits.is_closed(slot(5), NOW)
    permits.grant(NAME, AddressGrant(2), NOW)
    assert permits.asks({NAME: slot(6)}, NOW) == {NAME: AddressAsk(in_use=1, wanted=1, kept=1)}
    assert permits.asks({NAME: slot(3)}, NOW) == {NAME: AddressAsk(0, 0, kept=1)}
    assert permits.asks({}, NOW + LINGER_S) == {NAME: AddressAsk(0, 0)}
    assert permits.asks({}, NOW + LINGER_S) == {}
    assert permits.is_closed(slot(5), NOW)


def test_what_has_not_changed_is_said_again_only_after_a_while() -> None:
    permits = permits_of(2, address_connections=20)
    permits.is_closed(slot(5), NOW)
    ask = AddressAsk(0, 1, kept=1)
    for at in (NOW, NOW + 0.1):
        assert permits.asks({NAME: slot(5, waiting=1)}, at) == {NAME: ask}, "as long as it waits"
    permits.grant(NAME, AddressGrant(1), NOW + 0.1)
    assert permits.asks({NAME: slot(6)}, NOW + 0.2) == {}
    assert permits.asks({NAME: slot(6)}, NOW + 0.1 + REPORT_AGAIN_S) == {NAME: AddressAsk(1, 1, kept=1)}
    permits.grant(NAME, AddressGrant(0), NOW + 4.0)
    assert permits.asks({NAME: slot(6)}, NOW + 4.0) == {NAME: AddressAsk(1, 1, kept=1)}, "it has more than it may"
    assert permits.asks({NAME: slot(5)}, NOW + 4.1) == {NAME: AddressAsk(0, 0, kept=1)}, "others wait for that"


def test_a_permit_is_not_used_when_others_may_count_it_no_longer() -> None:
    permits = permits_of(0, address_connections=20)
    permits.is_closed(slot(0), NOW)
    permits.grant(NAME, AddressGrant(1), NOW)
    assert not permits.is_closed(slot(0), NOW + VALID_S - 0.1)
    assert permits.is_closed(slot(0), NOW + VALID_S)


def test_a_node_that_has_just_joined_asks_for_everything() -> None:
    permits = permits_of(0, address_connections=20)
    assert permits.needs_slot()
    assert permits.is_closed(slot(0), NOW)
    assert permits.asks({NAME: slot(0, waiting=1)}, NOW) == {NAME: AddressAsk(0, 1, kept=1)}


def test_with_a_pace_an_address_is_used_until_a_delay_before_it_ends() -> None:
    permits = permits_of(2, address_connections=0, address_delay_s=2.0)
    assert rules_of(FrontierLimits(address_delay_s=2.0)).slice_s == 8.0 + MAX_TRANSIT_S
    assert permits.is_closed(slot(0), NOW)
    assert permits.asks({NAME: slot(0, waiting=1)}, NOW) == {NAME: AddressAsk(0, 1)}
    permits.grant(NAME, AddressGrant(0, 8.0), NOW)
    until = NOW + 8.0 - 2.0 - MAX_TRANSIT_S
    assert permits.send_until(NAME) == until
    assert not permits.is_closed(slot(0), until - 0.01)
    assert permits.is_closed(slot(0), until)


def test_without_limits_per_address_nothing_is_asked() -> None:
    permits = permits_of(0, address_connections=0)
    assert not permits.needs_slot()
    assert not permits.is_closed(slot(500), NOW)
    assert permits.send_until(NAME) == float("inf")


def test_hosts_that_wait_are_woken_when_the_share_is_enough_for_them() -> None:
    permits = permits_of(0, address_connections=20)
    assert permits.is_closed(slot(0), NOW)
    permits.members = 2
    for _ in range(2):
        assert permits.asks({NAME: slot(0, waiting=1)}, NOW) == {NAME: AddressAsk(0, 0)}
    permits.grant(NAME, AddressGrant(0), NOW)
    assert permits.connections(NAME) == 5, "the gate wakes them now"
    assert permits.asks({NAME: slot(1)}, NOW) == {}
