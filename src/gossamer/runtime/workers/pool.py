"""Which worker has which order?

The pool opens workers by number, assigns each order to one of them and tracks outstanding
orders. A number is used once: a worker that replaces a dead one has a new number, so that no
two workers ever share an archive file. A host stays with its worker, unless that one has a
much higher load than another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Protocol

from gossamer.core.url.identity import host_id
from gossamer.model.errors import GossamerError, as_our_error
from gossamer.model.records import Order, Result
from gossamer.runtime.workers import messages
from gossamer.runtime.workers.channel import Channel, HubListener

SMALL_LOAD = 16  # orders; below this, no order moves to another worker


class WorkerSource(Protocol):
    """Opens workers, and reads back what a dead one left."""

    def open_channel(self, number: int, listener: HubListener) -> Channel:
        """Return a channel to a new worker; the pool opens it."""
        ...

    def rescue(self, number: int) -> Iterable[Result]:
        """Return the results that a dead worker had archived but not reported; its files are closed afterwards."""
        ...


class WorkerPool:
    """The workers of one crawl and the orders that they have."""

    def __init__(self, source: WorkerSource) -> None:
        self._source = source
        self._channels: dict[int, Channel] = {}
        self._numbers: list[int] = []  # of the channels, sorted
        self._worker_of: dict[int, int] = {}  # order id -> worker number
        self._load: dict[int, int] = {}  # worker number -> outstanding orders
        self._next_number = 0
        self.last_order_id = 0  # of those that were given out; ids only grow

    @property
    def is_empty(self) -> bool:
        """Whether there is no worker."""
        return not self._channels

    @property
    def has_outstanding(self) -> bool:
        """Whether any order is outstanding."""
        return bool(self._worker_of)

    async def add(self, listener: HubListener) -> None:
        """Open one more worker."""
        number = self._next_number
        self._next_number += 1
        channel = self._source.open_channel(number, listener)
        await channel.open()
        self._load[number] = 0
        self._channels[number] = channel  # only now: orders must not overtake the worker's first message
        self._numbers = sorted(self._channels)

    def start(self, orders: Sequence[Order]) -> None:
        """Assign each order to a worker."""
        batches: dict[int, list[Order]] = {}
        for order in orders:
            number = self._worker_for(order)
            self._worker_of[order.id] = number
            self._load[number] += 1
            batches.setdefault(number, []).append(order)
        if orders:
            self.last_order_id = orders[-1].id
        for number, batch in batches.items():
            self._channels[number].start(batch)

    def _worker_for(self, order: Order) -> int:
        """Return a host's usual worker, which has open connections, unless its load is much higher than another's."""
        numbers = self._numbers
        if len(numbers) == 1:
            return numbers[0]
        usual = numbers[host_id(order.host)[-1] % len(numbers)]  # the same in every run
        load = self._load
        if load[usual] <= SMALL_LOAD:
            return usual
        idlest = min(numbers, key=load.__getitem__)
        return usual if load[usual] <= 2 * load[idlest] + SMALL_LOAD else idlest

    def end(self, order_id: int) -> int | None:
        """Record that an order has ended; return its worker's number, or None if the order is not outstanding."""
        number = self._worker_of.pop(order_id, None)
        if number is not None:
            self._load[number] -= 1
        return number

    def mark_links_final(self, number: int, order_id: int) -> None:
        """Inform a worker that none of a page's links need to be sent again."""
        channel = self._channels.get(number)
        if channel is not None:
            channel.mark_links_final(order_id)

    def reading(self, number: int) -> list[int]:
        """Return the outstanding orders that killed a worker: whose answers it was reading, or the only one it had."""
        channel = self._channels.get(number)
        its_orders = [order_id for order_id, worker in self._worker_of.items() if worker == number]
        reading = [order_id for order_id in channel.reading() if order_id in its_orders] if channel else []
        return reading or (its_orders if len(its_orders) == 1 else [])

    def remove(self, number: int) -> Iterable[Result]:
        """Remove a dead worker; return the results that it had archived but not reported."""
        self._channels.pop(number, None)
        self._numbers = sorted(self._channels)
        return self._source.rescue(number)

    def outstanding_up_to(self, order_id: int) -> list[int]:
        """Return the outstanding orders with this id or a smaller one. Costs what is returned."""
        return list(takewhile(lambda each: each <= order_id, self._worker_of))  # in the order in which they began

    def worker_of(self, order_id: int) -> int:
        """Return the number of the worker that has an outstanding order."""
        return self._worker_of[order_id]

    def kill(self, number: int, cause: str) -> None:
        """End a worker that does not do its work; the hub's `on_lost` follows."""
        channel = self._channels.get(number)
        if channel is not None:
            channel.kill(cause)

    def withdraw(self, number: int | None = None) -> list[int]:
        """Forget the orders of a worker, or all of them if None; return their ids."""
        withdrawn = [order_id for order_id, worker in self._worker_of.items() if number is None or worker == number]
        for order_id in withdrawn:
            self.end(order_id)
        return withdrawn

    async def sync(self) -> None:
        """Return when everything that the workers have archived so far is durable."""
        await asyncio.gather(*(channel.sync() for channel in self._channels.values()))

    async def close(self) -> tuple[list[messages.Report], list[GossamerError]]:
        """Close all workers; return their reports, and the errors of those whose files could not be finished."""
        reports = []
        failures = []
        for channel in list(self._channels.values()):
            try:
                report = await channel.close()
            except (GossamerError, OSError) as error:
                failures.append(as_our_error(error))
                continue
            if report is not None:
                reports.append(report)
        return reports, failures
