"""Which hosts are in memory, and in which state is each of them?

A host enters with what the ledger has about it and gets a state whenever something about it changes
(`reschedule`): see `workbench` for the states. It leaves if it has had nothing to do for a long time, if it has a
long wait and others need the room, if its budget is used up, or if its shard is released. What must be read or
written for that is appended to `commands`. Memory: at most `max_hosts_in_memory` hosts with work and
`max_idle_hosts` without, each with the head of its queue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from heapq import heappop, heappush

from gossamer.core.frontier.effects import Command, ReadQueue, SwapOut
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import Ordering
from gossamer.core.frontier.workbench import BEFORE_ALL, DomainSlot, HostSlot, HostState, Workbench
from gossamer.core.url.forms import origin_of
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.records import DomainRecord, FetchKind, HostRecord

HEAD_URLS = 256
MIN_HEAD_URLS = 4
LONG_WAIT_S = 300.0
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_READY = HostState.READY
_BUSY = HostState.BUSY
_IDLE = HostState.IDLE
_BUDGET_EXHAUSTED = HostState.BUDGET_EXHAUSTED
_OPTED_OUT = HostState.OPTED_OUT
_WAITING = HostState.WAITING


class HostTable:
    def __init__(self, limits: FrontierLimits, ordering: Ordering) -> None:
        self._limits = self.limits = limits
        self._ordering = ordering
        self.bench = Workbench(ordering, limits)
        self.hosts: dict[str, HostSlot] = {}
        self.idle: OrderedDict[str, HostSlot] = OrderedDict()
        self._domains: dict[str, DomainSlot] = {}
        self.commands: list[Command] = []
        self._watched: list[tuple[float, int, HostSlot]] = []  # see `_watch_deferred`
        self.has_dropped_exhausted = False  # hosts with queued URLs left memory, since their budget was used up

    def enter(self, record: HostRecord, domain: DomainRecord, connections: int) -> HostSlot:
        """Add a host; the caller sets its rules and reschedules it."""
        slot = self._domains.get(record.domain)
        if slot is None:
            slot = self._domains[record.domain] = DomainSlot(record.domain, domain.pages)
            slot.next_at = self.bench.gates.domain_next_at(record.domain)
        host = HostSlot(record, host_id(record.name), slot, connections=connections)
        self.bench.gates.domains_at_work += slot.idle == len(slot.hosts)
        slot.hosts.append(host)
        slot.rank = record.rank
        host.lane = self._ordering.lane(record.rank)
        if record.queued:
            host.horizon = BEFORE_ALL
        self.hosts[record.name] = host
        self.bench.enter(host)
        return host

    def set_rank(self, domain_name: str, rank: float, now: float) -> list[HostRecord]:
        """Change the rank of a domain in memory, and with it lane and budget of its hosts; return these."""
        domain = self._domains.get(domain_name)
        lane = self._ordering.lane(rank)
        if domain is None:
            return []
        domain.rank = rank
        hosts = list(domain.hosts)
        for host in hosts:
            host.record.rank = rank
            host.lane = lane
            if host.state is _READY or host.state is _BUDGET_EXHAUSTED:
                self.reschedule(host, now)
        return [host.record for host in hosts]

    def has_room(self) -> bool:
        """Return whether one more host may be in memory with work to do."""
        return len(self.hosts) - len(self.idle) < self._limits.max_hosts_in_memory

    def room(self) -> int:
        """Return how many more hosts may be in memory with work to do."""
        return self._limits.max_hosts_in_memory - (len(self.hosts) - len(self.idle))

    def is_crowded(self) -> bool:
        """Return whether hosts with a long wait should make room."""
        return len(self.hosts) - len(self.idle) > self._limits.max_hosts_in_memory // 2

    def reschedule(self, host: HostSlot, now: float) -> None:
        """Set the state that follows from a host's facts. Called after every change to it."""
        if self.hosts.get(host.name) is not host:
            return  # it has left memory since
        if host.state is _IDLE:
            self._end_idle(host)
        state = self._state_of(host, now)
        if isinstance(state, float):
            if self._may_swap_out(host, state, now):
                self.commands.append(SwapOut(host.record, state))
                self._drop(host)
                return
            self.bench.wait(host, state)
        elif state is _READY:
            self.bench.make_ready(host)
            if host.record.requisites:
                self._watch_deferred(host)
        else:
            self.bench.move(host, state)
        if host.state is _IDLE:
            self._add_idle(host)
        elif host.state is _BUDGET_EXHAUSTED or host.state is _OPTED_OUT:
            self._add_exhausted(host)

    def _watch_deferred(self, host: HostSlot) -> None:
        """Remember when a host that is ready for pages gets requisites back that were deferred.

        Without a limit of pages its turn comes anyway; at the limit nothing else would wake it.
        """
        if host.deferred and not host.is_requisite_next and host.watched_at != host.deferred[0][0]:
            host.watched_at = host.deferred[0][0]
            heappush(self._watched, (host.watched_at, host.number, host))

    def next_watched(self) -> float | None:
        """Return when the first of the hosts gets back what was deferred."""
        return self._watched[0][0] if self._watched else None

    def recall_watched(self, now: float) -> None:
        """Reschedule the hosts that get back what was deferred."""
        while self._watched and self._watched[0][0] <= now:
            host = heappop(self._watched)[2]
            host.watched_at = 0.0
            if host.state is _READY:
                self.reschedule(host, now)

    def _state_of(self, host: HostSlot, now: float) -> HostState | float:
        """Return the state of a host; a time if it has to wait."""
        if host.is_resolving or host.is_reading_queue:
            return _BUSY
        if host.record.is_blocked:
            return _BUSY if host.in_flight else _OPTED_OUT
        if host.deferred:
            host.recall(now)
        if not host.robots_requests and (state := self._without_work(host)) is not None:
            return state
        if host.in_flight >= host.connections or (host.in_flight and host.unsent):
            return _BUSY
        record = host.record
        at = record.next_at if record.next_at > record.parked_until else record.parked_until
        if not host.robots_requests:
            if not host.head and not host.visits:
                at = max(at, host.deferred[0][0])
            elif self._is_awaiting_robots(host):
                return _BUSY
        return _READY if at <= now else at

    def _without_work(self, host: HostSlot) -> HostState | float | None:
        """Return the state of a host that has nothing to fetch now, or nothing in memory; None if it has."""
        if not host.head and not host.visits and not host.deferred and host.horizon is None:
            return _BUSY if host.in_flight else _IDLE
        if self._limits.has_budgets and self.is_budget_exhausted(host):
            return self._beyond_budget(host)
        if not host.head and host.horizon is not None:
            self._ask_for_queue(host)
            return _BUSY
        return None

    def _beyond_budget(self, host: HostSlot) -> HostState | float | None:
        """Return the state of a host whose budget of pages is used up; None if it has something that needs none."""
        if host.visits or host.is_requisite_next:
            return None
        if not host.record.requisites:
            return _BUDGET_EXHAUSTED
        if not host.head and host.horizon is not None:  # requisites are first: they are in what is read
            self._ask_for_queue(host)
            return _BUSY
        return host.deferred[0][0] if host.deferred and not host.in_flight else _BUDGET_EXHAUSTED

    def set_pages_aside(self, until: float) -> None:
        """Swap hosts out that have pages only and nothing in flight: no pages are wanted, and others need the room."""
        for host in list(self.hosts.values()):
            has_others = host.record.requisites or host.visits or host.robots_requests or host.in_flight
            if not has_others and (host.state is _READY or host.state is _WAITING):
                self.commands.append(SwapOut(host.record, until))
                self._drop(host)

    def count_requisites(self) -> int:
        """Return how many requisites are queued at hosts in memory. One pass over them."""
        return sum(host.record.requisites for host in self.hosts.values())

    def has_requisites_within(self, until: float) -> bool:
        """Return whether a requisite can be fetched before a time, if nothing is in flight. One pass over all hosts."""
        return any(_has_requisite_within(host, until) for host in self.hosts.values() if host.record.requisites)

    @staticmethod
    def _is_awaiting_robots(host: HostSlot) -> bool:
        for rules in host.origins.values():  # 1 µs less than any()
            if rules.is_pending:
                first = host.visits[0][2] if not host.head else host.head[0][3]
                robots = host.origins.get(origin_of(first.url))
                return robots is not None and robots.is_pending
        return False

    def is_budget_exhausted(self, host: HostSlot) -> bool:
        """Return whether the budget of a host or its domain is used up, with what is in flight."""
        per_host = self._limits.max_pages_per_host
        per_domain = self._limits.domain_budget(host.domain.rank)
        if per_host is not None and host.record.pages + host.pages_in_flight >= per_host:
            return True
        domain = host.domain
        return per_domain is not None and domain.pages + domain.pages_in_flight >= per_domain

    def reopen(self, domain: DomainSlot, now: float) -> None:
        """Reschedule hosts whose budget was used up: they get a turn again if a page failed, else they may leave."""
        exhausted = domain.exhausted
        domain.exhausted = {}
        for host in exhausted.values():
            if host.state is _BUDGET_EXHAUSTED or host.state is _OPTED_OUT:
                self.reschedule(host, now)

    def head_size(self) -> int:
        """Return how many URLs of a host are read into memory at a time."""
        hosts = max(1, len(self.hosts))
        return max(MIN_HEAD_URLS, min(HEAD_URLS, self._limits.max_urls_in_memory // hosts))

    def _ask_for_queue(self, host: HostSlot) -> None:
        host.is_reading_queue = True
        self.commands.append(ReadQueue(host.name, host.horizon, self.head_size()))

    def stop_reading(self, host: HostSlot) -> None:
        """Read no more of a host's queue, not even what was about to be read: nothing is left of it."""
        host.horizon = None
        if host.is_reading_queue:
            host.is_reading_queue = False
            self.commands = [
                each for each in self.commands if not (isinstance(each, ReadQueue) and each.host == host.name)
            ]

    def _may_swap_out(self, host: HostSlot, until: float, now: float) -> bool:
        """Return whether a host with a long wait should make room in memory."""
        return self.is_crowded() and not host.in_flight and not host.robots_requests and until - now > LONG_WAIT_S

    def _add_idle(self, host: HostSlot) -> None:
        self.idle[host.name] = host
        host.domain.idle += 1
        self.bench.gates.domains_at_work -= host.domain.idle == len(host.domain.hosts)
        if len(self.idle) > self._limits.max_idle_hosts:
            oldest = next(iter(self.idle.values()))
            self._end_idle(oldest)
            self._drop(oldest)

    def _end_idle(self, host: HostSlot) -> None:
        if self.idle.pop(host.name, None) is not None:
            self.bench.gates.domains_at_work += host.domain.idle == len(host.domain.hosts)
            host.domain.idle -= 1

    def _add_exhausted(self, host: HostSlot) -> None:
        """Retain a host whose budget is used up as long as a page that counts against it may fail."""
        if self.is_crowded() and not host.in_flight and not host.domain.pages_in_flight:
            self._drop(host)
            self.has_dropped_exhausted = True
        else:
            host.domain.exhausted[host.name] = host

    def of_shards(self, shards: Collection[int]) -> list[HostSlot]:
        return [host for host in self.hosts.values() if shard_of(host.id) in shards]

    def release(self, host: HostSlot) -> None:
        """Remove a host whose shard has another owner from now on. None of its tasks may be out."""
        if host.in_flight:
            raise RuntimeError(f"{host.name}: released with {host.in_flight} tasks out")
        self._end_idle(host)
        for line in self.bench.gates.lines_of(host):
            line.remove(host)
        self._drop(host)

    def _drop(self, host: HostSlot) -> None:
        self.bench.leave(host)
        del self.hosts[host.name]
        host.domain.exhausted.pop(host.name, None)
        host.domain.hosts.remove(host)
        self.bench.gates.domains_at_work -= host.domain.idle == len(host.domain.hosts)
        if not host.domain.hosts:
            del self._domains[host.domain.name]


def _has_requisite_within(host: HostSlot, until: float) -> bool:
    record = host.record
    if record.is_blocked or host.state is _BUSY or max(record.next_at, record.parked_until) > until:
        return False  # one that is busy waits for robots.txt at another host
    if host.is_requisite_next or (not host.head and host.horizon is not None):
        return True
    return any(at <= until and url.kind is FetchKind.REQUISITE for at, _, _, url in host.deferred)
