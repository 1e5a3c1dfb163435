"""Where does the CPU time of a page go? An ordinary crawl, with a clock around each stage.

`STAGES` maps stages to functions. Time is exclusive: time that one stage spends in functions of
another counts for the latter, so the stages add up, and the remainder is the total minus their
sum. The clock is the thread's own CPU time; the cost of the clock itself (about a microsecond
per call) is measured and subtracted. A crawl that is not measured is not affected: `installed`
adds the clocks, and removes them again.

A name in the table that does not exist is an error, so that the table follows the code.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from threading import get_ident
from time import thread_time_ns
from typing import Any, Final

from msgspec import Struct

from gossamer.model.errors import GossamerError

# stage -> "module:function" or "module:Class.method" below `gossamer`. Coroutines cannot be timed: they wait.
STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    # libcurl and its callbacks, name resolution, time limits.
    "fetch": (
        "fetch.names.poller:Poller._on_ready",
        "fetch.names.poller:Poller._on_timer_due",
        "fetch.names.poller:Poller._run_due",
        "fetch.http:Fetcher.start",
        "fetch.http:Fetcher._sweep",
        "fetch.plain.client:PlainClient._begin_all",
        "fetch.plain.client:PlainClient._on_ready",
        "fetch.names.dns:Resolver._ask",
        "fetch.names.dns_channel:DnsChannel._on_ready",
        "fetch.names.dns_channel:DnsChannel._tick",
    ),
    "decode": ("fetch.body:decode",),
    # Type and charset, then markup, links and text in one pass.
    "parse": ("parse.dispatch:parse_exchange", "parse.html.html:parse_html", "parse.html.scan:scan"),
    # Evaluation of the links, metas and bases found.
    "links": ("parse.html.markup:document_of",),
    "URLs": ("core.url.forms:links_from",),
    # Scope, traps, seen set: the cache in memory, then the filter and the exact set.
    "seen": ("core.links.intake:Intake.screen", "backends.local.ledger:LocalLedger.admit"),
    "signature": (
        "parse.text.fingerprint:text_fingerprint",
        "core.dedup.scheme:signature_of",
        "engine.results.copies:Copies._most_similar",
    ),
    # The rest of reading an answer: content hash, validators, page directives, words.
    "result": ("runtime.workers.worker:Worker._drain", "runtime.workers.answers:read_answer"),
    "archive": (
        "archive.writer:ArchiveWriter.write",
        "archive.files:FileSink.store",
        "backends.local.ledger:LocalLedger.first_with_content",
    ),
    # Which host is next, what follows from a result, evidence of traps.
    "frontier": (
        "runtime.hub.hub:Hub._turn",
        "runtime.hub.hub:Hub.on_result",
        "runtime.hub.hub:Hub._resolved",
        "engine.crawl:Crawl.tasks",
        "engine.crawl:Crawl.complete",
    ),
    "events": (
        "telemetry.event_log:EventLog.emit",
        "telemetry.event_log:EventLog.flush",
        "engine.event_emitter:EventEmitter.page",
    ),
    # Rows of the ledger, sync of the archive, the transaction.
    "commit": (
        "backends.local.ledger:LocalLedger.finish",
        "backends.local.ledger:LocalLedger.seal",
        "backends.local.store:Store.write",
        "archive.writer:ArchiveWriter.sync",
        "runtime.hub.hub:Hub._save_state",
    ),
    # Once, at the end of a crawl.
    "report": ("archive.cdxj:fold_index", "report.build:write_report"),
}
_CALIBRATION_CALLS: Final = 20_000


class Spent(Struct):
    """The time of a stage, over all threads."""

    ns: int = 0
    calls: int = 0
    inner_calls: int = 0  # of functions with other clocks, made directly from this stage


class ClockCost(Struct, frozen=True):
    """The overhead of timing a call."""

    inside_ns: float  # between the two readings: counted for the stage itself
    outside_ns: float  # around them: counted for the caller


class _Thread:
    """The current stage of a thread, and the time of its stages so far."""

    __slots__ = ("frame", "spent")

    def __init__(self, stages: Mapping[str, object]) -> None:
        self.frame = [0, 0]  # nanoseconds and calls of timed functions, called from the one that is running
        self.spent = {stage: Spent() for stage in stages}


class StageClock:
    """Sums CPU time by stage. Thread-safe: each thread has its own sums."""

    def __init__(self, stages: Mapping[str, tuple[str, ...]] = STAGES) -> None:
        self._stages = stages
        self._threads: dict[int, _Thread] = {}

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a clock around it."""
        threads = self._threads
        stages = self._stages
        clock = thread_time_ns
        ident = get_ident

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any arguments
            thread = threads.get(ident())
            if thread is None:
                thread = threads[ident()] = _Thread(stages)
            outer = thread.frame
            frame = thread.frame = [0, 0]
            begun = clock()
            try:
                return function(*args, **kwargs)
            finally:
                took = clock() - begun
                thread.frame = outer
                outer[0] += took
                outer[1] += 1
                spent = thread.spent[stage]
                spent.ns += took - frame[0]
                spent.calls += 1
                spent.inner_calls += frame[1]

        return update_wrapper(call, function)

    def spent(self) -> dict[str, Spent]:
        """Return the time of each stage so far, including the clocks."""
        total = {stage: Spent() for stage in self._stages}
        for thread in list(self._threads.values()):
            for stage, spent in thread.spent.items():
                total[stage].ns += spent.ns
                total[stage].calls += spent.calls
                total[stage].inner_calls += spent.inner_calls
        return total


