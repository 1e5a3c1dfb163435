"""The requests of a crawl, in the order in which they were sent, from its events.

Events are in the order in which requests ended. A request is delayed here until no request
that was sent earlier can follow: by the longest time that a request of its run may take. Pages
that a killed run archived but did not record are recorded by the next run, before its own
requests, and are put among the last requests of the killed run.
Costs: 4 µs per event; memory: the requests within that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush, merge
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from gossamer.core.url.forms import origin_of
from gossamer.model.events import REQUEST_EVENTS, Event, EventName, Promises, outcome_of
from gossamer.reading.requests.runs import read_runs

SPARE_S = 10.0  # from the end of a request to its event


class SentRequest(Struct, frozen=True, kw_only=True):
    """One request, as the crawl recorded it."""

    url: str
    host: str
    origin: str  # of the URL; for a robots.txt the origin that its rules apply to
    is_robots: bool
    sent_at: float
    issued_at: float
    ended_at: float  # when its event was recorded
    outcome: str
    requests: int
    retry_after_s: float
    address: str
    run: tuple[int, float]  # node, and when the run that sent it started
    redirect_to: str = ""


class RunStarted(Struct, frozen=True):
    """A run started. `promises` is None for a run that did not record them."""

    at: float
    promises: Promises | None
    node: int = 0  # of several nodes: which one


class PromisesChanged(Struct, frozen=True):
    """An operator changed the pace of a run."""

    at: float
    promises: Promises


class OptOut(Struct, frozen=True):
    """A host or domain opted out, or its opt-out ended."""

    at: float
    name: str
    is_over: bool
    node: int = 0


Fact: TypeAlias = SentRequest | RunStarted | PromisesChanged | OptOut

_STEERING = frozenset({EventName.STARTED, EventName.OPERATOR, EventName.OPTED_OUT, EventName.OPT_OUT_ENDED})


def facts_of_nodes(folders: Sequence[Path]) -> Iterator[Fact]:
    """Yield the facts of a crawl, or of all nodes of a cluster, in order of time; see `facts_in_order`."""
    return merge(*(facts_in_order(folder, node) for node, folder in enumerate(folders)), key=_time_of)


def _time_of(fact: Fact) -> float:
    return fact.sent_at if isinstance(fact, SentRequest) else fact.at


def facts_in_order(folder: Path, node: int = 0) -> Iterator[Fact]:
    """Yield the facts of all runs in order of time, each task once.

    If the clock was set back between two runs, all facts of the earlier one come first.
    """
    pending: list[tuple[float, int, Fact]] = []
    span_s = Promises().longest_request_s + SPARE_S
    number = 0
    run = -1
    started_at = 0.0
    before_at = 0.0
    newest_at = 0.0
    is_set_back = False
    for event_run, event in read_runs(folder):
        if event_run != run:
            run, started_at, before_at = event_run, event.ts, started_at
            is_set_back = event.ts < newest_at
            while is_set_back and pending:
                yield heappop(pending)[2]
            newest_at = event.ts
        newest_at = max(newest_at, event.ts)
        fact = _fact_of(event, started_at, before_at, node)
        if fact is None:
            continue
        if isinstance(fact, RunStarted) and fact.promises is not None:
            span_s = max(span_s, fact.promises.longest_request_s + SPARE_S)
        if is_set_back and isinstance(fact, SentRequest) and fact.sent_at > event.ts:
            yield fact  # of the run before, recovered from the archive
            continue
        number += 1
        heappush(pending, (_time_of(fact), number, fact))
        # Requests recovered from the previous run come first, so only a run's own requests end that run's facts.
        if isinstance(fact, SentRequest) and fact.sent_at >= started_at:
            while pending[0][0] < event.ts - span_s:
                yield heappop(pending)[2]
    while pending:
        yield heappop(pending)[2]


def _fact_of(event: Event, started_at: float, before_at: float, node: int) -> Fact | None:
    """Return the fact in an event of a run, if it has one; `before_at` is when the run before it started."""
    if event.event in REQUEST_EVENTS:
        return _sent_request(event, started_at, before_at, node) if event.sent_at else None
    if event.event not in _STEERING:
        return None
    if event.event is EventName.STARTED:
        return RunStarted(event.ts, event.promises, node)
    if event.event is EventName.OPERATOR:
        return None if event.promises is None else PromisesChanged(event.ts, event.promises)
    return OptOut(event.ts, event.host, event.event is EventName.OPT_OUT_ENDED, node)


def _sent_request(event: Event, started_at: float, before_at: float, node: int) -> SentRequest:
    # A page recovered from the archive has only the time of sending.
    is_recovered = event.sent_at < started_at or event.sent_at > event.ts
    ended_at = event.sent_at if is_recovered else event.ts
    return SentRequest(
        url=event.url,
        host=event.host,
        origin=event.origin or origin_of(event.url),
        is_robots=event.kind == "robots",
        sent_at=event.sent_at,
        issued_at=min(event.sent_at, ended_at - event.total_ms / 1000),
        ended_at=ended_at,
        outcome=outcome_of(event),
        requests=event.requests,
        retry_after_s=event.retry_after_s,
        address=event.address,
        run=(node, before_at if is_recovered else started_at),
        redirect_to=event.target,
    )
