"""May one more request go out, to this address, and for this registrable domain?

There are three kinds of gates. That of a *domain* has the limits that the user sets for one. That of an *address* is
shared by all domains that have hosts there. The *pool* is all connections of the crawl, shared by everybody. A gate
bounds the requests at once and, if it has a delay, the time between two of them. Hosts that find a gate closed wait in
its line, in state BLOCKED, and are in no heap.

**Shares.** A request cannot be taken back, and a hostile server answers as slowly as the time limits allow. So at a
gate that is shared nobody gets everything, even if nobody else wants it yet: a domain gets one more connection only
while it has fewer than `share / (1 - share)` times those that are *free* (three times, with a share of three quarters).
One greedy domain gets three quarters, two get three sevenths each, and something is always free for the next one, which
gets it at once; as others take it, the greedy ones may have fewer, and get no more until enough of theirs have ended.
Nobody's demand has to be known for that. A domain that has none there gets one whenever any is free.

- Hosts whose requests take over `SLOW_S` are *slow*, and all of them together get no more than one domain does, in
  whatever domains they are. A host that has not answered yet is as slow as its domain was.
- A domain that is alone (at an address: no other has been there; in the pool: no other has work) gets everything; at an
  address not for slow hosts, and for those that have not answered yet, unless there is no other domain at all. What it
  has beyond its share is lent: such a request of a host that is not known to be slow has `LENT_S` seconds, and is
  repeated without that limit if it needs more. So are connections to a shared address that is nearly full, or where
  others wait, for hosts that have not answered yet.
- A name that is being looked up uses one of the connections of its domain.

**Why a line, and who wakes it.** Ten thousand hosts may share one address. If each end of a request woke all
of them, a request would cost O(hosts). So a host in line is woken only by the gate, with the same time for each domain
(`lines`), and each wake-up must be followed by another until the line is empty, or a host would wait forever:

- Whoever waits, waits for a request in flight at that gate: it is full, or the host's own domain or the slow hosts have
  too many there.
- A gate that only counts requests wakes hosts when one of its requests ends (`vacate`). One is enough for the
  request that ended, but a host that is woken may have nothing to request, or use another address. So more
  are woken if there is much room, and all of them if nothing is left in flight that could wake the rest. Only those are
  woken to whom it is open.
- A gate with a delay wakes one host when its time has come (`open_due`), by an entry in the heap `_times`.
  Exactly one entry is in the heap per gate that needs one (`is_timed`). After waking a host the gate is
  timed again, one delay later: if the host sends nothing, the next one gets its turn.
- With a delay, a request must not go out before the previous one is known to be on the wire, else two
  could arrive closer together than the delay. `unsent` counts those tasks; a gate with one is closed, and
  `record_arrival`, called when the request is reported as sent and again when it ends, opens it and sets the
  next time.

An address whose pages led to more new hosts than they may (`crowding`) gets at most a quarter of all connections: new
hosts come before others, and would take all of them if a crawl has few. Addresses count by network (`networks`).

A domain's slot exists as long as a host of it is in memory; its next time must outlive the slot, so it is in
`_domain_times` as well. After a restart it is unknown which address was contacted last: `begun_at` counts for all.
Costs O(log gates) per request, however many hosts wait in line.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_crowds import AddressCrowds
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressPermits
from gossamer.core.politeness.lines import Line
from gossamer.core.politeness.networks import network_of

CROWDING_SHARE = 4  # of the connections: a quarter
SLOW_S = 3.0  # a host whose requests take longer, on average, is slow
LENT_S = 2.0  # how long a request may take that its domain has beyond its share
SLOW_SMOOTHING = 0.5
SLOW_RESERVE = 8  # an eighth of a gate's room: slow hosts do not yield if they have less
POOL = "all connections"

if TYPE_CHECKING:
    from gossamer.core.frontier.workbench import DomainSlot, HostSlot


class Gate(Protocol):
    """What an address and a domain have in common."""

    name: str
    in_flight: int
    blocked: Line
    next_at: float  # with a pace: no request before this
    unsent: int  # with a pace: tasks that may not be on the wire yet
    is_timed: bool  # with a pace: an entry for it is in the heap of times


class SharedSlot(Struct):
    """An address that has requests in flight or hosts that wait for it, or was contacted a moment ago; or the pool."""

    name: str
    in_flight: int = 0
    blocked: Line = field(default_factory=Line)  # by hosts that are not slow
    next_at: float = 0.0
    unsent: int = 0
    is_timed: bool = False
    of_domains: dict[str, int] = field(default_factory=dict)  # in flight, by domain
    of_slow: int = 0  # in flight, of slow hosts
    slow: Line = field(default_factory=Line)  # blocked slow hosts
    woken: int = 0  # hosts, with a pace

    @property
    def waiting(self) -> int:
        return len(self.blocked) + len(self.slow)

    def add(self, domain: str, *, is_slow: bool) -> None:
        self.in_flight += 1
        self.of_slow += is_slow
        self.of_domains[domain] = self.of_domains.get(domain, 0) + 1

    def remove(self, domain: str, *, is_slow: bool) -> None:
        self.in_flight -= 1
        self.of_slow -= is_slow
        left = self.of_domains[domain] - 1
        if left:
            self.of_domains[domain] = left
        else:
            del self.of_domains[domain]


class Gates:
    """All addresses that are in use, the pool, and the times of addresses and domains."""

    def __init__(self, limits: FrontierLimits, crowds: AddressCrowds | None = None) -> None:
        self._limits = limits
        self.crowds = crowds or AddressCrowds(limits)
        self._addresses: dict[str, SharedSlot] = {}  # by network
        self.pool = SharedSlot(POOL)
        self.domains_at_work = 0  # in memory; whoever owns the hosts counts them
        self.has_swapped_out = False  # hosts: of whatever domains
        self._lookups: dict[str, str] = {}  # names that are being looked up: their domains
        self._domain_times: dict[str, float] = {}  # a domain may leave memory before its next time
        self._times: list[tuple[float, int, Gate]] = []
        self._entries = 0
        self.crowding: set[str] = set()  # addresses whose pages led to too many hosts: see `introductions`
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
        pool = self.pool
        if pool.in_flight >= limits.connections * limits.domain_share and self._exceeds_pool(host):
            return pool
        addresses = host.record.addresses
        if not addresses:
            return None
        network = network_of(addresses[0])
        address = self._addresses.get(network)
        is_new = address is None
        if address is None:
            # No slot for an address that is open: if the host sends nothing, it would never be removed.
            is_unasked = self.permits is None or not self.permits.needs_slot()
            if is_unasked and (not limits.address_delay_s or self.begun_at + limits.address_delay_s <= now):
                return None
            address = self._slot(network)
        connections = limits.address_connections
        delay_s = limits.address_delay_s
        if self.crowding:
            connections = self._connections_of(address)
        if self.permits is not None and self.permits.is_closed(address, now):
            return address
        if self._is_closed(address, connections, delay_s, now):
            return address
        if connections and address.in_flight >= connections * limits.domain_share:
            capacity = self._capacity_of(address)
            if self._is_kept_free(address, host) and self._exceeds_share(address, capacity, host):
                return address
        if is_new:
            del self._addresses[network]
        return None

    def stand_in_line(self, host: HostSlot, gate: Gate) -> None:
        """Add a host to the line of a gate that is closed to it."""
        if isinstance(gate, SharedSlot) and is_slow(host):
            gate.slow.append(host)
        else:
            gate.blocked.append(host)

    # -- shares -----------------------------------------------------------------------------------

    def _exceeds_pool(self, host: HostSlot) -> bool:
        return self._is_shared(self.pool) and self._exceeds_share(self.pool, self._limits.connections, host)

    def _is_shared(self, slot: SharedSlot) -> bool:
        if slot is self.pool:
            return self.domains_at_work > 1 or self.has_swapped_out
        return self.crowds.is_shared(slot.name)

    def _is_kept_free(self, address: SharedSlot, host: HostSlot) -> bool:
        """Return whether a part of an address is kept free: for others that are there, or that may come."""
        if self.domains_at_work > 1 and (not host.held_s or is_slow(host)):
            return True
        return self._is_shared(address)

    def _exceeds_share(self, slot: SharedSlot, capacity: int, host: HostSlot) -> bool:
        """Return whether a domain, or the slow hosts together, have as many requests at a gate as they may."""
        most = self._limits.share_of_free * (capacity - slot.in_flight)
        return slot.of_domains.get(host.domain.name, 0) >= most or (slot.of_slow >= most and is_slow(host))

    def is_lent(self, host: HostSlot, address: str) -> bool:
        """Return whether the next request of a host has a connection for a short time only: see above."""
        limits = self._limits
        is_pool_busy = self.pool.in_flight >= limits.connections * limits.domain_share
        if is_pool_busy and self._exceeds_share(self.pool, limits.connections, host):
            return not is_slow(host)
        if not limits.address_connections:
            return False
        slot = self._addresses.get(network_of(address))
        if slot is None or is_slow(host):
            return False
        is_busy = slot.in_flight >= limits.address_connections * limits.domain_share
        if not host.held_s and (is_busy or slot.waiting) and self.crowds.is_shared(slot.name):
            return True
        return is_busy and self._exceeds_share(slot, self._capacity_of(slot), host)

    def _connections_of(self, address: SharedSlot) -> int:
        """Return how many requests may be at an address at once: few if its pages led to too many hosts."""
        limits = self._limits
        share = max(1, limits.connections // CROWDING_SHARE)
        if address.name not in self.crowding or 0 < limits.address_connections <= share:
            return limits.address_connections
        return share

    def _capacity_of(self, address: SharedSlot) -> int:
        """Return how many requests may be at an address at once, of this node; 0: any number."""
        connections = self._connections_of(address) if self.crowding else self._limits.address_connections
        return connections if self.permits is None else min(connections, self.permits.connections(address.name))

    # -- requests ---------------------------------------------------------------------------------

    def _slot(self, network: str) -> SharedSlot:
        slot = self._addresses.get(network)
        if slot is None:
            slot = self._addresses[network] = SharedSlot(network)
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

    def occupy(self, host: HostSlot, address: str, *, is_slow: bool = False) -> None:
        """Count a request that goes out; its host is slow, or not, until it ends."""
        domain = host.domain
        slot = self._slot(network_of(address))
        domain.in_flight += 1
        slot.add(domain.name, is_slow=is_slow)
        self.pool.add(domain.name, is_slow=is_slow)
        if self._limits.has_gate_delay:
            domain.unsent += bool(self._limits.domain_delay_s)
            slot.unsent += bool(self._limits.address_delay_s)

    def begin_lookup(self, host: HostSlot) -> None:
        """Count a name that is being looked up."""
        self._lookups[host.name] = host.domain.name
        self.pool.add(host.domain.name, is_slow=False)

    def end_lookup(self, name: str) -> list[HostSlot]:
        """Count a name that was looked up; return hosts that were waiting for it."""
        domain = self._lookups.pop(name, None)
        if domain is None:
            return []
        self.pool.remove(domain, is_slow=False)
        return self._wake(self.pool, self._limits.connections) if self.pool.waiting else []

    def record_arrival(self, host: HostSlot, address: str, asked_at: float, *, is_first_report: bool) -> None:
        """Record when a request reached its server: first when it is sent, possibly again when it ends."""
        limits = self._limits
        if not limits.has_gate_delay:
            return
        gates = ((host.domain, limits.domain_delay_s), (self._slot(network_of(address)), limits.address_delay_s))
        for gate, delay_s in gates:
            if delay_s:
                gate.unsent -= is_first_report
                gate.next_at = max(gate.next_at, asked_at + delay_s)
                if gate is host.domain:
                    self._domain_times[gate.name] = gate.next_at
                self._time(gate, gate.next_at)

    def vacate(self, host: HostSlot, address: str, *, is_slow: bool = False) -> list[HostSlot]:
        """Count a request that ended; return hosts that were waiting for it."""
        freed: list[HostSlot] = []
        domain = host.domain
        network = network_of(address)
        slot = self._addresses[network]
        pool = self.pool
        domain.in_flight -= 1
        slot.remove(domain.name, is_slow=is_slow)
        pool.remove(domain.name, is_slow=is_slow)
        if domain.blocked and not domain.unsent and not domain.is_timed:  # else its time wakes them, one by one
            freed += _wake_some(domain, self._limits.domain_connections)
        if (slot.blocked or slot.slow) and not slot.unsent and not slot.is_timed:
            freed += self._wake(slot, self._capacity_of(slot))
        if pool.blocked or pool.slow:
            freed += self._wake(pool, self._limits.connections)
        if not slot.in_flight and not slot.is_timed and not slot.unsent:
            del self._addresses[network]
        return freed

    # -- waking -----------------------------------------------------------------------------------

    def _wake(self, slot: SharedSlot, capacity: int) -> list[HostSlot]:
        """Remove hosts from the lines of a shared gate to which it is open now."""
        if not slot.in_flight:
            return [*_emptied(slot.blocked), *_emptied(slot.slow)]
        freed: list[HostSlot] = []
        count = _count_to_wake(slot.waiting, slot.in_flight, capacity)
        # Whoever could not go because of a share may go now, although nobody of its own has ended.
        has_more_room = slot.in_flight + 1 < capacity and self._is_shared(slot)
        for number in range(max(count, 1 + has_more_room)):
            host = self._next_in_line(slot, capacity, takes_slow=not number)
            if host is None:
                break
            freed.append(host)
        return freed

    def _next_in_line(self, slot: SharedSlot, capacity: int, *, takes_slow: bool = True) -> HostSlot | None:
        """Remove and return a host that waits; a slow one if no other may go, or if slow ones have nearly nothing.

        Who is woken is not in flight yet: if several are woken at once, only one of them is `takes_slow`.
        """
        if not capacity or not self._is_shared(slot):
            line = slot.blocked or slot.slow
            return line.popleft() if line else None
        most = self._limits.share_of_free * (capacity - slot.in_flight)
        of_domains = slot.of_domains

        def is_open(name: str) -> bool:
            return of_domains.get(name, 0) < most

        lines = [slot.blocked]
        if slot.slow and slot.of_slow < most:
            lines.insert(not takes_slow or slot.of_slow * SLOW_RESERVE >= capacity, slot.slow)
        for line in lines:
            host = line.pop_open(is_open)
            if host is not None:
                return host
        return None

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
            if self.permits is None or slot is None or not slot.waiting or slot.unsent or slot.is_timed:
                continue
            if self._limits.address_delay_s:
                self._time(slot, slot.next_at)
            else:
                capacity = self.permits.connections(address)
                for _ in range(min(max(0, capacity - slot.in_flight), slot.waiting)):
                    host = self._next_in_line(slot, capacity)
                    if host is not None:
                        freed.append(host)
        return freed

    def lines_of(self, host: HostSlot) -> list[Line]:
        """Return the lines that a host waits in."""
        networks = dict.fromkeys(network_of(address) for address in host.record.addresses)
        slots = [self.pool, *(self._addresses[each] for each in networks if each in self._addresses)]
        lines = [host.domain.blocked, *(line for slot in slots for line in (slot.blocked, slot.slow))]
        return [line for line in lines if host in line]

    def described_wait(self, host: HostSlot) -> str:
        """Return in words what a host in line waits for."""
        limits = self._limits
        if host in host.domain.blocked:
            return f"a request to its domain {host.domain.name} to end, or its delay"
        what = "slow hosts" if is_slow(host) else f"its domain {host.domain.name}"
        if host in self.pool.blocked or host in self.pool.slow:
            return f"connections: {what} may have {limits.domain_share:.0%} of all, while others have work"
        slot = self._addresses.get(network_of(host.record.addresses[0])) if host.record.addresses else None
        if slot is None:
            return ""
        rest = f"{slot.in_flight} requests are in flight there"
        if self._is_shared(slot):
            rest += f", and {what} may have {limits.domain_share:.0%} of {self._capacity_of(slot)}"
        return f"its address {slot.name}: {rest}"

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
        if isinstance(gate, SharedSlot):
            self._wake_one_at(gate, freed, now)
        elif gate.blocked:
            freed.append(gate.blocked.popleft())
            # It may have nothing to request: the next one must not wait forever.
            self._time(gate, now + self._limits.domain_delay_s)
        elif self._domain_times.get(gate.name, now) <= now:
            self._domain_times.pop(gate.name, None)

    def _wake_one_at(self, slot: SharedSlot, freed: list[HostSlot], now: float) -> None:
        if slot.waiting:
            if self.permits is not None and self.permits.is_closed(slot, now):
                return  # until it is granted
            slot.woken += 1
            is_slow_turn = not slot.blocked or (bool(slot.slow) and slot.woken % SLOW_RESERVE == 0)
            freed.append((slot.slow if is_slow_turn else slot.blocked).popleft())
            self._time(slot, now + self._limits.address_delay_s)
        elif not slot.in_flight:
            del self._addresses[slot.name]


def is_slow(host: HostSlot) -> bool:
    """Return whether requests to a host, or to its domain if it has not answered yet, take long."""
    return (host.held_s or host.domain.held_s) > SLOW_S


def record_held(host: HostSlot, held_s: float) -> None:
    """Record for how long a request had its connection."""
    domain: DomainSlot = host.domain
    host.held_s += (SLOW_SMOOTHING if host.held_s else 1.0) * (held_s - host.held_s)
    domain.held_s += (SLOW_SMOOTHING if domain.held_s else 1.0) * (held_s - domain.held_s)


def _count_to_wake(waiting: int, in_flight: int, limit: int) -> int:
    """Return how many to wake: one for the request that ended, since hosts woken before are about to send theirs.

    More if there is much room, since some have nothing to request; all if nothing is left in flight that could wake
    the rest.
    """
    if not in_flight:
        return waiting
    if 2 * in_flight >= limit:
        return min(waiting, 1)
    return min(waiting, limit - in_flight)


def _wake_some(gate: Gate, limit: int) -> list[HostSlot]:
    return [gate.blocked.popleft() for _ in range(_count_to_wake(len(gate.blocked), gate.in_flight, limit))]


def _emptied(line: Line) -> list[HostSlot]:
    return [line.popleft() for _ in range(len(line))]
