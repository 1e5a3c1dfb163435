"""Which URL to fetch next, and when.

Facts go in (URLs found, names resolved, tasks ended), decisions come out. It does no I/O: `take_commands` returns
the I/O to do, and the driver does it before the next call. No method reads a clock: `now` is passed in. Queued
URLs are in the ledger; a host has only the head of its queue in memory, and a host that has nothing to do leaves
memory entirely. `next_task` costs O(log hosts).

The parts: `host_table` (hosts in memory and their state), `workbench` (whose turn is it), `outstanding` (tasks that
are out), `task_end` and `robots/requests` (what follows when one ends), `task_maker` (what a host may be asked),
`queue_removal` (what leaves a queue unfetched), `arrival` (pace), `counts`, and `view` for readers.

A name look-up uses one of the connections, as a fetch does, so that a crawl with one connection makes the same
sequence of requests every time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappush

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Command, Denied, Effects, SwapIn
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.outstanding import Again, Outstanding, OutstandingTask
from gossamer.core.frontier.priority import Ordering
from gossamer.core.frontier.queue_removal import QueueRemoval
from gossamer.core.frontier.task_end import PageEnd, count_fetch, has_answered, set_pace
from gossamer.core.frontier.task_maker import TaskMaker
from gossamer.core.frontier.view import FrontierView
from gossamer.core.frontier.visits import Visits
from gossamer.core.frontier.workbench import HostSlot, HostState, OriginRules
from gossamer.core.links.introductions import Introductions
from gossamer.core.politeness import gates
from gossamer.core.politeness.address_crowds import CROWDED
from gossamer.core.politeness.arrival import MAX_TRANSIT_S, UNKNOWN_DELAY_S, arrived_at, renew_promises
from gossamer.core.politeness.other_crawls import CrawlContacts
from gossamer.core.politeness.pace import Pace, PaceRule
from gossamer.core.politeness.shared_addresses import SharedAddresses
from gossamer.core.robots import answers
from gossamer.core.robots.cache import RobotsCache
from gossamer.core.robots.requests import RobotsRequests, first_wait_s, lacks_https_for, unpark_for
from gossamer.core.url.identity import shard_of
from gossamer.model.records import DomainRecord, FetchTask, HostRecord, Outcome, QueuedUrl, Result

MAX_DENIED = 64  # URLs in a row, then the driver records them: each takes up to 1 ms
MAX_ASIDE_S = 86_400.0
ROOM_EVERY_S = 1.0  # at the limit of pages, with requisites of hosts that are not in memory
MAX_SWAPPED_IN = 100  # hosts at a time
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_READY = HostState.READY
_BLOCKED = HostState.BLOCKED
_BUSY = HostState.BUSY
_WAITING = HostState.WAITING
_WORKER_LOST = Outcome.WORKER_LOST
_IN_LINE = (_READY, _WAITING)
_NOT_AGAIN = Again.NO
_UNREACHED = frozenset({Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT})
_OUT_OF_TIME = frozenset({Outcome.TIMEOUT, Outcome.CONNECT_TIMEOUT})


class Frontier:
    """All hosts and their queues, as far as they are in memory."""

    def __init__(self, limits: FrontierLimits, pace: Pace, ordering: Ordering, token: str) -> None:
        self._limits = self.limits = limits  # `change_limits` changes them
        self.pace = pace
        self.counts = Counts(0, 0, 0)
        self._table = HostTable(limits, ordering)
        self._outstanding = Outstanding()
        self._crowds = self._table.bench.gates.crowds
        self.addresses = SharedAddresses(self._table, limits)
        self.introductions = Introductions(limits, self._table.bench.gates.crowding)
        self._robots = RobotsRequests(self._table, limits, self.counts, pace, token)
        self.visits = Visits(self._table, limits, self.counts)
        self._maker = TaskMaker(
            self._table, self._outstanding, limits, self.counts, cache=self._robots.cache, visits=self.visits
        )
        self._page_end = PageEnd(self._table, limits, self.counts)
        self.view = FrontierView(self._table)
        self.set_rank = self._table.set_rank
        self._removal = QueueRemoval(self._table, self.counts)
        self.block = self._removal.block
        self.forget = self._removal.forget
        self.ask_robots = self._robots.accept
        self.learn_robots = self._robots.learn_elsewhere
        # Read a dozen times per page.
        self._hosts = self._table.hosts
        self._bench = self._table.bench
        self._reschedule = self._table.reschedule
        self._swapped_out_hosts = 0
        self._next_swap_in_at = float("inf")
        self._is_swapping_in = False
        self._room_made_at = float("-inf")
        self._max_wait_s = 0.0
        self._all_asked_at = float("-inf")
        self._draining = self._robots.draining
        self._contacts: CrawlContacts | None = None

    # -- limits and shards ---------------------------------------------------------------------

    def change_limits(self, now: float, **changes: float | None) -> None:
        """Change numbers while the crawl runs. The delays of addresses and domains are fixed for a run."""
        for name, value in changes.items():
            if name not in FrontierLimits.__struct_fields__ or name.endswith("delay_s") or name.startswith("has_"):
                raise ValueError(f"{name}: not a limit that can be changed while a crawl runs")
            setattr(self._limits, name, value)
        self._limits.derive()
        if changes.keys() & {"max_pages_per_host", "max_pages_per_domain"}:
            for host in list(self._hosts.values()):
                if host.state is HostState.BUDGET_EXHAUSTED:
                    self._reschedule(host, now)

    def change_pace(self, rules: Sequence[PaceRule], now: float) -> None:
        """Change delay and connections of hosts while the crawl runs."""
        self.pace.change_rules(rules)
        self._robots.apply_pace(now)

    def continue_crawl(self, now: float, *, was_clean: bool) -> None:
        """Continue a crawl that ran before: any address or domain may have been contacted just now.

        After an unclean stop this applies to every host too, since it is unknown which one was contacted last.
        """
        self._bench.gates.begun_at = now
        if not was_clean:
            self._all_asked_at = now

    def drain(self, shards: Collection[int]) -> None:
        """Make no more tasks for hosts of these shards, which are about to be released."""
        self._draining.update(shards)

    def busy_shards(self) -> set[int]:
        """Return the shards of the hosts that have tasks out."""
        return self._outstanding.shards()

    def release(self, shards: Collection[int], now: float) -> None:
        """Forget the hosts of shards that have another owner from now on. None of their tasks may be out."""
        self._draining.difference_update(shards)
        for host in self._table.of_shards(shards):
            self._robots.give_up(host, Outcome.CONNECT_FAILED, now)
            self._table.release(host)

    def set_foreign(self, shards: Collection[int]) -> None:
        """Set the shards whose hosts other nodes contact; the set may change."""
        self._robots.foreign = shards

    def share_pace(self, contacts: CrawlContacts) -> None:
        """Share the pace of hosts with other crawls of this process, from the beginning of the crawl."""
        self._contacts = self._maker.contacts = contacts

    def leave_others(self) -> None:
        """Record that the crawl is over, for the others of this process."""
        if self._contacts is not None:
            self._contacts.close()

    # -- facts ---------------------------------------------------------------------------------

    def has_host(self, host: str) -> bool:
        return host in self._hosts

    def has_room(self) -> bool:
        """Return whether one more host may be in memory with work to do."""
        return self._table.has_room()

    def record_of(self, host: str) -> HostRecord | None:
        slot = self._hosts.get(host)
        return None if slot is None else slot.record

    def load_host(self, record: HostRecord, domain: DomainRecord, robots: dict[str, OriginRules], now: float) -> None:
        """Load a host into memory, with what the ledger has about it."""
        if record.name in self._hosts:
            return
        host = self._table.enter(record, domain, self.pace.connections(record.name))
        host.origins = robots
        if record.addresses:
            self._crowds.record_tenant(record.addresses[0], record.domain)
        self._robots.apply_rules(host)
        renew_promises(host, self._all_asked_at, now)
        self._robots.hand_over(host)
        self._reschedule(host, now)

    def set_swapped_out(self, hosts: int, next_at: float) -> None:
        """Set how many hosts are swapped out and when the first is due; the ledger counts them."""
        self._swapped_out_hosts = hosts
        self._bench.gates.has_swapped_out = hosts > 0
        self._next_swap_in_at = next_at
        self._is_swapping_in = False

    def add(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Queue URLs that the ledger has admitted, at hosts in memory. Those of others stay in the ledger."""
        touched: dict[str, HostSlot] = {}
        max_head = self._table.head_size()
        counts = self.counts
        for url in urls:
            host = self._hosts.get(url.host)
            if host is None:
                continue
            counts.enqueue(host.record)
            if host.record.parked_until > now and unpark_for(host, url, now):
                touched[url.host] = host
            if host.horizon is not None and not host.is_within(url):
                if host.record.requisites:  # its budget of pages may be used up: it has something to do again
                    touched[url.host] = host
                continue
            head = host.head
            first = head[0] if head else None
            if url.not_before > now:
                host.defer(url)
            else:
                heappush(head, (url.priority, url.seq, url.id, url))
            if len(head) > 2 * max_head:
                host.trim(max_head)
            # A URL that does not become the first of its host does not change the host's turn.
            if first is None or host.head[0] is not first or host.state not in _IN_LINE:
                touched[url.host] = host
        for host in touched.values():
            if host.state is not _BLOCKED and host.in_flight < host.connections:
                self._reschedule(host, now)

    def read_queue(self, host_name: str, urls: Sequence[QueuedUrl], asked: int, now: float) -> None:
        """Accept the answer to `ReadQueue`: URLs in the order of the queue."""
        host = self._hosts[host_name]
        host.is_reading_queue = False
        host.horizon = None if len(urls) < asked else urls[-1].position
        # What was deferred beyond the horizon and is in the head again is also in the ledger.
        in_head = {entry[2] for entry in host.head}
        for url in urls:
            if url.id in host.out or url.id in in_head:
                continue
            if url.not_before > now:
                host.defer(url)
            else:
                host.push(url)
        self._reschedule(host, now)

    @property
    def robots_cache(self) -> RobotsCache:
        """The rules of robots.txt files that are in memory."""
        return self._robots.cache

    def restore_rules(self, host_name: str, origin: str, body: bytes | None, now: float) -> None:
        """Accept the answer to `ReadRules`: the text of robots.txt, or None if there is none."""
        host = self._hosts.get(host_name)
        if host is not None:
            self._robots.restore_rules(host, origin, body, now)

    def learn_address(
        self, host_name: str, addresses: tuple[str, ...], expires_at: float, now: float
    ) -> HostRecord | None:
        """Accept the answer to `Resolve`; return the host if it has to wait because its address has very many."""
        host = self._resolved(host_name, now)
        if host is None:
            return None
        record = host.record
        is_new = not record.addresses and not record.fetches
        if has_answered(record) and record.addresses[:1] and record.addresses[0] in addresses:
            # One that has answered comes first, whatever the order of the answer.
            first = record.addresses[0]
            addresses = (first, *(each for each in addresses if each != first))
        host.failed_addresses = 0
        record.addresses = addresses
        record.addresses_until = expires_at
        is_parked = self._join_address(record, now, is_new=is_new)
        self._reschedule(host, now)
        return record if is_parked else None

    def _join_address(self, record: HostRecord, now: float, *, is_new: bool) -> bool:
        """Record which address a host is at; return whether it has to wait, as a new host at a crowded one."""
        if not record.addresses:
            return False
        address = record.addresses[0]
        if not is_new:
            self._crowds.record_tenant(address, record.domain)
            return False
        contact_at = self._crowds.first_contact_at(address, record.domain, now)
        if contact_at > now:
            record.parked_until = max(record.parked_until, contact_at)
            record.park_reason = f"{CROWDED}: {address} has more than {self._limits.max_hosts_per_address}"
        return contact_at > now

    def fail_address(self, host_name: str, outcome: Outcome, error: str, now: float) -> HostRecord | None:
        """Accept the answer to `Resolve` if there is no usable address; return the host if it is still in memory."""
        host = self._resolved(host_name, now)
        if host is None:
            return None
        record = host.record
        record.fetches += 1
        record.errors += 1
        if outcome is Outcome.DNS_FAILED:
            record.robots_tries += 1
            ban = answers.unreachable(record.robots_tries, first_wait_s(host, self._limits), now)
            record.parked_until = ban.expires_at
            record.park_reason = error
        else:
            self._robots.give_up(host, outcome, now)
            self._removal.kill_queue(host, outcome, error)
        self._reschedule(host, now)
        return record

    def _resolved(self, host_name: str, now: float) -> HostSlot | None:
        self._outstanding.end_lookup(host_name)
        for other in self._bench.end_lookup(host_name):
            self._reschedule(other, now)
        host = self._hosts.get(host_name)
        if host is not None:
            host.is_resolving = False
        return host

    def mark_sent(self, task_id: int, sent_at: float, now: float) -> None:
        """Record that a task's request is on the wire (only for tasks that ask for it)."""
        out = self._outstanding.get(task_id)
        if out is None:
            return
        host = out.host
        if host.unsent == task_id:
            host.unsent = 0
        arrived = max(out.task.issued_at, sent_at) + MAX_TRANSIT_S
        if self._limits.has_gate_delay:
            self._delay_gates(out, arrived)
        out.next_at_before = host.record.next_at
        host.start_delay(arrived)
        out.next_at_held = host.record.next_at
        self._reschedule(host, now)

    def _delay_gates(self, out: OutstandingTask, arrived: float) -> None:
        is_first_report = not out.is_sent
        out.is_sent = True
        self._bench.gates.record_arrival(out.host, out.task.addresses[0], arrived, is_first_report=is_first_report)

    def complete(self, result: Result, now: float) -> Effects:
        """Record that a task has ended; return what follows from it."""
        out = self._outstanding.remove(result.task_id)
        host = out.host
        task = out.task
        record = host.record
        # It is unknown what a worker that died sent last: the request counts as sent now.
        is_lost = result.outcome is _WORKER_LOST
        asked_at = now if is_lost else max(task.issued_at, arrived_at(result, record.best_latency_s))
        if self._limits.has_gate_delay:
            self._delay_gates(out, asked_at)
        freed = self._bench.vacate(host, task.addresses[0], is_slow=out.is_slow)
        if host.unsent == task.id:
            host.unsent = 0
        parked_before = record.parked_until
        again = self._is_made_again(out, result, now)
        is_first_answer = bool(result.status) and not has_answered(record)
        lacks_https = out.robots is not None and not again and lacks_https_for(host, out.robots, result)
        count_fetch(out, result, now, again=again, lacks_https=lacks_https)
        if is_first_answer and (out.url or host.head):
            self.introductions.count_answer(out.url or host.head[0][3])
        effects = Effects(hosts=[record])
        if out.robots is not None:
            self._robots.end(host, out.robots, result, effects, now, again=again)
        elif out.url is not None:
            self._page_end.apply(host, out.url, result, effects, now, again=again)
        if record.parked_until > parked_before and record.parked_until > now:
            effects.parked_s = record.parked_until - now
        set_pace(out, asked_at)
        if out.robots is not None and is_lost:
            # The answer may have arrived: a Crawl-delay in it is lost with the worker.
            record.next_at = max(record.next_at, now + UNKNOWN_DELAY_S)
        if self._contacts is not None:
            self._contacts.end(host.name, asked_at, record.next_at)
        self._reschedule(host, now)
        for other in freed:
            self._reschedule(other, now)
        return effects

    def _is_made_again(self, out: OutstandingTask, result: Result, now: float) -> Again:
        """Record for how long a request had its connection; return whether it is made again."""
        host = out.host
        record = host.record
        if result.outcome is _WORKER_LOST:
            return _NOT_AGAIN
        held_s = now - out.task.issued_at
        if out.task.limit_s and result.outcome in _OUT_OF_TIME and held_s >= out.task.limit_s:
            gates.record_held(host, max(held_s, 2 * gates.SLOW_S))
            return Again.WITH_TIME
        gates.record_held(host, held_s)
        if result.outcome not in _UNREACHED:
            host.failed_addresses = 0
            return _NOT_AGAIN
        if out.task.addresses[0] != record.addresses[0]:
            return Again.ELSEWHERE  # another request has found that before
        host.failed_addresses += 1
        if host.failed_addresses >= len(record.addresses):
            host.failed_addresses = 0
            return _NOT_AGAIN
        record.addresses = (*record.addresses[1:], record.addresses[0])
        self._join_address(record, now, is_new=not has_answered(record))
        return Again.ELSEWHERE

    # -- decisions -------------------------------------------------------------------------------

    def next_task(self, now: float, *, beyond_limits: bool = False) -> FetchTask | None:
        """Return the request to make now, or None. Call `take_commands` before, and again after None.

        With `beyond_limits` only what does not count against the limit on pages: requisites, and known URLs.
        """
        for host in self._bench.end_waits(now):
            self._reschedule(host, now)
        outstanding = self._outstanding
        limits = self._limits
        requisites = self.counts.requisites
        if requisites:
            self._table.recall_watched(now)
        if (requisites or self.visits.hosts) and self._has_beyond_limits(beyond_limits):
            task = self._maker.task_beyond_limits(self._draining, now)
            if task is not None or self._table.commands:
                return task
        if beyond_limits:
            return None
        while outstanding.count < limits.connections and not self.counts.is_page_limit_reached(limits):
            if len(self._maker.denied) >= MAX_DENIED:
                return None
            ready = self._bench.pop_ready(now)
            if ready is None:
                return None
            if self._draining and shard_of(ready.id) in self._draining:
                continue  # it has had its last turn here
            task = self._maker.task_for(ready, now)
            if task is not None:
                return task
            if self._table.commands or self._can_swap_in(now):
                # A host must not lose its turn because its queue is read, or because the room that another has just
                # left is not filled yet: the driver does it, then calls again.
                return None
        return None

    def _has_beyond_limits(self, is_asked: bool) -> bool:
        """Return whether it is the turn of something that page limits do not apply to."""
        is_wanted = self.counts.requisites > 0 if is_asked else self.visits.are_wanted
        return is_wanted and self._outstanding.count < self._limits.connections

    @property
    def in_flight(self) -> int:
        """Requests out and names being looked up."""
        return self._outstanding.count

    def adopt(self, url: QueuedUrl, now: float) -> FetchTask | None:
        """Make a task for a URL whose answer was already received: read back from the archive after a crash."""
        host = self._hosts.get(url.host)
        if host is None or url.id in host.out:
            return None
        host.head = [entry for entry in host.head if entry[2] != url.id]
        heapify(host.head)
        self.visits.remove(host, url.id)
        return self._maker.task_page(host, url, now)

    def next_wakeup(self) -> float | None:
        """Return when `next_task` can next succeed without a new fact, or None."""
        due = self._bench.next_due()
        if self.counts.requisites and (watched := self._table.next_watched()) is not None:
            due = watched if due is None else min(due, watched)
        if not self._swapped_out_hosts:
            return due
        swap_in_at = self._next_swap_in_at
        if not self._table.has_room():
            if not self.counts.requisites or not self.counts.is_page_limit_reached(self._limits):
                return due
            swap_in_at = max(swap_in_at, self._room_made_at + ROOM_EVERY_S)
        return swap_in_at if due is None else min(due, swap_in_at)

    def take_commands(self, now: float, *, swaps_in: bool = True) -> list[Command]:
        """Return the I/O that the driver must do now; `swaps_in`: swapped-out hosts that are due may be among it."""
        if self.counts.requisites and self._swapped_out_hosts and self._next_swap_in_at <= now:
            self._make_room_for_requisites(now)
        if swaps_in and self._can_swap_in(now):
            self._is_swapping_in = True
            self._table.commands.append(SwapIn(min(self._table.room(), MAX_SWAPPED_IN)))
        commands = self._table.commands
        self._table.commands = []
        return commands

    def _make_room_for_requisites(self, now: float) -> None:
        """At the limit of pages, let hosts that have only pages leave memory, so that those with requisites can enter.

        They stay out for longer than the crawl waits, so that they are no reason to go on; and with a limit that is
        raised meanwhile, they come back then.
        """
        is_full = not self._table.has_room() and now >= self._room_made_at + ROOM_EVERY_S
        if not is_full or not self.counts.is_page_limit_reached(self._limits):
            return
        self._room_made_at = now
        if self.counts.requisites > self._table.count_requisites():
            self._table.set_pages_aside(now + min(MAX_ASIDE_S, self._max_wait_s + 1.0))

    def _can_swap_in(self, now: float) -> bool:
        is_due = self._swapped_out_hosts and self._next_swap_in_at <= now and not self._is_swapping_in
        return bool(is_due) and self._table.has_room()

    @property
    def has_commands(self) -> bool:
        """Whether there is I/O to do."""
        return bool(self._table.commands)

    @property
    def has_denied(self) -> bool:
        """Whether URLs were found to be forbidden by robots.txt."""
        return bool(self._maker.denied)

    def take_denied(self) -> list[Denied]:
        """Return the URLs that were found to be forbidden by robots.txt."""
        return self._maker.take_denied()

    def has_requisites_within(self, until: float) -> bool:
        """Return whether a requisite can be fetched before a time. One pass over all hosts if any is queued."""
        if not (queued := self.counts.requisites):
            return False
        if self._swapped_out_hosts and self._next_swap_in_at <= until and queued > self._table.count_requisites():
            return True
        return self._table.has_requisites_within(until)

    def why_over(self, now: float, max_wait_s: float) -> str | None:
        """Return why nothing more can be done ("max_pages", "exhausted", "budgets", "parked"), or None."""
        self._max_wait_s = max_wait_s
        if self.in_flight or self._table.commands or self._maker.denied:
            return None
        if self.counts.is_page_limit_reached(self._limits):
            return None if self.has_requisites_within(now + max_wait_s) else "max_pages"
        return self.why_waiting(now, max_wait_s)

    def why_waiting(self, now: float, max_wait_s: float) -> str | None:
        """Return why nothing that is queued is done within a time, with any limit of pages; None if something is."""
        # A host that is busy now waits for robots.txt at another host, which is parked.
        if self._bench.count[_READY] or self._bench.count[_BLOCKED]:
            return None
        wakeup = self.next_wakeup()
        if wakeup is None:
            return "budgets" if self.counts.queued else "exhausted"
        return "parked" if wakeup > now + max_wait_s else None

    def is_at_rest(self, now: float, for_s: float) -> bool:
        """Return whether no host can be contacted within a time, and no answer is awaited."""
        is_busy = self.in_flight or self._table.commands or self._bench.count[_BUSY]
        return not is_busy and self.why_waiting(now, for_s) is not None
