"""Bodies that take long to decode do not hold the event loop."""

from __future__ import annotations

import asyncio
import gzip
import random
import threading
import time

import pytest

from gossamer.core.robots.rules import MAX_ROBOTS_BYTES
from gossamer.fetch.body import SLOW_BYTES
from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation
from gossamer.runtime.workers.worker import FETCHED_ROBOTS_BYTES

from .servers import IDENTITY, LOOPBACK, Visit, answer, fetched, run, says

LONG = random.Random(1).randbytes(2 * SLOW_BYTES)


class Gate:
    """Marks that hold the thread that decodes until they are opened, and record which thread set which place."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.set_by: list[tuple[int, int, bool]] = []
        self.is_decoding = threading.Event()
        self._open = threading.Event()
        if is_open:
            self._open.set()

    def open(self) -> None:
        self._open.set()

    def __setitem__(self, place: int, number: int, /) -> None:
        is_loop = threading.current_thread() is threading.main_thread()
        self.set_by.append((place, number, is_loop))
        if not is_loop and number:
            self.is_decoding.set()
            assert self._open.wait(10)


async def serve(body: bytes, codings: str) -> tuple[asyncio.Server, str]:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = Visit(reader, writer, 1)
        while await visit.request():
            await visit.send(answer(body, f"Content-Encoding: {codings}"))
        writer.close()

    server = await asyncio.start_server(script, "127.0.0.1", 0)
    return server, f"http://site.test:{server.sockets[0].getsockname()[1]}/"


def fetcher_with(gate: Gate) -> Fetcher:
    return Fetcher(FetchLimits(), IDENTITY, AddressPolicy(["127.0.0.0/8"]), time.time, marks=gate)


@pytest.mark.parametrize(
    ("content", "codings", "place"), [(b"short", "gzip", 0), (LONG, "gzip", 2), (b"twice", "gzip, gzip", 2)]
)
def test_a_body_that_may_take_long_is_decoded_in_a_thread(content: bytes, codings: str, place: int) -> None:
    gate = Gate()

    told: list[Exchange] = []

    async def main() -> None:
        body = content
        for _ in codings.split(","):
            body = gzip.compress(body)
        server, url = await serve(body, codings)
        async with server, fetcher_with(gate) as fetcher:
            told.append(await fetcher.fetch(FetchRequest(url, LOOPBACK, number=7)))

    run(main)
    (exchange,) = told
    assert (exchange.outcome, exchange.content, exchange.is_decoded) == (Outcome.OK, content, True)
    by_thread = [(2, 7, False), (2, 0, False)] if place == 2 else []
    assert gate.set_by == [(0, 7, True), (0, 0, True), *by_thread]


def test_the_loop_goes_on_while_a_body_is_decoded_and_the_exit_of_the_fetcher_ends_it() -> None:
    gate = Gate(is_open=False)
    told: list[Exchange] = []

    async def main() -> None:
        server, url = await serve(gzip.compress(LONG), "gzip")
        async with server:
            async with fetcher_with(gate) as fetcher:
                fetcher.start(FetchRequest(url, LOOPBACK, number=7), told.append)
                await asyncio.to_thread(gate.is_decoding.wait, 10)
                assert (fetcher.in_flight, told) == (1, [])
            assert [(exchange.outcome, exchange.body) for exchange in told] == [(Outcome.WORKER_LOST, b"")]
            gate.open()
            await asyncio.sleep(0)
        assert len(told) == 1

    run(main)


def test_a_request_that_is_cancelled_while_its_body_is_decoded_is_never_heard_of_again() -> None:
    gate = Gate(is_open=False)

    async def main() -> None:
        server, url = await serve(gzip.compress(LONG), "gzip")
        async with server, fetcher_with(gate) as fetcher:
            ticket = fetcher.start(FetchRequest(url, LOOPBACK, number=7), lambda _: pytest.fail("told"))
            await asyncio.to_thread(gate.is_decoding.wait, 10)
            ticket.cancel()
            gate.open()
            again = await fetcher.fetch(FetchRequest(url, LOOPBACK, number=8))
            assert (again.outcome, again.content) == (Outcome.OK, LONG)
            assert fetcher.in_flight == 0

    run(main)


@pytest.mark.parametrize("level", [0, 9])
def test_of_a_compressed_robots_txt_as_much_is_read_as_of_a_plain_one(level: int) -> None:
    text = random.Random(1).randbytes(2 * MAX_ROBOTS_BYTES)
    data = answer(gzip.compress(text, level), "Content-Encoding: gzip")
    exchange = fetched(says(data), limits=FetchLimits(), max_bytes=FETCHED_ROBOTS_BYTES)
    assert exchange.truncated is Truncation.LENGTH
    assert len(exchange.content) >= MAX_ROBOTS_BYTES, "else the last line might be half a rule"
