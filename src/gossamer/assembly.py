"""Settings become objects here, and nowhere else.

`Assembly` opens a crawl folder, builds the engine and the hub from the settings, runs the
crawl, and leaves index, report and summary behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gossamer import __version__, failpoints
from gossamer.archive.cdxj import fold_index
from gossamer.archive.reader import ArchivedRecord, read_record
from gossamer.archive.recovery import RecoveredTail
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LedgerLimits, LocalLedger
from gossamer.core.first_pass import FirstPass
from gossamer.core.frontier import Frontier
from gossamer.core.intake import Intake, LinkHooks
from gossamer.core.limits import FrontierLimits
from gossamer.core.politeness import Pace, PaceRule
from gossamer.core.priority import ordering
from gossamer.core.scope import Reach, Scope
from gossamer.core.url import link_to
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.errors import GossamerError
from gossamer.events import Event, EventName, masked, outcome_of
from gossamer.fetch.dns import Resolver
from gossamer.fetch.guard import AddressPolicy
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits, raise_file_limit
from gossamer.inspect.report.build import write_report
from gossamer.records import Order, Result, RobotsRecord, UrlRecord
from gossamer.runtime import opt_out, recovery, vitals
from gossamer.runtime.channel import Channel, HubListener, LocalChannel, ProcessChannel
from gossamer.runtime.clock import TimeLine
from gossamer.runtime.figures_source import FiguresSource, RunMeasures
from gossamer.runtime.hub import Hub, HubRules
from gossamer.runtime.memory import MemoryGuard, Use, Window
from gossamer.runtime.opt_out import OptOutList
from gossamer.runtime.sinks import SinkConfig
from gossamer.runtime.unsaved_facts import read_unsaved_facts
from gossamer.runtime.worker import WorkerRules
from gossamer.runtime.worker_factory import WorkerConfig
from gossamer.settings.budget import SHARE_OF_MACHINE, Budget
from gossamer.settings.load import to_toml
from gossamer.settings.model import AfterTarget, RobotsUnreachable, Settings, SitemapUse
from gossamer.settings.promises import promises_of
from gossamer.settings.seeds import Seed, opened_addresses
from gossamer.telemetry.advice import advice_on
from gossamer.telemetry.event_log import EventLog
from gossamer.telemetry.progress import Progress
from gossamer.telemetry.summary import Summary, summary_of
from gossamer.telemetry.text import printable

ROBOTS_TOKEN = "gossamer"  # noqa: S105 - a name, not a secret
HEARTBEAT_PAGES = 50
_TROUBLE = frozenset({EventName.HOST_DEAD, EventName.HOST_PARKED, EventName.ERROR})
ErrorHandler: TypeAlias = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]
_PACKAGE = str(Path(__file__).parent)
FILES_FOR_OTHERS = 40  # ledger, archive, events, sockets of the loop and the resolver


def identity_of(settings: Settings) -> Identity:
    """Return who is crawling."""
    contact = f" (+{settings.contact})" if settings.contact else ""
    return Identity(settings.user_agent or f"Gossamer/{__version__}{contact}", settings.contact)


def scope_of(settings: Settings) -> Scope:
    """Return the borders of a crawl, before its seeds."""
    return Scope(
        settings.scope or Reach.DOMAIN,
        includes=settings.include_pattern,
        excludes=settings.exclude_pattern,
        blocked_hosts=settings.block_host,
    )


def budget_of(settings: Settings) -> Budget:
    """Return how the ceiling on memory is divided; where none was given it is a share of the machine's."""
    return Budget.of(
        settings.memory or int(SHARE_OF_MACHINE * vitals.machine_bytes()),
        workers=settings.workers or 1,
        connections=settings.connections,
        max_bytes=settings.max_bytes,
    )


def frontier_limits(settings: Settings, budget: Budget) -> FrontierLimits:
    """Return the frontier's numbers."""
    return FrontierLimits(
        connections=budget.safe_connections,
        max_pages=settings.max_pages,
        max_pages_per_host=settings.max_pages_per_host,
        max_pages_per_domain=settings.max_pages_per_domain,
        address_connections=settings.address_connections,
        domain_connections=settings.domain_connections,
        address_delay_s=settings.address_politeness_ms / 1000,
        domain_delay_s=settings.domain_politeness_ms / 1000,
        retry_wait_s=settings.retry_wait,
        max_depth=settings.max_depth,
        is_unreachable_robots_allowed=settings.robots_unreachable is RobotsUnreachable.ALLOW,
        max_hosts_in_memory=budget.hosts,
        max_urls_in_memory=budget.urls,
        max_idle_hosts=budget.idle_hosts,
    )


