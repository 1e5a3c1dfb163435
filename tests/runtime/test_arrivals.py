"""Answers are read by turns between addresses."""

from __future__ import annotations

from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome
from gossamer.runtime.workers.worker import Arrivals


def _arrived(*addresses: str) -> list[str]:
    """Return which answers are taken, one after the other: address and number at this address."""
    arrivals, numbers = Arrivals(), dict.fromkeys(addresses, 0)
    for address in addresses:
        numbers[address] += 1
        task = FetchTask(numbers[address], FetchKind.PAGE, "", b"", "", (address,), 0, 0, 0, 0.0)
        arrivals.add(task, Exchange("", Outcome.OK, address=address))
    taken = []
    while arrivals:
        task, exchange = arrivals.take()
        taken.append(f"{exchange.address}{task.id}")
    return taken


def test_answers_of_one_address_are_read_in_the_order_of_arrival() -> None:
    assert _arrived("a", "a", "a") == ["a1", "a2", "a3"]


def test_an_address_with_very_many_does_not_delay_the_others() -> None:
    assert _arrived(*"aaaaaa", "b", "c", "b")[:5] == ["a1", "b1", "c1", "a2", "b2"]


def test_none_is_lost() -> None:
    addresses = [str(number * 7 % 5) for number in range(100)]
    assert sorted(_arrived(*addresses)) == sorted(f"{address}{n}" for address in "01234" for n in range(1, 21))


def test_a_domain_with_very_many_does_not_delay_others_at_its_address() -> None:
    arrivals = Arrivals()
    for number, host in enumerate(["a.farm.test", "b.farm.test", "c.farm.test", "honest.test", "d.farm.test"]):
        task = FetchTask(number, FetchKind.PAGE, "", b"", host, ("10.0.0.1",), 0, 0, 0, 0.0)
        arrivals.add(task, Exchange("", Outcome.OK, address="10.0.0.1"))
    assert [arrivals.take()[0].host for _ in range(3)] == ["a.farm.test", "honest.test", "b.farm.test"]
