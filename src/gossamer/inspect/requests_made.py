"""What did a crawl do, request by request, in the order in which the requests were sent?

Events stand in the order in which things ended. A request is held back until nothing that
was sent before it can still come up: its run's longest request later. What a killed run had
archived but not told is told by the next run, before that run's own requests, and takes its
place among the last ones of the run before.
Costs: 4 µs an event; memory: the requests of one such span of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from gossamer.core.url import origin_of
from gossamer.events import REQUEST_EVENTS, Event, EventName, Promises, outcome_of
from gossamer.inspect.runs import read_runs

SPARE_S = 10.0  # from the end of a request to its event


class Asked(Struct, frozen=True, kw_only=True):
    """One request, as the crawl recorded it."""

    url: str
    host: str
    origin: str  # of the URL; of a robots.txt the one whose rules it holds
    is_robots: bool
    sent_at: float
    ordered_at: float
    told_at: float  # it had ended by then
    outcome: str
    requests: int
    retry_after_s: float
    address: str


class RunBegun(Struct, frozen=True):
    """A run started, and what it promised. None: a run of old, which did not say."""

    at: float
    promises: Promises | None


class OptOut(Struct, frozen=True):
    """A host or domain was taken off the list of those that may be asked, or put back."""

    at: float
    name: str
    is_over: bool


Fact: TypeAlias = Asked | RunBegun | OptOut

_STEERING = frozenset({EventName.STARTED, EventName.OPTED_OUT, EventName.OPT_OUT_ENDED})


def facts_in_order(folder: Path) -> Iterator[Fact]:
    """Yield the facts of all runs in the order of time, each order once."""
    held: list[tuple[float, int, Fact]] = []
    span_s = Promises().longest_request_s + SPARE_S
    number, run, began_at = 0, -1, 0.0
    for event_run, event in read_runs(folder):
        if event_run != run:
            run, began_at = event_run, event.ts
        fact = _fact_of(event, began_at)
        if fact is None:
            continue
        if isinstance(fact, RunBegun) and fact.promises is not None:
            span_s = max(span_s, fact.promises.longest_request_s + SPARE_S)
        number += 1
        at = fact.sent_at if isinstance(fact, Asked) else fact.at
        heappush(held, (at, number, fact))
        # Only a run's own requests tell that the run before has nothing more to say.
        if isinstance(fact, Asked) and fact.sent_at >= began_at:
            while held[0][0] < event.ts - span_s:
                yield heappop(held)[2]
    while held:
        yield heappop(held)[2]


def _fact_of(event: Event, began_at: float) -> Fact | None:
    if event.event in REQUEST_EVENTS:
        return _asked(event, began_at) if event.sent_at else None
    if event.event not in _STEERING:
        return None
    if event.event is EventName.STARTED:
        return RunBegun(event.ts, event.promises)
    return OptOut(event.ts, event.host, event.event is EventName.OPT_OUT_ENDED)


def _asked(event: Event, began_at: float) -> Asked:
    # What was read back from the archive has no times of its own but the one of sending.
    is_recovered = event.sent_at < began_at
    told_at = event.sent_at if is_recovered else event.ts
    return Asked(
        url=event.url,
        host=event.host,
        origin=event.origin or origin_of(event.url),
        is_robots=event.kind == "robots",
        sent_at=event.sent_at,
        ordered_at=min(event.sent_at, told_at - event.total_ms / 1000),
        told_at=told_at,
        outcome=outcome_of(event),
        requests=event.requests,
        retry_after_s=event.retry_after_s,
        address=event.address,
    )
