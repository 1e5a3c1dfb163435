"""The one place that schedules and that writes the ledger.

The hub connects the engine to the world: it sends tasks to the workers, receives results, looks up names, and
commits everything that happened about once per second (or every 2,000 pages): archives are synced first, then one
ledger transaction is written, in threads, so that the event loop never waits for a disk. Only one commit runs at a
time.

A turn of the hub (`_turn`) has the commands applied that arrived (`runtime/hub/run`), then makes tasks. A stop (a
signal, a limit) makes no new tasks, waits at most 5 s for requests in flight, returns the rest to the queue, and
commits.

Every task has an end. If a worker dies, its tasks return to the queue, except one whose answer killed workers before
(`DeadlyPages`). If it lives and one of its tasks has no result within `task_limit_s`, that task ends with the outcome
`internal_error`, and the worker is replaced: whatever it lost, it may lose again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from gossamer.core.politeness.pace import is_refusal
from gossamer.engine.crawl import Crawl
from gossamer.model.errors import GossamerError, as_our_error
from gossamer.model.records import FetchTask, Outcome, Result
from gossamer.runtime.hub.config import CommitTargets
from gossamer.runtime.hub.costly_results import COSTLY_ROBOTS_BYTES, CostlyResults
from gossamer.runtime.hub.observer import HubObserver
from gossamer.runtime.hub.run import OVER, Apply, Run
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


# Which tasks have had no result for too long?

LOOKS_PER_LIMIT = 20


async def end_overdue(pool: WorkerPool, limit_s: float, end: Callable[[Sequence[int], str], None]) -> None:
    """End tasks without a result, until cancelled.

    Time is counted in looks: while this process stands still, none is made.
    """
    looks: deque[int] = deque([0], LOOKS_PER_LIMIT + 1)  # the last task that was given out, at each look
    while True:
        await asyncio.sleep(limit_s / LOOKS_PER_LIMIT)
        if len(looks) > LOOKS_PER_LIMIT and (overdue := pool.outstanding_up_to(looks[0])):
            end(overdue, f"no result within {limit_s:g} s")
        looks.append(pool.last_task_id)


COMMIT_INTERVAL_S = 1.0
COMMIT_PATIENCE_S = 2.0  # no tasks are made while a commit takes longer: what is not committed is fetched again
PAGES_PER_BEAT = 50
COMMIT_PAGES = 2000  # a page takes a quarter less time to commit than in batches of 500
GRACE_S = 5.0
TASKS_PER_TURN = 32  # then the loop handles its sockets
MAX_WAKEUP_S = 1.0
MAX_WORKER_DEATHS = 20  # without those of pages that killed their workers


class Hub:
    """Runs one crawl on this machine, once."""

    def __init__(
        self,
        run: Run,
        *,
        crawl: Crawl,
        targets: CommitTargets,
        workers: WorkerSource,
        addresses: AddressSource,
        now: Callable[[], float],
        observer: HubObserver | None = None,
        send_until: Callable[[FetchTask], float] | None = None,
    ) -> None:
        self._run = run
        self._stats = run.stats
        self._crawl = crawl
        self._targets = targets
        self._pool = WorkerPool(workers)
        self._addresses = addresses
        self._now = now
        self._send_until = send_until  # until when a node may send a task, on the lease clock
        self._observer = observer or HubObserver()
        self._observe = self._observer.on_result
        self._check_request = self._observer.on_request
        self._memory_window = crawl.frontier.limits.connections
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_turn_planned = False
        self._pages_at_commit = 0
        self._is_behind = False  # a commit takes too long
        self._beat_at = 1 << 62  # pages
        self._wants_commit = asyncio.Event()
        self._drained = asyncio.Event()  # no task is outstanding, and none will be
        self._count_times = run.stats.times.count
        self._deadly = DeadlyPages()
        reader = crawl.frontier.robots_cache.reader()
        self._costly = CostlyResults(lambda result: reader.read_on(result.robots), self._complete_costly)

    # -- the run ----------------------------------------------------------------------------------

    async def run(self, apply: Apply) -> str:
        """Crawl until it is over or stopped, as commands say; return why. Everything is committed on return."""
        run = self._run
        self._loop = asyncio.get_running_loop()
        run.begin(apply, self._plan_turn_now, self._now())
        self._plan_beat()
        for _ in range(run.limits.workers):
            await self._pool.add(self)
        cpu_before_s = vitals.cpu_seconds()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._commit_regularly())
                overdue = group.create_task(end_overdue(self._pool, run.limits.task_limit_s, self._end_overdue))
                self._plan_turn_now()
                await run.ended.wait()
                await self._wind_down()
                self._stats.crawl_cpu_s = vitals.cpu_seconds() - cpu_before_s
                run.is_closing = True
                self._wants_commit.set()
                overdue.cancel()
        except* OSError as failures:  # of the files of the folder
            run.fail(as_our_error(failures.exceptions[0]))
        await self._close()
        if run.failure is not None:
            raise run.failure
        return run.end_reason

    async def _wind_down(self) -> None:
        """Wait for requests in flight, up to a limit; return the rest to the queue."""
        run = self._run
        if not run.stop_reason:
            run.stop_reason = OVER
        if self._pool.has_outstanding and run.failure is None:
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
            self._stats.add_report(report)
        for failure in failures:
            self._run.fail(failure)
        self._save_state()
        if self._run.failure is None:
            self._targets.events.flush()
            await asyncio.to_thread(self._targets.ledger.seal().write)

    # -- what commands ask for --------------------------------------------------------------------

    def commit_soon(self) -> None:
        """Commit now, or when the current commit has ended."""
        self._wants_commit.set()

    def change_limits(self, now: float, **limits: Any) -> None:  # noqa: ANN401 - fields of `HubLimits`
        """Replace some limits. The time limit counts from the start of this run."""
        self._run.limits = replace(self._run.limits, **limits)
        self._limit_connections(now)

    def set_memory_window(self, connections: int, now: float) -> None:
        """Limit the concurrent requests to those whose answers fit into memory."""
        self._memory_window = connections
        self._limit_connections(now)

    def _limit_connections(self, now: float) -> None:
        """Limit concurrent requests by the operator's setting and by memory."""
        connections = max(1, min(self._run.limits.connections, self._memory_window))
        if connections > 1:  # one connection promises one order of requests
            connections += self._costly.free_slots
        self._crawl.frontier.change_limits(now, connections=connections)

    # -- tasks -----------------------------------------------------------------------------------

    def _turn(self) -> None:
        """One turn: apply commands, send out the tasks that are due, end the crawl or plan the next turn."""
        self._is_turn_planned = False
        run = self._run
        now = self._now()
        run.apply_commands(now)
        if run.stop_reason or run.ended.is_set() or self._pool.is_empty:
            return
        if run.is_time_over(now):
            run.stop("max_time")
        elif run.pauses or self._is_behind:
            self._plan_turn(MAX_WAKEUP_S)  # only commands and the time limit matter, not hosts that are due
        elif self._send_tasks(now) == TASKS_PER_TURN:
            self._plan_turn_now()
        elif (why := self._crawl.why_over(now, run.limits.max_wait_s)) is not None and self._may_end:
            run.end(why)
        else:
            wakeup = self._crawl.next_wakeup()
            self._plan_turn(MAX_WAKEUP_S if wakeup is None else min(MAX_WAKEUP_S, max(0.0, wakeup - now)))

    def _send_tasks(self, now: float) -> int:
        """Send the tasks that are due to the workers, and look up the names that are needed; return how many."""
        tasks = self._crawl.tasks(now, TASKS_PER_TURN)
        if (send_until := self._send_until) is not None:
            tasks = [replace(task, send_until=send_until(task)) for task in tasks]
        self._pool.start(tasks)
        for host in self._crawl.take_resolves():
            self._addresses.find(host, self._resolved)
        return len(tasks)

    @property
    def _may_end(self) -> bool:
        is_needed = self._observer.is_needed
        is_busy = self._pool.has_outstanding or self._tasks or (is_needed is not None and is_needed())
        return self._run.limits.ends_by_itself and not is_busy

    def _plan_turn_now(self) -> None:
        if not self._is_turn_planned:
            self._is_turn_planned = True
            assert self._loop is not None
            self._loop.call_soon(self._turn)

    def _plan_turn(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        self._timer = self._loop.call_later(wait_s, self._turn)

    def _resolved(self, host: str, answer: AddressAnswer) -> None:
        if self._run.is_closing:
            return  # a cancelled look-up says nothing about its host
        now = self._now()
        if answer.addresses:
            self._crawl.learn_address(host, answer.addresses, max(answer.expires_at, now + 1.0), now)
        else:
            self._crawl.fail_address(host, answer.outcome, answer.error, now)
        self._plan_turn_now()

    # -- what the workers report ------------------------------------------------------------------

    def on_result(self, result: Result) -> None:
        if len(result.robots) > COSTLY_ROBOTS_BYTES:
            self._costly.add(result)
            self._limit_connections(self._now())
        else:
            self._complete(result)

    def _complete_costly(self, result: Result) -> None:
        self._complete(result)
        self._limit_connections(self._now())

    def _complete(self, result: Result) -> None:
        number = self._pool.end(result.task_id)
        if number is None:
            return
        self._check_drained()
        completed = self._crawl.complete(result, self._now())
        if completed is not None:
            result = completed.result
            if result.requests_sent:
                self._count_times(completed.task, result)
                if self._check_request is not None:
                    self._check_request(completed.task.host, result.sent_at)
            if self._observe is not None:
                self._observe(completed.task, result)
            if completed.are_links_final:
                self._pool.mark_links_final(number, result.task_id)
        pages = self._crawl.totals.pages
        if pages >= self._beat_at:
            self._beat()
        is_window_full = pages - self._pages_at_commit >= COMMIT_PAGES
        if is_window_full or is_refusal(result):  # a refusal is durable before the next request to its host
            self._wants_commit.set()
        self._plan_turn_now()

    def _plan_beat(self) -> None:
        if self._observer.on_beat is not None:
            pages = self._crawl.totals.pages
            self._beat_at = pages - pages % PAGES_PER_BEAT + PAGES_PER_BEAT

    def _beat(self) -> None:
        self._plan_beat()
        if self._observer.on_beat is not None:
            self._observer.on_beat()

    def _check_drained(self) -> None:
        if self._run.stop_reason and not self._pool.has_outstanding:
            self._drained.set()

    def on_sent(self, task_id: int, sent_at: float) -> None:
        self._crawl.mark_sent(task_id, sent_at, self._now())
        self._plan_turn_now()

    def on_failure(self, error: GossamerError) -> None:
        """A worker cannot continue, and so the crawl cannot."""
        self._run.fail(error)

    def on_crash(self, crash: Crash) -> None:
        """A worker's code raised."""
        if self._observer.on_crash is not None:
            self._observer.on_crash(crash)

    def _warn(self, rule: str, text: str) -> None:
        if self._observer.on_warning is not None:
            self._observer.on_warning(rule, text)

    def on_lost(self, number: int, cause: str) -> None:
        """A worker died: finish what it had stored, return the rest to the queue, start another."""
        self._stats.worker_deaths += 1
        reading = self._pool.reading(number)
        for result in self._pool.remove(number):
            self.on_result(result)
        for task_id in reading:
            self._count_death(task_id)
        returned = self._pool.withdraw(number)
        self._crawl.give_back(returned, self._now())
        self._warn("worker_died", f"worker {number} {cause}; tasks that return to the queue: {len(returned)}")
        self._check_drained()
        excused = self._deadly.excused_deaths(self._crawl.totals.pages)
        if self._stats.worker_deaths - excused > MAX_WORKER_DEATHS:
            self._run.fail(GossamerError(f"workers died {self._stats.worker_deaths} times; giving up"))
            return
        if not self._run.stop_reason:
            assert self._loop is not None
            task = self._loop.create_task(self._replace_worker())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _count_death(self, task_id: int) -> None:
        """End a task that killed its worker too often."""
        task = self._crawl.task(task_id)
        if task is None:
            return  # its answer was stored before the worker died
        if self._deadly.is_last_death(task.url):
            what = f"{MAX_DEATHS} workers died while they read"
            self._warn("deadly_page", f"{what} the answer of {task.url}: it becomes a dead letter (internal_error)")
            error = f"{what} its answer"
            self.on_result(Result(task_id, Outcome.INTERNAL_ERROR, error=error, finished_at=self._now()))

    async def _replace_worker(self) -> None:
        try:
            await self._pool.add(self)
        except Exception as error:
            self._run.fail(as_our_error(error))
        self._plan_turn_now()

    def _end_overdue(self, task_ids: Sequence[int], text: str) -> None:
        """End tasks without a result, and the workers that have lost them."""
        overdue: dict[int, list[str]] = {}  # worker number -> URLs
        for each in task_ids:
            task = self._crawl.task(each)
            overdue.setdefault(self._pool.worker_of(each), []).append(task.url if task else str(each))
            self.on_result(Result(each, Outcome.INTERNAL_ERROR, error=text, finished_at=self._now()))
        for number, urls in overdue.items():
            self._warn("order_lost", f"worker {number}: {text}; tasks: {len(urls)}, the first for {urls[0]}")
            self._pool.kill(number, f"lost tasks ({text})")

    # -- commit -----------------------------------------------------------------------------------

    async def _commit_regularly(self) -> None:
        while not self._run.is_closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wants_commit.wait(), COMMIT_INTERVAL_S)
            self._wants_commit.clear()
            if self._run.failure is not None:
                return  # nothing that may be incomplete is committed
            assert self._loop is not None
            timer = self._loop.call_later(COMMIT_PATIENCE_S, self._wait_for_commit)
            try:
                await self._commit()
            except Exception as error:  # also one that nobody expects: without commits nothing is durable
                self._run.fail(as_our_error(error))
                return
            finally:
                timer.cancel()
            if self._is_behind:
                self._is_behind = False
                self._plan_turn_now()

    def _wait_for_commit(self) -> None:
        self._is_behind = True
        self._targets.events.flush()  # what is told of it is to be seen

    async def _commit(self) -> None:
        """Sync the archives, then write the ledger: no row may point to missing bytes."""
        assert self._loop is not None
        started = self._loop.time()
        self._pages_at_commit = self._crawl.totals.pages
        self._save_state()
        sealed = self._targets.ledger.seal()
        self._targets.events.flush()
        await self._pool.sync()
        self._stats.flush_time.add(self._loop.time() - started)
        if self._run.failure is not None:
            return  # a worker failed meanwhile: what it reports as synced may not be
        await asyncio.to_thread(sealed.write)
        self._stats.add_commit(self._loop.time() - started)

    def _save_state(self) -> None:
        """Update the totals before a commit."""
        now = self._now()
        self._crawl.finish_message(now)
        file, end = self._targets.events.mark()
        self._crawl.state.event_ends[file] = end
        self._crawl.save_state(self._run.active_s(now), vitals.cpu_seconds(), now)
