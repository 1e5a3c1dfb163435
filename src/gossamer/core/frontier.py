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

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core import politeness, robots_book
from gossamer.core.commands import Bury, Command, Consequence, Denied, LoadHost, Refill, Resolve, Sleep, Wake
from gossamer.core.politeness import Pace
from gossamer.core.priority import Ordering
from gossamer.core.retry import MAX_RETRY_AFTER_S, wait_before_retry
from gossamer.core.robots import ALLOW_ALL, RobotsDecision, RobotsRules
from gossamer.core.url import host_id, host_of, origin_of, path_of
from gossamer.core.workbench import DomainSlot, HostSlot, OriginRules, Place, RobotsErrand, Workbench
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

HEAD_URLS = 256
LEAST_HEAD_URLS = 4
LONG_WAIT_S = 300.0
CLOCK_SLACK_S = 0.005
MOST_TRANSIT_S = 0.1  # what a request may take to its server, as far as pace is concerned
BEFORE_ALL = (-(1 << 62), 0)  # a horizon that nothing queued is within
# Members at hand: up to Python 3.11 an enum takes 80 ns to give one.
_READY = Place.READY
_BUSY = Place.BUSY
_IDLE = Place.IDLE
_BLOCKED = Place.BLOCKED
_SPENT = Place.SPENT
_WAITING = Place.WAITING
_OK = Outcome.OK
_NOT_MODIFIED = Outcome.NOT_MODIFIED
_WORKER_LOST = Outcome.WORKER_LOST
_PAGE = OrderKind.PAGE
_DONE = UrlState.DONE
_IN_LINE = (_READY, _WAITING)
_NO_ADDRESS = ("",)  # of a host that the simulator, not the DNS, knows

# Answers that make a bare domain fall back from https to http at once.
_HTTPS_MISSING = frozenset({Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR, Outcome.DISCONNECTED})


class FrontierLimits(Struct, frozen=True):
    """Numbers that bound the frontier. None: no limit."""

    connections: int = 256
    max_pages: int | None = None
    max_pages_per_host: int | None = None
    max_pages_per_domain: int | None = None
    address_connections: int = 20
    domain_connections: int = 0
    address_delay_s: float = 0.0
    domain_delay_s: float = 0.0
    retry_wait_s: float = 2.0
    max_depth: int = 10
    max_hosts_in_memory: int = 50_000
    max_urls_in_memory: int = 400_000
    max_idle_hosts: int = 10_000  # that have nothing to do, kept for what is found next
    is_unreachable_robots_allowed: bool = False


class _Running(Struct):
    order: Order
    host: HostSlot
    url: QueuedUrl | None
    errand: RobotsErrand | None
    is_sent: bool = False
    next_at_before: float = 0.0  # of its host, when it was sent
    next_at_held: float = 0.0  # since, as long as nobody knows when it arrived; 0: not reported as sent


