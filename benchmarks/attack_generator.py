"""Is there an answer that holds the crawler? Random hostile answers, read as a worker and the hub read them.

    python -m benchmarks.attack_generator [--minutes N] [--seed FIRST] [--answers N]

Each answer is decoded, parsed, stored and recorded in a child process, in the steps in which a crawl does it, and
measured: CPU time of what runs in an event loop without a break, CPU time of what runs in the thread for large answers,
and the growth of the peak of resident memory. An answer over a bound is printed with its seed: `--seed S --answers 1`
repeats it. A child that does not return within `MAX_WAIT_S` is killed, its answer is an offender, and another child
goes on.
"""

from __future__ import annotations

import argparse
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec
from benchmarks.attack_answers import MAX_BYTES, Answer, answer_of
from msgspec import Struct

from gossamer.archive.warc_sink import WarcSink
from gossamer.archive.writer import ArchiveWriter
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.robots.cache import RobotsCache
from gossamer.core.url.forms import link_to
from gossamer.engine.crawl import Crawl
from gossamer.fetch.body import decode, is_slow
from gossamer.fetch.http import BIG_BODY_BYTES, Fetcher
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.errors import GossamerError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.ports.page_sink import FetchedPage
from gossamer.runtime.hub.costly_results import COSTLY_ROBOTS_BYTES
from gossamer.runtime.watch.crash import Crash
from gossamer.runtime.workers.answers import WorkerRules, read_answer
from gossamer.runtime.workers.worker import Worker
from gossamer.sim.scenarios import ImaginedSites, Scenario

MAX_LOOP_S = 0.1
MAX_WORKER_S = 1.0
MAX_GROWTH_BYTES = 250_000_000  # of resident memory, while a page of 5 MB or a sitemap of 50 MB is read
MAX_WAIT_S = 30.0
MAX_TURNS = 50
RULES = (
    WorkerRules(),
    WorkerRules(max_requisites=500, sketches=True, reads_anchors=True, previews=sys.maxsize),
)
T = TypeVar("T")
CHILD = (sys.executable, "-m", "benchmarks.attack_generator", "--child")
URL = "http://a.test/dir/page.html"


class Reading(Struct, frozen=True):
    """What one answer took."""

    seed: int
    loop_s: float
    worker_s: float
    growth_bytes: int
    step: str  # the slowest one
    what: str
    error: str = ""

    def offences(self) -> list[str]:
        """Return which bounds it exceeds."""
        checks = (
            (bool(self.error), self.error),
            (self.loop_s > MAX_LOOP_S, f"{self.loop_s * 1000:,.0f} ms in the loop, mostly in {self.step}"),
            (self.worker_s > MAX_WORKER_S, f"{self.worker_s:.1f} s in a worker's thread"),
            (self.growth_bytes > MAX_GROWTH_BYTES, f"{self.growth_bytes / 1e6:,.0f} MB of memory"),
        )
        return [f"seed {self.seed}: {text} ({self.what})" for is_exceeded, text in checks if is_exceeded]


class Steps:
    """CPU time by step."""

    def __init__(self) -> None:
        self.loop_s: dict[str, float] = {}  # of what may follow each other without a break
        self.slices_s: dict[str, float] = {}  # the longest of those between which the loop does other work
        self.worker_s = 0.0

    def run(self, step: str, function: Callable[[], T], *, is_in_thread: bool = False) -> T:
        """Run a step and measure it."""
        began = time.process_time()
        returned = function()
        taken = time.process_time() - began
        if is_in_thread:
            self.worker_s += taken
        else:
            self.loop_s[step] = self.loop_s.get(step, 0.0) + taken
        return returned

    def run_slice(self, step: str, function: Callable[[], T]) -> T:
        """Run a step that is one of many, and measure it."""
        began = time.process_time()
        returned = function()
        self.slices_s[step] = max(self.slices_s.get(step, 0.0), time.process_time() - began)
        return returned

    def longest(self) -> tuple[float, str]:
        """Return for how long the loop was held at most, and mostly by which step."""
        at_once = sum(self.loop_s.values()), max(self.loop_s, key=lambda step: self.loop_s[step], default="")
        return max([at_once, *((taken, step) for step, taken in self.slices_s.items())])


