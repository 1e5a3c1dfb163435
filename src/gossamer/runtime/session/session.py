"""One run of a crawl in its folder: open, recover, run, finish.

    open()      lock the folder, recover after a killed process, queue the seeds
    run()       crawl to the end; the folder is complete on return
    submit()    a command for the crawl (`model/commands`), also before it runs

A session is used once. It owns the folder from `open` until `run` returns. Its parts are built by
`assembly`, and not changed afterwards.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer import __version__
from gossamer.archive.cdxj import fold_index
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of, use
from gossamer.engine.admission.link_review import LinkReview
from gossamer.engine.crawl import Crawl
from gossamer.foundation import failpoints
from gossamer.model.commands import Command, OperatorCommand, Pause
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.events import EventName
from gossamer.model.figures import RunState
from gossamer.model.records import Outcome
from gossamer.model.state import CrawlRecord, OperatorRequest
from gossamer.report.build import write_report
from gossamer.runtime.recovery.recovery import Recovery
from gossamer.runtime.session.control import Control, Controlled
from gossamer.runtime.session.control_socket import served
from gossamer.runtime.session.parts import RunPlan, RunServices, RunStorage
from gossamer.runtime.session.queries import Answers
from gossamer.runtime.session.seeds import RunSeeds
from gossamer.runtime.session.signals import TimeAlarm, stop_on_signals
from gossamer.runtime.stores.run_stores import commit_at_once
from gossamer.runtime.watch.crash import CrashReporter
from gossamer.runtime.watch.event_tap import OnEvent
from gossamer.runtime.watch.watchdog import Watchdog
from gossamer.settings.load import rewritten
from gossamer.settings.model import Settings
from gossamer.settings.promises import promises_of
from gossamer.telemetry.progress import Progress
from gossamer.telemetry.summary import Summary, summary_of
from gossamer.telemetry.text import plural

if TYPE_CHECKING:
    from gossamer.ports import Ledger
    from gossamer.runtime.cluster.node_agent import NodeAgent

STOPPED = frozenset({"signal", "stopped", "left", "max_time"})  # why a run ended that was not over
UNTRUSTED = f"robots.txt unreachable: {Outcome.TLS_ERROR}"  # begins the reason why such a host is parked


class Session:
    """One run of a crawl."""

    def __init__(
        self,
        plan: RunPlan,
        *,
        storage: RunStorage,
        crawl: Crawl,
        recovery: Recovery,
        services: RunServices,
        now: Callable[[], float],
        agent: NodeAgent | None = None,
    ) -> None:
        self._plan = plan
        self._storage = storage
        self._crawl = crawl
        self._recovery = recovery
        self._services = services
        self._now = now
        self._agent = agent
        self._crashes = CrashReporter(storage.crashes, services.run.fail)
        self._is_stopped = False
        self._alarm: TimeAlarm | None = None
        self._progress: Progress | None = None
        self._seeding = RunSeeds(
            plan.seeds, crawl, storage.folder, services.policy, warnings=services.warnings, now=now
        )
        parts = (services.run, services.hub, crawl, storage.ledger, storage.folder, services.opt_outs, storage.emitter)
        controlled = Controlled(*parts, now, self._seeding.add, services.rereader.run, self._set_alarm)
        self.control = Control(plan.settings, controlled)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the crawl; usable while the session `is_open`."""
        return self._storage.ledger

    @property
    def is_open(self) -> bool:
        """Whether the ledger is open: from `open` until the run has ended."""
        return self._storage.ledger.is_open

    @property
    def _settings(self) -> Settings:
        """The settings of the crawl, as changed by commands."""
        return self.control.settings

    def first_failure(self) -> str:
        """Return the first failure and a hint, in one line; empty if there was none."""
        return self._storage.tap.first_failure()

    def submit(self, command: Command) -> None:
        """Submit a command for the hub's next turn; before the run, for its first."""
        self._services.run.submit(command)

    @property
    def is_ending(self) -> bool:
        """Whether it makes no more requests, whatever is added."""
        return not self.is_open or self._services.run.state is RunState.STOPPING

    @property
    def link_review(self) -> LinkReview:
        """Which links hooks would be asked about."""
        return self._crawl.link_review

    def listen(self, on_event: OnEvent) -> None:
        """Pass all further events to a listener, until it returns False."""
        self._storage.tap.listen(on_event)

    # -- open -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Lock the folder, recover after a killed process, and queue the seeds."""
        storage = self._storage
        storage.folder.lock()
        try:
            if any(rule.identifies for rule in self._settings.request):
                storage.folder.close_to_others()
            if self._agent is not None:
                self._open_as_node(self._agent)
                return
            storage.folder.require_ledger()
            storage.ledger.open()
            if storage.ledger.crawl_state() is None:
                self._seeding.begin_again()
            self._seeding.identify()
            self._seeding.check()
            storage.log.open()
            self._seeding.record()
            storage.folder.write_settings(rewritten(storage.folder.settings_path, self._plan.settings))
            now = self._now()
            self._restore(now)
            self._seeding.open_addresses()
            self._begin_run(now)
            self._crawl.totals.runs += 1
            file, end = storage.log.mark()
            self._crawl.state.event_ends[file] = end
            storage.log.flush()  # recovery's events are written before the ledger forgets the crash
            self._commit_at_once()
            self._services.ranks.stored.adopt(self._commit_at_once)
            self._begin_uploads()
        except BaseException:
            storage.folder.release()
            raise

    def _open_as_node(self, agent: NodeAgent) -> None:
        """Begin with an empty copy of the ledger: shards are read as they are granted, seeds leave with a commit."""
        from gossamer.runtime.cluster.seat import check_archive, drop_copy, restore_archive, with_load

        storage = self._storage
        now = self._now()
        ends = agent.archive_ends()
        check_archive(storage.folder, agent.name, ends)
        drop_copy(storage.folder)
        storage.ledger.open()
        self._seeding.identify()
        storage.log.open()
        self._seeding.record()
        storage.folder.write_settings(rewritten(storage.folder.settings_path, self._plan.settings))
        for done in restore_archive(storage.folder, ends):
            storage.emitter.emit(EventName.RECOVERED, now, reason=done)
        self._crawl.state.is_running = True
        self._seeding.open_addresses()
        agent.begin(self.submit, self._share_record, partial(with_load, self._services.figures))
        self._begin_run(now)
        self._crawl.totals.runs += 1
        storage.log.flush()
        self._begin_uploads()

    def _commit_at_once(self) -> None:
        """Commit before the crawl runs."""
        self._crawl.save_state(0.0, 0.0, self._now())
        commit_at_once(self._storage.ledger, self._services.publishers)

    def _begin_uploads(self) -> None:
        if self._services.uploads is not None:
            self._services.uploads.begin()

    def rebuild(self) -> tuple[int, int]:
        """Make a new ledger from the archive and close it; return how many answers it has, and how many seeds.

        The caller has locked the folder and set the old ledger aside.
        """
        storage = self._storage
        state = self._crawl.state
        storage.ledger.open()
        storage.log.open()
        self._crawl.load_state()
        read = self._recovery.rebuild()
        state.totals.runs = 1
        self._crawl.save_state(0.0, 0.0, self._now())
        storage.log.close()
        storage.ledger.close()
        fold_index(storage.folder.index)
        return read

    def deliver(self, messages: Iterable[tuple[int, bytes]], requests: Sequence[OperatorRequest]) -> list[str]:
        """Accept what was on its way between nodes, and fulfil requests, in a folder that has their rows; close it.

        As a node that owns all shards would. The caller has locked the folder. Returns what could not be accepted.
        """
        from gossamer.engine.cluster.message_checks import checked
        from gossamer.runtime.recovery.refused_messages import REFUSED, refusal, set_message_aside

        storage = self._storage
        crawl = self._crawl
        now = self._now()
        storage.ledger.open()
        storage.log.open()
        crawl.load_state()
        scope = crawl.state.scope
        crawl.state.scope = []
        crawl.begin_as_node(now)
        crawl.scope.adopt(scope)
        with_hosts = {shard_of(host_id(host.name)) for host in storage.ledger.hosts()}
        for shard in sorted(with_hosts):
            crawl.take(shard, now, requests)
        crawl.take_empty(set(range(SHARD_COUNT)) - with_hosts, now)
        refused: list[str] = []
        for shard, links in messages:
            message, problem = checked(links)
            crawl.receive(message, now)
            if problem and (place := set_message_aside(storage.folder, links)):
                refused.append(refusal(shard, problem, place))
                self._services.warnings.record(REFUSED, refused[-1])
        crawl.save_state(crawl.totals.seconds, crawl.totals.cpu_seconds, now)
        storage.log.close()
        storage.ledger.close()
        return refused

    def _restore(self, now: float) -> None:
        """Restore the engine to the end of the last run, or to where it was killed."""
        retries = self._plan.retries
        was_clean = self._crawl.load_state()
        self._crawl.state.is_running = True
        self._crawl.state.released = 0
        self._crawl.state.figures = None  # of the last run: else they are stored again with every commit
        self._recovery.prepare(was_clean=was_clean)
        if self._crawl.totals.outcomes.get(Outcome.TLS_ERROR):
            self._unpark_untrusted()
        revived = self._crawl.retry_dead(retries, now) if retries is not None else 0
        self._crawl.restore(now, was_clean=was_clean)
        self._crawl.totals.dead -= revived
        self._recovery.finish()

    def _unpark_untrusted(self) -> None:
        """Contact hosts again whose certificate was not accepted: the operator may have added its authority since."""
        ledger = self._storage.ledger
        for record in list(ledger.hosts()):
            if record.park_reason.startswith(UNTRUSTED) and not record.swapped_out_until:
                record.parked_until = 0.0
                record.park_reason = ""
                record.robots_tries = 0
                ledger.put_host(record)
                self._crawl.lift_bans(record.name, Outcome.TLS_ERROR)

    def _share_record(self, record: CrawlRecord) -> CrawlRecord:
        """Apply the record of a crawl on many nodes to this one; return it with this node's additions."""
        assert self._agent is not None
        self.control.adopt_record(record)
        name = self._agent.node.id.name
        opt_outs = self._services.opt_outs
        self._seeding.open_addresses(record.opened)
        blocked = dict(record.blocked)
        if opt_outs.has_file:  # a node whose disk was lost does not unblock what its file had blocked
            blocked[name] = sorted(opt_outs.names)
        opt_outs.learn(frozenset(each for names in blocked.values() for each in names))
        return replace(record, opened=self._crawl.state.opened_addresses, blocked=blocked)

    def _begin_run(self, now: float) -> None:
        """Queue the seeds, and record what this run promises."""
        new = self._seeding.queue()
        promises = promises_of(self._plan.settings)
        fields = {"links": new, "promises": promises, "version": __version__}
        self._storage.emitter.emit(EventName.STARTED, now, reason=f"{new} new seeds", **fields)
        if self._plan.goes_on:
            self._crawl.state.is_paused = False
        for rule, text in self._plan.warnings.items():
            if text:
                self._services.warnings.warn(rule, text)

    def _set_alarm(self) -> None:
        """Set until when the event loop must have noticed that the time limit is over."""
        if self._alarm is not None:
            max_time_s = self._settings.max_time
            if max_time_s is None or self._crawl.state.is_paused:
                self._alarm.clear()
            else:
                self._alarm.set(max_time_s - self._services.run.active_s(self._now()))

    # -- run --------------------------------------------------------------------------------------

    async def run(self, *, progress: Progress | None = None, is_guest: bool = False) -> Summary:
        """Crawl to the end; return the summary. The folder is complete on return.

        A guest in another program's event loop handles neither its signals nor its errors. If the run fails, the
        folder is as after a kill: released, and the next session recovers it.
        """
        try:
            why = await self._run(progress, is_guest=is_guest)
        except GossamerError:  # the hub has ended: no thread writes any more
            self._storage.ledger.abandon()
            self._storage.folder.release()
            raise
        finally:
            self._crawl.frontier.leave_others()
        return self._finish(why)

    async def _run(self, progress: Progress | None, *, is_guest: bool) -> str:
        use(self._storage.ledger.identity)  # of this task: the ledger may have been opened in a thread
        services = self._services
        self._progress = progress
        services.opt_outs.check()
        services.figures.begin()
        if caveat := self._plan.task.caveat(is_rereading=self._crawl.rereading.is_pending):
            self._notify(caveat)
        if not is_guest:
            out = shlex.quote(str(self._storage.folder.path))
            is_node = self._agent is not None
            how_to_continue = f"gossamer join LEDGER -o {out}" if is_node else f"gossamer resume {out}"
            stop_on_signals(self.submit, self._announce_stop, how_to_continue)
            self._alarm = TimeAlarm(how_to_continue)
            if self._plan.settings.max_time is not None:
                self._alarm.set(self._plan.settings.max_time)
        if self._crawl.state.is_paused:
            self._notify(f"the crawl is paused; 'gossamer resume {self._storage.folder.path}' goes on with it")
            self.submit(Pause())
        async with services.resolver:
            services.probe.start()
            watchdog = Watchdog(lambda: services.probe.last_run_at, self._notify, services.warnings.record)
            try:
                with self._crashes.installed(is_guest=is_guest), watchdog:
                    async with self._watched(progress), self._served():
                        why = await services.hub.run(self.control.apply)
                    await self._finish_uploads(why)
                    return why
            finally:
                if self._alarm is not None:
                    self._alarm.clear()
                services.probe.stop()
                services.probe.measure_memory()

    def _served(self) -> AbstractAsyncContextManager[None]:
        storage = self._storage
        answers = Answers(self._crawl, storage.ledger, self._services.figures, lambda: self._settings, self._now)
        obey = self.control.obey if self._agent is None else _refuse_node
        return served(storage.folder.state, obey, answers.answer)

    async def _finish_uploads(self, why: str) -> None:
        """Complete the uploads: wait for a store that cannot be reached, unless the crawl was stopped."""
        uploads = self._services.uploads
        if uploads is not None:
            self._is_stopped = self._is_stopped or why in STOPPED
            if left := await uploads.finish(lambda: self._is_stopped):
                self._services.warnings.warn("store_incomplete", left)

    def _announce_stop(self, signal_name: str) -> None:
        self._is_stopped = True
        in_flight = self._services.figures.read().in_flight
        waiting = f"stopping: waiting for {plural(in_flight, 'request')}"
        if self._progress is not None:
            with suppress(OSError):  # the terminal is gone
                self._progress.end()  # a second signal leaves no time for it
        if signal_name == "SIGINT":
            self._notify(f"{waiting}, again to stop at once")
        else:
            self._notify(f"{signal_name}: {waiting}, a second signal stops at once")

    def _notify(self, text: str) -> None:
        if self._services.observer.on_notice is not None:
            self._services.observer.on_notice(text)

    @asynccontextmanager
    async def _watched(self, progress: Progress | None) -> AsyncIterator[None]:
        """Run the watchers beside the crawl: opt-outs, conditions, and progress if requested."""
        watching = asyncio.create_task(self._watch(progress))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, progress: Progress | None) -> None:
        services = self._services
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(services.opt_outs.run())
                group.create_task(services.watch.run())
                group.create_task(services.rereader.run())
                group.create_task(services.ranks.run())
                if services.uploads is not None:
                    group.create_task(services.uploads.run())
                if self._agent is not None:
                    group.create_task(self._agent.run())
                if progress is not None:
                    group.create_task(self._show_progress(progress))
        except ExceptionGroup as failures:  # a crawl that no longer sees its opt-outs must not continue
            self._crashes.report(failures, "a watcher of the crawl failed")

    async def _show_progress(self, progress: Progress) -> None:
        with suppress(OSError):  # stderr was closed: no reason to stop a crawl
            await progress.run(self._services.figures.read)

    # -- finish -----------------------------------------------------------------------------------

    def _finish(self, why: str) -> Summary:
        """Complete the folder: totals, index, report."""
        storage = self._storage
        state = self._crawl.state
        self._services.heartbeat.emit()
        failpoints.reach("in_close")
        figures = self._services.figures.read_all(why)
        now = self._now()
        totals = figures.totals
        self._crawl.warn_of_left_out(now)
        if self._agent is not None:
            self._agent.warn_of_waiting()
        left_out = {"held": totals.held or None, "evicted": totals.evicted}
        storage.emitter.emit(EventName.STOPPED, now, reason=why, fetched=totals.pages, **left_out)
        storage.log.close()
        file, end = storage.log.mark()
        state.figures, state.is_running, state.event_ends[file] = figures, False, end
        storage.ledger.put_crawl_state(state)
        storage.ledger.commit()
        whole = None if self._agent is None else self._agent.leave(self._plan.settings.max_wait)
        fold_index(storage.folder.index)
        write_report(storage.folder.path, storage.ledger, figures, self._settings)
        storage.ledger.close()
        for publisher in self._services.publishers:
            publisher.close()
        storage.folder.release()
        if whole is not None:
            figures = replace(
                figures,
                totals=whole.totals,
                node_pages=totals.pages,
                urls_queued=whole.urls_queued,
                urls_parked=whole.urls_parked,
                requisites_queued=whole.requisites_queued,
            )
        return summary_of(figures)


async def _refuse_node(_command: OperatorCommand, _by: str) -> str:
    raise UsageError("a node of a crawl on many machines: give the command with the URL of its ledger")