class Frontier:
    """All hosts and their queues, as far as they are in memory."""

    def __init__(self, limits: FrontierLimits, pace: Pace, ordering: Ordering, token: str) -> None:
        self.limits = limits
        self._pace = pace
        self._ordering = ordering
        self._token = token
        self._has_budgets = limits.max_pages_per_host is not None or limits.max_pages_per_domain is not None
        self._bench = Workbench(
            ordering,
            limits.address_connections,
            limits.domain_connections,
            address_delay_s=limits.address_delay_s,
            domain_delay_s=limits.domain_delay_s,
        )
        self._hosts: dict[str, HostSlot] = {}
        self._domains: dict[str, DomainSlot] = {}
        self._idle: OrderedDict[str, HostSlot] = OrderedDict()
        self._running: dict[int, _Running] = {}
        self._commands: list[Command] = []
        self._errands_ahead: dict[str, list[RobotsErrand]] = {}  # for hosts that are being loaded
        self._denied: list[Denied] = []
        self._resolving = 0
        self._next_order_id = 1
        self.pages = 0
        self.pages_in_flight = 0
        self.queued = 0  # URLs in the ledger that wait or are in flight
        self.dormant_hosts = 0
        self.next_dormant_at = float("inf")  # when the first of them is due, by the ledger
        self._is_waking = False
        self.all_asked_at = float("-inf")  # the restart after an unclean stop: nobody knows who was asked last

    # -- facts ---------------------------------------------------------------------------------

    def knows(self, host: str) -> bool:
        """Tell whether a host is in memory."""
        return host in self._hosts

    def has_room(self) -> bool:
        """Tell whether one more host may be in memory with work to do."""
        return len(self._hosts) - len(self._idle) < self.limits.max_hosts_in_memory

    def record_of(self, host: str) -> HostRecord | None:
        """Return the live record of a host in memory."""
        slot = self._hosts.get(host)
        return None if slot is None else slot.record

    def load_host(self, record: HostRecord, domain: DomainRecord, robots: dict[str, OriginRules], now: float) -> None:
        """Bring a host into memory, with what the ledger knows of it."""
        if record.name in self._hosts:
            return
        slot = self._domains.get(record.domain)
        if slot is None:
            slot = self._domains[record.domain] = DomainSlot(record.domain, domain.pages)
            slot.next_at = self._bench.gates.domain_next_at(record.domain)
        slot.hosts += 1
        host = HostSlot(record, host_id(record.name), slot, connections=self._pace.connections(record.name))
        host.lane = self._ordering.lane(record.rank)
        host.origins = robots
        self._note_rules(host)
        if record.queued:
            host.horizon = BEFORE_ALL
        self._renew_promises(host, now)
        self._hosts[record.name] = host
        self._bench.enter(host)
        for errand in self._errands_ahead.pop(record.name, ()):
            host.errands.append(errand)
        self._settle(host, now)

    def _renew_promises(self, host: HostSlot, now: float) -> None:
        """Bring stored instants onto this time line: no wait is longer than the longest that can have been meant."""
        delay_s = self._delay_s(host)
        record = host.record
        record.next_at = max(min(record.next_at, now + delay_s), self.all_asked_at + delay_s)
        record.parked_until = min(record.parked_until, now + MAX_RETRY_AFTER_S)
        record.slowed_at = min(record.slowed_at, now)

    def take_up(self, now: float) -> None:
        """Take note that a crawl goes on that was begun before: any address or domain may have been asked just now."""
        self._bench.gates.begun_at = now

    def woken(self, still_asleep: int, next_at: float) -> None:
        """Take note that `Wake` was carried out."""
        self.dormant_hosts = still_asleep
        self.next_dormant_at = next_at
        self._is_waking = False

    def note_asleep(self, until: float) -> None:
        """Take note of one more host that sleeps in the ledger."""
        self.dormant_hosts += 1
        self.next_dormant_at = min(self.next_dormant_at, until)

    def add(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Take in URLs that the ledger has admitted. Those of hosts not in memory stay in the ledger."""
        touched: dict[str, HostSlot] = {}
        most = self._head_size()
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
                heappush(head, (url.rank, url.seq, url))
            if len(head) > 2 * most:
                host.trim(most)
            # Behind what is first already a URL changes nothing about the turn of its host.
            if first is None or host.head[0] is not first or host.place not in _IN_LINE:
                touched[url.host] = host
        for host in touched.values():
            if host.place is not _BLOCKED and host.in_flight < host.connections:
                self._settle(host, now)

    def refill(self, host_name: str, urls: Sequence[QueuedUrl], asked: int, now: float) -> None:
        """Take the answer to `Refill`: URLs in order of rank and seq."""
        host = self._hosts[host_name]
        host.is_refilling = False
        if len(urls) < asked:
            host.horizon = None
        else:
            host.horizon = (urls[-1].rank, urls[-1].seq)
        # What was deferred beyond the horizon and is back in the head by now stands in the ledger as well.
        in_head = {seq for _, seq, _ in host.head}
        for url in urls:
            if url.seq in host.out or url.seq in in_head:
                continue
            if url.not_before > now:
                host.defer(url)
            else:
                host.push(url)
        self._settle(host, now)

    def learn_address(self, host_name: str, addresses: tuple[str, ...], expires_at: float, now: float) -> None:
        """Take the answer to `Resolve`."""
        host = self._resolved(host_name)
        host.record.addresses = addresses
        host.record.addresses_until = expires_at
        self._settle(host, now)

    def fail_address(self, host_name: str, outcome: Outcome, error: str, now: float) -> HostRecord:
        """Take the answer to `Resolve` where there is no usable address; return the host as it is now."""
        host = self._resolved(host_name)
        if outcome is Outcome.DNS_FAILED:
            record = host.record
            record.robots_tries += 1
            record.errors += 1
            ban = robots_book.unreachable(record.robots_tries, self._first_wait(host), now)
            record.parked_until, record.park_reason = ban.expires_at, error
        else:
            self._give_up_errands(host, outcome, now)
            self._bury(host, outcome, error)
        self._settle(host, now)
        return host.record

    def _give_up_errands(self, host: HostSlot, outcome: Outcome, now: float) -> None:
        """Tell the owners of robots.txt requests that were to be made at a host without address."""
        for errand in host.errands:
            owner = self._hosts.get(host_of(errand.origin + "/"))
            if owner is not None and owner is not host:
                ban = self._learn_robots(owner, errand.origin, None, Result(0, outcome), now)
                self._park_for_robots(owner, ban)
                self._settle(owner, now)

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
        arrived_at = max(running.order.ordered_at, sent_at) + MOST_TRANSIT_S
        self._hold_gates(running, arrived_at)
        running.next_at_before = host.record.next_at
        self._hold_pace(host, arrived_at)
        running.next_at_held = host.record.next_at
        self._settle(host, now)

    def _hold_gates(self, running: _Running, arrived_at: float) -> None:
        if not self._bench.gates.has_pace:
            return
        is_first_word, running.is_sent = not running.is_sent, True
        self._bench.gates.hold(running.host, running.order.addresses[0], arrived_at, is_first_word=is_first_word)

    def complete(self, result: Result, now: float) -> Consequence:
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
        self._count(record, result, now, is_robots=running.errand is not None)
        what = Consequence(hosts=[record])
        if running.errand is not None:
            self._end_robots(host, running.errand, result, what, now)
        elif running.url is not None:
            self._end_page(host, running.url, result, what, now)
        if record.parked_until > parked_before and record.parked_until > now:
            what.parked_s = record.parked_until - now
        delay_s = record.delay_s = self._delay_s(host)
        if running.next_at_held and running.next_at_held == record.next_at:
            # Nothing was sent since: now that its arrival is known, the longest way it could have had counts no more.
            record.next_at = running.next_at_before
        if delay_s:
            record.next_at = max(record.next_at, asked_at + delay_s)
        self._settle(host, now)
        for other in freed:
            self._settle(other, now)
        return what

    @staticmethod
    def _count(record: HostRecord, result: Result, now: float, *, is_robots: bool) -> None:
        record.fetches += 1
        record.last_fetch_at = now
        record.bytes += result.wire_bytes
        # A robots.txt that is missing is an answer like any other.
        if result.outcome not in ANSWERED and not (is_robots and result.outcome is Outcome.CLIENT_ERROR):
            record.errors += 1
        if result.first_byte_at > result.sent_at > 0:
            politeness.note_latency(record, result.first_byte_at - result.sent_at)
        politeness.note_result(record, result, now)

    # -- the end of a page -----------------------------------------------------------------------

    def _end_page(self, host: HostSlot, url: QueuedUrl, result: Result, what: Consequence, now: float) -> None:
        self.pages_in_flight -= 1
        host.pages_in_flight -= 1
        host.domain.pages_in_flight -= 1
        host.out.discard(url.seq)
        what.url = url
        is_answered = result.outcome in ANSWERED
        wait_s = None if is_answered else wait_before_retry(result.outcome, url.attempt + 1, self._first_wait(host))
        if result.outcome is _WORKER_LOST:
            what.retry = url
            wait_s = 0.0
            if host.is_within(url):
                host.push(url)
        elif wait_s is not None:
            what.retry = self._deferred(host, url, result, wait_s, now)
        if wait_s is not None:
            what.state = UrlState.QUEUED
            self._reopen(host.domain, now)
            return
        self.queued -= 1
        host.record.queued -= 1
        what.state = _DONE if is_answered else UrlState.DEAD
        what.is_page = result.outcome in (_OK, _NOT_MODIFIED) and url.kind is _PAGE
        if what.is_page:
            self._count_page(host, what)
        if not what.is_page or (self._is_crowded() and not host.domain.pages_in_flight):
            self._reopen(host.domain, now)

    def _count_page(self, host: HostSlot, what: Consequence) -> None:
        self.pages += 1
        host.record.pages += 1
        host.domain.pages += 1
        what.domain_pages = host.domain.pages

    def _deferred(self, host: HostSlot, url: QueuedUrl, result: Result, wait_s: float, now: float) -> QueuedUrl:
        not_before = now + max(wait_s, min(result.retry_after_s, MAX_RETRY_AFTER_S))
        retry = replace(url, attempt=url.attempt + 1, not_before=not_before)
        host.defer(retry)
        return retry

    def _reopen(self, domain: DomainSlot, now: float) -> None:
        """Give hosts back their turn where a page that was counted on failed; let them go where none can fail now."""
        spent, domain.spent = domain.spent, {}
        for host in spent.values():
            if host.place is _SPENT:
                self._settle(host, now)

    def _first_wait(self, host: HostSlot) -> float:
        return max(self.limits.retry_wait_s, 2 * self._delay_s(host))

    # -- robots.txt ------------------------------------------------------------------------------

    def _end_robots(self, host: HostSlot, errand: RobotsErrand, result: Result, what: Consequence, now: float) -> None:
        what.robots_origin = errand.origin
        if result.outcome is _WORKER_LOST:
            host.errands.append(errand)
            return
        if result.outcome is Outcome.REDIRECT and errand.hops < robots_book.MAX_ROBOTS_HOPS:
            self._send_errand(RobotsErrand(errand.origin, result.redirect_to, errand.hops + 1), now)
            return
        owner = self._hosts.get(host_of(errand.origin + "/"))
        if owner is None:
            return
        last = owner.origins.get(errand.origin)
        rules = robots_book.rules_from(result, self._token)
        what.fallbacks = self._https_fallbacks(owner, errand, result)
        if result.outcome is _NOT_MODIFIED and last is not None and last.rules is not None:
            what.robots = owner.origins[errand.origin] = robots_book.renewed(last, now)
        else:
            what.robots = self._learn_robots(owner, errand.origin, rules, result, now)
        if what.robots.is_unreachable and not what.fallbacks:
            self._park_for_robots(owner, what.robots)
        what.sitemaps = list(rules.sitemaps) if rules else []
        if owner is not host:
            if owner.crawl_delay_s:  # it may have been asked just before, when nobody knew how slow it wants us to be
                self._hold_pace(owner, owner.record.last_fetch_at)
            what.hosts.append(owner.record)
            self._settle(owner, now)

    def _learn_robots(
        self, owner: HostSlot, origin: str, rules: RobotsRules | None, result: Result, now: float
    ) -> OriginRules:
        if rules is not None:
            owner.record.robots_tries = 0
            state = robots_book.known(rules, result, now)
        elif self.limits.is_unreachable_robots_allowed:
            state = OriginRules(rules=ALLOW_ALL, expires_at=now + robots_book.UNREACHABLE_TTL_S)
        else:
            owner.record.robots_tries += 1
            tries, wait_s = owner.record.robots_tries, self._first_wait(owner)
            ban = robots_book.unreachable(tries, wait_s, now, result.retry_after_s)
            state = robots_book.stand_in(owner.origins.get(origin), ban, now) or ban
            owner.record.park_reason = f"robots.txt unreachable: {result.outcome}"
        owner.origins[origin] = state
        self._note_rules(owner)
        return state

    def _note_rules(self, host: HostSlot) -> None:
        """Keep at hand what the robots.txt files of a host say of the whole of it."""
        rules = [origin.rules for origin in host.origins.values() if origin.rules is not None]
        host.crawl_delay_s = max((each.crawl_delay_s or 0.0 for each in rules), default=0.0)
        host.floor_s = self._pace.floor_s(host.name, host.crawl_delay_s)
        host.states_usage = any(each.usage for each in rules)

    @staticmethod
    def _park_for_robots(owner: HostSlot, ban: OriginRules) -> None:
        """Leave a host alone whose only origin may not be asked; with others, URLs are set aside one by one."""
        if len(owner.origins) == 1:
            owner.record.parked_until = max(owner.record.parked_until, ban.expires_at)

    def _https_fallbacks(self, owner: HostSlot, errand: RobotsErrand, result: Result) -> list[QueuedUrl]:
        is_first_answer = not errand.hops and errand.origin.startswith("https:")
        if result.outcome not in _HTTPS_MISSING or not is_first_answer:
            return []
        place = errand.origin + "/"
        bare = [entry for entry in owner.head if entry[2].https_first and entry[2].url.startswith(place)]
        for entry in bare:
            owner.head.remove(entry)
            self.queued -= 1
            owner.record.queued -= 1
        if bare:
            owner.head.sort()
        return [entry[2] for entry in bare]

    def _send_errand(self, errand: RobotsErrand, now: float) -> None:
        host_name = host_of(errand.url)
        host = self._hosts.get(host_name)
        if host is None:
            self._errands_ahead.setdefault(host_name, []).append(errand)
            self._commands.append(LoadHost(host_name))
            return
        host.errands.append(errand)
        self._settle(host, now)

    # -- decisions -------------------------------------------------------------------------------

    def next_order(self, now: float) -> Order | None:
        """Return the request to make now, or None. Call `take_commands` first, and after None again."""
        for host in self._bench.due(now):
            self._settle(host, now)
        while self.in_flight < self.limits.connections and not self._is_quota_out():
            ready = self._bench.take(now)
            if ready is None:
                return None
            order = self._order_for(ready, now)
            if order is not None:
                return order
            if self._commands:
                # A refill must not cost its host its turn: the driver reads it, then asks again.
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
        if host.errands:
            return self._order_robots(host, host.errands.popleft(), now)
        if host.deferred:
            host.recall(now)
        if not host.head or (self._has_budgets and self._is_spent(host)):
            # Another host of the domain may have used up its budget since this one became ready.
            self._settle(host, now)
            return None
        url = host.head[0][2]
        origin = origin_of(url.url)
        robots = host.origins.get(origin)
        if robots is None or robots.expires_at <= now:
            asked = host.origins[origin] = robots_book.asked_again(robots)
            errand = RobotsErrand(origin, origin + "/robots.txt", 0, asked.etag, asked.last_modified)
            return self._order_robots(host, errand, now)
        if robots.is_pending:
            self._settle(host, now)
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
            self._commands.append(Resolve(host.name))

    def _set_aside(self, host: HostSlot, url: QueuedUrl, until: float, now: float) -> None:
        """Keep a URL whose origin's robots.txt cannot be reached; other origins of the host go on."""
        host.defer(replace(url, not_before=until))
        if len(host.deferred) > 2 * self._head_size():
            host.record.parked_until = max(host.record.parked_until, until)
        self._settle(host, now)

    def _deny(self, host: HostSlot, url: QueuedUrl, decision: RobotsDecision, now: float) -> None:
        self._denied.append(Denied(url, decision))
        self.queued -= 1
        host.record.queued -= 1
        self._settle(host, now)

    def _order_robots(self, host: HostSlot, errand: RobotsErrand, now: float) -> Order:
        order = Order(
            id=self._next_order_id,
            kind=OrderKind.ROBOTS,
            url=errand.url,
            url_id=b"",
            host=host.name,
            addresses=host.record.addresses or _NO_ADDRESS,
            depth=0,
            hops=errand.hops,
            attempt=0,
            ordered_at=now,
            etag=errand.etag,
            last_modified=errand.last_modified,
            report_sent=self._reports_sending(host),
            needs_links=False,
        )
        self._send_out(_Running(order, host, None, errand), now)
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
        delay_s = self._delay_s(host)
        host.unsent = order.id if delay_s else 0
        if delay_s:
            host.record.next_at = max(host.record.next_at, now + delay_s)
        if host.place is _READY and host.in_flight >= host.connections and host.head and not self._has_budgets:
            self._bench.move(host, _BUSY)  # what `_settle` would find, in a tenth of the time
        else:
            self._settle(host, now)

    def _reports_sending(self, host: HostSlot) -> bool:
        """Tell whether the next request must wait until this one is known to be on the wire."""
        return self._bench.gates.has_pace or (host.connections > 1 and self._delay_s(host) > 0)

    def next_wakeup(self) -> float | None:
        """Return when `next_order` can next succeed by the passing of time alone, or None."""
        due = self._bench.next_due()
        if not self.dormant_hosts or not self.has_room():
            return due
        return self.next_dormant_at if due is None else min(due, self.next_dormant_at)

    def take_commands(self, now: float) -> list[Command]:
        """Return the I/O that the driver must do now."""
        if self.dormant_hosts and self.next_dormant_at <= now and not self._is_waking and self.has_room():
            self._is_waking = True
            room = self.limits.max_hosts_in_memory - (len(self._hosts) - len(self._idle))
            self._commands.append(Wake(min(room, 1000)))
        commands, self._commands = self._commands, []
        return commands

    @property
    def has_commands(self) -> bool:
        """Whether there is I/O to do."""
        return bool(self._commands)

    @property
    def has_denied(self) -> bool:
        """Whether robots.txt turned out to forbid something."""
        return bool(self._denied)

    def take_denied(self) -> list[Denied]:
        """Return the URLs that robots.txt turned out to forbid."""
        denied, self._denied = self._denied, []
        return denied

    # -- places ----------------------------------------------------------------------------------

    def _settle(self, host: HostSlot, now: float) -> None:
        """Give a host the place that its state asks for. Called after every change to it."""
        if self._hosts.get(host.name) is not host:
            return  # it has left memory in the meantime
        if host.place is _IDLE:
            self._idle.pop(host.name, None)
        place = self._place_of(host, now)
        if isinstance(place, float):
            if self._may_sleep(host, place, now):
                self._commands.append(Sleep(host.record, place))
                self._drop(host)
                return
            self._bench.wait(host, place)
        elif place is _READY:
            self._bench.make_ready(host)
        else:
            self._bench.move(host, place)
        if host.place is _IDLE:
            self._keep_idle(host)
        elif host.place is _SPENT:
            self._keep_spent(host)

    def _keep_spent(self, host: HostSlot) -> None:
        """Keep a host whose budget is used up for as long as a page that was counted on may fail."""
        if self._is_crowded() and not host.in_flight and not host.domain.pages_in_flight:
            self._drop(host)
        else:
            host.domain.spent[host.name] = host

    def _is_crowded(self) -> bool:
        return len(self._hosts) - len(self._idle) > self.limits.max_hosts_in_memory // 2

    def _may_sleep(self, host: HostSlot, until: float, now: float) -> bool:
        """Tell whether a host that waits for long should make room in memory."""
        return self._is_crowded() and not host.in_flight and not host.errands and until - now > LONG_WAIT_S

    def _place_of(self, host: HostSlot, now: float) -> Place | float:
        """Return a host's place; a time where it has to wait."""
        if host.is_resolving or host.is_refilling:
            return _BUSY
        if host.record.is_blocked:
            return _BUSY if host.in_flight else _SPENT
        if host.deferred:
            host.recall(now)
        if not host.errands:
            if not host.head and not host.deferred and host.horizon is None:
                return _BUSY if host.in_flight else _IDLE
            if self._has_budgets and self._is_spent(host):
                return _SPENT
            if not host.head and host.horizon is not None:
                self._ask_refill(host)
                return _BUSY
        if host.in_flight >= host.connections or (host.in_flight and host.unsent):
            return _BUSY
        record = host.record
        at = record.next_at if record.next_at > record.parked_until else record.parked_until
        if not host.errands:
            if not host.head:
                at = max(at, host.deferred[0][0])
            elif self._is_awaiting_robots(host):
                return _BUSY
        return _READY if at <= now else at

    def _is_awaiting_robots(self, host: HostSlot) -> bool:
        for rules in host.origins.values():  # 1 µs less than any()
            if rules.is_pending:
                robots = host.origins.get(origin_of(host.head[0][2].url))
                return robots is not None and robots.is_pending
        return False

    def _is_spent(self, host: HostSlot) -> bool:
        per_host, per_domain = self.limits.max_pages_per_host, self.limits.max_pages_per_domain
        if per_host is not None and host.record.pages + host.pages_in_flight >= per_host:
            return True
        domain = host.domain
        return per_domain is not None and domain.pages + domain.pages_in_flight >= per_domain

    def _ask_refill(self, host: HostSlot) -> None:
        host.is_refilling = True
        self._commands.append(Refill(host.name, host.horizon, self._head_size()))

    def _head_size(self) -> int:
        hosts = max(1, len(self._hosts))
        return max(LEAST_HEAD_URLS, min(HEAD_URLS, self.limits.max_urls_in_memory // hosts))

    def _hold_pace(self, host: HostSlot, asked_at: float) -> None:
        delay_s = self._delay_s(host)
        if delay_s:  # without one the way to the server does not matter either
            host.record.next_at = max(host.record.next_at, asked_at + delay_s)

    def _delay_s(self, host: HostSlot) -> float:
        record = host.record
        if record.backoff or record.slow_steps:
            return politeness.delay_in_force_s(record, host.floor_s)
        return host.floor_s

    def _keep_idle(self, host: HostSlot) -> None:
        self._idle[host.name] = host
        if len(self._idle) > self.limits.max_idle_hosts:
            _, oldest = self._idle.popitem(last=False)
            self._drop(oldest)

    def _drop(self, host: HostSlot) -> None:
        self._bench.leave(host)
        del self._hosts[host.name]
        host.domain.spent.pop(host.name, None)
        host.domain.hosts -= 1
        if not host.domain.hosts:
            del self._domains[host.domain.name]

    def _bury(self, host: HostSlot, outcome: Outcome, error: str) -> None:
        self.queued -= host.record.queued
        host.record.queued = 0
        host.record.errors += 1
        host.record.is_dead = True
        host.head.clear()
        host.deferred.clear()
        host.out.clear()
        host.errands.clear()
        host.horizon = None
        host.origins = {origin: rules for origin, rules in host.origins.items() if not rules.is_pending}
        self._commands.append(Bury(host.record, outcome, error))

    def block(self, host_name: str, is_blocked: bool, now: float) -> None:
        """Never ask a host again, or do so again; requests that are out are let to end."""
        host = self._hosts.get(host_name)
        if host is not None and host.record.is_blocked is not is_blocked:
            host.record.is_blocked = is_blocked
            if host.place is not _BUSY and host.place is not _BLOCKED:
                self._settle(host, now)

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
        if host.place is not _BUSY and host.place is not _BLOCKED:
            self._settle(host, now)
        return [url for url in urls if url.seq in gone]

    # -- what is left ----------------------------------------------------------------------------

    def why_over(self, now: float, max_wait_s: float) -> str | None:
        """Return why nothing more can be done ("max_pages", "exhausted", "budgets", "parked"), or None."""
        if self.in_flight or self._commands or self._denied:
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
        if host.place is not _WAITING:
            return False
        at = max(host.record.next_at, host.record.parked_until)
        return at > horizon or (not host.head and bool(host.deferred) and host.deferred[0][0] > horizon)

    def records(self) -> Iterator[HostRecord]:
        """Return what is known of every host in memory."""
        return (host.record for host in self._hosts.values())

    def places(self) -> dict[str, int]:
        """Return how many hosts are in each place."""
        return {place.name.lower(): self._bench.count[place] for place in Place}

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
    arrived_at = max(result.sent_at, min(result.finished_at, result.sent_at + MOST_TRANSIT_S))
    if result.first_byte_at and best_latency_s:
        arrived_at = max(arrived_at, min(result.finished_at, result.first_byte_at + CLOCK_SLACK_S) - best_latency_s)
    return arrived_at
