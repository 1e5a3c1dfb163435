"""Does a run go on: which commands wait, who has paused it, since when, with which limits, and why does it end?

Made before the hub, which obeys it, so that what reports a failure or gives a command needs no hub. What changes a
running crawl is a command (`model/commands`): they wait here, and are applied in order in the hub's turn
(`runtime/session/control`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from gossamer.model.commands import Command, Stop, StopCrawl
from gossamer.model.errors import GossamerError, NotListeningError
from gossamer.model.figures import RunState
from gossamer.runtime.hub.config import HubLimits
from gossamer.runtime.hub.stats import HubStats

Apply: TypeAlias = Callable[[Command, float], object]  # applies a command, now; returns what came of it
OPERATOR = "operator"
OVER = "over"  # why no more tasks are made: nothing is left


class Pauses:
    """Who has paused a run, and for how long. It is paused until everybody who paused it has resumed it.

    The time of a run does not pass while the operator has paused it.
    """

    def __init__(self) -> None:
        self._by: set[str] = set()
        self._begun_at = 0.0  # when the first of them paused it
        self._since = 0.0  # when the operator paused it
        self._before_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._by)

    @property
    def by(self) -> str:
        """Who has paused it: the operator, if also others have."""
        return OPERATOR if OPERATOR in self._by else ", ".join(sorted(self._by))

    def begin(self, by: str, now: float) -> None:
        if not self._by:
            self._begun_at = now
        if by == OPERATOR and by not in self._by:
            self._since = now
        self._by.add(by)

    def end(self, by: str, now: float) -> None:
        if by == OPERATOR and by in self._by:
            self._before_s += now - self._since
        self._by.discard(by)

    def lasting_s(self, now: float) -> float:
        """Return for how long the crawl has been paused; 0 if it is not."""
        return now - self._begun_at if self._by else 0.0

    def operator_s(self, now: float) -> float:
        """Return how long the operator has paused the crawl in all."""
        return self._before_s + (now - self._since if OPERATOR in self._by else 0.0)


class Run:
    def __init__(self, limits: HubLimits) -> None:
        self.limits = limits
        self.stats = HubStats()
        self.pauses = Pauses()
        self.stop_reason = ""  # why no more tasks are made; the first counts
        self.end_reason = ""
        self.ended = asyncio.Event()
        self.failure: GossamerError | None = None
        self.is_closing = False  # everything has an end, and only the last commit is left
        self._started_at = 0.0
        self._commands: deque[tuple[Command, asyncio.Future[Any] | None]] = deque()
        self._apply: Apply | None = None
        self._wake: Callable[[], None] | None = None  # plans a turn of the hub

    def begin(self, apply: Apply, wake: Callable[[], None], now: float) -> None:
        """Have commands applied, in turns of the hub, from now on."""
        self._apply = apply
        self._wake = wake
        self._started_at = now

    @property
    def state(self) -> RunState:
        if self.is_closing or self.stop_reason:
            return RunState.STOPPING
        return RunState.PAUSED if self.pauses else RunState.RUNNING

    @property
    def is_stopped(self) -> bool:
        """Whether the crawl ends before its time: by a signal, a command, the time limit or a failure."""
        return self.stop_reason not in ("", OVER)

    def active_s(self, now: float) -> float:
        """Return the seconds of this run, without those in which the operator had paused it."""
        return now - self._started_at - self.pauses.operator_s(now)

    def is_time_over(self, now: float) -> bool:
        return self.limits.max_time_s is not None and self.active_s(now) >= self.limits.max_time_s

    def stop(self, reason: str) -> None:
        """Make no more tasks; the first reason counts."""
        if self.is_closing:
            self.stop_reason = reason  # a commit that waits for a store is given up
        elif not self.stop_reason:
            self.stop_reason = reason
            self.end(reason)

    def end(self, reason: str) -> None:
        """Finish what is in flight, and end; the first reason counts."""
        if not self.ended.is_set():
            self.end_reason = reason
            self.ended.set()

    def fail(self, error: GossamerError) -> None:
        """The crawl cannot continue: stop, and commit nothing that may be incomplete."""
        if self.failure is None:
            self.failure = error
        self.stop("failed")

    def fail_plugin(self, error: GossamerError) -> None:
        """A plugin that decides about links raised. While the crawl is being opened nothing was committed: raise."""
        if self._wake is None:
            raise error
        self.fail(error)

    # -- commands ---------------------------------------------------------------------------------

    def submit(self, command: Command, answer: asyncio.Future[Any] | None = None) -> None:
        """Apply a command in the hub's next turn, and set what came of it; at the end only a stop has an effect."""
        if not self.is_closing:
            self._commands.append((command, answer))
            if self._wake is not None:
                self._wake()
        elif isinstance(command, Stop | StopCrawl):
            assert self._apply is not None
            done = self._apply(command, 0.0)  # for a stop, the time does not matter
            if answer is not None:
                answer.set_result(done)
        elif answer is not None:
            answer.set_exception(NotListeningError("the crawl ends, and takes no commands now"))

    def apply_commands(self, now: float) -> None:
        while self._commands:
            command, answer = self._commands.popleft()
            assert self._apply is not None
            if answer is None:
                self._apply(command, now)
            elif not answer.done():  # whoever waits for it may be gone
                try:
                    answer.set_result(self._apply(command, now))
                except Exception as error:
                    answer.set_exception(error)
