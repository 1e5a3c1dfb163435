"""What is requested from a host when its turn comes? Its address first, then robots.txt, then its first queued URL."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop

from msgspec.structs import replace

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Denied, Postponed, ReadRules, Resolve
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.outstanding import Outstanding, OutstandingTask
from gossamer.core.frontier.visits import Visits
from gossamer.core.frontier.workbench import HostSlot, HostState, RobotsRequest
from gossamer.core.links.requisite import is_foreign
from gossamer.core.politeness.gates import LENT_S, is_slow
from gossamer.core.politeness.other_crawls import CrawlContacts
from gossamer.core.robots import answers
from gossamer.core.robots.cache import AT_ONCE_BYTES, RobotsCache
from gossamer.core.robots.match import RobotsDecision
from gossamer.core.robots.rules import RobotsRules
from gossamer.core.url.forms import origin_of, path_of
from gossamer.core.url.identity import shard_of
from gossamer.model.records import FetchKind, FetchTask, QueuedUrl

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_READY = HostState.READY
_BUSY = HostState.BUSY
_REQUISITE = FetchKind.REQUISITE
MAX_SKIPPED = 2000  # URLs of banned origins in a row, about 20 ms
TURNS_PER_FOREIGN_ROBOTS = 9
RESTORED_AFTER_S = 0.1  # then a host tries again whose robots.txt waits until that of another is read
_NO_ADDRESS = ("",)  # of a host that exists only in the simulator, not in the DNS


class TaskMaker:
    """Makes tasks, or requests what must come before one."""

    def __init__(
        self,
        table: HostTable,
        outstanding: Outstanding,
        limits: FrontierLimits,
        counts: Counts,
        *,
        cache: RobotsCache,
        visits: Visits,
    ) -> None:
        self._table = table
        self._cache = cache
        self._outstanding = outstanding
        self._limits = limits
        self._counts = counts
        self._visits = visits
        self.denied: list[Denied] = []
        self.contacts: CrawlContacts | None = None  # with other crawls of this process

    def take_denied(self) -> list[Denied]:
        """Return the URLs that were found to be forbidden by robots.txt."""
        denied = self.denied
        self.denied = []
        return denied

    def task_for(self, host: HostSlot, now: float, *, beyond_limits: bool = False) -> FetchTask | None:
        """Make a task at a host whose turn it is; None if something else must come first.

        Of what is new and what is due again, the new comes first; unless only what does not count against the limit on
        pages is wanted: what is known, and requisites.
        """
        if host.record.addresses_until <= now:
            self._look_up(host)
            return None
        if self.contacts is not None and self._is_others_turn(host, self.contacts, now):
            return None
        if host.robots_requests and (request := self._waiting_robots(host)) is not None:
            return self._task_robots(host, request, now)
        if host.deferred:
            host.recall(now)
        url = self._first_url(host, beyond_limits=beyond_limits)
        if url is None:
            # Another host of the domain may have used up its budget since this one became ready.
            self._table.reschedule(host, now)
            return None
        origin = origin_of(url.url)
        robots = host.origins.get(origin)
        if robots is None or robots.expires_at <= now:
            asked = host.origins[origin] = answers.asked_again(robots)
            request = RobotsRequest(origin, origin + "/robots.txt", 0, asked.etag, asked.last_modified)
            return self._task_robots(host, request, now)
        rules = robots.rules
        if robots.is_pending or (rules is not None and rules.is_shed):
            if not robots.is_pending:
                self._restore_rules(host, origin, rules, now)
            self._table.reschedule(host, now)
            return None
        if url.known:
            heappop(host.visits)
        else:
            heappop(host.head)
        if rules is None:
            self._set_aside(host, url, robots.expires_at, now)
            return None
        if rules.rule_count and self._is_denied(host, url, rules, now):
            return None
        return self.task_page(host, url, now)

    def _is_others_turn(self, host: HostSlot, contacts: CrawlContacts, now: float) -> bool:
        """Return whether a host has to wait, because other crawls of this process have contacted it."""
        free_at = contacts.free_at(host.name, host.delay_s(), host.connections, now)
        if free_at <= now:
            return False
        host.record.next_at = max(host.record.next_at, free_at)
        self._table.bench.return_turn()
        self._table.reschedule(host, now)
        return True

    def _waiting_robots(self, host: HostSlot) -> RobotsRequest | None:
        """Return the robots.txt request whose turn it is; None if it is that of the host's own URLs.

        Anybody may redirect a robots.txt to this host. Such requests of other domains get a tenth of its turns.
        """
        if host.turns_owed and (host.head or host.visits):
            host.turns_owed -= 1
            return None
        request = host.robots_requests.popleft()
        host.turns_owed = 0 if host.is_of_its_domain(request) else TURNS_PER_FOREIGN_ROBOTS
        return request

    def _is_denied(self, host: HostSlot, url: QueuedUrl, rules: RobotsRules, now: float) -> bool:
        """Return whether robots.txt forbids a URL, and its host is not the operator's own."""
        self._cache.use(rules)
        decision = rules.decide(path_of(url.url))
        if decision.is_allowed:
            return False
        if host.name in self._limits.own_hosts:
            self.denied.append(Denied(url, decision, is_overridden=True))
            return False
        self._deny(host, url, decision, now)
        return True

    def _first_url(self, host: HostSlot, *, beyond_limits: bool) -> QueuedUrl | None:
        if host.head:
            has_budget = not beyond_limits and not (self._limits.has_budgets and self._table.is_budget_exhausted(host))
            if has_budget or host.is_requisite_next:
                return host.head[0][3]
        return host.visits[0][2] if host.visits else None

    def task_beyond_limits(self, draining: Collection[int], now: float) -> FetchTask | None:
        """Make a task that page limits do not apply to, or for what must come before it; None if there is none."""
        for host in self._visits.ready(now):
            if draining and shard_of(host.id) in draining:
                continue
            task = self.task_for(host, now, beyond_limits=True)
            if task is not None or self._table.commands:
                return task
        return None

    def _restore_rules(self, host: HostSlot, origin: str, rules: RobotsRules | None, now: float) -> None:
        """Request that rules are read again, or wait until they may be."""
        is_long = rules is not None and rules.text_bytes > AT_ONCE_BYTES
        if host.no_rules_before > now:
            host.record.next_at = max(host.record.next_at, host.no_rules_before)
        elif is_long and not self._cache.begin_restoring((host.name, origin), now):
            host.record.next_at = max(host.record.next_at, now + RESTORED_AFTER_S)
        else:
            self._table.commands.append(ReadRules(host.name, origin))

    def _look_up(self, host: HostSlot) -> None:
        """Request a look-up of a host's name once none of its requests is out, since a failure kills its queue.

        A look-up uses up no turn: when a name expires depends on time, and the order of requests must not.
        """
        self._table.bench.return_turn()
        self._table.bench.move(host, _BUSY)
        if not host.in_flight:
            host.is_resolving = True
            if self._outstanding.begin_lookup(host.name):
                self._table.bench.gates.begin_lookup(host)
                self._table.commands.append(Resolve(host.name))

    def _set_aside(self, host: HostSlot, url: QueuedUrl, until: float, now: float) -> None:
        """Defer a URL whose origin's robots.txt cannot be reached; other origins of the host continue.

        Some are deferred in memory, the others stay in the ledger and are read again after the ban. Only after very
        many the host is parked, since each of them takes time; after that the queue is read on from there.
        """
        if url.known:
            self._visits.postponed.append(Postponed(url, until))
            self._table.reschedule(host, now)
            return
        if len(host.deferred) < 2 * self._table.head_size():
            host.defer(replace(url, not_before=until))
        else:
            host.skip(until)
        if host.skipped > MAX_SKIPPED:
            host.skipped = 0
            host.record.parked_until = max(host.record.parked_until, until)
        elif not host.head and host.horizon is None:  # all that is queued waits: readers of the record see it
            host.record.parked_until = max(host.record.parked_until, host.deferred[0][0])
        self._table.reschedule(host, now)

    def _deny(self, host: HostSlot, url: QueuedUrl, decision: RobotsDecision, now: float) -> None:
        self.denied.append(Denied(url, decision))
        if not url.known:
            self._counts.enqueue(host.record, -1)
            if url.kind is _REQUISITE:
                self._counts.enqueue_requisites(host.record, -1)
        self._table.reschedule(host, now)

    def _task_robots(self, host: HostSlot, request: RobotsRequest, now: float) -> FetchTask:
        task = FetchTask(
            id=self._outstanding.next_id,
            kind=FetchKind.ROBOTS,
            url=request.url,
            url_id=b"",
            host=host.name,
            addresses=host.record.addresses[:1] or _NO_ADDRESS,
            depth=0,
            hops=request.hops,
            attempt=0,
            issued_at=now,
            etag=request.etag,
            last_modified=request.last_modified,
            report_sent=self._reports_sending(host),
            needs_links=False,
            limit_s=self._limit_s(host),
        )
        self._send_out(OutstandingTask(task, host, None, request), now)
        return task

    def task_page(self, host: HostSlot, url: QueuedUrl, now: float) -> FetchTask:
        host.out.add(url.id)
        if not url.known and url.kind is not _REQUISITE:
            self._counts.begin_page(host)
        if self._visits.hosts:
            self._visits.shares.count(is_known=bool(url.known))
        limits = self._limits
        # Positional arguments, for speed: called for every page.
        task = FetchTask(
            self._outstanding.next_id,
            url.kind,
            url.url,
            url.id,
            url.host,
            host.record.addresses[:1] or _NO_ADDRESS,
            url.depth,
            url.hops,
            url.attempt,
            now,
            url.etag,
            url.last_modified,
            self._reports_sending(host),
            url.depth < (limits.seed_depths.get(url.seed, limits.max_depth) if url.seed else limits.max_depth),
            None,
            url.seed,
            0.0,
            url.kind is _REQUISITE and is_foreign(url),
            0.0 if url.attempt or url.known else self._limit_s(host),
        )
        self._send_out(OutstandingTask(task, host, url, None), now)
        return task

    def _send_out(self, out: OutstandingTask, now: float) -> None:
        task = out.task
        host = out.host
        self._outstanding.add(out)
        out.is_slow = is_slow(host)
        self._table.bench.occupy(host, task.addresses[0], is_slow=out.is_slow)
        delay_s = host.delay_s()
        host.unsent = task.id if delay_s else 0
        if delay_s:
            host.record.next_at = max(host.record.next_at, now + delay_s)
        if self.contacts is not None:
            self.contacts.begin(host.name, host.record.next_at, now)
        if host.state is _READY and host.in_flight >= host.connections and host.head and not self._limits.has_budgets:
            self._table.bench.move(host, _BUSY)  # the result of `reschedule`, in a tenth of the time
        else:
            self._table.reschedule(host, now)

    def _limit_s(self, host: HostSlot) -> float:
        """Return how long the next request to a host may take, if its connection is lent; 0: as long as any."""
        address = host.record.addresses[0] if host.record.addresses else ""
        return LENT_S if self._table.bench.gates.is_lent(host, address) else 0.0

    def _reports_sending(self, host: HostSlot) -> bool:
        """Return whether the next request must wait until this one is known to be on the wire."""
        return self._limits.has_gate_delay or (host.connections > 1 and host.delay_s() > 0)
