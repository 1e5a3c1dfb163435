"""May one more request go to this address, and to this registrable domain?

A gate bounds the requests at once and, if it has a delay, the time between two of them. Hosts that find a
gate closed wait in its line (`blocked`), in state BLOCKED, and are in no heap.

**Why a line, and who wakes it.** Ten thousand hosts may share one address. If each end of a request woke all
of them, a request would cost O(hosts). So a host in line is woken only by the gate, and each wake-up must be
followed by another until the line is empty, or a host would wait forever:

- A gate that only counts requests wakes hosts when one of its requests ends (`vacate`). One is enough for the
  request that ended, but a host that is woken may have nothing to request, or use another address. So more
  are woken if there is much room, and all of them if nothing is left in flight that could wake the rest.
- A gate with a delay wakes one host when its time has come (`open_due`), by an entry in the heap `_times`.
  Exactly one entry is in the heap per gate that needs one (`is_timed`). After waking a host the gate is
  timed again, one delay later: if the host sends nothing, the next one gets its turn.
- With a delay, a request must not go out before the previous one is known to be on the wire, else two
  could arrive closer together than the delay. `unsent` counts those orders; a gate with one is closed, and
  `record_arrival`, called when the request is reported as sent and again when it ends, opens it and sets the
  next time.

An address whose pages led to more new hosts than they may (`slow`) gets at most a quarter of all connections: new hosts
come before others, and would take all of them if a crawl has few.

A domain's slot exists as long as a host of it is in memory; its next time must outlive the slot, so it is in
`_domain_times` as well. After a restart it is unknown which address was contacted last: `begun_at` counts for all.
Costs O(log gates) per request, however many hosts wait in line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_crowds import network_of
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressPermits

SLOW_SHARE = 4  # of the connections: a quarter

if TYPE_CHECKING:
    from gossamer.core.frontier.workbench import HostSlot


class Gate(Protocol):
    """What an address and a domain have in common."""

    name: str
    in_flight: int
    blocked: deque[HostSlot]
    next_at: float  # with a pace: no request before this
    unsent: int  # with a pace: orders that may not be on the wire yet
    is_timed: bool  # with a pace: an entry for it is in the heap of times


class AddressSlot(Struct):
    """An IP address that has requests in flight or hosts that wait for it, or was contacted a moment ago."""

    name: str
    in_flight: int = 0
    blocked: deque[HostSlot] = field(default_factory=deque)
    next_at: float = 0.0
    unsent: int = 0
    is_timed: bool = False


class Gates:
    """All addresses that are in use, and the times of addresses and domains."""

    def __init__(self, limits: FrontierLimits) -> None:
        self._limits = limits
        self._addresses: dict[str, AddressSlot] = {}
        self._domain_times: dict[str, float] = {}  # a domain may leave memory before its next time
        self._times: list[tuple[float, int, Gate]] = []
        self._entries = 0
        self.slow: set[str] = set()  # addresses whose pages led to too many hosts: see `introductions`
        self.permits: AddressPermits | None = None  # of a node of a cluster
        self.begun_at = float("-inf")  # when the crawl was resumed: it is unknown which address was contacted last

    def domain_next_at(self, name: str) -> float:
        """Return when a domain that is loaded into memory may be contacted."""
        return self._domain_times.get(name, 0.0)

    def closed(self, host: HostSlot, now: float) -> Gate | None:
        """Return the gate that is closed to a host now, or None."""
        limits = self._limits
        connections = limits.domain_connections
        delay_s = limits.domain_delay_s
        if (connections or delay_s) and self._is_closed(host.domain, connections, delay_s, now):
            return host.domain
        addresses = host.record.addresses
        if not addresses:
            return None
        address = self._addresses.get(addresses[0])
        is_new = address is None
        if address is None:
            # No slot for an address that is open: if the host sends nothing, it would never be removed.
            is_unasked = self.permits is None or not self.permits.needs_slot()
            if is_unasked and (not limits.address_delay_s or self.begun_at + limits.address_delay_s <= now):
                return None
            address = self._slot(addresses[0])
        connections = limits.address_connections
        delay_s = limits.address_delay_s
        if self.slow:
            connections = self._connections_of(address)
        if self.permits is not None and self.permits.is_closed(address, now):
            return address
        if self._is_closed(address, connections, delay_s, now):
            return address
        if is_new:
            del self._addresses[address.name]
        return None

    def _connections_of(self, address: AddressSlot) -> int:
        """Return how many requests may be at an address at once: few if its pages led to too many hosts."""
        limits = self._limits
        share = max(1, limits.connections // SLOW_SHARE)
        if network_of(address.name) not in self.slow or 0 < limits.address_connections <= share:
            return limits.address_connections
        return share

    def _slot(self, address: str) -> AddressSlot:
        slot = self._addresses.get(address)
        if slot is None:
            slot = self._addresses[address] = AddressSlot(address)
        return slot

    def _is_closed(self, gate: Gate, connections: int, delay_s: float, now: float) -> bool:
        if connections and gate.in_flight >= connections:
            return True
        if not delay_s:
            return False
        gate.next_at = max(gate.next_at, self.begun_at + delay_s)
        if gate.unsent:
            return True
        if gate.next_at > now:
            self._time(gate, gate.next_at)
            return True
        return False

    def _time(self, gate: Gate, at: float) -> None:
        if not gate.is_timed:
            gate.is_timed = True
            self._entries += 1
            heappush(self._times, (at, self._entries, gate))

    def occupy(self, host: HostSlot, address: str) -> None:
        """Count a request that goes out."""
        domain = host.domain
        slot = self._slot(address)
        domain.in_flight += 1
        slot.in_flight += 1
        if self._limits.has_gate_delay:
            domain.unsent += bool(self._limits.domain_delay_s)
            slot.unsent += bool(self._limits.address_delay_s)

    def record_arrival(self, host: HostSlot, address: str, asked_at: float, *, is_first_report: bool) -> None:
        """Record when a request reached its server: first when it is sent, possibly again when it ends."""
        limits = self._limits
        if not limits.has_gate_delay:
            return
        gates = ((host.domain, limits.domain_delay_s), (self._slot(address), limits.address_delay_s))
        for gate, delay_s in gates:
            if delay_s:
                gate.unsent -= is_first_report
                gate.next_at = max(gate.next_at, asked_at + delay_s)
                if gate is host.domain:
                    self._domain_times[gate.name] = gate.next_at
                self._time(gate, gate.next_at)

    def vacate(self, host: HostSlot, address: str) -> list[HostSlot]:
        """Count a request that ended; return hosts that were waiting for it."""
        freed: list[HostSlot] = []
        domain = host.domain
        slot = self._addresses[address]
        domain.in_flight -= 1
        slot.in_flight -= 1
        if domain.blocked or slot.blocked:
            connections_here = self._connections_of(slot) if self.slow else self._limits.address_connections
            if self.permits is not None:
                connections_here = min(connections_here, self.permits.connections(address))
            for gate, connections in ((domain, self._limits.domain_connections), (slot, connections_here)):
                if gate.blocked and not gate.unsent and not gate.is_timed:  # else its time wakes them, one by one
                    freed += _wake_some(gate, connections)
        if not slot.in_flight and not slot.is_timed and not slot.unsent:
            del self._addresses[address]
        return freed

    def take_asks(self, now: float) -> dict[str, AddressAsk]:
        """Return what a node needs at addresses of which it may not use more unasked."""
        return {} if self.permits is None else self.permits.asks(self._addresses, now)

    def grant(self, grants: Mapping[str, AddressGrant], asked_at: float) -> list[HostSlot]:
        """Record what a node may use at addresses; return hosts that waited for it."""
        freed: list[HostSlot] = []
        for address, grant in grants.items():
            slot = self._addresses.get(address)
            if self.permits is not None:
                self.permits.grant(address, grant, asked_at)
            if self.permits is None or slot is None or not slot.blocked or slot.unsent or slot.is_timed:
                continue
            if self._limits.address_delay_s:
                self._time(slot, slot.next_at)
            else:
                room = max(0, self.permits.connections(address) - slot.in_flight)
                freed += [slot.blocked.popleft() for _ in range(min(room, len(slot.blocked)))]
        return freed

    def lines_of(self, host: HostSlot) -> list[deque[HostSlot]]:
        """Return the lines that a host waits in."""
        slots = [self._addresses[address] for address in host.record.addresses if address in self._addresses]
        lines = [host.domain.blocked, *(slot.blocked for slot in slots)]
        return [line for line in lines if host in line]

    def next_time(self) -> float | None:
        """Return when a gate must be checked next."""
        return self._times[0][0] if self._times else None

    def open_due(self, now: float) -> list[HostSlot]:
        """Return the first in line at every gate whose time has come."""
        freed: list[HostSlot] = []
        while self._times and self._times[0][0] <= now:
            gate = heappop(self._times)[2]
            gate.is_timed = False
            if gate.next_at > now:
                self._time(gate, gate.next_at)
            elif not gate.unsent:
                self._wake_one(gate, freed, now)
        return freed

    def _wake_one(self, gate: Gate, freed: list[HostSlot], now: float) -> None:
        is_address = isinstance(gate, AddressSlot)
        if gate.blocked:
            if self.permits is not None and isinstance(gate, AddressSlot) and self.permits.is_closed(gate, now):
                return  # until it is granted
            freed.append(gate.blocked.popleft())
            # It may have nothing to request: the next one must not wait forever.
            self._time(gate, now + (self._limits.address_delay_s if is_address else self._limits.domain_delay_s))
        elif isinstance(gate, AddressSlot):
            if not gate.in_flight:
                del self._addresses[gate.name]
        elif self._domain_times.get(gate.name, now) <= now:
            self._domain_times.pop(gate.name, None)


def _wake_some(gate: Gate, limit: int) -> list[HostSlot]:
    """Remove hosts from the line: one for the request that ended, since hosts woken before are about to send theirs.

    More if there is much room, since some have nothing to request; all if nothing is left in flight that
    could wake the rest.
    """
    waiting = len(gate.blocked)
    if not gate.in_flight:
        count = waiting
    elif 2 * gate.in_flight >= limit:
        count = 1
    else:
        count = min(waiting, limit - gate.in_flight)
    return [gate.blocked.popleft() for _ in range(count)]
