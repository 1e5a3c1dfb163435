"""Which URL to fetch next, and when.

The frontier is told facts (URLs found, names resolved, orders ended) and asked for
decisions. It does no I/O: what it needs done stands in `take_commands`, and the driver
does it before the next question. No method reads a clock: `now` is passed in. What is
queued is in the ledger; a host keeps only the head of its queue in memory, and a host
that has nothing to do leaves memory whole. `next_order` costs O(log hosts).

Looking a name up takes one of the connections, as a fetch does, so that a crawl with one
connection is the same sequence every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core import politeness, robots_state
from gossamer.core.commands import Command, Denied, Effects, KillQueue, Resolve, SwapIn
from gossamer.core.host_table import HostTable
from gossamer.core.limits import FrontierLimits
from gossamer.core.politeness import Pace
from gossamer.core.priority import Ordering
from gossamer.core.retry import MAX_RETRY_AFTER_S, wait_before_retry
from gossamer.core.robots import RobotsDecision
from gossamer.core.robots_requests import RobotsRequests, first_wait_s
from gossamer.core.url import origin_of, path_of
from gossamer.core.workbench import HostSlot, HostState, OriginRules, RobotsRequest
from gossamer.figures import is_error
from gossamer.records import (
    ANSWERED,
    DomainRecord,
    HostRecord,
    Order,
    OrderKind,
    Outcome,
    QueuedUrl,
    Result,
    UrlState,
)

CLOCK_SLACK_S = 0.005
MAX_TRANSIT_S = 0.1  # what a request may take to its server, as far as pace is concerned
UNTOLD_DELAY_S = 1.0  # where a process died that may have been told another
# Members at hand: up to Python 3.11 an enum takes 80 ns to give one.
_READY, _BUSY, _BLOCKED, _WAITING = HostState.READY, HostState.BUSY, HostState.BLOCKED, HostState.WAITING
_OK, _NOT_MODIFIED, _WORKER_LOST = Outcome.OK, Outcome.NOT_MODIFIED, Outcome.WORKER_LOST
_PAGE, _DONE = OrderKind.PAGE, UrlState.DONE
_IN_LINE = (_READY, _WAITING)
_NO_ADDRESS = ("",)  # of a host that the simulator, not the DNS, knows


class _Running(Struct):
    order: Order
    host: HostSlot
    url: QueuedUrl | None
    request: RobotsRequest | None
    is_sent: bool = False
    next_at_before: float = 0.0  # of its host, when it was sent
    next_at_held: float = 0.0  # since, as long as nobody knows when it arrived; 0: not reported as sent


class Frontier:
    """All hosts and their queues, as far as they are in memory."""

    def __init__(self, limits: FrontierLimits, pace: Pace, ordering: Ordering, token: str) -> None:
        self.limits = limits
        self._pace = pace
        self._table = HostTable(limits, ordering)
        self._robots = RobotsRequests(self._table, limits, pace, token)
        # Asked for a dozen times a page.
        self._hosts, self._bench, self._reschedule = self._table.hosts, self._table.bench, self._table.reschedule
        self._running: dict[int, _Running] = {}
        self._denied: list[Denied] = []
        self._resolving = 0
        self._next_order_id = 1
        self.pages = 0
        self.pages_in_flight = 0
        self.queued = 0  # URLs in the ledger that wait or are in flight
        self.swapped_out_hosts = 0
        self.next_swap_in_at = float("inf")  # when the first of them is due, by the ledger
        self._is_swapping_in = False
        self.all_asked_at = float("-inf")  # the restart after an unclean stop: nobody knows who was asked last

    # -- facts ---------------------------------------------------------------------------------

    def knows(self, host: str) -> bool:
        """Tell whether a host is in memory."""
        return host in self._hosts

    def has_room(self) -> bool:
        """Tell whether one more host may be in memory with work to do."""
        return self._table.has_room()

    def record_of(self, host: str) -> HostRecord | None:
        """Return the live record of a host in memory."""
        slot = self._hosts.get(host)
        return None if slot is None else slot.record

    def load_host(self, record: HostRecord, domain: DomainRecord, robots: dict[str, OriginRules], now: float) -> None:
        """Bring a host into memory, with what the ledger knows of it."""
        if record.name in self._hosts:
            return
        host = self._table.enter(record, domain, self._pace.connections(record.name))
        host.origins = robots
        self._robots.note_rules(host)
        self._renew_promises(host, now)
        self._robots.hand_over(host)
        self._reschedule(host, now)

    def _renew_promises(self, host: HostSlot, now: float) -> None:
        """Bring stored instants onto this time line: no wait is longer than the longest that can have been meant."""
        delay_s = host.delay_s()
        record = host.record
        # What a dead process sent last may be on its way still, and it may have been told a Crawl-delay that is lost.
        min_s = delay_s + MAX_TRANSIT_S if delay_s else 0.0
        if not host.origins:
            min_s = max(min_s, UNTOLD_DELAY_S)
        record.next_at = max(min(record.next_at, now + delay_s), self.all_asked_at + min_s)
        record.parked_until = min(record.parked_until, now + MAX_RETRY_AFTER_S)
        record.slowed_at = min(record.slowed_at, now)

    def take_up(self, now: float) -> None:
        """Take note that a crawl goes on that was begun before: any address or domain may have been asked just now."""
        self._bench.gates.begun_at = now

    def swapped_in(self, still_asleep: int, next_at: float) -> None:
        """Take note that `SwapIn` was carried out."""
        self.swapped_out_hosts = still_asleep
        self.next_swap_in_at = next_at
        self._is_swapping_in = False

    def note_swapped_out(self, until: float) -> None:
        """Take note of one more host that sleeps in the ledger."""
        self.swapped_out_hosts += 1
        self.next_swap_in_at = min(self.next_swap_in_at, until)

    def add(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Take in URLs that the ledger has admitted. Those of hosts not in memory stay in the ledger."""
        touched: dict[str, HostSlot] = {}
        most = self._table.head_size()
        self.queued += len(urls)
        for url in urls:
            host = self._hosts.get(url.host)
            if host is None:
                continue
            host.record.queued += 1
            if host.horizon is not None and not host.is_within(url):
                continue
            head = host.head
            first = head[0] if head else None
            if url.not_before > now:
                host.defer(url)
            else:
                heappush(head, (url.priority, url.seq, url))
            if len(head) > 2 * most:
                host.trim(most)
            # Behind what is first already a URL changes nothing about the turn of its host.
            if first is None or host.head[0] is not first or host.state not in _IN_LINE:
                touched[url.host] = host
        for host in touched.values():
            if host.state is not _BLOCKED and host.in_flight < host.connections:
                self._reschedule(host, now)

    def read_queue(self, host_name: str, urls: Sequence[QueuedUrl], asked: int, now: float) -> None:
        """Take the answer to `ReadQueue`: URLs in order of priority and seq."""
        host = self._hosts[host_name]
        host.is_reading_queue = False
        if len(urls) < asked:
            host.horizon = None
        else:
            host.horizon = (urls[-1].priority, urls[-1].seq)
        # What was deferred beyond the horizon and is back in the head by now stands in the ledger as well.
        in_head = {seq for _, seq, _ in host.head}
        for url in urls:
            if url.seq in host.out or url.seq in in_head:
                continue
            if url.not_before > now:
                host.defer(url)
            else:
                host.push(url)
        self._reschedule(host, now)

    def learn_address(self, host_name: str, addresses: tuple[str, ...], expires_at: float, now: float) -> None:
        """Take the answer to `Resolve`."""
        host = self._resolved(host_name)
        host.record.addresses = addresses
        host.record.addresses_until = expires_at
        self._reschedule(host, now)

    def fail_address(self, host_name: str, outcome: Outcome, error: str, now: float) -> HostRecord:
        """Take the answer to `Resolve` where there is no usable address; return the host as it is now."""
        host = self._resolved(host_name)
        record = host.record
        record.fetches += 1
        record.errors += 1
        if outcome is Outcome.DNS_FAILED:
            record.robots_tries += 1
            ban = robots_state.unreachable(record.robots_tries, first_wait_s(host, self.limits), now)
            record.parked_until, record.park_reason = ban.expires_at, error
        else:
            self._robots.give_up(host, outcome, now)
            self._kill_queue(host, outcome, error)
        self._reschedule(host, now)
        return record

    def _resolved(self, host_name: str) -> HostSlot:
        host = self._hosts[host_name]
        host.is_resolving = False
        self._resolving -= 1
        return host

    def mark_sent(self, order_id: int, sent_at: float, now: float) -> None:
        """Take note that an order's request is on the wire (only for orders that ask for it)."""
        running = self._running.get(order_id)
        if running is None:
            return
        host = running.host
        if host.unsent == order_id:
            host.unsent = 0
        arrived_at = max(running.order.ordered_at, sent_at) + MAX_TRANSIT_S
        self._hold_gates(running, arrived_at)
        running.next_at_before = host.record.next_at
        host.hold_pace(arrived_at)
        running.next_at_held = host.record.next_at
        self._reschedule(host, now)

    def _hold_gates(self, running: _Running, arrived_at: float) -> None:
        if not self._bench.gates.has_pace:
            return
        is_first_word, running.is_sent = not running.is_sent, True
        self._bench.gates.hold(running.host, running.order.addresses[0], arrived_at, is_first_word=is_first_word)

    def complete(self, result: Result, now: float) -> Effects:
        """Take note that an order has ended; return what follows from it."""
        running = self._running.pop(result.order_id)
        host, order = running.host, running.order
        record = host.record
        # Of a worker that died nobody knows what it sent last: it counts as sent now.
        asked_at = (
            now if result.outcome is _WORKER_LOST else max(order.ordered_at, _arrived_at(result, record.best_latency_s))
        )
        self._hold_gates(running, asked_at)
        freed = self._bench.vacate(host, order.addresses[0])
        if host.unsent == order.id:
            host.unsent = 0
        parked_before = record.parked_until
        self._count(record, result, now, is_robots=running.request is not None)
        effects = Effects(hosts=[record])
        if running.request is not None:
            self._robots.end(host, running.request, result, effects, now)
            self.queued -= len(effects.fallbacks)
        elif running.url is not None:
            self._end_page(host, running.url, result, effects, now)
        if record.parked_until > parked_before and record.parked_until > now:
            effects.parked_s = record.parked_until - now
        delay_s = record.delay_s = host.delay_s()
        if running.next_at_held and running.next_at_held == record.next_at:
            # Nothing was sent since: now that its arrival is known, the longest way it could have had counts no more.
            record.next_at = running.next_at_before
        if delay_s:
            record.next_at = max(record.next_at, asked_at + delay_s)
        if running.request is not None and result.outcome is _WORKER_LOST:
            # The answer may have been there: whatever Crawl-delay it stated is lost with the worker.
            record.next_at = max(record.next_at, now + UNTOLD_DELAY_S)
        self._reschedule(host, now)
        for other in freed:
            self._reschedule(other, now)
        return effects

    @staticmethod
    def _count(record: HostRecord, result: Result, now: float, *, is_robots: bool) -> None:
        if result.outcome is not _WORKER_LOST:
            record.fetches += 1
            record.errors += is_error(result.outcome, is_robots=is_robots)
        record.last_fetch_at = now
        record.bytes += result.wire_bytes
        if result.first_byte_at > result.sent_at > 0:
            politeness.note_latency(record, result.first_byte_at - result.sent_at)
        politeness.note_result(record, result, now)

    # -- the end of a page -----------------------------------------------------------------------

    def _end_page(self, host: HostSlot, url: QueuedUrl, result: Result, effects: Effects, now: float) -> None:
        self.pages_in_flight -= 1
        host.pages_in_flight -= 1
        host.domain.pages_in_flight -= 1
        host.out.discard(url.seq)
        effects.url = url
        is_answered = result.outcome in ANSWERED
        wait_s = (
            None if is_answered else wait_before_retry(result.outcome, url.attempt + 1, first_wait_s(host, self.limits))
        )
        if result.outcome is _WORKER_LOST:
            effects.retry = url
            wait_s = 0.0
            if host.is_within(url):
                host.push(url)
        elif wait_s is not None:
            effects.retry = self._deferred(host, url, result, wait_s, now)
        if wait_s is not None:
            effects.state = UrlState.QUEUED
            self._table.reopen(host.domain, now)
            return
        self.queued -= 1
        host.record.queued -= 1
        effects.state = _DONE if is_answered else UrlState.DEAD
        effects.is_page = result.outcome in (_OK, _NOT_MODIFIED) and url.kind is _PAGE
        if effects.is_page:
            self._count_page(host, effects)
        if not effects.is_page or (self._table.is_crowded() and not host.domain.pages_in_flight):
            self._table.reopen(host.domain, now)

    def _count_page(self, host: HostSlot, effects: Effects) -> None:
        self.pages += 1
        host.record.pages += 1
        host.domain.pages += 1
        effects.domain_pages = host.domain.pages

    def _deferred(self, host: HostSlot, url: QueuedUrl, result: Result, wait_s: float, now: float) -> QueuedUrl:
        not_before = now + max(wait_s, min(result.retry_after_s, MAX_RETRY_AFTER_S))
        retry = replace(url, attempt=url.attempt + 1, not_before=not_before)
        host.defer(retry)
        return retry

    # -- decisions -------------------------------------------------------------------------------

    def next_order(self, now: float) -> Order | None:
        """Return the request to make now, or None. Call `take_commands` first, and after None again."""
        for host in self._bench.due(now):
            self._reschedule(host, now)
        while self.in_flight < self.limits.connections and not self._is_quota_out():
            ready = self._bench.take(now)
            if ready is None:
                return None
            order = self._order_for(ready, now)
            if order is not None:
                return order
            if self._table.commands:
                # A read_queue must not cost its host its turn: the driver reads it, then asks again.
                return None
        return None

    @property
    def in_flight(self) -> int:
        """Requests out and names being looked up."""
        return len(self._running) + self._resolving

    def _is_quota_out(self) -> bool:
        most = self.limits.max_pages
        return most is not None and self.pages + self.pages_in_flight >= most

    def _order_for(self, host: HostSlot, now: float) -> Order | None:
        """Make an order at a host whose turn it is; None where something else must come first."""
        if host.record.addresses_until <= now:
            self._look_up(host)
            return None
        if host.robots_requests:
            return self._order_robots(host, host.robots_requests.popleft(), now)
        if host.deferred:
            host.recall(now)
        if not host.head or (self._table.has_budgets and self._table.is_budget_exhausted(host)):
            # Another host of the domain may have used up its budget since this one became ready.
            self._reschedule(host, now)
            return None
        url = host.head[0][2]
        origin = origin_of(url.url)
        robots = host.origins.get(origin)
        if robots is None or robots.expires_at <= now:
            asked = host.origins[origin] = robots_state.asked_again(robots)
            request = RobotsRequest(origin, origin + "/robots.txt", 0, asked.etag, asked.last_modified)
            return self._order_robots(host, request, now)
        if robots.is_pending:
            self._reschedule(host, now)
            return None
        heappop(host.head)
        if robots.rules is None:
            self._set_aside(host, url, robots.expires_at, now)
            return None
        if robots.rules.rule_count and not robots.rules.is_allowed(path_of(url.url)):
            self._deny(host, url, robots.rules.decide(path_of(url.url)), now)
            return None
        return self._order_page(host, url, now)

    def _look_up(self, host: HostSlot) -> None:
        """Have a host's name looked up, as soon as none of its requests is out: its end must not be theirs."""
        self._bench.move(host, _BUSY)
        if not host.in_flight:
            host.is_resolving = True
            self._resolving += 1
            self._table.commands.append(Resolve(host.name))

    def _set_aside(self, host: HostSlot, url: QueuedUrl, until: float, now: float) -> None:
        """Keep a URL whose origin's robots.txt cannot be reached; other origins of the host go on."""
        host.defer(replace(url, not_before=until))
        if len(host.deferred) > 2 * self._table.head_size():
            host.record.parked_until = max(host.record.parked_until, until)
        self._reschedule(host, now)

    def _deny(self, host: HostSlot, url: QueuedUrl, decision: RobotsDecision, now: float) -> None:
        self._denied.append(Denied(url, decision))
        self.queued -= 1
        host.record.queued -= 1
        self._reschedule(host, now)

    def _order_robots(self, host: HostSlot, request: RobotsRequest, now: float) -> Order:
        order = Order(
            id=self._next_order_id,
            kind=OrderKind.ROBOTS,
            url=request.url,
            url_id=b"",
            host=host.name,
            addresses=host.record.addresses or _NO_ADDRESS,
            depth=0,
            hops=request.hops,
            attempt=0,
            ordered_at=now,
            etag=request.etag,
            last_modified=request.last_modified,
            report_sent=self._reports_sending(host),
            needs_links=False,
        )
        self._send_out(_Running(order, host, None, request), now)
        return order

    def _order_page(self, host: HostSlot, url: QueuedUrl, now: float) -> Order:
        host.out.add(url.seq)
        host.pages_in_flight += 1
        host.domain.pages_in_flight += 1
        self.pages_in_flight += 1
        # By place: made for every page.
        order = Order(
            self._next_order_id,
            url.kind,
            url.url,
            url.id,
            url.host,
            host.record.addresses or _NO_ADDRESS,
            url.depth,
            url.hops,
            url.attempt,
            now,
            url.etag,
            url.last_modified,
            self._reports_sending(host),
            url.depth < self.limits.max_depth,
        )
        self._send_out(_Running(order, host, url, None), now)
        return order

    def adopt(self, url: QueuedUrl, now: float) -> Order | None:
        """Make an order for a URL whose answer is here already: read back from the archive after a crash."""
        host = self._hosts.get(url.host)
        if host is None or url.seq in host.out:
            return None
        host.head = [entry for entry in host.head if entry[1] != url.seq]
        heapify(host.head)
        return self._order_page(host, url, now)

    def _send_out(self, running: _Running, now: float) -> None:
        order, host = running.order, running.host
        self._next_order_id += 1
        self._running[order.id] = running
        self._bench.occupy(host, order.addresses[0])
        delay_s = host.delay_s()
        host.unsent = order.id if delay_s else 0
        if delay_s:
            host.record.next_at = max(host.record.next_at, now + delay_s)
        if host.state is _READY and host.in_flight >= host.connections and host.head and not self._table.has_budgets:
            self._bench.move(host, _BUSY)  # what `_reschedule` would find, in a tenth of the time
        else:
            self._reschedule(host, now)

    def _reports_sending(self, host: HostSlot) -> bool:
        """Tell whether the next request must wait until this one is known to be on the wire."""
        return self._bench.gates.has_pace or (host.connections > 1 and host.delay_s() > 0)

    def next_wakeup(self) -> float | None:
        """Return when `next_order` can next succeed by the passing of time alone, or None."""
        due = self._bench.next_due()
        if not self.swapped_out_hosts or not self._table.has_room():
            return due
        return self.next_swap_in_at if due is None else min(due, self.next_swap_in_at)

    def take_commands(self, now: float) -> list[Command]:
        """Return the I/O that the driver must do now."""
        if (
            self.swapped_out_hosts
            and self.next_swap_in_at <= now
            and not self._is_swapping_in
            and self._table.has_room()
        ):
            self._is_swapping_in = True
            room = self.limits.max_hosts_in_memory - (len(self._hosts) - len(self._table.idle))
            self._table.commands.append(SwapIn(min(room, 1000)))
        commands, self._table.commands = self._table.commands, []
        return commands

    @property
    def has_commands(self) -> bool:
        """Whether there is I/O to do."""
        return bool(self._table.commands)

    @property
    def has_denied(self) -> bool:
        """Whether robots.txt turned out to forbid something."""
        return bool(self._denied)

    def take_denied(self) -> list[Denied]:
        """Return the URLs that robots.txt turned out to forbid."""
        denied, self._denied = self._denied, []
        return denied

    def _kill_queue(self, host: HostSlot, outcome: Outcome, error: str) -> None:
        self.queued -= host.record.queued
        host.record.queued = 0
        host.record.is_dead = True
        host.head.clear()
        host.deferred.clear()
        host.out.clear()
        host.robots_requests.clear()
        host.horizon = None
        host.origins = {origin: rules for origin, rules in host.origins.items() if not rules.is_pending}
        self._table.commands.append(KillQueue(host.record, outcome, error))

    def block(self, host_name: str, is_blocked: bool, now: float) -> None:
        """Never ask a host again, or do so again; requests that are out are let to end."""
        host = self._hosts.get(host_name)
        if host is not None and host.record.is_blocked is not is_blocked:
            host.record.is_blocked = is_blocked
            if host.state is not _BUSY and host.state is not _BLOCKED:
                self._reschedule(host, now)

    def forget(self, host_name: str, urls: Sequence[QueuedUrl], now: float) -> list[QueuedUrl]:
        """Drop queued URLs of a host; return those that could be dropped, which are not in flight."""
        host = self._hosts.get(host_name)
        if host is None:
            return []
        deferred = {seq for _, seq, _ in host.deferred}
        gone = {url.seq for url in urls if url.seq not in host.out or url.seq in deferred}
        host.head = [entry for entry in host.head if entry[1] not in gone]
        host.deferred = [entry for entry in host.deferred if entry[1] not in gone]
        heapify(host.head)
        heapify(host.deferred)
        host.out -= gone & deferred
        host.record.queued -= len(gone)
        self.queued -= len(gone)
        if host.state is not _BUSY and host.state is not _BLOCKED:
            self._reschedule(host, now)
        return [url for url in urls if url.seq in gone]

    # -- what is left ----------------------------------------------------------------------------

    def why_over(self, now: float, max_wait_s: float) -> str | None:
        """Return why nothing more can be done ("max_pages", "exhausted", "budgets", "parked"), or None."""
        if self.in_flight or self._table.commands or self._denied:
            return None
        if self._is_quota_out():
            return "max_pages"
        # Whoever is busy now waits for robots.txt at a host that is parked itself.
        if self._bench.count[_READY] or self._bench.count[_BLOCKED]:
            return None
        wakeup = self.next_wakeup()
        if wakeup is None:
            return "budgets" if self.queued else "exhausted"
        return "parked" if wakeup > now + max_wait_s else None

    def parked_urls(self, now: float, max_wait_s: float) -> int:
        """Return how many URLs wait for hosts that are not to be asked within `max_wait_s`."""
        return sum(host.record.queued for host in self._hosts.values() if self._is_parked(host, now + max_wait_s))

    @staticmethod
    def _is_parked(host: HostSlot, horizon: float) -> bool:
        if host.state is not _WAITING:
            return False
        at = max(host.record.next_at, host.record.parked_until)
        return at > horizon or (not host.head and bool(host.deferred) and host.deferred[0][0] > horizon)

    def records(self) -> Iterator[HostRecord]:
        """Return what is known of every host in memory."""
        return (host.record for host in self._hosts.values())

    def host_states(self) -> dict[str, int]:
        """Return how many hosts are in each place."""
        return {state.name.lower(): self._bench.count[state] for state in HostState}

    def is_in_flight(self, order_id: int) -> bool:
        """Tell whether an order is out."""
        return order_id in self._running

    def orders_out(self) -> list[Order]:
        """Return the orders that are out."""
        return [running.order for running in self._running.values()]

    def usage_of(self, url: QueuedUrl) -> list[str]:
        """Return the preferences for the use of content that robots.txt of a URL's origin states."""
        host = self._hosts.get(url.host)
        if host is None or not host.states_usage:
            return []
        robots = host.origins.get(origin_of(url.url))
        return robots.rules.usage if robots is not None and robots.rules is not None else []

    def head_of(self, host_name: str) -> list[QueuedUrl]:
        """Return a host's URLs in memory in order, for inspection."""
        host = self._hosts.get(host_name)
        return [entry[2] for entry in sorted(host.head)] if host else []


def _arrived_at(result: Result, best_latency_s: float) -> float:
    """Return the latest time at which the server can have had the request: pace is what the server sees.

    It was there before the answer was whole. That may be long after, for reasons of the server's
    own, so no more than a plausible transit counts; and what the answer took longer than the host's
    best, since a request may have lain unread at a server under load. (libcurl's own time of the
    first byte is taken once for many transfers and can be some milliseconds early.)
    """
    arrived_at = max(result.sent_at, min(result.finished_at, result.sent_at + MAX_TRANSIT_S))
    if result.first_byte_at and best_latency_s:
        arrived_at = max(arrived_at, min(result.finished_at, result.first_byte_at + CLOCK_SLACK_S) - best_latency_s)
    return arrived_at
