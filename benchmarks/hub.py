"""What does the hub cost a page? The real hub, ledger and events, with results that were recorded before.

A crawl of the synthetic web is recorded once: what a worker reports of each URL. Then the hub runs
that crawl again, several times, with workers that answer from the record: their own cost is measured
apart and taken off. What is left is what one hub pays for a page with worker processes: tasks written
and results read as frames, decisions, rows, events, commits. Only the sockets' system calls are missing.

A hub that is never idle is what the aim is about: it bounds how many workers can be fed. One that has to wait
for results pays more a page, as its code and data leave the caches in the meantime: `--pause-ms` crawls once
more with so long a pause before each frame of a worker, so that both are known.

python benchmarks/hub.py [--pages N] [--rounds N] [--workers N] [--pause-ms MS]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import thread_time

import msgspec
import uvloop

from gossamer.assembly.run import RunPlace, build_session
from gossamer.backends.local.folder import CrawlFolder
from gossamer.engine.crawl import Crawl
from gossamer.foundation.collector import make_full_collections_rare
from gossamer.model.records import Completed, FetchTask, Result
from gossamer.runtime.workers import messages
from gossamer.runtime.workers.channel import Channel, HubListener, ProcessChannel
from gossamer.settings.load import settings_for_new
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, seeds_from
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

RESULTS_PER_FRAME = 8  # as workers under load send them
MAX_AIM_US = 80.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Result).decode


class Recorded(msgspec.Struct):
    """What workers said in one crawl, by URL."""

    results: dict[str, bytes] = {}
    pause_s: float = 0.0  # before each frame
    worker_s: float = 0.0  # CPU that playing workers took


class PlayedChannel(ProcessChannel):
    """A worker process that is none: answers from the record, by the same frames."""

    def __init__(self, number: int, listener: HubListener, recorded: Recorded) -> None:
        self.number = number
        self._listener = listener
        self._recorded = recorded
        self._reader = messages.FrameReader()
        self._decided: list[int] = []
        self._waiting: list[FetchTask] = []

    async def open(self) -> None:
        """Begin; there is nothing to start."""
        self._loop = asyncio.get_running_loop()

    def start(self, tasks: Sequence[FetchTask]) -> None:
        """Take tasks: the hub pays for the frame."""
        decided, self._decided = self._decided, []
        messages.frame(messages.FetchTasks(list(tasks), decided))
        if not self._waiting:
            self._plan_answer()
        self._waiting += tasks

    def _plan_answer(self) -> None:
        if self._recorded.pause_s:
            self._loop.call_later(self._recorded.pause_s, self._answer)
        else:
            self._loop.call_soon(self._answer)

    def _answer(self) -> None:
        begun = thread_time()
        tasks, self._waiting = self._waiting[:RESULTS_PER_FRAME], self._waiting[RESULTS_PER_FRAME:]
        if self._waiting:
            self._plan_answer()
        results = []
        for task in tasks:
            result = _decode(self._recorded.results[task.url])
            result.task_id = task.id
            results.append(result)
        data = messages.frame(messages.Results(results))
        self._recorded.worker_s += thread_time() - begun
        self.data_received(data)

    async def sync(self) -> None:
        """Everything is as durable as it gets."""

    async def close(self) -> messages.WorkerReport | None:
        """There is nothing to end."""
        return None


class PlayedWorkers:
    """Workers that answer from the record."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def open_channel(self, number: int, listener: HubListener) -> Channel:
        """Return a channel to a worker."""
        return PlayedChannel(number, listener, self._recorded)

    def rescue(self, number: int) -> list[Result]:
        """Return nothing: these workers do not die."""
        return []


def record(settings: Settings, seeds: list[Seed], out: Path) -> Recorded:
    """Crawl for real, and keep what the workers say."""
    recorded = Recorded()
    complete = Crawl.complete

    def recording(self: Crawl, result: Result, now: float) -> Completed | None:
        encoded = _encode(result)
        completed = complete(self, result, now)
        if completed is not None:
            recorded.results[completed.task.url] = encoded
        return completed

    Crawl.complete = recording  # type: ignore[method-assign]
    try:
        session = build_session(msgspec.structs.replace(settings, workers=1), CrawlFolder(out), seeds)
        session.open()
        uvloop.run(session.run())
    finally:
        Crawl.complete = complete  # type: ignore[method-assign]
    return recorded


def play(settings: Settings, seeds: list[Seed], out: Path, recorded: Recorded) -> float:
    """Crawl from the record; return CPU microseconds per page."""
    session = build_session(settings, CrawlFolder(out), seeds, place=RunPlace(workers=PlayedWorkers(recorded)))
    session.open()
    recorded.worker_s = 0.0
    summary = uvloop.run(session.run())
    return 1e6 * (summary.crawl_cpu_seconds - recorded.worker_s) / summary.pages


def show(name: str, costs: list[float]) -> None:
    """Print what came of one kind of crawl."""
    print(
        f"hub, {name}: {median(costs):.0f} µs of CPU per page, {min(costs):.0f} at least, over {len(costs)} crawls "
        f"(at most {MAX_AIM_US:.0f} wanted of a hub that is never idle)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What does the hub cost a page?")
    parser.add_argument("--pages", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=16, help="how many workers the hub feeds (16)")
    parser.add_argument("--pause-ms", type=float, default=0.0, help="crawl also with so long a pause before each frame")
    arguments = parser.parse_args()
    pages, rounds = arguments.pages, arguments.rounds
    with (
        tempfile.TemporaryDirectory() as name,
        RunningWeb(preset("plain", domains=min(200, pages // 50), pages=pages)) as web,
    ):
        given = {"dns": web.dns_address, "allow_network": ("127.0.0.0/8",), "politeness_ms": 0, "scope": "any"}
        more = {"max_pages": pages, "workers": arguments.workers, "contact": "mailto:bench@example.org"}
        settings = settings_for_new([("benchmark", {**given, **more})], has_domain_list=False)
        seeds = seeds_from(web.seeds(10))
        folder = Path(name)
        recorded = record(settings, seeds, folder / "record")
        gc.collect()
        make_full_collections_rare()  # as every crawl does
        show("never idle", [play(settings, seeds, folder / f"play{number}", recorded) for number in range(rounds)])
        if arguments.pause_ms:
            recorded.pause_s = arguments.pause_ms / 1000
            costs = [play(settings, seeds, folder / f"paused{number}", recorded) for number in range(rounds)]
            show(f"idle for {arguments.pause_ms:g} ms before each {RESULTS_PER_FRAME} results of a worker", costs)


if __name__ == "__main__":
    main()
