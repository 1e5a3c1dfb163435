"""How a running crawl obeys commands: of a signal, a store, an operator or a program.

The hub calls `apply` in its turn. What an operator commands is an event that says who did so; it is answered when it
is durable, and the next one waits for that. Blocked names, pace and limits are settings: `crawl.toml` is changed
first, and then the crawl, so that the next run has them too; a pause, seeds, and what is queued again are in the
ledger. On many nodes the settings and the pause are in the crawl's record, and every node adopts them from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.politeness.pace import PaceRule
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.revival import NO_LETTERS, is_requested, queued_again
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.evidence import chosen_quarantines
from gossamer.engine.revisit.notices import NoticeCounts, noticed_links
from gossamer.model import commands
from gossamer.model.commands import Command, OperatorCommand, SettingCommand, UnblockNames
from gossamer.model.errors import UsageError
from gossamer.model.events import EventName, Promises
from gossamer.model.figures import RunState
from gossamer.model.records import Outcome
from gossamer.model.state import ALL_PATTERNS, CrawlRecord, OperatorRequest
from gossamer.runtime.hub.hub import Hub
from gossamer.runtime.hub.run import OPERATOR, Run
from gossamer.runtime.session.opt_out import OptOutWatch, blocked_among, name_in
from gossamer.settings.load import PER_NODE, rewritten, settings_in
from gossamer.settings.model import AfterTarget, Settings
from gossamer.settings.promises import promises_of
from gossamer.telemetry.text import plural, released

if TYPE_CHECKING:
    from gossamer.ports import Ledger

POLL_S = 0.05
NOTICES_AT_ONCE = 200
MAX_DRAIN_S = 10.0  # for requests at hosts whose dead letters are queued again
_HUB_LIMITS = {"max_time": "max_time_s", "max_wait": "max_wait_s", "connections": "connections"}
_FRONTIER_LIMITS = ("max_pages", "max_pages_per_host", "max_pages_per_domain", "max_depth")
# Of an operator's command: what was done, in one line, or what has to be awaited for that.
Done: TypeAlias = str | Awaitable[str]


class Controlled(Struct, frozen=True):
    """What commands change."""

    run: Run
    hub: Hub
    crawl: Crawl
    ledger: Ledger
    folder: CrawlFolder
    opt_outs: OptOutWatch
    emitter: EventEmitter
    now: Callable[[], float]
    add_seeds: Callable[[Sequence[str], bytes], int]  # with metadata as of a link; returns how many were new
    reread: Callable[[], Awaitable[None]]  # reads pages again whose links are within a raised depth
    on_time: Callable[[], None]  # the time that is left has changed


class Control:
    """Obeys commands."""

    def __init__(self, settings: Settings, parts: Controlled) -> None:
        self.settings = settings  # as changed by commands
        self._parts = parts
        self._run = parts.run
        self._hub = parts.hub
        self._crawl = parts.crawl
        self._turn = asyncio.Lock()
        self._record_settings = b""  # of a crawl on many nodes
        self._commands = 0
        self._rereading: set[asyncio.Task[None]] = set()

    async def obey(self, command: OperatorCommand, by: str) -> str:
        """Obey a command; return what was done, in one line. Raises `UsageError` if it cannot be obeyed."""
        async with self._turn:
            before = promises_of(self.settings)
            answer: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
            self._run.submit(command, answer)
            done = await answer
            text = done if isinstance(done, str) else str(await done)
            self._emit(str(command.__struct_config__.tag), f"{text} ({by})", before)
            return text

    async def add_seeds(self, seeds: Sequence[str], meta: bytes, by: str) -> int:
        """Queue seeds with metadata as of a link; return how many were new, when that is durable."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._run.submit(commands.AddSeedsWithMeta(list(seeds), meta), answer)
        new = await answer
        self._emit("add", f"{_added(new, len(seeds))} ({by})", promises_of(self.settings))
        await self._durable()
        return new

    def _emit(self, name: str, reason: str, before: Promises) -> None:
        promises = promises_of(self.settings)
        changed = {"promises": promises} if promises != before else {}
        self._parts.emitter.emit(EventName.OPERATOR, self._parts.now(), rule=name, reason=reason, **changed)

    def apply(self, command: Command, now: float) -> Done | int | None:  # noqa: C901, PLR0912 - one case each
        """Apply a command in the hub's turn; return what came of it."""
        match command:
            case commands.Wake():
                pass  # the turn that applies it makes tasks
            case commands.CommitSoon():
                self._hub.commit_soon()
            case commands.Stop(reason):
                self._run.stop(reason)
            case commands.Pause(by):
                self._run.pauses.begin(by, now)
            case commands.Resume(by):
                self._run.pauses.end(by, now)
            case commands.SetMemoryWindow(connections):
                self._hub.set_memory_window(connections, now)
            case commands.SetOptOuts(names):
                self._crawl.opt_out(names, now)
            case commands.SetRanks(ranks, computed_at):
                self._crawl.learn_ranks(ranks, now, computed_at)
            case commands.AddSeedsWithMeta(seeds, meta):
                return self._parts.add_seeds(seeds, meta)
            case commands.StopCrawl():
                self._run.stop("stopped")
                return "stopping: requests in flight are finished, then everything is committed"
            case commands.PauseCrawl():
                self._set_paused(now, is_paused=True)
                return self._paused()
            case commands.ResumeCrawl():
                if not self._crawl.state.is_paused:
                    raise UsageError("the crawl is not paused: it runs")
                self._set_paused(now, is_paused=False)
                return self._durable("the crawl goes on")
            case commands.AddSeeds(seeds):
                new = self._parts.add_seeds(seeds, b"")
                return self._durable(_added(new, len(seeds)) + blocked_among(seeds, self._parts.opt_outs.all_names))
            case commands.ReportChanges(urls):
                return self._report_changes(urls)
            case commands.RetryLetters(outcomes, hosts):
                return self._retry(outcomes, hosts)
            case commands.ReleasePattern(pattern):
                return self._release(pattern)
            case _:
                settings, done = self._with(command)
                folder = self._parts.folder
                folder.write_settings(rewritten(folder.settings_path, settings, self.settings))
                self._adopt(settings, now)
                return self._retry_unblocked(done, command.names) if isinstance(command, UnblockNames) else done
        return None

    def _set_paused(self, now: float, *, is_paused: bool) -> None:
        """Pause the crawl, or continue it, also for the next run."""
        self._crawl.state.is_paused = is_paused
        if is_paused:
            self._run.pauses.begin(OPERATOR, now)
        else:
            self._run.pauses.end(OPERATOR, now)
        self._parts.on_time()

    async def _paused(self) -> str:
        await self._durable()
        in_flight = self._crawl.frontier.in_flight
        if not in_flight:
            return "paused; no request is in flight"
        return f"paused when {plural(in_flight, 'request')} in flight {'has' if in_flight == 1 else 'have'} ended"

    async def _durable(self, done: str = "") -> str:
        """Wait for a commit that began after this; return what was done."""
        run = self._run
        wanted = run.stats.commits + 2  # the next one may have begun before
        while run.stats.commits < wanted and run.state in (RunState.RUNNING, RunState.PAUSED):
            run.submit(commands.CommitSoon())
            await asyncio.sleep(POLL_S)
        return done

    async def _report_changes(self, urls: Sequence[str]) -> str:
        """Accept a notice in batches, so that the crawl continues between them."""
        counts = NoticeCounts()
        links, bad = noticed_links(urls)
        if bad:
            counts.refused["not_a_url"] = bad
        for first in range(0, len(links), NOTICES_AT_ONCE):
            counts.add(self._crawl.accept_notice(links[first : first + NOTICES_AT_ONCE], self._parts.now()))
            await asyncio.sleep(0)
        self._run.submit(commands.Wake())
        return await self._durable(reported(len(urls), counts, fetches_again=self._crawl.revisits.is_on))

    # -- settings ---------------------------------------------------------------------------------

    def _with(self, command: SettingCommand) -> tuple[Settings, str]:
        """Return the settings as a command changes them, and what it changes, for people."""
        from gossamer.reading.host_states import left_alone
        from gossamer.settings.changes import described, with_command

        changed = with_command(self.settings, command)
        done = described(changed, command)
        if isinstance(command, commands.BlockNames):
            done += f"; {left_alone(self._parts.ledger.hosts(), [name_in(name) for name in command.names])}"
        return changed, done

    def _adopt(self, settings: Settings, now: float) -> None:
        """Apply changed settings to the crawl."""
        before = self.settings
        self.settings = settings
        frontier = self._crawl.frontier
        changed = {name for name in Settings.__struct_fields__ if getattr(before, name) != getattr(settings, name)}
        if limits := {_HUB_LIMITS[name]: getattr(settings, name) for name in changed & _HUB_LIMITS.keys()}:
            self._hub.change_limits(now, **limits)
        if limits := {name: getattr(settings, name) for name in changed.intersection(_FRONTIER_LIMITS)}:
            frontier.change_limits(now, **limits)
        if "max_depth" in changed:
            self._begin_rereading(now)
        if "pace" in changed:
            frontier.change_pace([PaceRule(rule.host, rule.delay, rule.connections) for rule in settings.pace], now)
        if "block_host" in changed:
            self._crawl.opt_out(self._parts.opt_outs.set_fixed(settings.block_host), now)
        if "max_time" in changed:
            self._parts.on_time()

    def adopt_record(self, record: CrawlRecord) -> None:
        """Apply the record of a crawl on many nodes, without the settings of one machine."""
        before = promises_of(self.settings)
        now = self._parts.now()
        if record.settings != self._record_settings:
            self._record_settings = record.settings
            own = {name: getattr(self.settings, name) for name in (*PER_NODE, "max_pages")}  # pages are claimed
            self._adopt(replace(settings_in(record.settings, "the crawl"), **own), now)
        if record.is_paused is not self._crawl.state.is_paused:
            self._set_paused(now, is_paused=record.is_paused)
        if record.commands > self._commands:
            self._emit("", record.last_command, before)
        self._commands = record.commands
        self._run.submit(commands.Wake())

    def _begin_rereading(self, now: float) -> None:
        crawl = self._crawl
        continues = self.settings.after_target is AfterTarget.CONTINUE
        crawl.rereading.begin(crawl.first_pass.current, now, continues=continues)
        if crawl.rereading.is_pending:
            task = asyncio.ensure_future(self._parts.reread())
            self._rereading.add(task)
            task.add_done_callback(self._rereading.discard)

    # -- what is queued again ---------------------------------------------------------------------

    async def _retry_unblocked(self, done: str, names: Sequence[str]) -> str:
        hosts = [host.name for host in self._parts.ledger.hosts() if host.name in names or host.domain in names]
        queued = await self._retry([Outcome.OPTED_OUT.value], hosts) if hosts else NO_LETTERS
        return f"{done}; {'nothing was queued there' if queued == NO_LETTERS else queued}"

    async def _retry(self, outcomes: list[str], hosts: list[str]) -> str:
        """Queue dead letters again. Only committed rows are read, hence the commit first."""
        await self._durable()
        ledger = self._parts.ledger
        request = OperatorRequest(self._parts.now(), [], outcomes=outcomes, hosts=hosts)
        names = request.hosts or [host.name for host in ledger.hosts()]
        found: dict[int, int] = {}
        for name in names:
            key = host_id(name)
            count = sum(is_requested(row, request) for _, row in ledger.urls(key))
            if count:
                found[shard_of(key)] = found.get(shard_of(key), 0) + count
        if not found:
            return NO_LETTERS
        await self._fulfil(OperatorRequest(request.at, sorted(found), request.outcomes, request.hosts))
        return queued_again(sum(found.values()))

    async def _release(self, pattern: str) -> str:
        await self._durable()  # of a pattern, what was committed is read
        now = self._parts.now()
        chosen = chosen_quarantines(self._parts.ledger.records(QUARANTINES), pattern, now)
        if not chosen and pattern != ALL_PATTERNS:
            raise UsageError(f"{pattern}: no such pattern is in quarantine; 'gossamer traps' lists them")
        if chosen:
            shards = sorted({shard_of(host_id(each.host)) for each in chosen})
            await self._fulfil(OperatorRequest(now, shards, pattern=pattern))
        return released(chosen)

    async def _fulfil(self, request: OperatorRequest) -> None:
        """Release the shards and take them again, as a node of a cluster does: that fulfils the request."""
        crawl = self._crawl
        now = self._parts.now
        shards = frozenset(request.shards)
        crawl.frontier.drain(shards)
        until = now() + MAX_DRAIN_S
        while crawl.frontier.busy_shards() & shards and now() < until:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(POLL_S)
        crawl.release(shards, now())
        for shard in sorted(shards):
            crawl.take(shard, now(), [request])
        self._run.submit(commands.Wake())
        await self._durable()


def reported(number: int, counts: NoticeCounts, *, fetches_again: bool) -> str:
    """Return what became of URLs that were reported as changed, in one line."""
    parts = [
        f"{counts.due} due" if counts.due else "",
        f"{counts.new} new" if counts.new else "",
        f"{counts.known} known and not due sooner" if counts.known else "",
        f"{counts.refused.total()} refused ({', '.join(f'{rule} {n}' for rule, n in sorted(counts.refused.items()))})"
        if counts.refused
        else "",
    ]
    hint = "; known pages are fetched again only with --revisit" if counts.known and not fetches_again else ""
    return f"{plural(number, 'URL')} reported as changed: {', '.join(filter(None, parts)) or 'nothing to do'}{hint}"


def _added(new: int, seeds: int) -> str:
    return f"{new} of {plural(seeds, 'seed')} {'is' if 1 in (new, seeds) else 'are'} new"
