from __future__ import annotations

import pytest

from gossamer.core.frontier.outstanding import Outstanding, OutstandingOrder
from gossamer.model.records import Order, OrderKind
from tests.core.slots import NOW, lone_host


def order_out(outstanding: Outstanding) -> OutstandingOrder:
    """Let an order go out."""
    host = lone_host("a.test")
    order = Order(
        outstanding.next_id, OrderKind.PAGE, "http://a.test/", b"u" * 16, host.name, ("10.0.0.1",), 0, 0, 0, NOW
    )
    out = OutstandingOrder(order, host, None, None)
    outstanding.add(out)
    return out


def test_no_two_orders_have_one_number() -> None:
    outstanding = Outstanding()
    first = order_out(outstanding)
    outstanding.remove(first.order.id)
    later = [order_out(outstanding) for _ in range(5)]
    assert [out.order.id for out in (first, *later)] == [1, 2, 3, 4, 5, 6]


def test_an_order_is_out_until_it_is_removed() -> None:
    outstanding = Outstanding()
    out = order_out(outstanding)
    assert outstanding.get(out.order.id) is out
    assert outstanding.remove(out.order.id) is out
    assert outstanding.get(out.order.id) is None


def test_an_order_ends_once() -> None:
    outstanding = Outstanding()
    out = order_out(outstanding)
    outstanding.remove(out.order.id)
    with pytest.raises(KeyError):
        outstanding.remove(out.order.id)


def test_orders_and_look_ups_are_counted_together() -> None:
    outstanding = Outstanding()
    out = order_out(outstanding)
    outstanding.begin_lookup("b.test")
    outstanding.begin_lookup("c.test")
    assert outstanding.count == 3
    outstanding.end_lookup("b.test")
    outstanding.remove(out.order.id)
    assert outstanding.count == 1


def test_a_look_up_that_ends_twice_frees_one_connection() -> None:
    outstanding = Outstanding()
    outstanding.begin_lookup("a.test")
    outstanding.begin_lookup("b.test")
    outstanding.end_lookup("a.test")
    outstanding.end_lookup("a.test")
    assert outstanding.count == 1
