"""Which host may be contacted now, and which one first?

A host in memory is in exactly one state:

| state            | why                                                        | how it leaves                        |
|------------------|------------------------------------------------------------|--------------------------------------|
| IDLE             | it has no work                                             | a URL is found, or it leaves memory  |
| WAITING          | its delay, a retry or a park is not over                   | the time comes: entry in `_due`      |
| READY            | it may be contacted now                                    | its turn comes: entry in a lane      |
| BUSY             | as many tasks are out as it may have; or its address, its | a task ends, or the answer comes   |
|                  | robots.txt or the head of its queue is awaited             |                                      |
| BLOCKED          | its address, its domain or its share has no room           | its gate opens: it waits in line     |
| BUDGET_EXHAUSTED | its page budget is used up                                 | a page counted against it fails      |
| OPTED_OUT        | the operator, or its owner, blocked it                     | the block ends                       |

`HostTable.reschedule` decides the state from the host's facts; the workbench only stores hosts by state.
WAITING and READY have one valid entry in a heap. An entry is never removed from the middle of a heap: it
carries the host's ticket, every change of state gives the host a new ticket, and an entry whose ticket is
old is skipped when it comes up. `pop_ready` costs O(log hosts). `now` is passed in.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from msgspec import Struct, field

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import DEMOTION, Ordering, Standing
from gossamer.core.politeness.gates import Gates
from gossamer.core.politeness.lines import Line
from gossamer.core.politeness.pace import delay_in_force_s
from gossamer.core.robots.rules import RobotsRules
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.model.records import AVERAGE_RANK, FetchKind, HostId, HostRecord, QueuedUrl, QueuePosition, UrlId

# Priority, seq, id: unique, so that the URL itself is never compared.
HeadEntry: TypeAlias = tuple[int, int, UrlId, QueuedUrl]
DeferredEntry: TypeAlias = tuple[float, int, UrlId, QueuedUrl]  # not before, then as above
VisitEntry: TypeAlias = tuple[float, UrlId, QueuedUrl]  # when it was due


_REQUISITE = FetchKind.REQUISITE
_BEFORE_PAGES = 1 << 62  # less than the number of any arrival
BEFORE_ALL: QueuePosition = (-(1 << 62), 0, b"")  # a horizon before everything that is queued


class HostState(IntEnum):
    """What a host is waiting for. Numbers, to count by: the hash of an enum's member is a call, 24 of them per page."""

    IDLE = 0
    WAITING = 1
    READY = 2
    BUSY = 3
    BLOCKED = 4
    BUDGET_EXHAUSTED = 5
    OPTED_OUT = 6


_READY = HostState.READY
_BLOCKED = HostState.BLOCKED


class DomainSlot(Struct):
    """A registrable domain while one of its hosts is in memory."""

    name: str
    pages: int = 0
    hosts: list[HostSlot] = field(default_factory=list)  # in memory
    in_flight: int = 0
    pages_in_flight: int = 0
    blocked: Line = field(default_factory=Line)
    exhausted: dict[str, HostSlot] = field(default_factory=dict)  # hosts whose budget is used up, by name
    next_at: float = 0.0
    unsent: int = 0
    is_timed: bool = False
    rank: float = AVERAGE_RANK
    idle: int = 0  # of the hosts in memory
    held_s: float = 0.0  # for how long its requests have a connection, on average


class OriginRules(Struct):
    """robots.txt of one origin: unknown until `expires_at` is set."""

    rules: RobotsRules | None = None
    expires_at: float = 0.0
    is_pending: bool = False
    is_unreachable: bool = False  # rules is None and nothing may be fetched before `expires_at`
    good_until: float = 0.0  # if it cannot be renewed, the rules stay in force until then
    is_last_good_copy: bool = False  # in force after a failed renewal
    etag: str = ""
    last_modified: str = ""


class RobotsRequest(Struct):
    """A robots.txt request to make at a host, for an origin that may belong to another host after a redirect."""

    origin: str
    url: str
    hops: int
    etag: str = ""  # of the stored copy
    last_modified: str = ""


