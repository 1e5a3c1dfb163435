"""What does the hub cost a page? The real hub, ledger and events, with results that were recorded before.

A crawl of the synthetic web is recorded once: what a worker reports of each URL. Then the hub runs
that crawl again, several times, with workers that answer from the record: their own cost is measured
apart and taken off. What is left is what one hub pays for a page with worker processes: orders written
and results read as frames, decisions, rows, events, commits. Only the sockets' system calls are missing.

python benchmarks/hub.py [PAGES] [ROUNDS]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import process_time, thread_time

import msgspec
import uvloop

from gossamer.assembly import Assembly
from gossamer.backends.local.folder import CrawlFolder
from gossamer.engine.crawl import Crawl
from gossamer.records import Order, Result
from gossamer.runtime import messages
from gossamer.runtime.channel import Channel, HubListener, ProcessChannel
from gossamer.settings.load import settings_for_new
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, seeds_from
from gossamer.sim.running import RunningWeb
from gossamer.sim.web import preset

WORKERS = 2
RESULTS_A_FRAME = 8  # as workers under load send them
MOST_AIM_US = 80.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Result).decode


class Recorded(msgspec.Struct):
    """What workers said in one crawl, by URL."""

    results: dict[str, bytes] = {}
    worker_s: float = 0.0  # CPU that playing workers took


class PlayedChannel(ProcessChannel):
    """A worker process that is none: answers from the record, by the same frames."""

    def __init__(self, number: int, listener: HubListener, recorded: Recorded) -> None:
        self.number = number
        self._listener = listener
        self._recorded = recorded
        self._reader = messages.FrameReader()
        self._decided: list[int] = []
        self._waiting: list[Order] = []

    async def open(self) -> None:
        """Begin; there is nothing to start."""
        self._loop = asyncio.get_running_loop()

    def start(self, orders: Sequence[Order]) -> None:
        """Take orders: the hub pays for the frame."""
        decided, self._decided = self._decided, []
        messages.frame(messages.Orders(list(orders), decided))
        if not self._waiting:
            self._loop.call_soon(self._answer)
        self._waiting += orders

    def _answer(self) -> None:
        begun = thread_time()
        orders, self._waiting = self._waiting[:RESULTS_A_FRAME], self._waiting[RESULTS_A_FRAME:]
        if self._waiting:
            self._loop.call_soon(self._answer)
        results = []
        for order in orders:
            result = _decode(self._recorded.results[order.url])
            result.order_id = order.id
            results.append(result)
        data = messages.frame(messages.Results(results))
        self._recorded.worker_s += thread_time() - begun
        self.data_received(data)

    async def sync(self) -> None:
        """Everything is as durable as it gets."""

    async def close(self) -> messages.Report | None:
        """There is nothing to end."""
        return None


class PlayedAssembly(Assembly):
    """A crawl whose workers answer from the record."""

    recorded: Recorded

    def _open_channel(self, number: int, listener: HubListener) -> Channel:
        return PlayedChannel(number, listener, self.recorded)


def record(settings: Settings, seeds: list[Seed], out: Path) -> Recorded:
    """Crawl for real, and keep what the workers say."""
    recorded = Recorded()
    complete = Crawl.complete

    def recording(crawl: Crawl, result: Result, now: float) -> None:
        recorded.results[crawl.order(result.order_id).url] = _encode(result)
        complete(crawl, result, now)

    Crawl.complete = recording  # type: ignore[method-assign]
    try:
        assembly = Assembly(msgspec.structs.replace(settings, workers=1), CrawlFolder(out), seeds)
        assembly.open()
        uvloop.run(assembly.run(shows_progress=False))
    finally:
        Crawl.complete = complete  # type: ignore[method-assign]
    return recorded


def play(settings: Settings, seeds: list[Seed], out: Path, recorded: Recorded) -> float:
    """Crawl from the record; return CPU microseconds a page."""
    assembly = PlayedAssembly(settings, CrawlFolder(out), seeds)
    assembly.recorded = recorded
    assembly.open()
    recorded.worker_s = 0.0
    summary = uvloop.run(assembly.run(shows_progress=False))
    return 1e6 * (summary.crawl_cpu_seconds - recorded.worker_s) / summary.pages


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 15_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with (
        tempfile.TemporaryDirectory() as name,
        RunningWeb(preset("plain", domains=min(200, pages // 50), pages=pages)) as web,
    ):
        given = {"dns": web.dns_address, "allow_network": ("127.0.0.0/8",), "politeness_ms": 0, "scope": "any"}
        more = {"max_pages": pages, "workers": WORKERS, "contact": "mailto:bench@example.org"}
        settings = settings_for_new([("benchmark", {**given, **more})], has_domain_list=False)
        seeds = seeds_from(web.seeds(10))
        folder = Path(name)
        recorded = record(settings, seeds, folder / "record")
        costs = [play(settings, seeds, folder / f"play{number}", recorded) for number in range(rounds)]
    print(
        f"hub: {median(costs):.0f} µs of CPU a page, {min(costs):.0f} at least, over {rounds} crawls "
        f"of {pages:,} pages (at most {MOST_AIM_US:.0f} wanted); the process took {process_time():.1f} s"
    )


if __name__ == "__main__":
    main()
