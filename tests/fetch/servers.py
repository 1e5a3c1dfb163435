"""Servers that say exactly what a test wants, byte for byte, over loopback."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.exchanges import Exchange

IDENTITY = Identity("Gossamer/0.1 (+mail@example.org)", "mail@example.org")
QUICK = FetchLimits(
    connect_timeout_s=0.3, first_byte_timeout_s=0.3, silence_s=0.3, total_timeout_s=0.9, max_bytes=100_000
)
LOOPBACK = ("127.0.0.1",)


class Visit:
    """One accepted connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number

    async def request(self) -> bytes:
        """Read one request head; empty once the client has closed."""
        try:
            return await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Visit], Coroutine[Any, Any, None]]


class Stage:
    """A running server, what it saw, and how to ask it."""

    def __init__(self, port: int, scheme: str, fetcher: Fetcher) -> None:
        self.port = port
        self.scheme = scheme
        self.fetcher = fetcher
        self.connections = 0

    def url(self, path: str = "/", host: str = "site.test") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def get(self, path: str = "/", **options: Any) -> Exchange:
        options.setdefault("addresses", LOOPBACK)
        return await self.fetcher.fetch(FetchRequest(self.url(path), **options))


@asynccontextmanager
async def stage(
    script: Script,
    *,
    limits: FetchLimits = QUICK,
    policy: AddressPolicy | None = None,
    tls: ssl.SSLContext | None = None,
    ca_file: str = "",
    more_addresses: tuple[str, ...] = (),
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Stage]:
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        scene.connections += 1
        try:
            await script(Visit(reader, writer, scene.connections))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    servers = [await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, limit=1 << 20, backlog=500)]
    port = servers[0].sockets[0].getsockname()[1]
    servers += [await asyncio.start_server(serve, address, port, ssl=tls) for address in more_addresses]
    policy = policy or AddressPolicy(["127.0.0.0/8"])
    try:
        async with Fetcher(limits, IDENTITY, policy, clock, ca_file=ca_file) as fetcher:
            scene = Stage(port, "https" if tls else "http", fetcher)
            yield scene
    finally:
        for server in servers:
            server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def says(data: bytes, *, stays_open: bool = False) -> Script:
    """A server that answers every connection with these bytes and closes."""

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(data)
        if stays_open:
            await visit.request()

    return script


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def keeps(*answers: bytes) -> Script:
    """A server that keeps its connections and gives one answer a request."""
    left = list(answers)

    async def script(visit: Visit) -> None:
        while await visit.request():
            await visit.send(left.pop(0))

    return script


def fetched(script: Script, path: str = "/", *, limits: FetchLimits = QUICK, **options: Any) -> Exchange:
    """Ask a server once and return what came of it."""

    async def main() -> Exchange:
        async with stage(script, limits=limits) as scene:
            return await scene.get(path, **options)

    return asyncio.run(main())


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def within_limit() -> None:
        async with asyncio.timeout(10):
            await main()

    asyncio.run(within_limit())