class StageShare(Struct, frozen=True):
    """The share of a stage in a page."""

    us: float
    calls: float


class StageProfile(Struct, frozen=True):
    """CPU microseconds per page, by stage; `else_us` is the total minus the stages, `clock_us` was subtracted."""

    pages: int
    whole_us: float
    stages: dict[str, StageShare]
    else_us: float
    clock_us: float


def profile(clock: StageClock, whole_s: float, pages: int, cost: ClockCost | None = None) -> StageProfile:
    """Return the profile of a crawl that took this much CPU time and got this many pages."""
    cost = cost or clock_cost()
    pages = max(1, pages)
    spent = clock.spent()
    clock_ns = sum(stage.calls for stage in spent.values()) * (cost.inside_ns + cost.outside_ns)
    shares = {name: _share(stage, cost, pages) for name, stage in spent.items()}
    whole_us = (whole_s * 1e9 - clock_ns) / pages / 1e3
    return StageProfile(
        pages=pages,
        whole_us=round(whole_us, 2),
        stages=shares,
        else_us=round(whole_us - sum(share.us for share in shares.values()), 2),
        clock_us=round(clock_ns / pages / 1e3, 2),
    )


def _share(stage: Spent, cost: ClockCost, pages: int) -> StageShare:
    ns = stage.ns - stage.calls * cost.inside_ns - stage.inner_calls * cost.outside_ns
    return StageShare(us=round(max(0.0, ns) / pages / 1e3, 2), calls=round(stage.calls / pages, 3))


def clock_cost(calls: int = _CALIBRATION_CALLS) -> ClockCost:
    """Measure the cost of a clock, on an empty function."""

    def nothing(_: object) -> None:
        return None

    clock = StageClock({"nothing": ()})
    timed = clock.timed("nothing", nothing)
    plain_ns = _time_calls(nothing, calls)
    timed_ns = _time_calls(timed, calls)
    inside_ns = max(0.0, clock.spent()["nothing"].ns - plain_ns) / calls
    return ClockCost(inside_ns, max(0.0, (timed_ns - plain_ns) / calls - inside_ns))


def _time_calls(function: Callable[[object], object], calls: int) -> int:
    begun = thread_time_ns()
    for _ in range(calls):
        function(None)
    return thread_time_ns() - begun


@contextmanager
def installed(clock: StageClock, stages: Mapping[str, tuple[str, ...]] = STAGES) -> Iterator[None]:
    """Add clocks to the functions of all stages. Objects created inside are timed, earlier ones are not."""
    undo: list[tuple[object, str, object]] = []
    try:
        for stage, names in stages.items():
            for name in names:
                undo += _replace(name, partial(clock.timed, stage))
        yield
    finally:
        for owner, attribute, original in reversed(undo):
            setattr(owner, attribute, original)


def _replace(name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[tuple[object, str, object]]:
    """Replace a function under every name that refers to it; return what is needed to undo that."""
    module_name, _, path = name.partition(":")
    owner: object = importlib.import_module(f"gossamer.{module_name}")
    *outer, attribute = path.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    original = getattr(owner, attribute, None)
    if not callable(original) or inspect.iscoroutinefunction(original):
        raise GossamerError(
            f"{name} in the table of stages is not a function that can be timed; see cli/bench/stages.py"
        )
    wrapped = wrap(original)
    places = [(owner, attribute)] if outer else _places_of(original)
    for place, known_as in places:
        setattr(place, known_as, wrapped)
    return [(place, known_as, original) for place, known_as in places]


def _places_of(function: object) -> list[tuple[object, str]]:
    """Return every module of ours that has the function, with its name there: many may have imported it."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("gossamer.")]
    return [(module, name) for module in modules for name, value in vars(module).items() if value is function]
