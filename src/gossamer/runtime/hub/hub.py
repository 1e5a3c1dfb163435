"""The one place that schedules and that writes the ledger.

The hub connects the engine to the world: it sends orders to the workers, receives results, looks up names, and
commits everything that happened about once per second (or every 2,000 pages): archives are synced first, then one
ledger transaction is written, in threads, so that the event loop never waits for a disk. Only one commit runs at a
time.

A running crawl is controlled by commands (`runtime/hub/control`). A turn of the hub (`_pump`) applies the commands in
order, then makes orders. A stop (a signal, a limit) makes no new orders, waits at most 5 s for requests in flight,
returns the rest to the queue, and commits.

Every order has an end. If a worker dies, its orders return to the queue, except one whose answer killed workers
before (`deadly_pages`). If it lives and one of its orders has no result within `order_limit_s`, that order ends with
the outcome `internal_error`, and the worker is replaced: whatever it lost, it may lose again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from gossamer.core.politeness.pace import is_refusal
from gossamer.engine.crawl import Crawl
from gossamer.model.errors import GossamerError, as_our_error
from gossamer.model.figures import RunState
from gossamer.model.records import Outcome, Result
from gossamer.runtime.hub import control
from gossamer.runtime.hub.config import CommitTargets, HubLimits
from gossamer.runtime.hub.costly_results import COSTLY_ROBOTS_BYTES, CostlyResults
from gossamer.runtime.hub.observer import HubObserver
from gossamer.runtime.hub.stats import HubStats
from gossamer.runtime.session.pauses import Pauses
from gossamer.runtime.watch import vitals
from gossamer.runtime.watch.crash import Crash
from gossamer.runtime.workers.addresses import AddressAnswer, AddressSource
from gossamer.runtime.workers.pool import WorkerPool, WorkerSource

# Which pages kill the workers that read them?
#
# A page on which our own code raises ends with `internal_error`. One that kills the process (a crash in native code, an
# endless loop that the hub ends, memory that the kernel refuses) can only be recognized by repetition: after
# `MAX_DEATHS` deaths while its answer was being read, it ends with the same outcome. Such deaths are excused: they do
# not count for the limit that ends the crawl, unless pages kill workers all the time: then the workers are broken.
#
# Counts are per run: after a restart a page may kill `MAX_DEATHS` workers again.

MAX_DEATHS = 3
MAX_DEADLY_PAGES = 20  # or one of a hundred pages


class DeadlyPages:
    """Counts deaths by page."""

    def __init__(self) -> None:
        self._deaths: Counter[str] = Counter()
        self._ended = 0

    def is_last_death(self, url: str) -> bool:
        """Record that a worker died while it read a page; return whether the page is not to be tried again."""
        self._deaths[url] += 1
        is_last = self._deaths[url] >= MAX_DEATHS
        if is_last:
            del self._deaths[url]
            self._ended += 1
        return is_last

    def excused_deaths(self, pages: int) -> int:
        """Return how many deaths are explained by pages that ended, in a crawl with so many pages."""
        return MAX_DEATHS * min(self._ended, max(MAX_DEADLY_PAGES, pages // 100))


# Which orders have had no result for too long?

LOOKS_PER_LIMIT = 20


async def end_overdue(pool: WorkerPool, limit_s: float, end: Callable[[Sequence[int], str], None]) -> None:
    """End orders without a result, until cancelled.

    Time is counted in looks: while this process stands still, none is made.
    """
    looks: deque[int] = deque([0], LOOKS_PER_LIMIT + 1)  # the last order that was given out, at each look
    while True:
        await asyncio.sleep(limit_s / LOOKS_PER_LIMIT)
        if len(looks) > LOOKS_PER_LIMIT and (overdue := pool.outstanding_up_to(looks[0])):
            end(overdue, f"no result within {limit_s:g} s")
        looks.append(pool.last_order_id)


COMMIT_INTERVAL_S = 1.0
PAGES_PER_BEAT = 50
COMMIT_PAGES = 2000  # a page takes a quarter less time to commit than in batches of 500
GRACE_S = 5.0
ORDERS_PER_TURN = 32  # then the loop handles its sockets
MAX_WAKEUP_S = 1.0
MAX_WORKER_DEATHS = 20  # without those of pages that killed their workers


class Hub:
    """Runs one crawl on this machine, once."""

    def __init__(
        self,
        limits: HubLimits,
        *,
        crawl: Crawl,
        targets: CommitTargets,
        workers: WorkerSource,
        addresses: AddressSource,
        now: Callable[[], float],
        observer: HubObserver | None = None,
    ) -> None:
        self.limits = limits
        self._crawl = crawl
        self._targets = targets
        self._pool = WorkerPool(workers)
        self._addresses = addresses
        self._now = now
        self._observer = observer or HubObserver()
        self._observe = self._observer.on_result
        self._check_request = self._observer.on_request
        self._memory_window = crawl.frontier.limits.connections
        self._commands: deque[control.Command] = deque()
        self.pauses = Pauses()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_pump_planned = self._is_closing = False
        self._stop_reason = self._end_reason = ""
        self._failure: GossamerError | None = None
        self._started_at = 0.0
        self._pages_at_commit = 0
        self._beat_at = 1 << 62  # pages
        self._wants_commit = asyncio.Event()
        self._drained = asyncio.Event()  # no order is outstanding, and none will be
        self._ended = asyncio.Event()
        self.stats = HubStats()
        self._count_times = self.stats.times.count
        self._deadly = DeadlyPages()
        reader = crawl.frontier.robots_cache.reader()
        self._costly = CostlyResults(lambda result: reader.read_on(result.robots), self._complete_costly)

    @property
    def state(self) -> RunState:
        """What the crawl is doing."""
        if self._is_closing or self._stop_reason:
            return RunState.STOPPING
        return RunState.PAUSED if self.pauses else RunState.RUNNING

    @property
    def is_stopped(self) -> bool:
        """Whether the crawl ends before its time: by a signal, a command, the time limit or a failure."""
        return self._stop_reason not in ("", "over")

    # -- the run ----------------------------------------------------------------------------------

    async def run(self) -> str:
        """Crawl until it is over or stopped; return why. Everything is committed on return."""
        self._loop = asyncio.get_running_loop()
        self._started_at = self._now()
        self._plan_beat()
        for _ in range(self.limits.workers):
            await self._pool.add(self)
        cpu_before_s = vitals.cpu_seconds()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._commit_regularly())
                overdue = group.create_task(end_overdue(self._pool, self.limits.order_limit_s, self._end_overdue))
                self._plan_pump()
                await self._ended.wait()
                await self._wind_down()
                self.stats.crawl_cpu_s = vitals.cpu_seconds() - cpu_before_s
                self._is_closing = True
                self._wants_commit.set()
                overdue.cancel()
        except* OSError as failures:  # of the files of the folder
            self.on_failure(as_our_error(failures.exceptions[0]))
        await self._close()
        if self._failure is not None:
            raise self._failure
        return self._end_reason

    def active_s(self, now: float) -> float:
        """Return the seconds of this run, without those in which the operator had paused it."""
        return now - self._started_at - self.pauses.operator_s(now)

    def _stop(self, reason: str) -> None:
        """Make no more orders; the first reason counts."""
        if not self._stop_reason:
            self._stop_reason = reason
            self._end(reason)

    def _end(self, reason: str) -> None:
        if not self._ended.is_set():
            self._end_reason = reason
            self._ended.set()

    async def _wind_down(self) -> None:
        """Wait for requests in flight, up to a limit; return the rest to the queue."""
        if not self._stop_reason:
            self._stop_reason = "over"
        if self._pool.has_outstanding and self._failure is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), GRACE_S)
        if self._tasks:
            await asyncio.wait(self._tasks)  # a worker that is being started is closed like the others
        await self._costly.finish()
        self._crawl.give_back(self._pool.withdraw(), self._now())

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        reports, failures = await self._pool.close()
        for report in reports:
            self.stats.add_report(report)
        for failure in failures:
            self.on_failure(failure)
        self._save_state()
        if self._failure is None:
            self._targets.events.flush()
            await asyncio.to_thread(self._targets.ledger.seal().write)

    # -- commands ---------------------------------------------------------------------------------

    def submit(self, command: control.Command) -> None:
        """Apply a command in the hub's next turn; at the end only a stop has an effect."""
        if self._is_closing:
            if isinstance(command, control.Stop):
                self._stop_reason = command.reason  # a commit that waits for a store is given up
            return
        self._commands.append(command)
        if self._loop is not None:
            self._plan_pump()

    def _apply(self, command: control.Command, now: float) -> None:
        match command:
            case control.Stop(reason):
                self._stop(reason)
            case control.Pause(by):
                self.pauses.begin(by, now)
            case control.Resume(by):
                self.pauses.end(by, now)
            case control.SetOptOuts(names):
                self._crawl.opt_out(names, now)
            case control.CommitSoon():
                self._wants_commit.set()
            case control.Wake():
                pass  # the turn that applies it makes orders
            case control.ChangeLimits():
                self._change_limits(command, now)
            case control.SetRanks(ranks, computed_at):
                self._crawl.learn_ranks(ranks, now, computed_at)
            case control.SetMemoryWindow(connections):
                self._memory_window = connections
                self._limit_connections(now)

    def _change_limits(self, wanted: control.ChangeLimits, now: float) -> None:
        given = {name: getattr(wanted, name) for name in ("max_time_s", "max_wait_s", "connections")}
        self.limits = replace(self.limits, **{name: each for name, each in given.items() if each is not UNSET})
        if wanted.max_pages is not UNSET:
            self._crawl.frontier.change_limits(now, max_pages=wanted.max_pages)
        self._limit_connections(now)

    def _limit_connections(self, now: float) -> None:
        """Limit concurrent requests by the operator's setting and by memory."""
        connections = max(1, min(self.limits.connections, self._memory_window))
        if connections > 1:  # one connection promises one order of requests
            connections += self._costly.free_slots
        self._crawl.frontier.change_limits(now, connections=connections)

    # -- orders -----------------------------------------------------------------------------------

    def _plan_pump(self) -> None:
        if not self._is_pump_planned:
            self._is_pump_planned = True
            assert self._loop is not None
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """One turn: apply commands, send out the orders that are due, schedule the next turn."""
        self._is_pump_planned = False
        now = self._now()
        while self._commands:
            self._apply(self._commands.popleft(), now)
        if self._stop_reason or self._ended.is_set() or self._pool.is_empty:
            return
        if self.limits.max_time_s is not None and self.active_s(now) >= self.limits.max_time_s:
            self._stop("max_time")
            return
        if self.pauses:
            self._plan_turn(MAX_WAKEUP_S)  # only commands and the time limit matter, not hosts that are due
            return
        orders = self._crawl.orders(now, ORDERS_PER_TURN)
        if (send_until := self.limits.send_until) is not None:
            orders = [replace(order, send_until=send_until(order)) for order in orders]
        self._pool.start(orders)
        for host in self._crawl.take_resolves():
            self._addresses.find(host, self._resolved)
        if len(orders) == ORDERS_PER_TURN:
            self._plan_pump()
            return
        why = self._crawl.why_over(now, self.limits.max_wait_s)
        if why is not None and self._may_end:
            self._end(why)
            return
        wakeup = self._crawl.next_wakeup()
        self._plan_turn(MAX_WAKEUP_S if wakeup is None else min(MAX_WAKEUP_S, max(0.0, wakeup - now)))

    @property
    def _may_end(self) -> bool:
        is_needed = self._observer.is_needed
        is_busy = self._pool.has_outstanding or self._tasks or (is_needed is not None and is_needed())
        return self.limits.ends_by_itself and not is_busy

    def _plan_turn(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        self._timer = self._loop.call_later(wait_s, self._pump)

    def _resolved(self, host: str, answer: AddressAnswer) -> None:
        if self._is_closing:
            return  # a cancelled look-up says nothing about its host
        now = self._now()
        if answer.addresses:
            self._crawl.learn_address(host, answer.addresses, max(answer.expires_at, now + 1.0), now)
        else:
            self._crawl.fail_address(host, answer.outcome, answer.error, now)
        self._plan_pump()

    # -- what the workers report ------------------------------------------------------------------

    def on_result(self, result: Result) -> None:
        """An order has ended."""
        if len(result.robots) > COSTLY_ROBOTS_BYTES:
            self._costly.add(result)
            self._limit_connections(self._now())
        else:
            self._complete(result)

    def _complete_costly(self, result: Result) -> None:
        self._complete(result)
        self._limit_connections(self._now())

    def _complete(self, result: Result) -> None:
        number = self._pool.end(result.order_id)
        if number is None:
            return
        self._check_drained()
        order = self._crawl.order(result.order_id)
        if order is not None and result.requests_sent:
            self._count_times(order, result)
            if self._check_request is not None:
                self._check_request(order.host, result.sent_at)
        self._crawl.complete(result, self._now())
        if self._observe is not None and order is not None:
            self._observe(order, result)
        if result.links_final:
            self._pool.mark_links_final(number, result.order_id)
        pages = self._crawl.totals.pages
        if pages >= self._beat_at:
            self._beat()
        is_window_full = pages - self._pages_at_commit >= COMMIT_PAGES
        if is_window_full or is_refusal(result):  # a refusal is durable before the next request to its host
            self._wants_commit.set()
        self._plan_pump()

    def _plan_beat(self) -> None:
        if self._observer.on_beat is not None:
            pages = self._crawl.totals.pages
            self._beat_at = pages - pages % PAGES_PER_BEAT + PAGES_PER_BEAT

    def _beat(self) -> None:
        self._plan_beat()
        if self._observer.on_beat is not None:
            self._observer.on_beat()

    def _check_drained(self) -> None:
        if self._stop_reason and not self._pool.has_outstanding:
            self._drained.set()

    def on_sent(self, order_id: int, sent_at: float) -> None:
        """A request was sent."""
        self._crawl.mark_sent(order_id, sent_at, self._now())
        self._plan_pump()

    def on_failure(self, error: GossamerError) -> None:
        """The crawl cannot continue: stop, and commit nothing that may be incomplete."""
        if self._failure is None:
            self._failure = error
        self._stop("failed")

    def fail_plugin(self, error: GossamerError) -> None:
        """A plugin that decides about links raised. While the crawl is being opened nothing was committed: raise."""
        if self._loop is None:
            raise error
        self.on_failure(error)

    def on_crash(self, crash: Crash) -> None:
        """A worker's code raised."""
        if self._observer.on_crash is not None:
            self._observer.on_crash(crash)

    def _warn(self, rule: str, text: str) -> None:
        if self._observer.on_warning is not None:
            self._observer.on_warning(rule, text)

    def on_lost(self, number: int, cause: str) -> None:
        """A worker died: finish what it had stored, return the rest to the queue, start another."""
        self.stats.worker_deaths += 1
        reading = self._pool.reading(number)
        for result in self._pool.remove(number):
            self.on_result(result)
        for order_id in reading:
            self._count_death(order_id)
        returned = self._pool.withdraw(number)
        self._crawl.give_back(returned, self._now())
        self._warn("worker_died", f"worker {number} {cause}; orders that return to the queue: {len(returned)}")
        self._check_drained()
        excused = self._deadly.excused_deaths(self._crawl.totals.pages)
        if self.stats.worker_deaths - excused > MAX_WORKER_DEATHS:
            self.on_failure(GossamerError(f"workers died {self.stats.worker_deaths} times; giving up"))
            return
        if not self._stop_reason:
            assert self._loop is not None
            task = self._loop.create_task(self._replace_worker())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _count_death(self, order_id: int) -> None:
        """End an order that killed its worker too often."""
        if order_id not in self._crawl.orders_out():
            return  # its answer was stored before the worker died
        order = self._crawl.order(order_id)
        if self._deadly.is_last_death(order.url):
            what = f"{MAX_DEATHS} workers died while they read"
            self._warn("deadly_page", f"{what} the answer of {order.url}: it becomes a dead letter (internal_error)")
            error = f"{what} its answer"
            self.on_result(Result(order_id, Outcome.INTERNAL_ERROR, error=error, finished_at=self._now()))

    async def _replace_worker(self) -> None:
        try:
            await self._pool.add(self)
        except Exception as error:
            self.on_failure(as_our_error(error))
        self._plan_pump()

    def _end_overdue(self, order_ids: Sequence[int], text: str) -> None:
        """End orders without a result, and the workers that have lost them."""
        overdue: dict[int, list[str]] = {}  # worker number -> URLs
        for each in order_ids:
            order = self._crawl.order(each)
            overdue.setdefault(self._pool.worker_of(each), []).append(order.url if order else str(each))
            self.on_result(Result(each, Outcome.INTERNAL_ERROR, error=text, finished_at=self._now()))
        for number, urls in overdue.items():
            self._warn("order_lost", f"worker {number}: {text}; orders: {len(urls)}, the first for {urls[0]}")
            self._pool.kill(number, f"lost orders ({text})")

    # -- commit -----------------------------------------------------------------------------------

    async def _commit_regularly(self) -> None:
        while not self._is_closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wants_commit.wait(), COMMIT_INTERVAL_S)
            self._wants_commit.clear()
            if self._failure is not None:
                return  # nothing that may be incomplete is committed
            try:
                await self._commit()
            except Exception as error:  # also one that nobody expects: without commits nothing is durable
                self.on_failure(as_our_error(error))
                return

    async def _commit(self) -> None:
        """Sync the archives, then write the ledger: no row may point to missing bytes."""
        assert self._loop is not None
        started = self._loop.time()
        self._pages_at_commit = self._crawl.totals.pages
        self._save_state()
        sealed = self._targets.ledger.seal()
        self._targets.events.flush()
        await self._pool.sync()
        self.stats.flush_time.add(self._loop.time() - started)
        if self._failure is not None:
            return  # a worker failed meanwhile: what it reports as synced may not be
        await asyncio.to_thread(sealed.write)
        self.stats.add_commit(self._loop.time() - started)

    def _save_state(self) -> None:
        """Update the totals before a commit."""
        now = self._now()
        self._crawl.settle(now)
        file, end = self._targets.events.mark()
        self._crawl.state.event_ends[file] = end
        self._crawl.save_state(self.active_s(now), vitals.cpu_seconds(), now)
