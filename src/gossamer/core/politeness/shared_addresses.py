"""The limits per address of a node whose crawl has several: see `address_permits`."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import HostState
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressPermits, AddressRules, rules_of


class SharedAddresses:
    """What a node asks the shared ledger for, and what it got."""

    def __init__(self, table: HostTable, limits: FrontierLimits) -> None:
        self._table = table
        self._limits = limits

    def begin(self) -> None:
        """From now on there are other nodes: limits per address hold for all of them together."""
        if self._limits.address_connections or self._limits.address_delay_s:
            self._table.bench.gates.permits = AddressPermits(self._limits)

    def share_with(self, members: int) -> None:
        """Divide what needs no asking by this many nodes; 0: ask for everything."""
        permits = self._table.bench.gates.permits
        if permits is not None:
            permits.members = members

    @property
    def rules(self) -> AddressRules:
        """What the shared ledger must know of the limits."""
        return rules_of(self._limits)

    def asks(self, now: float) -> dict[str, AddressAsk]:
        return self._table.bench.gates.take_asks(now)

    def grant(self, grants: Mapping[str, AddressGrant], asked_at: float, now: float) -> None:
        for host in self._table.bench.gates.grant(grants, asked_at):
            if host.state is HostState.BLOCKED:
                self._table.reschedule(host, now)

    def send_until(self, address: str) -> float:
        """Return until when a request to an address may be sent."""
        permits = self._table.bench.gates.permits
        return permits.send_until(address) if permits is not None else float("inf")
