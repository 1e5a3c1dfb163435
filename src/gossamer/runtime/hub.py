"""The one place that schedules and that writes the ledger.

The hub joins the engine to the world: orders go to the workers, results come back, names
are looked up, and about once a second (or every 2,000 pages) everything that happened is
committed: archives synced first, then one ledger transaction, in threads, so that the
event loop never waits for a disk. Only one commit is under way at a time.

A stop (a signal, a limit) makes no new orders, lets requests run for 5 s at most, gives
the rest back to the queue, and commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct

from gossamer.core.politeness import is_refusal
from gossamer.engine.crawl import Crawl
from gossamer.errors import GossamerError, as_our_error
from gossamer.fetch.dns import Resolution, Resolver
from gossamer.fetch.guard import AddressPolicy
from gossamer.figures import RunState
from gossamer.ports import CommitLog
from gossamer.records import Order, Outcome, Result
from gossamer.runtime import vitals
from gossamer.runtime.channel import Channel, OpenChannel
from gossamer.runtime.opt_out import OptOutList
from gossamer.telemetry.event_log import EventLog

COMMIT_INTERVAL_S = 1.0
COMMIT_PAGES = 2000  # a page takes a quarter less time to commit than in lots of 500
GRACE_S = 5.0
ORDERS_PER_TURN = 32  # then the loop looks after its sockets
MAX_WORKER_DEATHS = 20
_SMALL_LOAD = 16  # orders that are too few to be moved to another worker

Rescue = Callable[[int], Iterable[Result]]  # what a dead worker had archived but not reported


class HubRules(Struct, frozen=True):
    """Numbers of the hub."""

    workers: int = 1
    connections: int = 256
    max_time_s: float | None = None
    max_wait_s: float = 300.0


@dataclass(slots=True)
class HubStats:
    """What the hub measured of itself."""

    commits: int = 0
    commit_s: list[float] = field(default_factory=list)
    worker_deaths: int = 0
    worker_cpu_s: float = 0.0
    crawl_cpu_s: float = 0.0  # of this process, from the first order to the last result
    worker_private_bytes: int = 0
    stall_p99_ms: float = 0.0  # of the process whose loop was held longest
    core_wait_p99_ms: float = 0.0  # of the process that waited longest


class Hub:
    """Runs one crawl on this machine."""

    def __init__(
        self,
        rules: HubRules,
        *,
        crawl: Crawl,
        ledger: CommitLog,
        resolver: Resolver,
        policy: AddressPolicy,
        events: EventLog,
        open_channel: OpenChannel,
        rescue: Rescue,
        now: Callable[[], float],
    ) -> None:
        self._rules = rules
        self._crawl = crawl
        self._ledger = ledger
        self._resolver = resolver
        self._policy = policy
        self._events = events
        self._open_channel = open_channel
        self._rescue = rescue
        self._now = now
        self._channels: dict[int, Channel] = {}
        self._numbers: list[int] = []  # of the channels, sorted
        self._given: dict[int, int] = {}  # order -> worker
        self._load: dict[int, int] = {}  # worker -> orders out
        self._next_worker = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_pump_planned = False
        self._stop_reason = ""
        self._failure: GossamerError | None = None
        self._pages_at_commit = 0
        self._wants_commit = asyncio.Event()
        self._drained = asyncio.Event()  # nothing is out any more, and nothing will be
        self._over: asyncio.Future[str] | None = None
        self.probe = vitals.StallProbe()
        self.stats = HubStats()
        self._is_closing = False
        self.opt_outs: OptOutList | None = None
        self.watch: Callable[[Order, Result], None] | None = None  # sees every result when it is in the books
        self._is_held = False

    @property
    def state(self) -> RunState:
        """What the crawl is doing."""
        if self._is_closing or self._stop_reason:
            return RunState.STOPPING
        return RunState.PAUSED if self._is_held else RunState.RUNNING

    # -- the run ----------------------------------------------------------------------------------

    async def run(self) -> str:
        """Crawl until it is over or stopped; return why. Everything is committed on return."""
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._over = loop.create_future()
        if self._stop_reason:
            self._end(self._stop_reason)
        self._started_at = self._now()
        self.probe.start()
        for _ in range(self._rules.workers):
            await self._add_worker()
        cpu_before_s = vitals.cpu_seconds()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._commit_regularly())
            self._plan_pump()
            why = await self._over
            await self._wind_down()
            self.stats.crawl_cpu_s = vitals.cpu_seconds() - cpu_before_s
            self._is_closing = True
            self._wants_commit.set()
        await self._close()
        if self._failure is not None:
            raise self._failure
        return why

    def stop(self, reason: str) -> None:
        """Stop cleanly; the first reason counts."""
        if not self._stop_reason:
            self._stop_reason = reason
            self._end(reason)

    def hold(self, is_held: bool) -> None:
        """Hand out no more orders, or go on with it: whoever takes the pages cannot keep up, or can again."""
        self._is_held = is_held
        if not is_held:
            self._plan_pump()

    def _end(self, reason: str) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(reason)

    async def _add_worker(self) -> None:
        number = self._next_worker
        self._next_worker += 1
        channel = self._open_channel(number, self)
        await channel.open()
        self._load[number] = 0
        self._channels[number] = channel  # only now: orders must not overtake its first message
        self._numbers = sorted(self._channels)

    async def _wind_down(self) -> None:
        """Let requests under way end, for a while; give the rest back to the queue."""
        if not self._stop_reason:
            self._stop_reason = "over"
        if self._given and self._failure is None:
            try:
                await asyncio.wait_for(self._drained.wait(), GRACE_S)
            except TimeoutError:
                pass
        for task in self._tasks:
            task.cancel()
        self._crawl.give_back(list(self._given), self._now())
        self._given.clear()

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for channel in self._channels.values():
            try:
                report = await channel.close()
            except (GossamerError, OSError) as error:
                self.on_failure(as_our_error(error))
                continue
            if report is not None:
                self.stats.worker_cpu_s += report.cpu_seconds
                self.stats.worker_private_bytes += report.peak_private_bytes
                self.stats.stall_p99_ms = max(self.stats.stall_p99_ms, report.stall_p99_ms)
                self.stats.core_wait_p99_ms = max(self.stats.core_wait_p99_ms, report.core_wait_p99_ms)
        self.save_state()
        if self._failure is None:
            self._events.flush()
            await asyncio.to_thread(self._ledger.commit)
        self.probe.stop()
        self.probe.note_memory()
        self.stats.stall_p99_ms = max(self.stats.stall_p99_ms, self.probe.stall_p99_ms())
        self.stats.core_wait_p99_ms = max(self.stats.core_wait_p99_ms, self.probe.core_wait_p99_ms())

    # -- orders -----------------------------------------------------------------------------------

    def _plan_pump(self) -> None:
        if not self._is_pump_planned:
            self._is_pump_planned = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Hand out what may be fetched now; plan the next time to ask."""
        self._is_pump_planned = False
        if self._stop_reason or self._over is None or self._over.done() or not self._channels:
            return
        now = self._now()
        if self._rules.max_time_s is not None and now - self._started_at >= self._rules.max_time_s:
            self.stop("max_time")
            return
        self._look_for_opt_outs(now)
        if self._is_held:
            self._plan_wakeup(now)
            return
        orders = self._crawl.orders(now, ORDERS_PER_TURN)
        self._hand_out(orders)
        for host in self._crawl.take_resolves():
            self._resolve(host)
        if len(orders) == ORDERS_PER_TURN:
            self._plan_pump()
            return
        why = self._crawl.why_over(now, self._rules.max_wait_s)
        if why is not None and not self._given and not self._tasks:
            self._end(why)
            return
        self._plan_wakeup(now)

    def _look_for_opt_outs(self, now: float) -> None:
        names = self.opt_outs.changed(now) if self.opt_outs is not None else None
        if names is not None:
            self._crawl.opt_out(names, now)

    def _plan_wakeup(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wakeup = self._crawl.next_wakeup()
        wait_s = 1.0 if wakeup is None else min(1.0, max(0.0, wakeup - now))
        self._timer = self._loop.call_later(wait_s, self._pump)

    def _hand_out(self, orders: list[Order]) -> None:
        batches: dict[int, list[Order]] = {}
        for order in orders:
            number = self._worker_for(order)
            self._given[order.id] = number
            self._load[number] += 1
            batches.setdefault(number, []).append(order)
        for number, batch in batches.items():
            self._channels[number].start(batch)

    def _worker_for(self, order: Order) -> int:
        """Return a host's usual worker, whose connections are warm, unless it has much more to do than another."""
        numbers = self._numbers
        if len(numbers) == 1:
            return numbers[0]
        usual = numbers[hash(order.host) % len(numbers)]
        load = self._load
        if load[usual] <= _SMALL_LOAD:
            return usual
        idlest = min(numbers, key=load.__getitem__)
        return usual if load[usual] <= 2 * load[idlest] + _SMALL_LOAD else idlest

    # -- what the workers say ---------------------------------------------------------------------

    def on_result(self, result: Result) -> None:
        """An order has ended."""
        number = self._given.pop(result.order_id, None)
        if number is None:
            return
        self._load[number] -= 1
        if not self._given and self._stop_reason:
            self._drained.set()
        order = self._crawl.order(result.order_id) if self.watch is not None else None
        self._crawl.complete(result, self._now())
        if self.watch is not None and order is not None:
            self.watch(order, result)
        if result.links_final and number in self._channels:
            self._channels[number].mark_links_final(result.order_id)
        is_window_full = self._crawl.totals.pages - self._pages_at_commit >= COMMIT_PAGES
        if is_window_full or is_refusal(result):  # a refusal outlives us before its host is asked again
            self._wants_commit.set()
        self._plan_pump()

    def on_sent(self, order_id: int, sent_at: float) -> None:
        """A request is on the wire."""
        self._crawl.mark_sent(order_id, sent_at, self._now())
        self._plan_pump()

    def on_failure(self, error: GossamerError) -> None:
        """A worker cannot go on: stop, keep what is whole."""
        if self._failure is None:
            self._failure = error
        self.stop("failed")

    def on_lost(self, number: int) -> None:
        """A worker died: finish what it had stored, give back the rest, start another."""
        self.stats.worker_deaths += 1
        self._channels.pop(number, None)
        self._numbers = sorted(self._channels)
        for result in self._rescue(number):
            self.on_result(result)
        lost = [order_id for order_id, worker in self._given.items() if worker == number]
        for order_id in lost:
            del self._given[order_id]
        self._crawl.give_back(lost, self._now())
        if self.stats.worker_deaths > MAX_WORKER_DEATHS:
            self.on_failure(GossamerError(f"workers died {self.stats.worker_deaths} times; giving up"))
            return
        if not self._stop_reason:
            task = self._loop.create_task(self._replace_worker())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _replace_worker(self) -> None:
        await self._add_worker()
        self._plan_pump()

    # -- names ------------------------------------------------------------------------------------

    def _resolve(self, host: str) -> None:
        known = self._resolver.cached(host)
        if known is not None:
            self._resolved(host, known)
        else:
            self._resolver.resolve_soon(host, partial(self._resolved, host))

    def _resolved(self, host: str, resolution: Resolution) -> None:
        if self._is_closing:
            return  # a look-up that was given up says nothing about its host
        now = self._now()
        if not resolution.addresses:
            self._crawl.fail_address(host, resolution.outcome, resolution.error, now)
        else:
            refusals = {address: self._policy.refusal(address) for address in resolution.addresses}
            usable = tuple(address for address, refusal in refusals.items() if refusal is None)
            if usable:
                self._crawl.learn_address(host, usable, max(resolution.expires_at, now + 1.0), now)
            else:
                reason = "; ".join(f"{address}: {refusal}" for address, refusal in refusals.items())
                self._crawl.fail_address(host, Outcome.BLOCKED_ADDRESS, reason, now)
        self._plan_pump()

    # -- commit -----------------------------------------------------------------------------------

    def commit_soon(self) -> None:
        """Commit now, or when the commit under way has ended."""
        self._wants_commit.set()

    async def _commit_regularly(self) -> None:
        while not self._is_closing:
            try:
                await asyncio.wait_for(self._wants_commit.wait(), COMMIT_INTERVAL_S)
            except TimeoutError:
                pass
            self._wants_commit.clear()
            try:
                await self._commit()
            except GossamerError as error:
                self.on_failure(error)
                return
            except OSError as error:
                self.on_failure(as_our_error(error))
                return

    async def _commit(self) -> None:
        """Sync the archives, then write the ledger: no row may point to bytes that are not there."""
        started = self._loop.time()
        self._pages_at_commit = self._crawl.totals.pages
        self.save_state()
        sealed = self._ledger.seal()
        self._events.flush()
        for channel in list(self._channels.values()):
            await channel.sync()
        await asyncio.to_thread(sealed.write)
        self.stats.commits += 1
        self.stats.commit_s.append(self._loop.time() - started)
        self.probe.note_memory()

    def save_state(self) -> None:
        """Bring the totals up to date ahead of a commit."""
        now = self._now()
        self._crawl.save_state(now - self._started_at, vitals.cpu_seconds(), now)
