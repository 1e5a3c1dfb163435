"""Our own code raises while it handles a request: that request ends with an outcome, the others go on."""

from __future__ import annotations

import asyncio
import time

import pytest

from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome


class FaultyPolicy(AddressPolicy):
    """Raises when it is asked about an address for the n-th time."""

    def __init__(self, faulty_call: int) -> None:
        super().__init__(["127.0.0.0/8"])
        self._left = faulty_call

    def refusal(self, address: str) -> str | None:
        self._left -= 1
        if self._left == 0:
            raise ZeroDivisionError("a defect")
        return super().refusal(address)


class FaultyClock:
    """Raises when it is read, while it is broken."""

    is_broken = False

    def __call__(self) -> float:
        if self.is_broken:
            raise ZeroDivisionError("a defect")
        return time.time()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_request_on_which_our_code_raises_ends_and_the_next_one_works(scheme: str) -> None:
    crashes: list[tuple[str, str]] = []

    async def main() -> list[Exchange]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        fetcher = Fetcher(
            FetchLimits.from_timeout(5.0),
            Identity("Gossamer/test"),
            FaultyPolicy(2),  # asked once before the client begins, then by it
            time.time,
            on_crash=lambda url, error: crashes.append((url, repr(error))),
        )
        async with server, fetcher, asyncio.timeout(20):
            first = await fetcher.fetch(FetchRequest(f"{scheme}://a.test:{port}/1", ("127.0.0.1",)))
            return [first, await fetcher.fetch(FetchRequest(f"http://a.test:{port}/2", ("127.0.0.1",)))]

    first, second = asyncio.run(main())
    assert first.outcome is Outcome.INTERNAL_ERROR
    assert first.error == "ZeroDivisionError: a defect"
    assert second.outcome is Outcome.OK
    assert [(url.rpartition("/")[2], error) for url, error in crashes] == [("1", "ZeroDivisionError('a defect')")]


def test_an_answer_on_which_our_code_raises_ends_its_request() -> None:
    clock, crashes = FaultyClock(), []

    async def serve_and_break(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        clock.is_broken = True
        await serve_answer(writer)

    def on_crash(url: str, _error: Exception) -> None:
        clock.is_broken = False
        crashes.append(url)

    async def main() -> Exchange:
        server = await asyncio.start_server(serve_and_break, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        policy, limits = AddressPolicy(["127.0.0.0/8"]), FetchLimits.from_timeout(5.0)
        fetcher = Fetcher(limits, Identity("Gossamer/test"), policy, clock, on_crash=on_crash)
        async with server, fetcher, asyncio.timeout(20):
            return await fetcher.fetch(FetchRequest(f"http://a.test:{port}/", ("127.0.0.1",)))

    assert asyncio.run(main()).outcome is Outcome.INTERNAL_ERROR
    assert len(crashes) == 1


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        await serve_answer(writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve_answer(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\n<p>x</p>")
    await writer.drain()
    writer.close()
