"""Which orders are out, and which names are being looked up? Each uses one of the connections."""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.frontier.workbench import HostSlot, RobotsRequest
from gossamer.core.url.identity import shard_of
from gossamer.model.records import Order, QueuedUrl


class OutstandingOrder(Struct):
    """An order that has not ended: for a page (`url`) or for a robots.txt (`robots`)."""

    order: Order
    host: HostSlot
    url: QueuedUrl | None
    robots: RobotsRequest | None
    is_sent: bool = False
    next_at_before: float = 0.0  # of its host, when it was sent
    next_at_held: float = 0.0  # after that, until its arrival is known; 0: not reported as sent


class Outstanding:
    """The orders that are out, by number, and the look-ups."""

    def __init__(self) -> None:
        self._orders: dict[int, OutstandingOrder] = {}
        self._lookups: set[str] = set()
        self.next_id = 1
        self.count = 0  # requests out and names being looked up; read several times per page

    def add(self, out: OutstandingOrder) -> None:
        """Record an order that goes out; its id is `next_id`."""
        self._orders[out.order.id] = out
        self.next_id += 1
        self.count += 1

    def get(self, order_id: int) -> OutstandingOrder | None:
        """Return an order that is out."""
        return self._orders.get(order_id)

    def remove(self, order_id: int) -> OutstandingOrder:
        """Remove and return an order that has ended."""
        out = self._orders.pop(order_id)
        self.count -= 1
        return out

    def shards(self) -> set[int]:
        """Return the shards of all hosts that have orders out."""
        return {shard_of(out.host.id) for out in self._orders.values()}

    def begin_lookup(self, host: str) -> bool:
        """Record a name that is being looked up; return False if it is already, for an earlier owner of its shard."""
        if host in self._lookups:
            return False
        self._lookups.add(host)
        self.count += 1
        return True

    def end_lookup(self, host: str) -> None:
        """Record that a look-up has ended; its host may have been released since."""
        if host in self._lookups:
            self._lookups.remove(host)
            self.count -= 1
