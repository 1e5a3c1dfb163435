"""A small HTTP/1.1 server for the dashboard and its API: requests in, answers out, everything bounded.

`h11` decides what is valid; this module moves the bytes. The head of a request has at most `MAX_HEAD_BYTES`, its body
`MAX_BODY_BYTES` unless the server says otherwise; once it has begun, it has to be complete within `READ_WITHIN_S`, and
`_BUFFER_BYTES` of what is sent have to be accepted within `WRITE_WITHIN_S`, so that neither a slow sender nor a slow
reader occupies anything for long.
There are at most `MAX_CONNECTIONS`. One that asks nothing is closed after `FIRST_WITHIN_S` if it never asked anything,
else after `IDLE_S`. If another client comes and there is no room, one is closed at once that is not being answered: of
the client (an address, or a network of IPv6) that has most of these, the one that is idle for longest, else the one
whose request has been incomplete for longest. So nobody closes the server to others with idle or half-sent requests.
Why not a framework: docs/decisions/029.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from errno import EADDRINUSE
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import unquote

import h11
import msgspec
from msgspec import Struct

from gossamer.core.politeness.networks import network_of
from gossamer.model.errors import UsageError
from gossamer.settings.listening import Address
from gossamer.telemetry.text import printable

MAX_HEAD_BYTES = 128 << 10  # the longest URL that can be asked about, with every byte escaped
MAX_BODY_BYTES = 1 << 20
MAX_CONNECTIONS = 100
READ_WITHIN_S = 10.0
FIRST_WITHIN_S = 5.0  # from the connection to the first bytes of its first request
IDLE_S = 60.0  # between two requests of a connection
WRITE_WITHIN_S = 10.0
_CHUNK_BYTES = 1 << 16
_BUFFER_BYTES = 1 << 18  # that may wait for a slow reader

# Of every answer. The page needs nothing from elsewhere, and nothing elsewhere may use what is served here.
COMMON_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("X-DNS-Prefetch-Control", "off"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class BadRequest(Struct, frozen=True):
    """What was wrong with a request, in one line."""

    error: str


class HttpRequest(Struct, frozen=True):
    """A request, complete."""

    method: str
    path: str  # decoded
    query: list[tuple[str, str]]
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""
    client: str = ""  # its address; of IPv6 the /64 network


class Response(Struct, frozen=True):
    """An answer. A body that is an iterator is sent as it comes."""

    status: int
    body: bytes | AsyncGenerator[bytes, None] = b""
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    policy: str = NOTHING  # the Content-Security-Policy


Answer: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]


class BadRequestError(Exception):
    """A request that is not valid, and the status to answer with."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def failure(status: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> Response:
    """Return an error as an answer."""
    return Response(status, msgspec.json.encode(BadRequest(text)), headers=headers)


def fault(where: str, error: Exception, verb: str = "ui") -> str:
    """Print an unexpected error in one line, which ends one answer or turn only; return the text of the answer."""
    text = f"{type(error).__name__}: {printable(str(error))}"
    print(f"gossamer {verb}: {printable(where)}: {text}", file=sys.stderr, flush=True)
    return f"internal error of the {'dashboard' if verb == 'ui' else 'server'}: {text}"


@asynccontextmanager
async def listening(address: Address, option: str) -> AsyncIterator[socket.socket]:
    """Yield a socket that listens; its port is a free one if the address names none."""
    with await asyncio.to_thread(listener_at, address, option) as listener:
        yield listener


def listener_at(address: Address, option: str) -> socket.socket:
    """Return a socket that listens. Looks the name up, so it may block. Raises `UsageError` if it cannot."""
    with ExitStack() as stack:
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[
                0
            ]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(MAX_CONNECTIONS)
        except OSError as error:
            hint = "; 0 is any free port" if error.errno == EADDRINUSE else ""
            what = f"cannot listen there: {error.strerror or error}{hint}"
            raise UsageError(f"{option} {address.text}: {what}") from error
        listener.setblocking(False)
        stack.pop_all()
        return listener


@asynccontextmanager
async def served(
    listener: socket.socket, answer: Answer, *, max_body_bytes: int = MAX_BODY_BYTES
) -> AsyncIterator[None]:
    """Answer requests while the context lasts."""
    open_connections: dict[asyncio.Task[None], _Connection] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(open_connections) < MAX_CONNECTIONS or _close_one(open_connections):
                connection = open_connections[task] = _Connection(reader, writer, max_body_bytes)
                # A cancelled handler closes its connection; some 3.12 print a traceback if it ends as cancelled.
                with suppress(OSError, TimeoutError, h11.ProtocolError, asyncio.CancelledError):
                    while (request := await connection.next_request()) is not None:
                        await connection.send(await answer(request), is_head=request.method == "HEAD")
                    writer.close()  # once what is left was sent
                    async with asyncio.timeout(WRITE_WITHIN_S):
                        await writer.wait_closed()
        finally:
            open_connections.pop(task, None)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    server = await asyncio.start_server(serve, sock=listener, limit=_CHUNK_BYTES)
    try:
        yield
    finally:
        server.close()
        for task in open_connections:
            task.cancel()


