"""The figures that a report draws from events: one pass, each task counted once.

Costs: 2.5 µs per event, half of it decoding; memory: one bit per task (`reading/requests/runs`) and what
`aggregates` stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.model.events import LOOKUP, REQUEST_EVENTS, Event, EventName, outcome_of
from gossamer.model.figures import Totals, is_error
from gossamer.model.state import HoldRule
from gossamer.reading.aggregates import Frequent, RateSeries, Spread
from gossamer.reading.requests.runs import Committed, read_all_runs
from gossamer.report.record import FetchFigures, Point
from gossamer.telemetry.text import REPORT_HINT, plural

# The warnings of a crawl for its report: each text once, with times; of each rule a few, and how many more.
#
# Rules are our own words, so the memory is bounded whatever the web does.

_MAX_TEXTS = 5  # per rule
_MAX_CHARS = 200


class _Repeated(Struct):
    text: str
    first_at: float
    last_at: float
    count: int = 1


class WarningTally:
    """The warnings so far."""

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, _Repeated]] = {}  # by rule
        self._more: dict[str, _Repeated] = {}  # by rule, those beyond the texts above

    def add(self, event: Event) -> None:
        """Add a warning."""
        text = event.reason.removesuffix(REPORT_HINT)[:_MAX_CHARS]
        texts = self._texts.setdefault(event.rule, {})
        known = texts.get(text)
        if known is None and len(texts) >= _MAX_TEXTS:
            known = self._more.setdefault(event.rule, _Repeated("", event.ts, event.ts, 0))
        if known is None:
            texts[text] = _Repeated(text, event.ts, event.ts)
        else:
            known.count += 1
            known.last_at = event.ts

    def lines(self) -> list[str]:
        """Return the warnings by time, each with its time."""
        found = [(one.first_at, _line(one)) for texts in self._texts.values() for one in texts.values()]
        found += [(more.first_at, _rest(rule, more)) for rule, more in self._more.items()]
        return [line for _, line in sorted(found)]


def _line(one: _Repeated) -> str:
    line = f"{_moment(one.first_at)} UTC: {one.text}"
    return line if one.count == 1 else f"{line} ({one.count:,} times, last at {_until(one)})"


def _rest(rule: str, more: _Repeated) -> str:
    return f"{_moment(more.first_at)} UTC: {plural(more.count, 'more warning')} ({rule}), last at {_until(more)}"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _until(one: _Repeated) -> str:
    """Return the time of the last one; the date only if it is another day."""
    first = _moment(one.first_at)
    last = _moment(one.last_at)
    return last[11:] if first[:10] == last[:10] else last


# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_FETCH_OK = EventName.FETCH_OK
_REASON = b',"reason":"'
_MAX_REFUSALS = 1000
_HELD = frozenset(rule.value for rule in HoldRule)


class _Refusal(Struct, frozen=True, gc=False):
    """The part of an event that is counted: the other fields are not decoded."""

    reason: str
    rule: str = ""


_decode_refusal = msgspec.json.Decoder(_Refusal).decode


def _name_of(refusal: _Refusal) -> str:
    """Return what a refusal is counted as; empty if it is stored, and counted by the totals as long as it is."""
    if refusal.reason in _HELD:
        return ""
    return f"{refusal.reason} {refusal.rule}" if refusal.rule else refusal.reason


class EventFigures:
    """The running figures of the one pass."""

    def __init__(self) -> None:
        self.rates = RateSeries()
        self.outcomes = Frequent()
        self.statuses = Frequent()
        self.errors = Frequent()
        self.excluded = Frequent()
        self.warnings = WarningTally()
        self.robots_answers = Frequent()
        self.rate_limited = Frequent()
        self.first_byte_ms = Spread()
        self.total_ms = Spread()
        self.not_committed = self.requests = self.retries = self.redirects = self.workers_lost = 0
        self.robots_fetched = self.robots_unreachable = self.recovered_files = 0
        self.runs = 0
        self.started_at = self.last_at = 0.0
        self._refusals: dict[bytes, str] = {}  # names, by the ends of lines
        self._run = -1
        self._run_began_s = 0.0  # in crawl time
        self._now_s = 0.0
        self._is_cluster = False
        self._gauges: dict[int, tuple[int, int]] = {}  # domains and queue length, by run
        self._adders: dict[EventName, Callable[[Event], None]] = {
            **dict.fromkeys(REQUEST_EVENTS, self._add_fetch),
            EventName.HEARTBEAT: self._add_heartbeat,
            EventName.WARNING: self.warnings.add,
            EventName.WORKER_LOST: self._add_lost,
            EventName.RECOVERED: self._add_recovered,
            EventName.STOPPED: self._add_stop,
        }

    def read(self, folders: Sequence[Path], ends: Mapping[str, int]) -> None:
        """Add all events of a crawl: those in its folder, or those of all nodes by time.

        `ends` says how much of each file the totals include.
        """
        self._is_cluster = len(folders) > 1
        committed = Committed(ends)
        for run, event in read_all_runs(folders, on_refusal=self._add_refusal, committed=committed):
            self.add(run, event)
        self.not_committed = committed.lost

    def add(self, run: int, event: Event) -> None:
        """Add one event of a run."""
        if not self.started_at:
            self.started_at = event.ts
        if run != self._run:
            self._begin_run(run)
        self.last_at = event.ts
        if self._is_cluster:  # runs of several nodes at the same time: what counts is the time since the first
            now_s = event.ts - self.started_at
        else:
            now_s = self._run_began_s + event.t_ms_from_start / 1000
        self._now_s = max(self._now_s, now_s)
        if event.event is _FETCH_OK:  # as most are: an enum's member is hashed by a call of Python code
            self._add_fetch(event)
        elif (add := self._adders.get(event.event)) is not None:
            add(event)

    def _begin_run(self, run: int) -> None:
        self._run = run
        if self._is_cluster and run in self._gauges:
            return  # the events of nodes alternate
        self.runs += 1
        self._run_began_s = self._now_s
        if not self._is_cluster:
            self._gauges.clear()  # a run continues the counts of the one before; a node begins with its own
        self._gauges[run] = 0, 0

    def _add_fetch(self, event: Event) -> None:
        outcome = outcome_of(event)
        name = event.event
        kind = event.kind
        status = event.status
        self.requests += event.requests
        self.outcomes.add(outcome)
        if status:
            self.statuses.add(str(status))
            self.first_byte_ms.add(event.ttfb_ms)
        if kind != LOOKUP:
            self.total_ms.add(event.total_ms)
        part = self.rates.bin_at(self._now_s)
        part.bytes += event.bytes
        if name is _FETCH_OK:
            part.pages += 1
            return
        if status == 429:
            self.rate_limited.add(event.host)
        if kind == "robots":
            self._add_robots(event)
        if is_error(outcome, is_robots=kind == "robots"):
            self.errors.add(f"{outcome} {status}" if status else outcome)
            part.errors += 1
        if name is EventName.RETRY:
            self.retries += 1
        elif name is EventName.REDIRECT:
            self.redirects += 1

    def _add_robots(self, event: Event) -> None:
        if event.event is EventName.HTTPS_MISSING:  # it was not robots.txt that was missing
            return
        self.robots_answers.add(str(event.status) if event.status else outcome_of(event))
        if event.event is EventName.ROBOTS_FETCHED:
            self.robots_fetched += 1
        else:
            self.robots_unreachable += 1

    def _add_heartbeat(self, event: Event) -> None:
        part = self.rates.bin_at(self._now_s)
        self._gauges[self._run] = event.unique_domains or 0, event.frontier_size or 0
        part.domains = sum(domains for domains, _ in self._gauges.values())
        part.queued = sum(queued for _, queued in self._gauges.values())

    def _add_refusal(self, line: bytes) -> None:
        # What follows the reason is the same in most lines, and a quarter of the time of decoding them. A text of the
        # web cannot contain the name of a field: its quotes are escaped.
        start = line.rfind(_REASON)
        end = line[start:] if start >= 0 else line
        name = self._refusals.get(end)
        if name is None:
            try:
                name = _name_of(_decode_refusal(line))
            except msgspec.DecodeError:  # torn by a kill
                return
            if len(self._refusals) < _MAX_REFUSALS:
                self._refusals[end] = name
        if name:
            self.excluded.add(name)

    def _add_lost(self, _event: Event) -> None:
        self.workers_lost += 1

    def _add_stop(self, _event: Event) -> None:
        domains, _ = self._gauges[self._run]
        self._gauges[self._run] = domains, 0  # another node has its queue now

    def _add_recovered(self, _event: Event) -> None:
        self.recovered_files += 1

    # -- results ----------------------------------------------------------------------------------

    def timeline(self, totals: Totals, queued_now: int) -> list[Point]:
        """Return the crawl over time; a bin without a heartbeat repeats the domains and queue of the previous one.

        The last point has the totals: events are recorded up to a second after the last request, and the heartbeats of
        several nodes are not of the same moment.
        """
        points = [Point(0.0, 0, 0.0, 0, 0, 0)]
        pages = errors = domains = queued = 0
        self.rates.bin_at(self._now_s)
        width_s = self.rates.width_s
        for number, part in enumerate(self.rates.bins, 1):
            pages += part.pages
            errors += part.errors
            if part.domains:
                domains = part.domains
                queued = part.queued
            end_s = min(number * width_s, max(self._now_s, (number - 1) * width_s + 0.001))
            span_s = end_s - (number - 1) * width_s
            # The last bin may be very short, and its rate meaningless.
            rate = part.pages / span_s if span_s > width_s / 4 else points[-1].pages_per_second
            points.append(Point(round(end_s, 3), pages, round(rate, 2), errors, domains, queued))
        return _ending(points, totals, queued_now) if totals.seconds else points

    def fetches(self) -> FetchFigures:
        """Return how requests ended."""
        return FetchFigures(
            requests=self.requests,
            outcomes=self.outcomes.top(),
            statuses=self.statuses.top(),
            errors=self.errors.top(),
            retries=self.retries,
            redirects=self.redirects,
            workers_lost=self.workers_lost,
            not_committed=self.not_committed,
            first_byte_ms=self.first_byte_ms.percentiles(),
            total_ms=self.total_ms.percentiles(),
        )


def _ending(points: list[Point], totals: Totals, queued: int) -> list[Point]:
    """Return points of which the last has the totals and all that came later."""
    within = [point for point in points[:-1] if point.t_s < totals.seconds]
    last = replace(points[-1], t_s=round(totals.seconds, 3), domains=totals.unique_domains, queued=queued)
    return [*within, last]
