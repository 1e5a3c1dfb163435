"""One crawl: facts go in, tasks come out, the ledger and the events follow.

This is the whole crawl except the network: no sockets, no files but the ledger's, no clock. The hub drives it in
real time, the simulator in virtual time. What the driver calls:

    crawl.tasks(now)       requests to make now; call after every fact and at `next_wakeup`
    crawl.take_resolves()  names to look up; answer with `learn_address` or `fail_address`
    crawl.complete(...)    a request has ended

Everything that follows from a result is in the ledger's pending changes before `complete` returns, except what
`save_state` adds before a commit; so every commit is consistent. `results` says what follows; `admission` is the way
into the queue, `removal` the way out of it; `shards` takes and releases shards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.catalog import MAX_TEXT_CHARS, queued_from, with_short_texts
from gossamer.core.links.intake import Intake
from gossamer.core.revisit.shares import FetchShares
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.first_pass import FirstPassProgress
from gossamer.engine.admission.link_backlog import LinkBacklog
from gossamer.engine.admission.link_following import judged_redirect
from gossamer.engine.admission.link_review import LinkReview
from gossamer.engine.admission.removal import Removal
from gossamer.engine.admission.rereading import Rereading
from gossamer.engine.admission.revival import Revival
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.admission.seed_rules import SeedRules
from gossamer.engine.admission.seeding import Seeding
from gossamer.engine.cluster.link_messages import NodeMessage
from gossamer.engine.cluster.node_messages import NodeMessages
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.frontier_commands import FrontierCommands
from gossamer.engine.results.conditional import with_stored_copy
from gossamer.engine.results.results import Results
from gossamer.engine.revisit.due_urls import DueUrls, is_due_again, visit_of
from gossamer.engine.revisit.notices import NoticeCounts, NoticeEffects
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.engine.rules import CrawlRules
from gossamer.engine.shards.domain_ranks import DomainRanks
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.engine.shards.shard import Shards
from gossamer.model.figures import Totals
from gossamer.model.records import (
    Completed,
    FetchTask,
    Link,
    Outcome,
    QueuedUrl,
    Result,
    RobotsRecord,
    UrlId,
    UrlRecord,
    UrlState,
)
from gossamer.model.state import CrawlState, OperatorRequest, SeedRecord

if TYPE_CHECKING:
    from gossamer.ports import Ledger

# A turn ends when it has done this much besides tasks, so that it does not hold the event loop: slices of robots.txt
# files that are read again, hosts that are loaded, and URLs that robots.txt forbids (50 µs each, 1 ms at most).
MAX_TURN_WORK = 256_000
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_REDIRECT = Outcome.REDIRECT
_WORKER_LOST = Outcome.WORKER_LOST


class Crawl:
    """The state of one crawl."""

    def __init__(
        self, rules: CrawlRules, frontier: Frontier, intake: Intake, ledger: Ledger, emitter: EventEmitter
    ) -> None:
        self._rules = rules
        self.frontier = frontier
        frontier.set_foreign(intake.foreign)
        self.link_review = LinkReview(intake)
        self._ledger = ledger
        self._events = emitter
        self.state = state = CrawlState()
        self._hosts = hosts = HostDirectory(frontier, ledger, DomainRanks(frontier, ledger, rules.host_ranks, state))
        self.learn_ranks = hosts.learn_ranks

        # What gets into the queue, and what has to wait for that
        self.seeds = SeedRules(intake, frontier.limits, ledger)
        self.scope = ScopeRecord(intake.scope, self.seeds, state)
        self._admission = admission = Admission(
            rules, frontier, intake, ledger, hosts=hosts, emitter=emitter, state=state
        )
        self._holding = holding = admission.holding
        self._introduced = admission.introduced
        self._earned = frontier.introductions.earned
        self._backlog = LinkBacklog(ledger, admission, emitter, state)
        removal = Removal(frontier, ledger, hosts=hosts, scope=self.scope, emitter=emitter, state=state)
        self.opt_out = removal.opt_out
        self.first_pass = FirstPassProgress(intake, ledger, admission, holding, continues=rules.continues_after_target)
        self.revisits = Revisits(rules.revisits, DueUrls(frontier, ledger, hosts), ledger)
        if rules.revisits is not None and self.revisits.is_on:
            admission.revisits = self.revisits
            frontier.visits.shares = FetchShares(rules.revisits.known_share)

        self._results = results = Results(
            rules,
            frontier,
            intake,
            ledger,
            admission=admission,
            backlog=self._backlog,
            scope=self.scope,
            removal=removal,
            first_pass=self.first_pass,
            revisits=self.revisits,
            emitter=emitter,
            state=state,
        )
        self._evict = results.eviction.evict_excess
        self._commands = FrontierCommands(
            frontier,
            ledger,
            hosts=hosts,
            removal=removal,
            first_pass=self.first_pass,
            revisits=self.revisits,
            results=results,
        )

        # What else changes a crawl
        self.rereading = Rereading(
            ledger, frontier.limits, state, admission=admission, results=results, emitter=emitter
        )
        self._seeding = Seeding(self.seeds, self.scope, admission, self.rereading)
        self._notices = NoticeEffects(intake, ledger, admission, self.revisits)
        self._revival = Revival(ledger, hosts, holding, emitter)
        self.messages = NodeMessages(
            frontier, ledger, hosts=hosts, admission=admission, scope=self.scope, results=results
        )

        memories = (
            results.evidence,
            results.spam,
            self.first_pass,
            holding,
            self._backlog,
            self._introduced,
            self.revisits,
        )
        self.shards = Shards(ledger, frontier, intake, hosts=hosts, admission=admission, memories=memories)
        self._tasks: dict[int, FetchTask] = {}
        self._owes_slice = False  # of links that wait: the next turn offers one
        self._seconds_before = self._cpu_seconds_before = 0.0  # of earlier runs
        self.finish_message: Callable[[float], None] = lambda _: (
            None
        )  # finishes what a commit contains whole or not at all
        self._is_begun: bool | None = None  # whether the ledger contains a crawl; None: not read yet

    @property
    def totals(self) -> Totals:
        """Counts since the crawl began, over all its runs."""
        return self.state.totals

    # -- starting ---------------------------------------------------------------------------------

    def load_state(self) -> bool:
        """Read the crawl's state from the ledger; return whether the previous run, if any, ended cleanly."""
        stored = self._ledger.crawl_state()
        self._is_begun = stored is not None
        if stored is None:
            return True
        for name in CrawlState.__struct_fields__:
            setattr(self.state, name, getattr(stored, name))
        return not stored.is_running

    def restore(self, now: float, *, was_clean: bool) -> None:
        """Continue the crawl that is in the ledger: take all shards."""
        if self._is_begun is None:
            self.load_state()
        totals = self.totals
        if self._is_begun or not was_clean:
            self.frontier.continue_crawl(now, was_clean=was_clean)
        self._seconds_before = totals.seconds
        self._cpu_seconds_before = totals.cpu_seconds
        self.frontier.counts.pages = totals.new_pages
        self.seeds.load(None)
        self.scope.restore()
        self._results.copies.restore()
        self.shards.take(None, self.state, now)
        self.rereading.begin(self.first_pass.current, now, continues=self._rules.continues_after_target)

    def begin_as_node(self, now: float) -> None:
        """Begin without any shard, as a node of a cluster: `take` follows for each that is granted."""
        self.frontier.continue_crawl(now, was_clean=False)
        self.frontier.addresses.begin()
        self._results.copies.restore()
        self._admission.disown(range(SHARD_COUNT))

    def take(self, shard: int, now: float, requests: Sequence[OperatorRequest] = ()) -> None:
        """Become the owner of a shard. Its hosts count as contacted now; what was requested of it is queued again."""
        self.frontier.continue_crawl(now, was_clean=False)
        self.seeds.load(shard)
        counts = self.frontier.counts
        self.shards.take(
            shard, self.state, now, lambda: self._revival.fulfil(requests, shard, self.totals, counts, now)
        )

    def take_empty(self, shards: Iterable[int], now: float) -> None:
        """Become the owner of shards of which the ledger has no rows; their hosts may have been contacted, too."""
        self.frontier.continue_crawl(now, was_clean=False)
        for shard in shards:
            self._admission.own(shard, now)

    def release(self, shards: Collection[int], now: float) -> None:
        """Give up shards: their tasks go back to the queue. The caller commits what is pending."""
        self.give_back([task.id for task in self._tasks.values() if shard_of(host_id(task.host)) in shards], now)
        self._commands.run(now)
        self.shards.release(shards, now)

    def restore_refusals(self, quiet_until: Mapping[str, float]) -> None:
        """Park hosts whose refusals were not committed because the process was killed. Call before `restore`."""
        for name, until in quiet_until.items():
            record = self._ledger.host(name)
            if record is not None and record.parked_until < until:
                record.parked_until = until
                record.park_reason = "Retry-After"
                self._ledger.put_host(record)

    def lift_bans(self, host: str, outcome: Outcome) -> None:
        """Request robots.txt of origins again that could not be reached, for this reason. Call before `restore`."""
        self._hosts.lift_bans(host, outcome)

    def retry_dead(self, is_wanted: Callable[[UrlRecord], bool], now: float) -> int:
        """Queue dead letters again, as if they had never failed; return how many. Call before `restore`."""
        return self._revival.retry(is_wanted, self.totals, now)

    def add_seeds(
        self,
        links: Sequence[Link],
        now: float,
        *,
        https_first: frozenset[UrlId] = frozenset(),
        rules: Mapping[UrlId, SeedRecord] = MappingProxyType({}),
        meta: bytes = b"",
    ) -> int:
        """Queue seeds, some of which have rules of their own; return how many were new. Call after `restore`."""
        added = self._seeding.add(links, now, https_first, rules, meta)
        self._evict(now)
        return added

    def join_scope(self, links: Iterable[Link]) -> None:
        """Extend the scope by URLs that were in it when they were fetched."""
        for link in links:
            self.scope.join(link, 0)

    def accept_notice(self, links: Sequence[Link], now: float) -> NoticeCounts:
        """Fetch pages again that are said to have changed, and new ones if the rules allow it. Call after `restore`."""
        counts = self._notices.apply(links, now)
        self._commands.run(now)
        self._evict(now)
        return counts

    def receive(self, message: NodeMessage, now: float) -> None:
        """Offer links that other nodes found, and exchange robots.txt files with them."""
        self.messages.receive(message, now)
        self._commands.run(now)
        self._evict(now)

    # -- tasks -----------------------------------------------------------------------------------

    def tasks(self, now: float, max_tasks: int = 1 << 30) -> list[FetchTask]:
        """Return the requests to make now.

        Links that were held back, and those of long pages, are offered in slices: one for every request that has ended,
        and one if there is nothing else to do. How often this is called meanwhile must not matter, since that depends
        on time.
        """
        tasks: list[FetchTask] = []
        frontier = self.frontier
        commands = self._commands
        commands.work = 0
        commands.run(now, MAX_TURN_WORK)
        frontier.counts.domains_left = self.first_pass.domains_left
        if self.revisits.is_on:
            self.revisits.take_turn(now)
        if self._owes_slice:
            self._owes_slice = False
            self._offer_slice(now)
        if self._backlog.is_full:
            commands.work = MAX_TURN_WORK  # no tasks in this turn
            self._backlog.offer_batch(now)
        while len(tasks) < max_tasks and commands.work < MAX_TURN_WORK:
            task = frontier.next_task(now, beyond_limits=self.first_pass.is_target_reached)
            if frontier.has_denied:
                commands.record_denied(now)
            if frontier.visits.postponed:
                commands.record_postponed(now)
            if task is not None:
                if task.etag or task.last_modified:
                    task = with_stored_copy(task, self._ledger)
                self._tasks[task.id] = task
                tasks.append(task)
                if frontier.has_commands:
                    commands.run(now, MAX_TURN_WORK)
            elif not commands.run(now, MAX_TURN_WORK):
                self._owes_slice = self._can_offer_slice
                break
        return tasks

    @property
    def _is_cut_short(self) -> bool:
        """Whether the last turn ended because it had done enough, before it had made all tasks."""
        return self._commands.work >= MAX_TURN_WORK

    @property
    def _has_slices(self) -> bool:
        return bool(self._holding.due or self._backlog.keys or self._earned)  # no calls: several times per page

    @property
    def _can_offer_slice(self) -> bool:
        return self._has_slices and self.frontier.in_flight < self.frontier.limits.connections

    def _offer_slice(self, now: float) -> None:
        if not self._backlog.is_empty:
            self._backlog.offer_batch(now)
        elif self._introduced.is_due:
            self._admission.offer_introduced(now)
        else:
            self._admission.offer_held(now)
        self._evict(now)

    def take_resolves(self) -> list[str]:
        """Return the host names to look up."""
        names = self._commands.resolves
        self._commands.resolves = []
        return names

    def next_wakeup(self) -> float | None:
        """Return when `tasks` can next return something without a new fact."""
        if self.first_pass.is_target_reached and not self.frontier.counts.requisites:
            return None
        if self._owes_slice or self._is_cut_short:
            return 0.0
        wakeup = self.frontier.next_wakeup()
        due_at = self.revisits.next_turn_at
        return due_at if wakeup is None else wakeup if due_at is None else min(wakeup, due_at)

    def why_over(self, now: float, max_wait_s: float) -> str | None:
        if self.first_pass.is_target_reached:
            is_busy = self.frontier.in_flight or self.frontier.has_requisites_within(now + max_wait_s)
            return None if is_busy else "target_domains"
        if self.revisits.next_turn_at is not None:
            return None  # it goes on
        is_more_to_come = self._has_slices or self.rereading.is_pending or self._is_cut_short
        is_full = self.frontier.counts.is_page_limit_reached(self.frontier.limits)
        if is_more_to_come and (self.rereading.finds_requisites or not is_full):
            return None
        over = self.frontier.why_over(now, max_wait_s)
        if over not in (None, "max_pages") and (self._introduced.make_due() or self._results.verdicts.grant()):
            self._owes_slice = True
            over = None
        return self.end_of_queue if over == "exhausted" else over

    @property
    def end_of_queue(self) -> str:
        """Why the crawl is over if nothing is queued: some URLs may be held back."""
        return "held" if self._holding.is_incomplete else "exhausted"

    # -- facts ------------------------------------------------------------------------------------

    def learn_address(self, host: str, addresses: tuple[str, ...], expires_at: float, now: float) -> None:
        parked = self.frontier.learn_address(host, addresses, expires_at, now)
        if self.shards.rehoming is not None:
            self.shards.rehoming.decide(host, addresses, now)
        if parked is not None:
            self.totals.crowded_hosts += 1
            self._ledger.put_host(parked)
            self._events.parked(parked, parked.parked_until - now, now)

    def fail_address(self, host: str, outcome: Outcome, error: str, now: float) -> None:
        """Record that a name has no usable address: a fetch that ended without an answer."""
        record = self.frontier.fail_address(host, outcome, error, now)
        if record is None:
            return  # its shard was released meanwhile: the answer is for another owner
        self.totals.count_failed_lookup(outcome)
        self._holding.count_contact(record)
        self._ledger.put_host(record)
        self._owes_slice = self._has_slices
        if record.parked_until > now:
            self._events.parked(record, record.parked_until - now, now)
        self._commands.run(now)  # a queue that is killed must not be joined by what is found next
        self._events.lookup_failed(host, outcome, error, now)

    def mark_sent(self, task_id: int, sent_at: float, now: float) -> None:
        self.frontier.mark_sent(task_id, sent_at, now)

    def complete(self, result: Result, now: float) -> Completed | None:
        """Record that a request has ended, and everything that follows from it; None if its task is not outstanding.

        A result is not changed: what is found out about the page here is in the one that is returned.
        """
        task = self._tasks.pop(result.task_id, None)
        if task is None:
            return None
        own_chars = len(result.title) + len(result.error) + len(result.content_type) + len(result.last_modified)
        if own_chars > MAX_TEXT_CHARS:
            result = with_short_texts(result)
        if result.outcome is _REDIRECT:
            result = judged_redirect(task, result, self._rules.max_redirects)
        effects = self.frontier.complete(result, now)
        self._owes_slice = self._has_slices
        return self._results.record(task, result, effects, now)

    def warn_of_left_out(self, now: float) -> None:
        """Emit what is held back by which rule, and what was dropped: at the end of a run."""
        self._holding.warn_of_left_out(now)

    def recall_robots(self, record: RobotsRecord, now: float) -> None:
        """Offer the sitemaps of a robots.txt that was read back from the archive."""
        self._results.robots.recall(record, now)

    # -- tasks that are out ----------------------------------------------------------------------

    def adopt(self, link: Link, now: float) -> FetchTask | None:
        """Return a task for a queued URL whose answer was read back from the archive; None if it is not queued."""
        record = self._ledger.look_up(link.id)
        is_due = record is not None and is_due_again(record, now)
        if record is None or (record.state is not UrlState.QUEUED and not is_due):
            return None
        if not self.frontier.has_host(link.host):
            self._hosts.load(self._hosts.record(link.host, now), now)
        url = visit_of(link.id, record) if is_due else queued_from(link.id, link.host, record)
        task = self.frontier.adopt(url, now)
        if task is not None:
            if task.etag or task.last_modified:
                task = replace(task, stored=with_stored_copy(task, self._ledger).stored)
            self._tasks[task.id] = task
        return task

    def queue_again(self, url: QueuedUrl, now: float) -> None:
        self._admission.requeue(url, now)

    def task(self, task_id: int) -> FetchTask | None:
        """Return a task; None if it is not outstanding: it has ended, or its shard was released."""
        return self._tasks.get(task_id)

    def task_for(self, link: Link) -> FetchTask | None:
        """Return the task that is out for a URL; that of a robots.txt has no id."""
        ids = (link.id, b"")
        return next((each for each in self._tasks.values() if each.url == link.url and each.url_id in ids), None)

    def tasks_out(self) -> list[int]:
        return list(self._tasks)

    def give_back(self, task_ids: Sequence[int], now: float) -> None:
        """Return tasks that will not be finished to the queue."""
        for task_id in task_ids:
            self.complete(Result(task_id, _WORKER_LOST), now)

    # -- state ------------------------------------------------------------------------------------

    def save_state(self, seconds: float, cpu_seconds: float, now: float) -> None:
        """Add the crawl's state to the pending changes before a commit; the times are those of this run."""
        self.totals.seconds = self._seconds_before + seconds
        self.totals.cpu_seconds = self._cpu_seconds_before + cpu_seconds
        self.state.saved_at = now
        self.shards.save()
        self._ledger.put_crawl_state(self.state)
