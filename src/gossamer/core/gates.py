"""May one more request go to this address, and to this registrable domain?

A gate bounds the requests at once and, where it has a pace, the time between two of them:
then the next one waits until the one before is on the wire, and a delay after that. Hosts
that find a gate closed stand in line there. With a pace they are let go one at a time, when
its time has come, so a request costs O(log gates) however many hosts stand in line.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from gossamer.core.workbench import HostSlot


class Gate(Protocol):
    """What an address and a domain have in common."""

    name: str
    in_flight: int
    blocked: deque[HostSlot]
    next_at: float  # with a pace: no request before this
    unsent: int  # with a pace: orders that may not be on the wire yet
    is_timed: bool  # with a pace: an entry in the heap of times will look at it


@dataclass(slots=True)
class AddressSlot:
    """An IP address that has requests in flight, hosts that wait for it, or was asked a moment ago."""

    name: str
    in_flight: int = 0
    blocked: deque[HostSlot] = field(default_factory=deque)
    next_at: float = 0.0
    unsent: int = 0
    is_timed: bool = False


class GateRule(Struct, frozen=True):
    """What one kind of gate lets through. 0: no limit."""

    connections: int = 0
    delay_s: float = 0.0


class Gates:
    """All addresses that are in use, and the times of addresses and domains."""

    def __init__(self, address: GateRule, domain: GateRule) -> None:
        self._address = address
        self._domain = domain
        self._has_domain_rule = bool(domain.connections or domain.delay_s)
        self._addresses: dict[str, AddressSlot] = {}
        self._domain_times: dict[str, float] = {}  # a domain may leave memory before its time has come
        self._times: list[tuple[float, int, Gate]] = []
        self._entries = 0
        self.has_pace = bool(address.delay_s or domain.delay_s)  # requests must be reported when they are on the wire
        self.begun_at = float("-inf")  # the crawl was taken up again: nobody knows which address was asked last

    def domain_next_at(self, name: str) -> float:
        """Return when a domain that comes into memory may be asked."""
        return self._domain_times.get(name, 0.0)

    def closed(self, host: HostSlot, now: float) -> Gate | None:
        """Return the gate that is closed to a host now, or None."""
        if self._has_domain_rule and self._is_closed(host.domain, self._domain, now):
            return host.domain
        addresses = host.record.addresses
        if not addresses:
            return None
        address = self._addresses.get(addresses[0])
        if address is None:
            if not self._address.delay_s:
                return None
            address = self._slot(addresses[0])
        return address if self._is_closed(address, self._address, now) else None

    def _slot(self, address: str) -> AddressSlot:
        slot = self._addresses.get(address)
        if slot is None:
            slot = self._addresses[address] = AddressSlot(address)
        return slot

    def _is_closed(self, gate: Gate, rule: GateRule, now: float) -> bool:
        if rule.connections and gate.in_flight >= rule.connections:
            return True
        if not rule.delay_s:
            return False
        gate.next_at = max(gate.next_at, self.begun_at + rule.delay_s)
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
        domain, slot = host.domain, self._slot(address)
        domain.in_flight += 1
        slot.in_flight += 1
        if self.has_pace:
            domain.unsent += bool(self._domain.delay_s)
            slot.unsent += bool(self._address.delay_s)

    def hold(self, host: HostSlot, address: str, asked_at: float, *, is_first_word: bool) -> None:
        """Take note of when a request reached its server, at first when it is sent, perhaps again when it ends."""
        if not self.has_pace:
            return
        for gate, rule in ((host.domain, self._domain), (self._slot(address), self._address)):
            if rule.delay_s:
                gate.unsent -= is_first_word
                gate.next_at = max(gate.next_at, asked_at + rule.delay_s)
                if gate is host.domain:
                    self._domain_times[gate.name] = gate.next_at
                self._time(gate, gate.next_at)

    def vacate(self, host: HostSlot, address: str) -> list[HostSlot]:
        """Count a request that ended; return hosts that it held up."""
        freed: list[HostSlot] = []
        domain, slot = host.domain, self._addresses[address]
        domain.in_flight -= 1
        slot.in_flight -= 1
        if domain.blocked or slot.blocked:
            for gate, rule in ((domain, self._domain), (slot, self._address)):
                if gate.blocked and not gate.unsent and not gate.is_timed:  # else its time lets them go, one by one
                    freed += _let_go(gate, rule.connections)
        if not slot.in_flight and not slot.is_timed and not slot.unsent:
            del self._addresses[address]
        return freed

    def next_time(self) -> float | None:
        """Return when a gate is to be looked at next."""
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
                self._let_one_go(gate, freed, now)
        return freed

    def _let_one_go(self, gate: Gate, freed: list[HostSlot], now: float) -> None:
        if gate.blocked:
            freed.append(gate.blocked.popleft())
            # It may turn out to have nothing to ask for: then the next one must not wait for ever.
            rule = self._address if isinstance(gate, AddressSlot) else self._domain
            self._time(gate, now + rule.delay_s)
        elif isinstance(gate, AddressSlot):
            if not gate.in_flight:
                del self._addresses[gate.name]
        elif self._domain_times.get(gate.name, now) <= now:
            self._domain_times.pop(gate.name, None)


def _let_go(gate: Gate, limit: int) -> list[HostSlot]:
    """Take hosts from the line: one for the request that ended, as those let go before are about to take their room.

    More where there is much room, since some turn out to have nothing to ask for; all, where nothing is left
    in flight to free the rest.
    """
    waiting = len(gate.blocked)
    if not gate.in_flight:
        count = waiting
    elif 2 * gate.in_flight >= limit:
        count = 1
    else:
        count = min(waiting, limit - gate.in_flight)
    return [gate.blocked.popleft() for _ in range(count)]
