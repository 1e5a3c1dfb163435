"""Who gets an address that several nodes wait for, by time. `reserve` of every shared ledger follows these rules."""

from __future__ import annotations

from gossamer.core.politeness.address_permits import AddressAsk
from gossamer.core.politeness.address_pool import HELD_S, TURN_S, WAITING_S, SharedAddress

A, B, C = "a/1", "b/1", "c/1"
NOW = 1000.0


def permits(address: SharedAddress, node: str, wanted: int, now: float, in_use: int = 0) -> int:
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


def test_permits_that_are_not_needed_now_are_kept_unless_others_wait() -> None:
    address = SharedAddress()
    assert permits(address, A, 1, NOW) == 1
    assert address.permits(A, AddressAsk(0, 0, kept=1), 1, NOW + 1.0, is_new=False) == 1
    assert permits(address, B, 1, NOW + 1.1) == 0
    assert address.permits(A, AddressAsk(0, 0, kept=1), 1, NOW + 1.2, is_new=False) == 0, "at once: none is in use"
    assert permits(address, B, 1, NOW + 1.3) == 1
    assert address.permits(A, AddressAsk(0, 0, kept=1), 1, NOW + 1.4, is_new=False) == 0, "the limit holds"
    assert address.permits(A, AddressAsk(0, 0, kept=3), 0, NOW + 1.5, is_new=False) == 3, "there is no limit"
