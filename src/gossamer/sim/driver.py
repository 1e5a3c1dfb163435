"""Whole crawls in virtual time: the real engine over an imagined web, days in seconds.

The driver fulfils the engine's contract (tasks, look-ups, results) with a heap of things
that end at a time, and moves `now` from one to the next. Nothing sleeps and nothing is
random, so a run is the same every time. About 60 µs per fetch.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from msgspec import Struct

from gossamer.engine.crawl import Crawl
from gossamer.model.records import FetchTask, Outcome, Result

MAX_STEPS = 50_000_000


class ImaginedAnswer(Struct, frozen=True):
    """What a server does: how long until the request is on the wire, until the end, and the result."""

    sent_after_s: float
    done_after_s: float
    result: Result


class ImaginedWeb(Protocol):
    """The servers and the names of a scenario."""

    def answer(self, task: FetchTask, now: float) -> ImaginedAnswer:
        """Return the answer to a request."""
        ...

    def resolve(self, host: str) -> tuple[tuple[str, ...], Outcome]:
        """Return the addresses of a host, or why there are none."""
        ...


class ImaginedRequest(Struct, frozen=True):
    at: float
    host: str
    url: str
    until: float


class VirtualDriver:
    """Runs one crawl to its end."""

    def __init__(self, crawl: Crawl, web: ImaginedWeb, started_at: float, *, dns_s: float = 0.02) -> None:
        self._crawl = crawl
        self._web = web
        self._dns_s = dns_s
        self.now = started_at
        self._steps = 0
        self._pending: list[tuple[float, int, str, Result | None]] = []
        self.requests: list[ImaginedRequest] = []

    def run(self, *, until: float = float("inf"), max_wait_s: float = 300.0) -> str:
        """Crawl until nothing is left or the time is up; return why it ended."""
        while self.now < until:
            self._place_tasks()
            over = self._crawl.why_over(self.now, max_wait_s)
            if over is not None:
                return over
            if not self._advance(until):
                return "stuck"
        return "time"

    def _place_tasks(self) -> None:
        for task in self._crawl.tasks(self.now):
            answer = self._web.answer(task, self.now)
            if 0 < task.limit_s < answer.done_after_s:
                late = Result(task.id, Outcome.TIMEOUT, address=answer.result.address)
                answer = ImaginedAnswer(answer.sent_after_s, task.limit_s, late)
            answer.result.sent_at = self.now + answer.sent_after_s
            answer.result.finished_at = self.now + answer.done_after_s
            answer.result.requests_sent = answer.result.requests_sent or 1
            self.requests.append(ImaginedRequest(answer.result.sent_at, task.host, task.url, answer.result.finished_at))
            self._push(answer.result.finished_at, "", answer.result)
            if task.report_sent:
                self._push(answer.result.sent_at, f"sent {task.id}", None)
        for host in self._crawl.take_resolves():
            self._push(self.now + self._dns_s, host, None)

    def _push(self, at: float, what: str, result: Result | None) -> None:
        self._steps += 1
        heappush(self._pending, (at, self._steps, what, result))

    def _advance(self, until: float) -> bool:
        """Move to the next thing that happens; False if nothing will."""
        wakeup = self._crawl.next_wakeup()
        next_at = min(
            self._pending[0][0] if self._pending else float("inf"), wakeup if wakeup is not None else float("inf")
        )
        if next_at == float("inf") or self._steps > MAX_STEPS:
            return False
        self.now = max(self.now, min(next_at, until))
        while self._pending and self._pending[0][0] <= self.now:
            _, _, what, result = heappop(self._pending)
            self._happen(what, result)
        return True

    def _happen(self, what: str, result: Result | None) -> None:
        if result is not None:
            self._crawl.complete(result, self.now)
        elif what.startswith("sent "):
            self._crawl.mark_sent(int(what.removeprefix("sent ")), self.now, self.now)
        else:
            addresses, outcome = self._web.resolve(what)
            if addresses:
                self._crawl.learn_address(what, addresses, self.now + 3600.0, self.now)
            else:
                self._crawl.fail_address(what, outcome, "imagined", self.now)
