"""Which host may be asked now, and which one first?

A host is in exactly one place: idle (no work), waiting (one valid entry in the heap of due
times), ready (one valid entry in a lane, by standing), busy (as many orders out as it may
have, or its name or robots.txt is being looked up), blocked (its address or domain is at
its limit), spent (its budget is used up). Entries carry the host's ticket; an entry whose
ticket is old is skipped when it comes up. `take` costs O(log hosts). `now` is passed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from gossamer.core.priority import Ordering, Standing
from gossamer.core.robots import RobotsRules
from gossamer.records import HostId, HostRecord, QueuedUrl

HeadEntry: TypeAlias = tuple[int, int, QueuedUrl]  # rank, seq: unique, so the URL is never compared


class Place(Enum):
    """Where a host is."""

    IDLE = "idle"
    WAITING = "waiting"
    READY = "ready"
    BUSY = "busy"
    BLOCKED = "blocked"
    SPENT = "spent"


@dataclass(slots=True)
class DomainSlot:
    """A registrable domain while one of its hosts is in memory."""

    name: str
    pages: int = 0
    hosts: int = 0
    in_flight: int = 0
    pages_in_flight: int = 0
    blocked: deque[HostSlot] = field(default_factory=deque)
    spent: dict[str, HostSlot] = field(default_factory=dict)


@dataclass(slots=True)
class AddressSlot:
    """An IP address that has requests in flight or hosts that wait for it."""

    in_flight: int = 0
    blocked: deque[HostSlot] = field(default_factory=deque)


@dataclass(slots=True)
class OriginRules:
    """robots.txt of one origin: unknown until `expires_at` is set."""

    rules: RobotsRules | None = None
    expires_at: float = 0.0
    is_pending: bool = False
    is_unreachable: bool = False  # rules is None and nothing may be fetched before `expires_at`


@dataclass(slots=True)
class RobotsErrand:
    """A robots.txt request to make at a host, for an origin that may be another host's after a redirect."""

    origin: str
    url: str
    hops: int


@dataclass(slots=True, eq=False)
class HostSlot:
    """A host in memory: the head of its queue, and where it stands."""

    record: HostRecord
    id: HostId
    domain: DomainSlot
    place: Place = Place.IDLE
    ticket: int = 0
    lane: int = 0
    connections: int = 1
    head: list[HeadEntry] = field(default_factory=list)
    horizon: tuple[int, int] | None = None  # all that is queued up to here is in memory; None: all of it
    deferred: list[tuple[float, int, QueuedUrl]] = field(default_factory=list)
    out: set[int] = field(default_factory=set)  # seq of what is in flight or deferred
    errands: deque[RobotsErrand] = field(default_factory=deque)
    origins: dict[str, OriginRules] = field(default_factory=dict)
    in_flight: int = 0
    pages_in_flight: int = 0
    unsent: int = 0  # the order that may not be on the wire yet; 0: none
    is_resolving: bool = False
    is_refilling: bool = False
    crawl_delay_s: float = 0.0

    @property
    def name(self) -> str:
        """The host name."""
        return self.record.name

    def push(self, url: QueuedUrl) -> None:
        """Put a URL into the head of the queue."""
        heappush(self.head, (url.rank, url.seq, url))

    def defer(self, url: QueuedUrl) -> None:
        """Keep a URL for later, until its `not_before`."""
        self.out.add(url.seq)
        heappush(self.deferred, (url.not_before, url.seq, url))

    def is_within(self, url: QueuedUrl) -> bool:
        """Tell whether a URL's place is in memory; one beyond the horizon is read from the ledger in its turn."""
        return self.horizon is None or (url.rank, url.seq) <= self.horizon

    def recall(self, now: float) -> None:
        """Move what is no longer deferred into the head."""
        while self.deferred and self.deferred[0][0] <= now:
            url = heappop(self.deferred)[2]
            self.out.discard(url.seq)
            if self.is_within(url):
                self.push(url)

    def trim(self, keep: int) -> None:
        """Let the tail of the head go back to the backlog."""
        self.head.sort()
        del self.head[keep:]
        self.horizon = self.head[-1][:2]
        heapify(self.head)


