"""One server for all hostile hosts, over loopback: a script a host name, raw bytes, its own DNS.

The server runs an event loop in a thread of its own. Every flood is bounded (`FLOOD_BYTES`), so that a
crawler that does not stop costs a failed test and not a machine.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

from gossamer.sim.web.dns import NameServer, Zone
from gossamer.sim.web.web import WebPlan, preset

FLOOD_BYTES = 60_000_000
ROBOTS = "/robots.txt"
NO_ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
Addresses = tuple[str, ...]


class Seen(NamedTuple):
    """One request as the server saw it."""

    host: str
    path: str
    head: bytes
    connection: int
    at: float  # when its head was read to the end


class Call:
    """One request and the means to answer it."""

    def __init__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.sent_bytes = 0
        self.host, self.path, self.head, self.connection = seen.host, seen.path, seen.head, seen.connection
        self.port = port
        self.is_last = False  # the connection is closed after this
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        self._writer.write(data)
        await self._writer.drain()

    async def raw(self, data: bytes) -> None:
        """Send bytes and close."""
        await self.send(data)
        self.is_last = True

    async def answer(self, body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/html") -> None:
        """Give a proper answer; the connection stays."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        if kind:
            lines.append(f"Content-Type: {kind}")
        await self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    async def html(self, body: str, *headers: str, status: str = "200 OK") -> None:
        await self.answer(body.encode(), *headers, status=status, kind="text/html; charset=utf-8")

    async def redirect(self, location: str, status: str = "302 Found") -> None:
        await self.answer(b"", f"Location: {location}", status=status)

    async def flood(self, start: bytes, repeated: bytes) -> None:
        """Send without end, as far as the client lets."""
        await self.send(start)
        for _ in range(FLOOD_BYTES // len(repeated)):
            await self.send(repeated)
        self.is_last = True

    async def drip(self, start: bytes, drop: bytes) -> None:
        """Always send a little more."""
        await self.send(start)
        for _ in range(400):
            await self.send(drop)
            await asyncio.sleep(0.05)
        self.is_last = True

    async def hang(self) -> None:
        """Say nothing until the client goes."""
        await self._reader.read()
        self.is_last = True

    def reset(self) -> None:
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        self.is_last = True

    def url(self, path: str = "/", host: str = "") -> str:
        return f"http://{host or self.host}:{self.port}{path}"


Script = Callable[[Call], Awaitable[None]]


class Catalogue:
    """Scripts by host; a host without robots.txt of its own has none."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}

    def serves(self, *names: str) -> Callable[[Script], Script]:
        """Serve these hosts (without `.test`) by the script."""

        def register(script: Script) -> Script:
            for name in names:
                assert name not in self.scripts, name
                self.scripts[name] = script
            return script

        return register

    def script_for(self, host: str) -> Script | None:
        """Return the script of a host; sub-hosts share that of their domain."""
        labels = host.removesuffix(".test").split(".")
        return self.scripts.get(labels[-1])


class HostileZone(Zone):
    """Names of the hostile hosts, all at 127.0.0.1 unless told otherwise, beside those of a synthetic web."""

    def __init__(self, plan: WebPlan, catalogue: Catalogue, answers: Mapping[str, list[Addresses]]) -> None:
        super().__init__(plan)
        self._catalogue = catalogue
        self._answers = {name: list(rows) for name, rows in answers.items()}

    def _look_up(self, name: str, kind: int, fault: Any) -> tuple[int, tuple[bytes, ...]]:
        from gossamer.sim.web import dns

        rows = self._answers.get(name)
        if rows is None:
            if self._catalogue.script_for(name) is None:
                return super()._look_up(name, kind, fault)
            rows = [("127.0.0.1",)]
        addresses = rows.pop(0) if len(rows) > 1 and kind == dns._TYPE_A else rows[0]
        family, size = (socket.AF_INET, 1) if kind == dns._TYPE_A else (socket.AF_INET6, 28)
        wanted = [address for address in addresses if (":" in address) == (family == socket.AF_INET6)]
        if kind != size:
            return 0, ()
        return 0, tuple(dns._record(kind, 0, socket.inet_pton(family, address)) for address in wanted)


class HostileServer:
    """The catalogue on a port (and, over TLS, on another), with a name server; `with` starts and stops it."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        plan: WebPlan | None = None,
        names: Mapping[str, list[Addresses]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._zone = HostileZone(plan or preset("small"), catalogue, names or {})
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self.seen: list[Seen] = []
        self.sent_bytes: Counter[str] = Counter()  # by the name of a catalogue's script
        self.port = 0
        self.tls_port = 0
        self.dns_address = ""

    def __enter__(self) -> HostileServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def asked(self) -> Mapping[str, int]:
        """How often each name was looked up."""
        return self._zone.asked

    def requests(self, name: str, path: str | None = None) -> list[Seen]:
        """Return what was asked of a host (without `.test`), robots.txt left out unless asked for."""
        host = f"{name}.test"
        return [
            seen
            for seen in list(self.seen)
            if seen.host == host and (seen.path != ROBOTS if path is None else seen.path == path)
        ]

    async def _open(self) -> None:
        self._names = await NameServer(self._zone).__aenter__()
        self.dns_address = self._names.address
        self._servers.append(await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20, backlog=500))
        self.port = self._servers[0].sockets[0].getsockname()[1]
        if self._tls is not None:
            self._servers.append(await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls))
            self.tls_port = self._servers[1].sockets[0].getsockname()[1]

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._names.__aexit__()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            while await self._serve_one(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        seen = _seen(head, number)
        self.seen.append(seen)
        call = Call(seen, reader, writer, self.port)
        script = self._catalogue.script_for(seen.host)
        try:
            if script is None or (seen.path == ROBOTS and not getattr(script, "has_robots", False)):
                await call.send(NO_ROBOTS)
            else:
                await script(call)
        finally:
            self.sent_bytes[seen.host.removesuffix(".test").rpartition(".")[2]] += call.sent_bytes
        return not call.is_last


def _seen(head: bytes, number: int) -> Seen:
    lines = head.decode("latin-1").split("\r\n")
    host = next((line[5:].strip() for line in lines if line.lower().startswith("host:")), "")
    name = host.rpartition(":")[0].rstrip(".").lower() or host
    return Seen(name, lines[0].split(" ")[1], head, number, time.monotonic())


def with_robots(script: Script) -> Script:
    """Let a script answer for robots.txt as well."""
    script.has_robots = True  # type: ignore[attr-defined]
    return script