def pace_of(settings: Settings) -> Pace:
    """Return the pace of every host."""
    rules = [PaceRule(rule.host, rule.delay, rule.connections) for rule in settings.pace]
    return Pace(settings.politeness_ms / 1000, settings.host_connections, rules)


def build_crawl(
    settings: Settings,
    budget: Budget,
    ledger: LocalLedger,
    emitter: EventEmitter,
    *,
    host_ranks: Mapping[str, float],
    hooks: LinkHooks | None = None,
) -> Crawl:
    """Return the engine of a crawl."""
    how = ordering(settings.order, settings.random_seed)
    target = settings.target_unique_domains
    intake = Intake(
        scope_of(settings),
        how,
        max_depth=settings.max_depth,
        max_links_per_page=settings.max_links_per_page,
        first_pass=FirstPass(target) if target is not None else None,
        remembers=not settings.cooldown_sec,
        hooks=hooks,
        memo_urls=budget.links,
        max_patterns=budget.patterns,
    )
    rules = CrawlRules(
        robots_token=ROBOTS_TOKEN,
        follows_sitemaps=settings.sitemaps is not SitemapUse.OFF,
        reads_sitemaps_first=settings.sitemaps is SitemapUse.FIRST,
        follows_duplicates=settings.follow_duplicates,
        cooldown_s=settings.cooldown_sec,
        max_queued=settings.max_queued,
        continues_after_target=settings.after_target is AfterTarget.CONTINUE,
        max_hosts_per_domain=settings.max_hosts_per_domain,
        watches_traps=settings.traps,
        near_dup=settings.near_dup,
        host_ranks=host_ranks,
    )
    frontier = Frontier(frontier_limits(settings, budget), pace_of(settings), how, ROBOTS_TOKEN)
    return Crawl(rules, frontier, intake, ledger, emitter)