class HostSlot(Struct, eq=False):
    """A host in memory: the head of its queue, and its state."""

    record: HostRecord
    id: HostId
    domain: DomainSlot
    state: HostState = HostState.IDLE
    ticket: int = 0
    lane: int = 0
    connections: int = 1
    head: list[HeadEntry] = field(default_factory=list)
    horizon: QueuePosition | None = None  # all that is queued up to here is in memory; None: all of it
    deferred: list[DeferredEntry] = field(default_factory=list)
    out: set[UrlId] = field(default_factory=set)  # what is in flight or deferred
    visits: list[VisitEntry] = field(default_factory=list)  # known URLs that are due again, a heap
    is_listed: bool = False  # among `Workbench.beyond_limits`
    robots_requests: deque[RobotsRequest] = field(default_factory=deque)
    turns_owed: int = 0  # to its own URLs, before the next robots.txt request for a host of another domain
    origins: dict[str, OriginRules] = field(default_factory=dict)
    in_flight: int = 0
    pages_in_flight: int = 0
    unsent: int = 0  # the task that may not be on the wire yet; 0: none
    is_resolving: bool = False
    is_reading_queue: bool = False
    crawl_delay_s: float = 0.0
    floor_s: float = 0.0  # the minimum delay, before any backoff
    skipped: int = 0  # URLs of banned origins that were dropped from memory, since the last ban
    skipped_until: float = 0.0  # when their ban ends: then the queue is read from its beginning. 0: none were
    no_rules_before: float = 0.0  # rules that were shed are not read again before this
    states_usage: bool = False  # its robots.txt states how content may be used
    watched_at: float = 0.0  # see `HostTable.next_watched`
    number: int = 0  # of its entry into memory: decides between equal standings
    held_s: float = 0.0  # for how long its requests have a connection, on average; 0: not known yet
    failing: tuple[UrlId, ...] = ()  # URLs that failed since the last success, until they park the host
    failed_addresses: int = 0  # in a row that could not be connected to, of those it has
    name: str = ""  # of the record: read a dozen times per page

    def __post_init__(self) -> None:
        self.name = self.record.name

    def delay_s(self) -> float:
        record = self.record
        if record.backoff or record.slow_steps:
            return delay_in_force_s(record, self.floor_s)
        return self.floor_s

    def is_of_its_domain(self, request: RobotsRequest) -> bool:
        """Return whether a robots.txt request is made for a host of the same registrable domain."""
        return registrable_domain(host_of(request.origin + "/")) == self.domain.name

    def push_robots(self, request: RobotsRequest) -> None:
        """Add a robots.txt request; those for its own domain come before those that others redirected here."""
        if self.is_of_its_domain(request):
            self.robots_requests.appendleft(request)
        else:
            self.robots_requests.append(request)

    def start_delay(self, asked_at: float) -> None:
        """Start the host's delay after a request."""
        delay_s = self.delay_s()
        if delay_s:  # without a delay the transit time does not matter either
            self.record.next_at = max(self.record.next_at, asked_at + delay_s)

    def push(self, url: QueuedUrl) -> None:
        """Put a URL into the head of the queue, or among those that are due again."""
        if url.known:
            heappush(self.visits, (url.not_before, url.id, url))
            return
        heappush(self.head, (url.priority, url.seq, url.id, url))

    def defer(self, url: QueuedUrl) -> None:
        """Defer a URL until its `not_before`."""
        self.out.add(url.id)
        heappush(self.deferred, (url.not_before, url.seq, url.id, url))

    @property
    def is_requisite_next(self) -> bool:
        """Whether the first of its queue is a requisite: page limits do not apply to it."""
        return bool(self.head) and self.head[0][3].kind is _REQUISITE

    def is_within(self, url: QueuedUrl) -> bool:
        """Return whether a URL belongs in memory; one beyond the horizon is read from the ledger later."""
        return self.horizon is None or url.position <= self.horizon

    def recall(self, now: float) -> None:
        """Move what is no longer deferred into the head; what was skipped for the same reason is read again."""
        if self.skipped_until and self.skipped_until <= now:
            self.reread_skipped()
        while self.deferred and self.deferred[0][0] <= now:
            url = heappop(self.deferred)[3]
            self.out.discard(url.id)
            if self.is_within(url):
                self.push(url)

    def skip(self, until: float) -> None:
        """Record that a URL whose origin is banned was dropped from memory until a time; it stays in the ledger."""
        self.skipped += 1
        self.skipped_until = max(self.skipped_until, until)

    def reread_skipped(self) -> None:
        """Have the queue read from its beginning if URLs were skipped."""
        if self.skipped_until:
            self.skipped = 0
            self.skipped_until = 0.0
            self.horizon = BEFORE_ALL

    def trim(self, size: int) -> None:
        """Shorten the head; the rest is read from the ledger later."""
        self.head.sort()
        del self.head[size:]
        self.horizon = self.head[-1][:3]
        heapify(self.head)


