"""What is known of a running crawl besides its counts: rates, the machine, what binds it, how long it needs.

Brought up to date once per second, from the figures and the machine of that moment; `FiguresSource` adds it to every
`Figures` value. Rates are differences within a ring of the last 61 moments, so that a page costs nothing here; while
a crawl is paused they are 0, and afterwards they begin anew.
"""

from __future__ import annotations

from collections import Counter, deque

from msgspec import Struct
from msgspec.structs import replace

from gossamer.model.figures import BoundBy, Figures, Forecast, NextRetry, ParkedHost, RunState, Throughput
from gossamer.runtime.watch.machine import Machine
from gossamer.telemetry.bound_by import Load, bound_by

SHORT_S = 10.0
LONG_S = 60.0
JUMP_S = 5.0
_SLACK_S = 0.5  # a look may be late


class Moment(Struct, frozen=True):
    """Counts of one moment, to compare with those of a later one."""

    at_s: float  # in the time of the run
    pages: int = 0
    fetches: int = 0
    errors: int = 0
    bytes: int = 0
    hub_cpu_s: float = 0.0
    worker_cpu_s: dict[int, float] = {}
    known: int = 0  # URLs

    @classmethod
    def of(cls, figures: Figures, machine: Machine) -> Moment:
        totals = figures.totals
        counts = totals.pages, totals.fetches, totals.errors, totals.bytes
        return cls(figures.run_seconds, *counts, machine.hub_cpu_s, machine.worker_cpu_s, totals.urls_seen)

    def rate_since(self, earlier: Moment) -> Throughput:
        seconds = self.at_s - earlier.at_s
        if seconds <= 0:
            return Throughput()
        differences = (getattr(self, name) - getattr(earlier, name) for name in ("pages", "fetches", "errors", "bytes"))
        return Throughput(*(max(0, difference) / seconds for difference in differences))  # pages can become fewer

    def core_share_since(self, earlier: Moment) -> dict[str, float]:
        """Return the share of a core that the hub and the busiest worker used since an earlier moment."""
        seconds = self.at_s - earlier.at_s
        if seconds <= 0:
            return {}
        before = earlier.worker_cpu_s
        workers = [used_s - before[pid] for pid, used_s in self.worker_cpu_s.items() if pid in before]
        busiest = {"worker": max(0.0, *workers, 0.0) / seconds} if workers else {}
        return {"hub": (self.hub_cpu_s - earlier.hub_cpu_s) / seconds, **busiest}


class Gauges:
    def __init__(self) -> None:
        self._first: Moment | None = None
        self._moments: deque[Moment] = deque()  # of the last minute, oldest first
        self._wall_ahead_s: float | None = None
        self.machine = Machine(0, 0, 0)
        self.rates: dict[str, Throughput] = {}
        self.core_share: dict[str, float] = {}
        self.clock_jumps = 0
        self.jump_s = 0.0  # the last one
        self.bound_by: BoundBy | None = None
        self.forecast: Forecast | None = None
        self.is_growing = False  # in the last minute more URLs were found than fetched
        self.parked_hosts = self.parked_urls = 0  # when the forecast was made
        self.retried_urls = self.over_budget_urls = 0  # then
        self.next_retry: NextRetry | None = None  # then
        self.next_parked: ParkedHost | None = None  # the parked host that may be contacted first, then
        self._loads: deque[Load] = deque()  # of the last 10 s, oldest first

    def update(self, figures: Figures, machine: Machine) -> None:
        """Bring the gauges up to date. Once per second."""
        self._count_jump(machine.wall_ahead_s)
        self.machine = machine
        now = Moment.of(figures, machine)
        self._first = self._first or now
        moments = self._moments
        if figures.state is RunState.PAUSED:  # nothing is done, and its time may stand still
            moments.clear()
        moments.append(now)
        while len(moments) > 2 and now.at_s - moments[0].at_s > LONG_S + _SLACK_S:
            moments.popleft()
        recent = next(each for each in moments if now.at_s - each.at_s <= SHORT_S + _SLACK_S)
        run = now.rate_since(self._first)
        self.rates = {"10s": now.rate_since(recent), "1m": now.rate_since(moments[0]), "run": run}
        self.core_share = now.core_share_since(recent)
        before = moments[0]
        self.is_growing = now.known - before.known > now.fetches - before.fetches

    def judge(self, load: Load) -> None:
        """Find what binds the crawl, from what it is doing now and was doing ten seconds ago. Once per second."""
        loads = self._loads
        loads.append(load)
        while len(loads) > 2 and load.at_s - loads[0].at_s > SHORT_S + _SLACK_S:
            loads.popleft()
        states = (each.hosts for each in loads)
        sums = sum((Counter(hosts) for hosts in states), Counter[str]())
        hosts = {state: round(number / len(loads)) for state, number in sums.items()}
        self.bound_by = bound_by(loads[0], replace(load, hosts=hosts))

    def _count_jump(self, wall_ahead_s: float) -> None:
        before = self._wall_ahead_s
        self._wall_ahead_s = wall_ahead_s
        if before is not None and abs(wall_ahead_s - before) > JUMP_S:
            self.clock_jumps += 1
            self.jump_s = wall_ahead_s - before