class Assembly:
    """One run of a crawl in its folder."""

    def __init__(
        self, settings: Settings, folder: CrawlFolder, seeds: Sequence[Seed], hooks: LinkHooks | None = None
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._seeds = seeds
        self._time_line = TimeLine.begin()
        self._started_at = self._time_line.now()
        stamp = datetime.fromtimestamp(self._started_at, UTC).strftime("%Y%m%dT%H%M%S%f")
        self._events = EventLog(folder.events, stamp)
        self._files = raise_file_limit()
        self._budget = budget_of(self._within_files(settings))
        self._ledger = LocalLedger(
            folder.state,
            limits=LedgerLimits(self._budget.seen, self._budget.near_pages, self._budget.names),
        )
        self._emitter = EventEmitter(self._emit, self._started_at, masked if settings.mask_queries else None)
        ranks = {seed.link.host: seed.rank for seed in seeds}
        self._crawl = build_crawl(settings, self._budget, self._ledger, self._emitter, host_ranks=ranks, hooks=hooks)
        self._guard = MemoryGuard(
            self._budget.whole,
            Window(self._budget.safe_connections, self._budget.connections, self._budget.bodies),
            relieve=self._relieve_memory,
            shrink=self._ledger.shrink,
        )
        self._workers: list[ProcessChannel] = []
        self._has_told_of_signatures = False
        self._rules = WorkerRules(
            parses_pdf=settings.parse_pdf_links,
            accepts=settings.accept,
            near_dup=settings.near_dup,
            max_hrefs=self._budget.hrefs,
        )
        self._policy = AddressPolicy(settings.allow_network)
        self._opened: tuple[str, ...] = ()
        self._heartbeat_at = 0
        self._first_trouble: Event | None = None
        self._robots_targets: set[str] = set()  # where robots.txt redirects of a killed run led
        self._hub: Hub | None = None
        self._figures: FiguresSource | None = None
        self._stop_reason = ""
        self.on_page: Callable[[Order, Result], None] | None = None
        self.retries: Callable[[UrlRecord], bool] | None = None  # dead letters to queue again
        self.on_event: Callable[[Event], None] | None = None

    def _within_files(self, settings: Settings) -> Settings:
        """Return the settings with no more connections than there may be open files for."""
        most = max(1, (self._files - FILES_FOR_OTHERS) // 2)
        return msgspec.structs.replace(settings, connections=min(settings.connections, most))

    def _emit(self, event: Event) -> None:
        self._events.emit(event)
        if self._first_trouble is None and event.event in _TROUBLE:
            self._first_trouble = event
        if self.on_event is not None:
            self.on_event(event)

    def first_failure(self) -> str:
        """Return what went wrong first, in one line, and what would help."""
        event = self._first_trouble
        if event is None:
            return ""
        advice = advice_on(outcome_of(event))
        return printable(f"{event.url or event.host}: {event.reason}", 300) + (f"; {advice}" if advice else "")

    # -- start ------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the folder, recover what a dead process left, and queue the seeds."""
        self._folder.take()
        try:
            self._ledger.open()
            self._events.open()
            self._folder.write("crawl.toml", to_toml(self._settings).encode())
            now = self._time_line.now()
            was_clean = self._crawl.load_state()
            self._crawl.state.is_running = True
            if not was_clean:
                unsaved = read_unsaved_facts(self._folder.events)
                self._robots_targets = unsaved.robots_targets
                self._crawl.restore_refusals(unsaved.quiet_until)
            tails, robots = self._cut_tails()
            revived = self._crawl.retry_dead(self.retries, now) if self.retries is not None else 0
            self._crawl.restore(now, was_clean=was_clean)
            self._crawl.totals.dead -= revived
            for record in robots:
                self._crawl.recall_robots(record, now)
            self._recover(tails, now)
            self._queue_seeds(now)
            self._heartbeat_at = self._crawl.totals.pages + HEARTBEAT_PAGES
            self._crawl.totals.runs += 1
            self._crawl.save_state(0.0, 0.0, now)
            self._ledger.commit()
        except BaseException:
            self._folder.release()
            raise

    def _queue_seeds(self, now: float) -> None:
        state = self._crawl.state
        named = {address for seed in self._seeds for address in opened_addresses(seed)}
        state.opened_addresses = sorted({*state.opened_addresses, *named})
        self._opened = tuple(state.opened_addresses)
        for address in self._opened:
            self._policy.open_address(address)
        guesses = frozenset(seed.link.id for seed in self._seeds if seed.is_guess)
        new = self._crawl.add_seeds([seed.link for seed in self._seeds], now, https_first=guesses)
        self._emitter.emit(
            EventName.STARTED, now, reason=f"{new} new seeds", links=new, promises=promises_of(self._settings)
        )

    def _cut_tails(self) -> tuple[list[RecoveredTail], list[RobotsRecord]]:
        """Return what dead processes had archived beyond the last commit, and the robots.txt files in it."""
        unfinished = recovery.unfinished_files(self._folder.archive, self._ledger.archive_ends())
        tails = [recovery.cut_tail(path, committed) for path, committed in unfinished]
        robots = [record for tail in tails for record in recovery.recovered_robots(tail)]
        for record in robots:
            self._ledger.put_robots(record)
        return tails, robots

    def _recover(self, tails: Sequence[RecoveredTail], now: float) -> None:
        """Finish the pages that were archived but not committed, and close the files of dead processes."""
        finished = 0
        for result in self._tail_results(tails, lambda url: self._find_queued(url, now)):
            self._crawl.complete(result, now)
            finished += 1
        for tail in tails:
            self._close_file(tail.path)
            self._emitter.emit(EventName.RECOVERED, now, reason=f"{tail.path.name} {tail.problem}".strip())
        recovery.mend_parts(self._folder.archive, self._folder.index)
        if finished:
            self._emitter.emit(EventName.RECOVERED, now, reason="pages finished from the archive", links=finished)

    def _find_queued(self, url: str, now: float) -> Order | recovery.Found:
        """Return an order for a URL that still waits."""
        link = link_to(url)
        if url.endswith("/robots.txt"):
            return recovery.Found.SETTLED
        if not self._ledger.is_seen(link.id):
            return recovery.Found.SETTLED if url in self._robots_targets else recovery.Found.UNKNOWN
        return self._crawl.adopt(link, now) or recovery.Found.SETTLED

    def _close_file(self, path: Path) -> None:
        length = recovery.close_file(path, self._folder.index)
        self._ledger.put_archive_end(path.name.removesuffix(".open"), length)

    def _tail_results(self, tails: Sequence[RecoveredTail], find: recovery.FindOrder) -> Iterator[Result]:
        return recovery.recovered_results(
            tails, find, self._find_original, self._rules, max_bytes=self._settings.max_bytes
        )

    def _find_original(self, url: str) -> ArchivedRecord | None:
        """Return the record that a revisit refers to."""
        record = self._ledger.look_up(link_to(url).id)
        if record is None or record.archived is None:
            return None
        path = self._folder.archive / record.archived.file
        return read_record(path if path.exists() else path.with_name(path.name + ".open"), record.archived.offset)

    def _rescue(self, number: int) -> Iterator[Result]:
        """Return what a dead worker had archived but not reported, and close its files."""
        ends = self._ledger.archive_ends()
        paths = sorted(self._folder.archive.glob(f"*-{number:02d}-*.warc.gz*"))
        tails = [recovery.cut_tail(path, ends.get(path.name.removesuffix(".open"), 0)) for path in paths]
        yield from self._tail_results(tails, lambda url: self._crawl.order_for(url) or recovery.Found.SETTLED)
        for path in paths:
            self._close_file(path)

    # -- run --------------------------------------------------------------------------------------

    async def run(self, *, shows_progress: bool, is_guest: bool = False) -> Summary:
        """Crawl to the end; return the summary. The folder is complete on return.

        As a guest in another program's event loop, signals and errors of others are left alone.
        """
        resolver = Resolver(self._time_line.now, server=self._settings.dns or None, cache_size=self._budget.names)
        async with resolver:
            hub = self._hub = self._build_hub(resolver)
            self._figures = FiguresSource(self._crawl, self._measures(hub), self._time_line.now)
            if self._stop_reason:
                hub.stop(self._stop_reason)
            if not is_guest:
                _stop_on_signals(hub)
            loop = asyncio.get_running_loop()
            handler_before = loop.get_exception_handler()
            loop.set_exception_handler(partial(self._on_crash, handler_before if is_guest else None))
            watching = asyncio.create_task(self._watch(shows_progress))
            try:
                why = await hub.run()
            finally:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching
                loop.set_exception_handler(handler_before)
        return self._finish(why)

    def stop(self, reason: str) -> None:
        """Stop cleanly, before it has begun too."""
        self._stop_reason = reason
        if self._hub is not None:
            self._hub.stop(reason)

    def hold(self, is_held: bool) -> None:
        """Make no more requests for now, or go on."""
        if self._hub is not None:
            self._hub.hold(is_held)

    @property
    def ledger(self) -> LocalLedger:
        """The books of the crawl, while it runs."""
        return self._ledger

    def _on_crash(self, others: ErrorHandler | None, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of ours failed where nobody waits for it: stop, keep the details, lose nothing."""
        error = context.get("exception")
        if others is not None and not _is_of_ours(error):
            others(loop, context)
            return
        details = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""
        with suppress(OSError):
            (self._folder.events / "crash.txt").write_text(f"{context.get('message')}\n{details}", "utf-8")
        if self._hub is not None:
            self._hub.on_failure(GossamerError(f"internal error: {error!r}; see {self._folder.events / 'crash.txt'}"))

    def _build_hub(self, resolver: Resolver) -> Hub:
        settings = self._settings
        rules = HubRules(
            workers=settings.workers or 1,
            connections=settings.connections,
            max_time_s=settings.max_time,
            max_wait_s=settings.max_wait,
        )
        hub = Hub(
            rules,
            crawl=self._crawl,
            ledger=self._ledger,
            resolver=resolver,
            policy=self._policy,
            events=self._events,
            open_channel=self._open_channel,
            rescue=self._rescue,
            now=self._time_line.now,
        )
        hub.probe.watch_memory(lambda: [channel.pid for channel in self._workers if channel.pid], self._on_memory)
        hub.watch = self.on_page
        hub.opt_outs = OptOutList(self._folder.path / opt_out.FILE_NAME, settings.block_host)
        return hub

    def _open_channel(self, number: int, listener: HubListener) -> Channel:
        config = self._worker_config(number)
        if self._settings.workers <= 1:
            return LocalChannel(config, self._ledger.first_with_content, listener)
        is_replacement = number >= self._settings.workers
        channel = ProcessChannel(config, str(self._folder.state), listener, is_replacement=is_replacement)
        self._workers.append(channel)
        return channel

    def _worker_config(self, number: int) -> WorkerConfig:
        settings, identity = self._settings, identity_of(self._settings)
        return WorkerConfig(
            rules=msgspec.structs.replace(self._rules, number=number, previews=self.on_page is not None),
            limits=FetchLimits.from_timeout(settings.timeout, settings.max_bytes),
            identity=identity,
            allowed_networks=settings.allow_network,
            allowed_addresses=self._opened,
            time_line=self._time_line,
            sinks=self._sink_config(identity),
            kept_connections=self._budget.kept_connections,
            copies=self._budget.copies,
        )

    def _sink_config(self, identity: Identity) -> SinkConfig:
        settings = self._settings
        is_strict = settings.robots_unreachable is RobotsUnreachable.DENY
        return SinkConfig(
            stores=settings.store,
            out=str(self._folder.path),
            archive_prefix="gossamer",
            save_interval=settings.save_interval,
            warcinfo={
                "software": f"Gossamer/{__version__}",
                "robots": "RFC 9309" if is_strict else "RFC 9309, unreachable=allow",
                "http-header-user-agent": identity.user_agent,
                "operator": settings.contact or "unknown",
                "hostname": socket.gethostname() or "localhost",
                "isPartOf": self._folder.path.name,
            },
        )

    # -- memory -----------------------------------------------------------------------------------

    def _on_memory(self, in_use: int) -> None:
        """Take note of the memory in use, and hold the crawl to its ceiling."""
        assert self._hub is not None
        frontier, totals, now = self._crawl.frontier, self._crawl.totals, self._time_line.now()
        answers = totals.fetches - totals.robots_fetches - totals.failed_lookups
        use = Use(in_use, frontier.in_flight, answers, totals.bytes + totals.content_bytes)
        warning = self._guard.note(use, now)
        if frontier.limits.connections != self._guard.window.size:
            frontier.change_limits(now, connections=self._guard.window.size)
        if self._ledger.pending_count() >= self._budget.changes:
            self._hub.commit_soon()
        if self._ledger.has_forgotten_signatures and not self._has_told_of_signatures:
            self._has_told_of_signatures = True
            self._warn("near duplicates are looked for among the newer pages only: memory is at its ceiling", now)
        if warning:
            self._warn(warning, now)

    def _warn(self, reason: str, now: float) -> None:
        self._emitter.emit(EventName.WARNING, now, reason=reason)

    def _relieve_memory(self) -> None:
        """Have what is freed given back to the system, and the uncommitted changes written."""
        vitals.trim_memory()
        if self._hub is not None:
            self._hub.commit_soon()

    async def _watch(self, shows_progress: bool) -> None:
        """Send heartbeats, and show progress where it is wanted."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            if shows_progress:
                assert self._figures is not None
                group.create_task(Progress(self._figures.read).run())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            totals = self._crawl.totals
            if totals.pages >= self._heartbeat_at:
                self._heartbeat_at = totals.pages - totals.pages % HEARTBEAT_PAGES + HEARTBEAT_PAGES
                self._emit_heartbeat()

    def _measures(self, hub: Hub) -> RunMeasures:
        return RunMeasures(
            out=str(self._folder.path),
            started_at=self._started_at,
            max_wait_s=self._settings.max_wait,
            memory_ceiling_bytes=self._budget.whole,
            stats=hub.stats,
            probe=hub.probe,
            state=lambda: hub.state,
        )

    def _emit_heartbeat(self) -> None:
        assert self._figures is not None
        self._emitter.heartbeat(self._figures.read(), self._time_line.now())

    # -- end --------------------------------------------------------------------------------------

    def _finish(self, why: str) -> Summary:
        """Leave the folder complete: totals, index, report."""
        self._emit_heartbeat()
        failpoints.reach("in_close")
        assert self._figures is not None
        figures = self._figures.read_all(why)
        self._emitter.emit(EventName.STOPPED, self._time_line.now(), reason=why, fetched=figures.totals.pages)
        self._events.close()
        self._crawl.state.figures = figures
        self._crawl.state.is_running = False
        self._ledger.put_crawl_state(self._crawl.state)
        self._ledger.commit()
        fold_index(self._folder.index)
        write_report(self._folder.path, self._ledger, figures)
        self._ledger.close()
        self._folder.release()
        return summary_of(figures)


def _is_of_ours(error: BaseException | None) -> bool:
    """Tell whether an error passed through code of this package."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    return any(frame.filename.startswith(_PACKAGE) for frame in frames)


def _stop_on_signals(hub: Hub) -> None:
    """One signal stops cleanly, a second one at once."""
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        if len(received) > 1:
            os._exit(13)
        hub.stop("signal")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, partial(stop, number))
