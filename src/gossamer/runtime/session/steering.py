"""How an operator's commands change a crawl that runs.

Blocked names, pace and limits are settings: a command changes `crawl.toml` first, and then the crawl, so that the next
run has it too. A pause, seeds, and what is queued again are in the ledger; a command has an answer when that is
committed. On many nodes the settings and the pause are in the crawl's record, and every node adopts them from there.
Every command is an event that says who gave it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.politeness.pace import PaceRule
from gossamer.core.url.forms import canonical, link_to
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.revival import NO_LETTERS, is_requested, queued_again
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.evidence import chosen_quarantines
from gossamer.engine.revisit.notices import NoticeCounts
from gossamer.model import commands
from gossamer.model.commands import OperatorCommand, SettingCommand
from gossamer.model.errors import UsageError
from gossamer.model.events import EventName, Promises
from gossamer.model.figures import RunState
from gossamer.model.records import Link, Outcome
from gossamer.model.state import ALL_PATTERNS, CrawlRecord, OperatorRequest
from gossamer.reading.host_states import left_alone
from gossamer.runtime.hub import control
from gossamer.runtime.hub.hub import Hub
from gossamer.runtime.session.opt_out import OptOutWatch, name_in
from gossamer.settings.changes import described, with_command
from gossamer.settings.load import PER_NODE, settings_in, to_toml
from gossamer.settings.model import AfterTarget, Settings
from gossamer.settings.promises import promises_of
from gossamer.telemetry.text import plural, released

if TYPE_CHECKING:
    from gossamer.ports import Ledger

POLL_S = 0.05
NOTICES_AT_ONCE = 200
MAX_DRAIN_S = 10.0  # for requests at hosts whose dead letters are queued again
_HUB_LIMITS = {
    "max_pages": "max_pages",
    "max_time": "max_time_s",
    "max_wait": "max_wait_s",
    "connections": "connections",
}
_FRONTIER_LIMITS = ("max_pages_per_host", "max_pages_per_domain", "max_depth")


class Steered(Struct, frozen=True):
    """What commands act on."""

    crawl: Crawl
    ledger: Ledger
    hub: Hub
    folder: CrawlFolder
    opt_outs: OptOutWatch
    emitter: EventEmitter
    now: Callable[[], float]
    add_seeds: Callable[[Sequence[str], bytes], int]  # with metadata as of a link
    reread: Callable[[], Awaitable[None]]  # reads pages again whose links are within a raised depth
    on_time: Callable[[], None]  # the time that is left has changed


class Steering:
    """Obeys commands, one after the other."""

    def __init__(self, settings: Settings, steered: Steered) -> None:
        self.settings = settings
        self._steered = steered
        self._turn = asyncio.Lock()
        self._record_settings = b""  # of a crawl on many nodes
        self._commands = 0
        self._rereading: set[asyncio.Task[None]] = set()

    async def obey(self, command: OperatorCommand, by: str) -> str:
        """Obey a command; return what was done, in one line. Raises `UsageError` if it cannot be obeyed."""
        async with self._turn:
            before = promises_of(self.settings)
            done = await self._obey(command)
            self._emit(str(command.__struct_config__.tag), f"{done} ({by})", before)
            return done

    def _emit(self, name: str, reason: str, before: Promises) -> None:
        promises = promises_of(self.settings)
        changed = {"promises": promises} if promises != before else {}
        self._steered.emitter.emit(EventName.OPERATOR, self._steered.now(), rule=name, reason=reason, **changed)

    async def _obey(self, command: OperatorCommand) -> str:
        steered = self._steered
        match command:
            case commands.PauseCrawl():
                await self.pause()
                return _paused(steered.crawl.frontier.in_flight)
            case commands.ResumeCrawl():
                if not steered.crawl.state.is_paused:
                    raise UsageError("the crawl is not paused: it runs")
                await self.resume()
                return "the crawl goes on"
            case commands.StopCrawl():
                steered.hub.submit(control.Stop("stopped"))
                return "stopping: requests in flight are finished, then everything is committed"
            case commands.AddSeeds(seeds):
                new = steered.add_seeds(seeds, b"")
                await self._durable()
                return f"{new} of {plural(len(seeds), 'seed')} {'is' if 1 in (new, len(seeds)) else 'are'} new"
            case commands.ReportChanges(urls):
                return await self._report_changes(urls)
            case commands.RetryLetters(outcomes, hosts):
                return await self._retry(outcomes, hosts)
            case commands.ReleasePattern(pattern):
                return await self._release(pattern)
            case _:
                return await self._set(command)

    async def add(self, seeds: Sequence[str], meta: bytes, by: str) -> int:
        """Queue seeds with metadata as of a link; return how many were new, when that is durable."""
        new = self._steered.add_seeds(seeds, meta)
        reason = f"{new} of {plural(len(seeds), 'seed')} {'is' if 1 in (new, len(seeds)) else 'are'} new ({by})"
        self._steered.emitter.emit(EventName.OPERATOR, self._steered.now(), rule="add", reason=reason)
        self._steered.hub.submit(control.Wake())
        await self._durable()
        return new

    async def _report_changes(self, urls: Sequence[str]) -> str:
        """Regard a notice in slices, so that the crawl goes on meanwhile."""
        crawl = self._steered.crawl
        counts = NoticeCounts()
        links, bad = noticed_links(urls)
        if bad:
            counts.refused["not_a_url"] = bad
        for first in range(0, len(links), NOTICES_AT_ONCE):
            counts.add(crawl.accept_notice(links[first : first + NOTICES_AT_ONCE], self._steered.now()))
            await asyncio.sleep(0)
        self._steered.hub.submit(control.Wake())
        await self._durable()
        return reported(len(urls), counts, fetches_again=crawl.revisits.is_on)

    # -- settings ---------------------------------------------------------------------------------

    async def _set(self, command: SettingCommand) -> str:
        changed = with_command(self.settings, command)
        done = described(changed, command)
        if isinstance(command, commands.BlockNames):
            names = [name_in(name) for name in command.names]
            done += f"; {left_alone(self._steered.ledger.hosts(), names)}"
        self._steered.folder.write_settings(to_toml(changed))
        self.adopt(changed)
        if isinstance(command, commands.UnblockNames):
            return f"{done}; {await self._retry_unblocked(command.names)}"
        return done

    def adopt(self, settings: Settings) -> None:
        """Apply changed settings to the crawl."""
        before = self.settings
        self.settings = settings
        hub = self._steered.hub
        frontier = self._steered.crawl.frontier
        now = self._steered.now()
        changed = {name for name in Settings.__struct_fields__ if getattr(before, name) != getattr(settings, name)}
        if limits := {_HUB_LIMITS[name]: getattr(settings, name) for name in changed & _HUB_LIMITS.keys()}:
            hub.submit(control.ChangeLimits(**limits))
        if limits := {name: getattr(settings, name) for name in changed.intersection(_FRONTIER_LIMITS)}:
            frontier.change_limits(now, **limits)
        if "max_depth" in changed:
            self._begin_rereading()
        if "pace" in changed:
            frontier.change_pace([PaceRule(rule.host, rule.delay, rule.connections) for rule in settings.pace], now)
        if "block_host" in changed:
            self._steered.opt_outs.set_fixed(settings.block_host)
        if "max_time" in changed:
            self._steered.on_time()
        hub.submit(control.Wake())

    def adopt_record(self, record: CrawlRecord) -> None:
        """Apply what the record of a crawl on many nodes says; what concerns one machine stays as it is."""
        before = promises_of(self.settings)
        if record.settings != self._record_settings:
            self._record_settings = record.settings
            own = {name: getattr(self.settings, name) for name in (*PER_NODE, "max_pages")}  # pages are claimed
            self.adopt(replace(settings_in(record.settings, "the crawl"), **own))
        if record.is_paused is not self._steered.crawl.state.is_paused:
            self.set_paused(is_paused=record.is_paused)
        if record.commands > self._commands:
            self._emit("", record.last_command, before)
        self._commands = record.commands

    def _begin_rereading(self) -> None:
        crawl = self._steered.crawl
        continues = self.settings.after_target is AfterTarget.CONTINUE
        crawl.rereading.begin(crawl.first_pass.current, self._steered.now(), continues=continues)
        if crawl.rereading.is_pending:
            task = asyncio.ensure_future(self._steered.reread())
            self._rereading.add(task)
            task.add_done_callback(self._rereading.discard)

    # -- pauses -----------------------------------------------------------------------------------

    async def pause(self) -> None:
        """Pause the crawl, also for the next run."""
        self.set_paused(is_paused=True)
        await self._durable()

    async def resume(self) -> None:
        """Continue a crawl that is paused."""
        self.set_paused(is_paused=False)
        await self._durable()

    def set_paused(self, *, is_paused: bool) -> None:
        """Pause the crawl, or continue it."""
        self._steered.crawl.state.is_paused = is_paused
        self._steered.hub.submit(control.Pause() if is_paused else control.Resume())
        self._steered.on_time()

    async def _durable(self) -> None:
        """Wait for a commit that began after this."""
        hub = self._steered.hub
        wanted = hub.stats.commits + 2  # the next one may have begun before
        while hub.stats.commits < wanted and hub.state in (RunState.RUNNING, RunState.PAUSED):
            hub.submit(control.CommitSoon())
            await asyncio.sleep(POLL_S)

    # -- what is queued again ---------------------------------------------------------------------

    async def _retry_unblocked(self, names: Sequence[str]) -> str:
        hosts = [host.name for host in self._steered.ledger.hosts() if host.name in names or host.domain in names]
        if not hosts:
            return "nothing was queued there"
        queued = await self._retry([Outcome.OPTED_OUT.value], hosts)
        return "nothing was queued there" if queued == NO_LETTERS else queued

    async def _retry(self, outcomes: list[str], hosts: list[str]) -> str:
        """Queue dead letters again. What was committed is read: what failed, or was blocked, just before counts too."""
        await self._durable()
        ledger = self._steered.ledger
        request = OperatorRequest(self._steered.now(), [], outcomes=outcomes, hosts=hosts)
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
        now = self._steered.now()
        chosen = chosen_quarantines(self._steered.ledger.records(QUARANTINES), pattern, now)
        if not chosen and pattern != ALL_PATTERNS:
            raise UsageError(f"{pattern}: no such pattern is in quarantine; 'gossamer traps' lists them")
        if chosen:
            shards = sorted({shard_of(host_id(each.host)) for each in chosen})
            await self._fulfil(OperatorRequest(now, shards, pattern=pattern))
        return released(chosen)

    async def _fulfil(self, request: OperatorRequest) -> None:
        """Give up the shards and take them again, as a node of a cluster does: that fulfils the request."""
        crawl = self._steered.crawl
        now = self._steered.now
        shards = frozenset(request.shards)
        crawl.frontier.drain(shards)
        until = now() + MAX_DRAIN_S
        while crawl.frontier.busy_shards() & shards and now() < until:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(POLL_S)
        crawl.release(shards, now())
        for shard in sorted(shards):
            crawl.take(shard, now(), [request])
        self._steered.hub.submit(control.Wake())
        await self._durable()


def noticed_links(urls: Sequence[str]) -> tuple[list[Link], int]:
    """Return the links of URLs that were reported, each once, and how many are no URLs."""
    found = [canonical(url) for url in urls]
    return [link_to(url) for url in dict.fromkeys(filter(None, found))], found.count(None)


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


def _paused(in_flight: int) -> str:
    if not in_flight:
        return "paused; no request is in flight"
    return f"paused when {plural(in_flight, 'request')} in flight {'has' if in_flight == 1 else 'have'} ended"
