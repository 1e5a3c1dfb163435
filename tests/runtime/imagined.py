"""A hub over the simulator's web: real engine, real ledger, workers that answer from an imagined web."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url.forms import link_to
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.errors import GossamerError
from gossamer.model.events import Event
from gossamer.model.records import FetchTask, Result
from gossamer.ports import Row, SealedChanges
from gossamer.runtime.hub.config import CommitTargets, HubLimits
from gossamer.runtime.hub.hub import Hub
from gossamer.runtime.hub.observer import HubObserver, OnResult
from gossamer.runtime.hub.run import Run
from gossamer.runtime.session.control import Control, Controlled
from gossamer.runtime.session.opt_out import OptOutFile, OptOutWatch
from gossamer.runtime.workers.addresses import AddressAnswer, OnAnswer
from gossamer.runtime.workers.channel import HubListener
from gossamer.runtime.workers.messages import WorkerReport
from gossamer.settings.model import Settings
from gossamer.sim.scenarios import START, ImaginedSites, Scenario


class ImaginedChannel:
    """A worker in memory: what it archives is a list, and it can die."""

    def __init__(
        self, number: int, web: ImaginedSites, listener: HubListener, journal: list[str], deadly: Collection[str] = ()
    ) -> None:
        self.number = number
        self._deadly = deadly
        self.started: list[FetchTask] = []
        self.archived: list[Result] = []  # and not reported yet
        self.final: list[int] = []  # tasks whose links need not be sent again
        self.is_closed = False
        self.close_error: Exception | None = None
        self._web = web
        self._listener = listener
        self._journal = journal
        self._timers: list[asyncio.TimerHandle] = []
        self._is_stuck = False
        self._read = 0  # the task whose answer is being read

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    def start(self, tasks: Sequence[FetchTask]) -> None:
        for task in tasks:
            self.started.append(task)
            now = START + self._loop.time()
            answer = self._web.answer(task, now)
            result = answer.result
            result.sent_at, result.finished_at = now + answer.sent_after_s, now + answer.done_after_s
            result.requests_sent = 1
            if task.report_sent:
                self._later(answer.sent_after_s, self._listener.on_sent, task.id, result.sent_at)
            self._later(answer.done_after_s, self._crash if task.url in self._deadly else self._end, result)

    def _later(self, after_s: float, function: Callable[..., None], *args: Any) -> None:
        self._timers.append(self._loop.call_later(after_s, function, *args))

    def _end(self, result: Result) -> None:
        self.archived.append(result)
        if not self._is_stuck:
            self.archived.remove(result)
            self._listener.on_result(result)

    def _crash(self, result: Result) -> None:
        self._read = result.task_id
        self.die()

    def reading(self) -> list[int]:
        return [self._read] if self._read else []

    def stick(self) -> None:
        """Archive answers, but report no more."""
        self._is_stuck = True

    def lose_all(self) -> None:
        """Forget what was asked so far, without a trace; later tasks are carried out."""
        for timer in self._timers:
            timer.cancel()

    def fail(self, error: GossamerError) -> None:
        """Report that the archive takes no more."""
        self._listener.on_failure(error)

    def die(self) -> None:
        """End as a killed process does: what is archived stays, nothing is reported."""
        for timer in self._timers:
            timer.cancel()
        self._listener.on_lost(self.number, "was killed by SIGKILL")

    def kill(self, cause: str) -> None:
        for timer in self._timers:
            timer.cancel()
        self._loop.call_soon(self._listener.on_lost, self.number, cause)

    def mark_links_final(self, task_id: int) -> None:
        self.final.append(task_id)

    async def sync(self) -> None:
        self._journal.append(f"sync {self.number}")

    async def close(self) -> WorkerReport | None:
        for timer in self._timers:
            timer.cancel()
        self.is_closed = True
        if self.close_error is not None:
            raise self.close_error
        return WorkerReport(cpu_seconds=1.0, stall_p99_ms=2.0, stall_max_ms=9.0, core_wait_p99_ms=3.0)


@dataclass(slots=True)
class ImaginedWorkers:
    """Opens imagined workers, and reads back what dead ones had archived."""

    web: ImaginedSites
    journal: list[str]
    channels: list[ImaginedChannel] = field(default_factory=list)
    deadly: set[str] = field(default_factory=set)  # URLs whose answers kill their worker

    def open_channel(self, number: int, listener: HubListener) -> ImaginedChannel:
        assert number == len(self.channels), "a number is used once"
        self.channels.append(ImaginedChannel(number, self.web, listener, self.journal, self.deadly))
        return self.channels[-1]

    def rescue(self, number: int) -> Iterable[Result]:
        self.journal.append(f"rescue {number}")
        return self.channels[number].archived


@dataclass(slots=True)
class ImaginedNames:
    """Looks names up in an imagined web."""

    web: ImaginedSites

    def find(self, host: str, on_answer: OnAnswer) -> None:
        addresses, outcome = self.web.resolve(host)
        answer = (
            AddressAnswer(addresses, START + 1e6) if addresses else AddressAnswer(outcome=outcome, error="imagined")
        )
        asyncio.get_running_loop().call_later(0.02, on_answer, host, answer)


LAST_COMMIT = ["seal", "write"]  # no worker is left whose archive could be synced between the two


@dataclass(slots=True)
class JournalLedger:
    """Commits to a real ledger, and writes down when."""

    ledger: LocalLedger
    journal: list[str]
    error: Exception | None = None  # what the next write raises

    def seal(self) -> JournalCommit:
        self.journal.append("seal")
        return JournalCommit(self.ledger.seal(), self)


@dataclass(slots=True)
class JournalCommit:
    """A commit of a journal ledger."""

    sealed: SealedChanges
    log: JournalLedger

    def by_shard(self) -> Mapping[int, list[Row]]:
        return self.sealed.by_shard()

    def unsharded(self) -> list[Row]:
        return self.sealed.unsharded()

    def write(self) -> None:
        if self.log.error is not None:
            raise self.log.error
        self.sealed.write()
        self.log.journal.append("write")


@dataclass(slots=True)
class JournalSink:
    """An event sink that writes down when it is flushed."""

    journal: list[str]
    events: list[Event]

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        self.journal.append("flush")

    def mark(self) -> tuple[str, int]:
        return "journal", len(self.events)

    def close(self) -> None:
        self.flush()


class HubRun:
    """A hub and all that is around it; `run` crawls to the end."""

    def __init__(
        self,
        folder: Path,
        web: ImaginedSites,
        seeds: Sequence[str],
        *,
        hub_limits: HubLimits | None = None,
        on_result: OnResult | None = None,
        **scenario: Any,
    ) -> None:
        self.journal: list[str] = []
        self.events: list[Event] = []
        self.warnings: list[str] = []
        self.ledger = LocalLedger(folder / "state")
        (folder / "state").mkdir(parents=True)
        self.ledger.open()
        self.log = JournalLedger(self.ledger, self.journal)
        self.crawl: Crawl = Scenario(web, seeds, ledger=self.ledger, events=self.events, **scenario).prepare()[0]
        self.workers = ImaginedWorkers(web, self.journal)
        self.run_state = Run(hub_limits or HubLimits())
        self.hub = Hub(
            self.run_state,
            crawl=self.crawl,
            targets=CommitTargets(self.log, JournalSink(self.journal, self.events)),
            workers=self.workers,
            addresses=ImaginedNames(web),
            now=self.now,
            observer=HubObserver(on_result, lambda rule, text: self.warnings.append(f"{rule}: {text}")),
        )
        settings = Settings(max_time=self.run_state.limits.max_time_s, connections=self.run_state.limits.connections)
        opt_outs = OptOutWatch(OptOutFile(folder / "blocked.txt"), self.run_state.submit)
        emitter = EventEmitter(self.events.append, START)
        parts = (self.run_state, self.hub, self.crawl, self.ledger, CrawlFolder(folder), opt_outs, emitter, self.now)
        self.control = Control(settings, Controlled(*parts, self._add_seeds, self._reread, lambda: None))

    def _add_seeds(self, lines: Sequence[str], meta: bytes) -> int:
        return self.crawl.add_seeds([link_to(line) for line in lines], self.now(), meta=meta)

    async def _reread(self) -> None:
        """There is no archive that could be read again."""

    @staticmethod
    def now() -> float:
        """Return the time of the running virtual loop on the scenario's time line."""
        return START + asyncio.get_running_loop().time()

    async def run(self) -> str:
        """Crawl to the end; return why it ended."""
        return await self.hub.run(self.control.apply)

    def later(self, after_s: float, function: Callable[..., object], *args: Any) -> None:
        """Call a function when so much time has passed."""
        asyncio.get_running_loop().call_later(after_s, function, *args)

    def kill(self, number: int) -> None:
        """Kill a worker; -1 is the last one."""
        self.workers.channels[number].die()

    def pages(self) -> list[str]:
        """Return the URLs of the pages that were asked for, in order of the workers and of time."""
        tasks = [task for channel in self.workers.channels for task in channel.started]
        return [task.url for task in tasks if not task.url.endswith("/robots.txt")]
