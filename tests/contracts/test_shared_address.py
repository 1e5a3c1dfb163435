"""Who gets an address that several nodes wait for, by time. `reserve` on Redis follows the same rules."""

from __future__ import annotations

from gossamer.backends.memory.shared_address import HELD_S, TURN_S, WAITING_S, SharedAddress
from gossamer.core.address_permits import AddressAsk
from gossamer.ports.shared_ledger import NodeId

A, B, C = (NodeId(name, "1") for name in "abc")
NOW = 1000.0


def permits(address: SharedAddress, node: NodeId, wanted: int, now: float, in_use: int = 0) -> int:
    return address.permits(node, AddressAsk(in_use, wanted), 1, now, is_new=False)


def test_a_single_permit_goes_round() -> None:
    address = SharedAddress()
    assert permits(address, A, 1, NOW) == 1
    assert permits(address, B, 1, NOW + TURN_S - 0.1) == 0
    assert permits(address, A, 1, NOW + TURN_S - 0.1, in_use=1) == 1, "for a turn at least"
    assert permits(address, A, 1, NOW + TURN_S, in_use=1) == 0, "it is to begin nothing more"
    assert permits(address, B, 1, NOW + TURN_S) == 0, "a request is still under way"
    assert permits(address, A, 1, NOW + TURN_S + 0.2, in_use=0) == 0
    assert permits(address, B, 1, NOW + TURN_S + 0.3) == 1
    assert permits(address, A, 1, NOW + TURN_S + 0.4) == 0


def test_permits_of_a_node_that_says_nothing_are_free_after_a_while() -> None:
    address = SharedAddress()
    assert permits(address, A, 1, NOW) == 1
    assert permits(address, B, 1, NOW + HELD_S - 0.1) == 0
    assert permits(address, B, 1, NOW + HELD_S) == 1


def test_who_waits_for_an_address_comes_next() -> None:
    address = SharedAddress()
    assert address.slice(A, 4.0, NOW, is_new=False) == 4.0
    assert address.slice(B, 4.0, NOW + 1.0, is_new=False) == 0.0
    assert address.slice(A, 4.0, NOW + 1.5, is_new=False) == 2.5, "not prolonged"
    assert address.slice(B, 4.0, NOW + 3.9, is_new=False) == 0.0
    assert address.slice(C, 4.0, NOW + 4.0, is_new=False) == 0.0
    assert address.slice(A, 4.0, NOW + 4.0, is_new=False) == 0.0
    assert address.slice(B, 4.0, NOW + 4.1, is_new=False) == 4.0


def test_a_node_that_waits_no_longer_is_passed_over() -> None:
    address = SharedAddress()
    address.slice(A, 4.0, NOW, is_new=False)
    address.slice(B, 4.0, NOW + 1.0, is_new=False)
    assert address.slice(A, 4.0, NOW + 4.0 + WAITING_S, is_new=False) == 4.0


def test_an_engine_that_may_have_lost_grants_gives_nothing_new() -> None:
    address = SharedAddress()
    assert address.slice(A, 4.0, NOW, is_new=True) == 0.0
    assert address.permits(A, AddressAsk(2, 5), 10, NOW, is_new=True) == 2