class Workbench:
    def __init__(self, ordering: Ordering, limits: FrontierLimits) -> None:
        self._ordering = ordering
        self._demoted = limits.demoted_hosts
        self.gates = Gates(limits)
        self._due: list[tuple[float, int, HostSlot]] = []
        self._lanes: list[list[tuple[Standing, int, HostSlot]]] = [[] for _ in ordering.lane_weights]
        self._credit = [0] * len(ordering.lane_weights)
        self._credit_before = self._credit
        # Hosts that became ready with what page limits do not apply to: known URLs, requisites. Some are not any more.
        self.beyond_limits: deque[HostSlot] = deque()
        self._entries = 0
        self._tickets = 0
        self.count = [0] * len(HostState)  # of hosts, by state

    def enter(self, host: HostSlot) -> None:
        host.state = HostState.IDLE
        self._entries += 1
        host.number = self._entries
        self.count[HostState.IDLE] += 1

    def leave(self, host: HostSlot) -> None:
        """Remove a host; its entries become stale."""
        self.count[host.state] -= 1
        self._tickets += 1
        host.ticket = self._tickets

    def move(self, host: HostSlot, state: HostState) -> None:
        """Set a state that needs no entry: idle, busy or budget exhausted."""
        self.count[host.state] -= 1
        self.count[state] += 1
        host.state = state
        self._tickets += 1
        host.ticket = self._tickets

    def wait(self, host: HostSlot, until: float) -> None:
        self.move(host, HostState.WAITING)
        heappush(self._due, (until, host.ticket, host))

    def make_ready(self, host: HostSlot) -> None:
        self.move(host, _READY)
        if (host.visits or host.record.requisites) and not host.is_listed and (host.visits or host.is_requisite_next):
            host.is_listed = True
            self.beyond_limits.append(host)
        heappush(self._lanes[host.lane], (self._standing(host), host.ticket, host))

    def _standing(self, host: HostSlot) -> Standing:
        demotion = DEMOTION if self._demoted and host.name in self._demoted else 0
        if host.robots_requests or not host.head:
            # Everything else of its host waits for robots.txt: it ranks as its best page, before all others. Among
            # such hosts the ticket must not decide: a name that expires, at a time that no two runs share, renews it.
            return self._ordering.standing(host.domain.pages, demotion, host.number - _BEFORE_PAGES)
        priority, seq = host.head[0][:2]
        return self._ordering.standing(host.domain.pages, priority + demotion, seq)

    def end_waits(self, now: float) -> list[HostSlot]:
        """Return the hosts whose wait is over; the caller reschedules each."""
        over = [host for host in self.gates.open_due(now) if host.state is _BLOCKED]
        while self._due and (self._due[0][0] <= now or self._is_stale(self._due[0])):
            entry = heappop(self._due)
            if not self._is_stale(entry):
                over.append(entry[2])
        return over

    def next_due(self) -> float | None:
        while self._due and self._is_stale(self._due[0]):
            heappop(self._due)
        gate_at = self.gates.next_time()
        if not self._due:
            return gate_at
        return self._due[0][0] if gate_at is None else min(self._due[0][0], gate_at)

    @staticmethod
    def _is_stale(entry: tuple[object, int, HostSlot]) -> bool:
        return entry[1] != entry[2].ticket

    def pop_ready(self, now: float = float("inf")) -> HostSlot | None:
        """Remove and return the ready host whose turn it is and whose address and domain have room."""
        while True:
            host = self._first()
            if host is None:
                return None
            gate = self.gates.closed(host, now)
            if gate is None:
                return host
            self.move(host, HostState.BLOCKED)
            self.gates.stand_in_line(host, gate)

    def _first(self) -> HostSlot | None:
        lane = self._next_lane()
        if lane is None:
            return None
        heap = self._lanes[lane]
        while True:  # there is a valid entry: at least the one that is put back here
            entry = heappop(heap)
            if self._is_stale(entry):
                continue
            standing, _, host = entry
            current = self._standing(host)
            # A domain's page count only grows, so a standing can have become worse since: it is pushed again.
            if current > standing and heap and current > heap[0][0]:
                heappush(heap, (current, host.ticket, host))
                continue
            return host

    def _next_lane(self) -> int | None:
        """Return the lane whose turn it is: weighted round robin among those that have a host."""
        if len(self._lanes) == 1:
            heap = self._lanes[0]
            while heap and heap[0][1] != heap[0][2].ticket:
                heappop(heap)
            return 0 if heap else None
        filled = []
        for number, heap in enumerate(self._lanes):
            while heap and self._is_stale(heap[0]):
                heappop(heap)
            if heap:
                filled.append(number)
        if len(filled) <= 1:
            self._credit_before = self._credit
            return filled[0] if filled else None
        self._credit_before = self._credit.copy()
        for number in filled:
            self._credit[number] += self._ordering.lane_weights[number]
        best = max(filled, key=lambda number: (self._credit[number], -number))
        self._credit[best] -= sum(self._ordering.lane_weights[number] for number in filled)
        return best

    def return_turn(self) -> None:
        """Give the last turn back to its lane: no request came of it."""
        self._credit = self._credit_before

    def occupy(self, host: HostSlot, address: str, *, is_slow: bool = False) -> None:
        """Count a request that goes out."""
        host.in_flight += 1
        self.gates.occupy(host, address, is_slow=is_slow)

    def vacate(self, host: HostSlot, address: str, *, is_slow: bool = False) -> list[HostSlot]:
        """Count a request that ended; return the hosts that waited for it, for the caller to reschedule."""
        host.in_flight -= 1
        freed = self.gates.vacate(host, address, is_slow=is_slow)
        return [other for other in freed if other.state is _BLOCKED] if freed else freed

    def end_lookup(self, name: str) -> list[HostSlot]:
        """Count a look-up that ended; return the hosts that waited for it, for the caller to reschedule."""
        return [other for other in self.gates.end_lookup(name) if other.state is _BLOCKED]
