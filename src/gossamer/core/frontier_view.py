"""Read-only view of a frontier, for reports, progress and tests."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.core.host_table import HostTable
from gossamer.core.outstanding import Outstanding
from gossamer.core.workbench import HostSlot, HostState
from gossamer.records import HostRecord, Order, QueuedUrl


class FrontierView:
    """The hosts in memory and the orders that are out."""

    def __init__(self, table: HostTable, outstanding: Outstanding) -> None:
        self._table = table
        self._outstanding = outstanding

    def records(self) -> Iterator[HostRecord]:
        """Return the record of every host in memory."""
        return (host.record for host in self._table.hosts.values())

    def host_states(self) -> dict[str, int]:
        """Return how many hosts are in each state."""
        return {state.name.lower(): self._table.bench.count[state] for state in HostState}

    def parked_urls(self, now: float, max_wait_s: float) -> int:
        """Return how many URLs wait for hosts that are not to be contacted within `max_wait_s`."""
        hosts = self._table.hosts.values()
        return sum(host.record.queued for host in hosts if _is_parked(host, now + max_wait_s))

    def orders(self) -> list[Order]:
        """Return the orders that are out."""
        return self._outstanding.orders()

    def is_out(self, order_id: int) -> bool:
        """Return whether an order is out."""
        return self._outstanding.get(order_id) is not None

    def head_of(self, host_name: str) -> list[QueuedUrl]:
        """Return a host's URLs in memory, in order."""
        host = self._table.hosts.get(host_name)
        return [entry[3] for entry in sorted(host.head)] if host else []


def _is_parked(host: HostSlot, horizon: float) -> bool:
    if host.state is not HostState.WAITING:
        return False
    at = max(host.record.next_at, host.record.parked_until)
    return at > horizon or (not host.head and bool(host.deferred) and host.deferred[0][0] > horizon)