def _close_one(connections: dict[asyncio.Task[None], _Connection]) -> bool:
    """Close a connection that is not being answered; return whether there was one."""
    waiting = {task: each for task, each in connections.items() if not each.is_answered}
    if not waiting:
        return False
    crowd = Counter(each.client for each in waiting.values())
    task = max(waiting, key=lambda each: (crowd[waiting[each].client], waiting[each].is_idle, -waiting[each].since))
    del connections[task]  # there is room now; the task ends in its next turn
    task.cancel()
    return True


class _Connection:
    """One connection: requests one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_body_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._max_body_bytes = max_body_bytes
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._has_asked = False
        self.client = client_of(writer)
        self.is_answered = False
        self.is_idle = True  # nothing of its next request has come
        self.since = asyncio.get_running_loop().time()
        writer.transport.set_write_buffer_limits(high=_BUFFER_BYTES)

    async def next_request(self) -> HttpRequest | None:
        """Return the next request; None if the client disconnects, or after answering one that is not valid."""
        self.is_answered = False
        if self._has_asked:
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return None
            self._http.start_next_cycle()
        try:
            return await self._read()
        except h11.RemoteProtocolError as error:
            await self.send(failure(error.error_status_hint, f"not a valid request: {error}"))
        except BadRequestError as error:
            await self.send(failure(error.status, str(error)), closes=True)
        return None

    async def _read(self) -> HttpRequest | None:
        """Return the next request; None if the client disconnects. It may come late, but not slowly."""
        if not self._http.trailing_data[0]:
            self.is_idle = True
            self.since = asyncio.get_running_loop().time()
            async with asyncio.timeout(IDLE_S if self._has_asked else FIRST_WITHIN_S):
                self._http.receive_data(await self._reader.read(_CHUNK_BYTES))
        self.is_idle = False
        self.since = asyncio.get_running_loop().time()
        self._has_asked = True
        async with asyncio.timeout(READ_WITHIN_S):
            head = await self._next()
            if not isinstance(head, h11.Request):
                return None
            if self._http.they_are_waiting_for_100_continue:
                go_on = self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
                self._writer.write(go_on or b"")
            body = bytearray()
            while not isinstance(event := await self._next(), h11.EndOfMessage):
                if not isinstance(event, h11.Data):
                    return None
                body += event.data
                if len(body) > self._max_body_bytes:
                    raise BadRequestError(413, f"the body has more than {self._max_body_bytes} bytes")
        self.is_answered = True
        return _request(head, bytes(body), self.client)

    async def _next(self) -> h11.Event | object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK_BYTES))
        return event

    async def send(self, response: Response, *, is_head: bool = False, closes: bool = False) -> None:
        headers = [("Content-Type", response.content_type), ("Content-Security-Policy", response.policy)]
        headers += [*COMMON_HEADERS, *response.headers]
        if not any(name == "Cache-Control" for name, _ in response.headers):
            headers.append(("Cache-Control", "no-store"))
        if closes:
            headers.append(("Connection", "close"))
        body = response.body
        if isinstance(body, bytes):
            headers.append(("Content-Length", str(len(body))))
        head = h11.Response(status_code=response.status, headers=headers, reason=_reason(response.status))
        data = self._http.send(head) or b""
        if not isinstance(body, bytes):
            await self._write(data)
            async with aclosing(body):
                async for part in body:
                    if is_head:  # it was begun, so that it ends as others do
                        break
                    await self._write(self._http.send(h11.Data(data=part)) or b"")
            data = b""
        elif body and not is_head:
            data += self._http.send(h11.Data(data=body)) or b""
        await self._write(data + (self._http.send(h11.EndOfMessage()) or b""))

    async def _write(self, data: bytes) -> None:
        """Send bytes; disconnect a client that accepts none of them in time."""
        for start in range(0, len(data), _BUFFER_BYTES):
            self._writer.write(data[start : start + _BUFFER_BYTES])
            async with asyncio.timeout(WRITE_WITHIN_S):
                await self._writer.drain()


def _reason(status: int) -> bytes:
    return HTTPStatus(status).phrase.encode()


def client_of(writer: asyncio.StreamWriter) -> str:
    """Return the address of a client; of IPv6 its /64 network, which one client has to itself."""
    peer = writer.get_extra_info("peername")
    return network_of(str(peer[0])) if peer else ""


def _request(head: h11.Request, body: bytes, client: str) -> HttpRequest:
    # h11 bounds what is incomplete; a head that came in one piece is counted here.
    if len(head.target) + sum(len(name) + len(value) for name, value in head.headers) > MAX_HEAD_BYTES:
        raise BadRequestError(431, f"the head of the request has more than {MAX_HEAD_BYTES} bytes")
    target = head.target.decode("ascii", "replace")
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    for name, value in head.headers:
        key = name.decode("ascii", "replace")
        if key in headers and key in ("host", "origin", "authorization", "content-type"):
            raise BadRequestError(400, f"the header {key} is repeated")
        headers.setdefault(key, value.decode("latin-1"))
    if not path.startswith("/"):
        raise BadRequestError(400, "not a path; expected one that begins with /")
    pairs = [_decoded_pair(part) for part in query.split("&") if part]
    return HttpRequest(head.method.decode("ascii", "replace"), _decoded(path), pairs, headers, body, client)


def _decoded_pair(text: str) -> tuple[str, str]:
    name, _, value = text.replace("+", " ").partition("=")
    return _decoded(name), _decoded(value)


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise BadRequestError(400, "an escape in the address is not UTF-8") from error
