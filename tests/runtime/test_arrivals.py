"""Answers are read by turns between addresses."""

from __future__ import annotations

from gossamer.model.exchanges import Exchange
from gossamer.model.records import Order, OrderKind, Outcome
from gossamer.runtime.workers.worker import Arrivals


def _arrived(*addresses: str) -> list[str]:
    """Return which answers are taken, one after the other: address and number at this address."""
    arrivals, numbers = Arrivals(), dict.fromkeys(addresses, 0)
    for address in addresses:
        numbers[address] += 1
        order = Order(numbers[address], OrderKind.PAGE, "", b"", "", (address,), 0, 0, 0, 0.0)
        arrivals.add(order, Exchange("", Outcome.OK, address=address))
    taken = []
    while arrivals:
        order, exchange = arrivals.take()
        taken.append(f"{exchange.address}{order.id}")
    return taken


def test_answers_of_one_address_are_read_in_the_order_of_arrival() -> None:
    assert _arrived("a", "a", "a") == ["a1", "a2", "a3"]


def test_an_address_with_very_many_does_not_delay_the_others() -> None:
    assert _arrived(*"aaaaaa", "b", "c", "b")[:5] == ["a1", "b1", "c1", "a2", "b2"]


def test_none_is_lost() -> None:
    addresses = [str(number * 7 % 5) for number in range(100)]
    assert sorted(_arrived(*addresses)) == sorted(f"{address}{n}" for address in "01234" for n in range(1, 21))
