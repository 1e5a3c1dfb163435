"""How did a crawl go so far? Its counts and speed, at equal intervals of time.

Pages come in bursts and heartbeats with them, so the speed between two heartbeats says little: what was counted is
spread over the time between two counts, and averaged over intervals. While an operator had paused the crawl, nothing is
spread and no speed is given. The end of the events is read, since they know the pauses; of a crawl that has ended and
has more events than that, its report.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.model.events import REQUEST_EVENTS, EventName
from gossamer.reading.view import CrawlView

MAX_INTERVALS = 100
SMOOTH_S = 5.0  # an interval, if the crawl lasts long enough for ten of them
_TAIL_BYTES = 8 << 20  # of the events
_REPORT = "report.json"


class HistoryPoint(Struct, frozen=True):
    """The crawl at the end of an interval, and its speed in it: None if it was paused, or if it is not known."""

    t_s: float  # since the first point
    pages: int
    errors: int
    queued: int
    pages_per_second: float | None
    errors_per_second: float | None
    bytes_per_second: float | None


class HistoryAnswer(Struct, frozen=True):
    """The history of a crawl: of its last part while it runs, of all of it when it has ended."""

    points: list[HistoryPoint]


class Count(Struct, frozen=True):
    """What was counted up to a time."""

    t_s: float
    pages: int
    errors: int
    queued: int
    bytes: int | None = None


class _Timeline(Struct):
    """What is read of a report."""

    timeline: list[Count] = []


class _Line(Struct, frozen=True):
    """What is read of an event."""

    ts: float
    event: EventName
    bytes: int = 0
    rule: str = ""
    fetched: int = 0
    errors: int = 0
    frontier_size: int = 0


class _Events(Struct):
    """The end of an event file: a count per heartbeat, and the pauses."""

    counts: list[Count] = []
    pauses: list[tuple[float, float]] = []
    first_at: float = 0.0
    last_at: float = 0.0
    paused_at: float | None = None
    received: int = 0

    def add(self, line: _Line) -> None:
        self.first_at = self.first_at or line.ts
        self.last_at = line.ts
        t_s = line.ts - self.first_at
        if line.event in REQUEST_EVENTS:
            self.received += line.bytes
        elif line.event is EventName.HEARTBEAT:
            self.counts.append(Count(t_s, line.fetched or 0, line.errors or 0, line.frontier_size or 0, self.received))
        elif line.event is EventName.OPERATOR and line.rule == "pause":
            self.paused_at = t_s
        elif line.event is EventName.OPERATOR and line.rule == "resume" and self.paused_at is not None:
            self.pauses.append((self.paused_at, t_s))
            self.paused_at = None


def history(crawl: CrawlView) -> HistoryAnswer:
    """Return the history of a crawl; empty if its events are on several machines."""
    folder = next(iter(crawl.folders.found.values()), None)
    if folder is None or len(crawl.folders.found) != 1:
        return HistoryAnswer([])
    files = sorted(folder.events.glob("*.jsonl"))
    is_whole = len(files) == 1 and files[0].stat().st_size <= _TAIL_BYTES
    reported = [] if is_whole or crawl.is_running else _from_report(folder.path / _REPORT)
    if reported or not files:
        return HistoryAnswer(evened(reported, []))
    events = _read(files[-1])
    counts = [Count(0.0, 0, 0, 0, 0), *events.counts] if is_whole else events.counts
    if not crawl.is_running:  # the last pages have no heartbeat
        figures = crawl.figures()
        totals = figures.totals
        last_s = events.last_at - events.first_at
        counts = [*counts, Count(last_s, totals.pages, totals.errors, figures.urls_queued, events.received)]
    return HistoryAnswer(evened(counts, events.pauses))


def _from_report(path: Path) -> list[Count]:
    """Return the history in a report; empty if there is none, or one of another version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Timeline).timeline
    except (OSError, msgspec.DecodeError):
        return []


def _read(path: Path) -> _Events:
    decode = msgspec.json.Decoder(_Line).decode
    events = _Events()
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        for line in file:
            with suppress(msgspec.DecodeError):  # the first one is cut, the last one may be
                events.add(decode(line))
    return events


def evened(counts: Sequence[Count], pauses: Sequence[tuple[float, float]]) -> list[HistoryPoint]:
    """Return counts as points at equal intervals of time, beginning with the first count."""
    start_s = counts[0].t_s if counts else 0.0
    span_s = counts[-1].t_s - start_s if counts else 0.0
    if span_s <= 0:
        return []
    width_s = max(span_s / MAX_INTERVALS, min(SMOOTH_S, span_s / 10))
    number = max(1, round(span_s / width_s))
    ends = [start_s + span_s * index / number for index in range(number + 1)]
    times = [count.t_s for count in counts]
    at_ends = [_at(counts, times, pauses, end_s) for end_s in ends]
    return [
        _point(before, after, start_s, max(0.0, span_s / number - _paused(pauses, before.t_s, after.t_s)))
        for before, after in pairwise(at_ends)
    ]


def _point(before: Count, after: Count, start_s: float, active_s: float) -> HistoryPoint:
    is_known = active_s > 0.1 * (after.t_s - before.t_s)

    def speed(earlier: int | None, later: int | None) -> float | None:
        if not is_known or earlier is None or later is None:
            return None
        return round(max(0, later - earlier) / active_s, 2)

    return HistoryPoint(
        t_s=round(after.t_s - start_s, 3),
        pages=after.pages,
        errors=after.errors,
        queued=after.queued,
        pages_per_second=speed(before.pages, after.pages),
        errors_per_second=speed(before.errors, after.errors),
        bytes_per_second=speed(before.bytes, after.bytes),
    )


def _at(counts: Sequence[Count], times: Sequence[float], pauses: Sequence[tuple[float, float]], t_s: float) -> Count:
    """Return what was counted up to a time, interpolated from the count before, without pauses."""
    index = min(max(1, bisect_left(times, t_s)), len(counts) - 1)
    a = counts[index - 1]
    b = counts[index]
    active_s = b.t_s - a.t_s - _paused(pauses, a.t_s, b.t_s)
    share = (t_s - a.t_s - _paused(pauses, a.t_s, t_s)) / active_s if active_s > 0 else 1.0

    def between(earlier: int, later: int) -> int:
        return round(earlier + min(1.0, max(0.0, share)) * (later - earlier))

    received = None if a.bytes is None or b.bytes is None else between(a.bytes, b.bytes)
    return Count(t_s, between(a.pages, b.pages), between(a.errors, b.errors), between(a.queued, b.queued), received)


def _paused(pauses: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    """Return the seconds of an interval that were paused."""
    return sum(max(0.0, min(end_s, until_s) - max(start_s, from_s)) for from_s, until_s in pauses)