def read(answer: Answer) -> Steps:
    """Decode, parse, store and record an answer in the steps of a crawl."""
    steps = Steps()
    rules = RULES[answer.seed % len(RULES)]
    exchange = Exchange(URL, Outcome.OK, status=200, headers=answer.headers, body=answer.body, content=answer.body)
    exchange.response_head = answer.head
    task = FetchTask(1, answer.kind, URL, link_to(URL).id, "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)

    def decode_body() -> None:
        decoded = decode(answer.body, answer.codings, MAX_BYTES[answer.kind])
        exchange.content, exchange.is_decoded = decoded.content, decoded.is_decoded

    is_coded = bool(answer.codings and answer.body)
    if is_coded:
        steps.run("decoding", decode_body, is_in_thread=is_slow(answer.body, answer.codings))
    is_big = answer.kind is not FetchKind.ROBOTS and _worker()._is_slow(exchange)
    result = steps.run("parsing", lambda: read_answer(task, exchange, rules), is_in_thread=is_big)
    store(FetchedPage(task, exchange), result, steps, is_big=is_big)
    if answer.kind is FetchKind.ROBOTS:
        cache = RobotsCache(FrontierLimits(), "gossamer")
        reader = cache.reader()
        if len(result.robots) > COSTLY_ROBOTS_BYTES:
            while not steps.run_slice("reading robots.txt", lambda: reader.read_on(result.robots)):
                pass
        read = steps.run("reading robots.txt", lambda: cache.read(result.robots))
        for path in answer.paths:
            steps.run_slice("deciding by robots.txt", lambda path=path: read.decide(path))  # type: ignore[misc]
    elif answer.kind is not FetchKind.REQUISITE:
        record(answer.kind, result, steps)
    return steps


def store(page: FetchedPage, result: Result, steps: Steps, *, is_big: bool) -> None:
    """Store an answer in an archive of its own."""
    with TemporaryDirectory() as folder:
        writer = ArchiveWriter(Path(folder), Path(folder), prefix="attack", worker=0, warcinfo={})
        sink = WarcSink(writer)
        steps.run("preparing", lambda: sink.prepare(page), is_in_thread=is_big)
        is_huge = is_big and len(page.exchange.body) > BIG_BODY_BYTES
        steps.run("storing", lambda: sink.write(page, result), is_in_thread=is_huge)
        sink.close()


def record(kind: FetchKind, result: Result, steps: Steps) -> None:
    """Record a result in a new crawl, and let it do what follows."""
    crawl, driver = Scenario(ImaginedSites(), [URL]).prepare()
    now, task = driver.now, None
    while task is None:
        for each in _turn(crawl, now):
            if each.kind is kind:
                task = each
            elif each.kind is FetchKind.ROBOTS:
                listed = b"Sitemap: http://a.test/sitemap.xml" if kind is FetchKind.SITEMAP else b""
                crawl.complete(Result(each.id, Outcome.OK, status=200, robots=listed), now)
            else:
                crawl.complete(Result(each.id, Outcome.CLIENT_ERROR, status=404), now)
        now += 1.0
    result.task_id = task.id
    steps.run("recording", lambda: crawl.complete(result, now))
    for _ in range(MAX_TURNS):
        steps.run_slice("a turn", lambda: _turn(crawl, now))
        if crawl.next_wakeup() != 0.0:
            break


def _turn(crawl: Crawl, now: float) -> list[FetchTask]:
    tasks = crawl.tasks(now)
    for host in crawl.take_resolves():
        crawl.learn_address(host, ("127.0.0.1",), now + 3600.0, now)
    return tasks


@cache
def _worker() -> Worker:
    """Return a worker, to ask it what it reads in a thread."""
    fetcher = Fetcher(FetchLimits.from_timeout(5.0, 1), Identity("Gossamer"), AddressPolicy((), ()), time.time)
    return Worker(WorkerRules(), fetcher, (), lambda _: None, NobodyListens())


class NobodyListens:
    """Receives nothing: no task is started."""

    def on_result(self, result: Result) -> None:
        """Ignore it."""

    def on_sent(self, task_id: int, sent_at: float) -> None:
        """Ignore it."""

    def on_failure(self, error: GossamerError) -> None:
        """Ignore it."""

    def on_crash(self, crash: Crash) -> None:
        """Ignore it."""


def measured(seed: int) -> Reading:
    """Make the answer of a seed, read it, and return what that took."""
    answer = answer_of(seed)
    what = f"{answer.kind.name.lower()} of {len(answer.body):,} bytes: {answer.made_of}"[:300]
    before, error, steps = _reset_peak(), "", Steps()
    try:
        steps = read(answer)
    except Exception as raised:  # a crash of ours is an offence as well
        error = f"{type(raised).__name__}: {raised}"[:200]
    growth = max(0, _memory("VmHWM:") - before)
    loop_s, slowest = steps.longest()
    return Reading(seed, loop_s, steps.worker_s, growth, slowest, what, error)


def _reset_peak() -> int:
    """Let the peak of this process begin at what it has now, and return that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    return _memory("VmRSS:")


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def serve() -> None:
    """Read seeds from standard input, one per line; write what each took."""
    for line in sys.stdin:
        sys.stdout.buffer.write(msgspec.json.encode(measured(int(line))) + b"\n")
        sys.stdout.buffer.flush()


class Child:
    """A process that reads answers; it is replaced if it does not return."""

    def __init__(self, command: Sequence[str], max_wait_s: float) -> None:
        self._command = command
        self._max_wait_s = max_wait_s
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, seed: int) -> Reading:
        """Return what the answer of a seed took."""
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"%d\n" % seed)
        process.stdin.flush()
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            is_ready = bool(waiting.select(self._max_wait_s))
        line = process.stdout.readline() if is_ready else b""
        if line:
            return msgspec.json.decode(line, type=Reading)
        self.close()
        error = "the process died" if is_ready else f"not read within {self._max_wait_s:g} s"
        return Reading(seed, 0.0, 0.0, 0, "", "", error)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def hunt(seeds: Iterator[int], command: Sequence[str] = CHILD, max_wait_s: float = MAX_WAIT_S) -> Iterator[Reading]:
    """Yield what each answer took."""
    child = Child(command, max_wait_s)
    try:
        for seed in seeds:
            yield child.read(seed)
    finally:
        child.close()


def _seeds(first: int, answers: int, minutes: float) -> Iterator[int]:
    until = time.monotonic() + 60 * minutes
    seed = first
    while (seed < first + answers) if answers else time.monotonic() < until:
        yield seed
        seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Search for answers that take too long or too much to read.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--answers", type=int, default=0, help="as many, instead of a time")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        serve()
        return 0
    readings, offenders = [], 0
    for reading in hunt(_seeds(arguments.seed, arguments.answers, arguments.minutes)):
        readings.append(reading)
        offenders += bool(reading.offences())
        for offence in reading.offences():
            print(offence, flush=True)
    slowest = max(readings, key=lambda each: each.loop_s)
    largest = max(readings, key=lambda each: each.growth_bytes)
    longest = max(readings, key=lambda each: each.worker_s)
    print(
        f"{len(readings):,} answers, {offenders} offenders; at most {slowest.loop_s * 1000:,.0f} ms in the loop (seed "
        f"{slowest.seed}), {longest.worker_s:.2f} s in a thread (seed {longest.seed}), "
        f"{largest.growth_bytes / 1e6:,.0f} MB (seed {largest.seed})"
    )
    return 1 if offenders else 0


if __name__ == "__main__":
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", "65536")  # so that one answer's memory is not the next one's
    sys.exit(main())