class Workbench:
    """The places of all hosts in memory."""

    def __init__(self, ordering: Ordering, address_connections: int, domain_connections: int) -> None:
        self._ordering = ordering
        self._address_connections = address_connections
        self._domain_connections = domain_connections
        self._due: list[tuple[float, int, HostSlot]] = []
        self._lanes: list[list[tuple[Standing, int, HostSlot]]] = [[] for _ in ordering.lane_weights]
        self._credit = [0] * len(ordering.lane_weights)
        self._addresses: dict[str, AddressSlot] = {}
        self._tickets = 0
        self.count = dict.fromkeys(Place, 0)

    def enter(self, host: HostSlot) -> None:
        """Take a host in, idle."""
        host.place = Place.IDLE
        self.count[Place.IDLE] += 1

    def leave(self, host: HostSlot) -> None:
        """Let a host go; its entries become stale."""
        self.count[host.place] -= 1
        self._tickets += 1
        host.ticket = self._tickets

    def move(self, host: HostSlot, place: Place) -> None:
        """Put a host where no entry is needed: idle, busy or spent."""
        self.count[host.place] -= 1
        self.count[place] += 1
        host.place = place
        self._tickets += 1
        host.ticket = self._tickets

    def wait(self, host: HostSlot, until: float) -> None:
        """Leave a host alone until a time."""
        self.move(host, Place.WAITING)
        heappush(self._due, (until, host.ticket, host))

    def make_ready(self, host: HostSlot) -> None:
        """Let a host have its turn, by its standing."""
        self.move(host, Place.READY)
        heappush(self._lanes[host.lane], (self._standing(host), host.ticket, host))

    def _standing(self, host: HostSlot) -> Standing:
        if host.errands or not host.head:
            # robots.txt holds up everything else of its host: as if it were its best page, before all others.
            return self._ordering.standing(host.domain.pages, 0, 0)
        rank, seq, _ = host.head[0]
        return self._ordering.standing(host.domain.pages, rank, seq)

    def due(self, now: float) -> list[HostSlot]:
        """Return the hosts whose waiting is over; the caller gives each a new place."""
        over: list[HostSlot] = []
        while self._due and (self._due[0][0] <= now or self._is_stale(self._due[0])):
            entry = heappop(self._due)
            if not self._is_stale(entry):
                over.append(entry[2])
        return over

    def next_due(self) -> float | None:
        """Return when the next wait is over."""
        while self._due and self._is_stale(self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    @staticmethod
    def _is_stale(entry: tuple[object, int, HostSlot]) -> bool:
        return entry[1] != entry[2].ticket

    def take(self) -> HostSlot | None:
        """Return the ready host whose turn it is, and that its address and domain have room for."""
        while True:
            host = self._first()
            if host is None:
                return None
            blockers = self._blockers(host)
            if blockers is None:
                return host
            self.move(host, Place.BLOCKED)
            blockers.append(host)

    def _first(self) -> HostSlot | None:
        lane = self._next_lane()
        if lane is None:
            return None
        heap = self._lanes[lane]
        while True:  # there is a valid entry: at the latest the one put back here
            entry = heappop(heap)
            if self._is_stale(entry):
                continue
            standing, _, host = entry
            current = self._standing(host)
            # A domain's page count only grows, so a standing can have become worse since: back in line.
            if current > standing and heap and current > heap[0][0]:
                heappush(heap, (current, host.ticket, host))
                continue
            return host

    def _next_lane(self) -> int | None:
        """Return the lane whose turn it is: weighted round robin among those that have a host."""
        filled = []
        for number, heap in enumerate(self._lanes):
            while heap and self._is_stale(heap[0]):
                heappop(heap)
            if heap:
                filled.append(number)
        if len(filled) <= 1:
            return filled[0] if filled else None
        for number in filled:
            self._credit[number] += self._ordering.lane_weights[number]
        best = max(filled, key=lambda number: (self._credit[number], -number))
        self._credit[best] -= sum(self._ordering.lane_weights[number] for number in filled)
        return best

    def _blockers(self, host: HostSlot) -> deque[HostSlot] | None:
        """Return the line of those who wait for the same limit, or None where there is room."""
        if self._domain_connections and host.domain.in_flight >= self._domain_connections:
            return host.domain.blocked
        if self._address_connections and host.record.addresses:
            slot = self._addresses.get(host.record.addresses[0])
            if slot is not None and slot.in_flight >= self._address_connections:
                return slot.blocked
        return None

    def occupy(self, host: HostSlot, address: str) -> None:
        """Count a request that goes out."""
        host.in_flight += 1
        host.domain.in_flight += 1
        self._addresses.setdefault(address, AddressSlot()).in_flight += 1

    def vacate(self, host: HostSlot, address: str) -> list[HostSlot]:
        """Count a request that ended; return the hosts that it held up, for the caller to place."""
        host.in_flight -= 1
        host.domain.in_flight -= 1
        freed = _let_go(host.domain.blocked, host.domain.in_flight, self._domain_connections)
        slot = self._addresses[address]
        slot.in_flight -= 1
        freed += _let_go(slot.blocked, slot.in_flight, self._address_connections)
        if not slot.in_flight:
            del self._addresses[address]
        return [slot for slot in freed if slot.place is Place.BLOCKED]

    @property
    def ready(self) -> int:
        """How many hosts could be asked now."""
        return self.count[Place.READY]


def _let_go(blocked: deque[HostSlot], in_flight: int, limit: int) -> list[HostSlot]:
    """Take as many hosts from the line as there is room; all, where nothing is left in flight to free the rest."""
    count = len(blocked) if not in_flight else min(len(blocked), limit - in_flight)
    return [blocked.popleft() for _ in range(count)]
