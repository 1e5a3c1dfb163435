"""The synthetic web on a socket: HTTP/1.1 over loopback, every host on one port.

The Host header decides the site. Invariants: only peers in 127.0.0.0/8 are served; a
connection's requests are answered one after the other; each request is in the log
(`log`) before it is answered. Slow sites wait on the loop's timer, CLOSED ones hang
up, strict ones answer 429 to requests that come too soon. The names 127.0.0.1, localhost and
control.test are for the operator: `/_audit?politeness_s=1&…`, `/_log`, `/_plan`, `/_epoch?1`, `/_reset`.
Cost: about 75 µs per page of 10 KB, half of it rendering; arrivals are stamped within 0.2 ms under full load.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from gossamer.sim.web.log import LoggedRequest, RequestLog, encode_log
from gossamer.sim.web.pages import TOO_SOON, SyntheticWeb, WebAnswer
from gossamer.sim.web.server_judge import JudgeRules, judge
from gossamer.sim.web.web import Health, Site, WebPlan

_MAX_HEAD_BYTES = 65_536
_AWAKE_EVERY_S = 0.01
_REQUEST_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.([01])\r\n")
_FIELD = re.compile(
    rb"(?i)\n(host|user-agent|if-none-match|if-modified-since|accept-encoding|connection|content-length)"
    rb":[ \t]*([^\r\n]*)"
)
_CONTROL_HOSTS = frozenset({"127.0.0.1", "localhost", "control.test"})
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_METHOD_NOT_ALLOWED = WebAnswer(405, body=b"GET and HEAD only\n")


class RequestHead(Struct, frozen=True, gc=False):
    """The parts of a request's head that are used."""

    method: str
    target: str
    host: str  # lower case, without port
    agent: str
    if_none_match: str
    if_modified_since: str
    accepts_gzip: bool
    keeps_alive: bool


def parse_request(head: bytes) -> RequestHead | None:
    """The request in a head that ends in an empty line; None if it is not HTTP/1."""
    line = _REQUEST_LINE.match(head)
    if line is None:
        return None
    fields = {name.lower(): value for name, value in _FIELD.findall(head, line.end() - 1)}
    connection = fields.get(b"connection", b"").lower()
    is_old = line[3] == b"0"
    return RequestHead(
        method=line[1].decode("ascii"),
        target=line[2].decode("latin-1"),
        host=fields.get(b"host", b"").partition(b":")[0].decode("latin-1").lower(),
        agent=fields.get(b"user-agent", b"").decode("latin-1"),
        if_none_match=fields.get(b"if-none-match", b"").decode("latin-1"),
        if_modified_since=fields.get(b"if-modified-since", b"").decode("latin-1"),
        accepts_gzip=b"gzip" in fields.get(b"accept-encoding", b""),
        # A body is never read, so a connection with one cannot be reused.
        keeps_alive=b"content-length" not in fields
        and (connection == b"keep-alive" if is_old else connection != b"close"),
    )


def encode_answer(answer: WebAnswer, *, keeps_alive: bool, is_head: bool = False, is_chunked: bool = False) -> bytes:
    lines = [_STATUS_LINES[answer.status], f"Server: synthetic\r\nContent-Type: {answer.content_type}\r\n"]
    if answer.status != 304:
        lines.append("Transfer-Encoding: chunked\r\n" if is_chunked else f"Content-Length: {len(answer.body)}\r\n")
    if answer.etag:
        lines.append(f"ETag: {answer.etag}\r\nLast-Modified: {answer.last_modified}\r\n")
    if answer.location:
        lines.append(f"Location: {answer.location}\r\n")
    if answer.encoding:
        lines.append(f"Content-Encoding: {answer.encoding}\r\nVary: Accept-Encoding\r\n")
    if answer.retry_after_s:
        lines.append(f"Retry-After: {answer.retry_after_s}\r\n")
    lines.append("\r\n" if keeps_alive else "Connection: close\r\n\r\n")
    head = "".join(lines).encode("latin-1")
    if is_head or answer.status == 304:
        return head
    return head + (_in_chunks(answer.body) if is_chunked else answer.body)


def _in_chunks(body: bytes, size: int = 4096) -> bytes:
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class WebServer:
    """The synthetic web behind one listening socket; `async with` opens and closes it."""

    def __init__(self, plan: WebPlan, port: int = 0, log_path: Path | None = None) -> None:
        self.plan = plan
        self.port = port
        self.log = RequestLog(log_path)
        self.web = SyntheticWeb(plan, port)
        self.in_flight: defaultdict[str, int] = defaultdict(int)
        self.last_arrival: dict[str, float] = {}
        self.open_connections: set[_Connection] = set()
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._postponed: deque[Callable[[], None]] = deque()
        self._awake_at = monotonic()

    async def __aenter__(self) -> WebServer:
        listening = _loopback_socket(self.port)
        self.port = listening.getsockname()[1]
        self.web = SyntheticWeb(self.plan, self.port)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self, loop), sock=listening, backlog=4096)
        self._stay_awake(loop)
        return self

    def _stay_awake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._awake_at = monotonic()
        self._awake = loop.call_later(_AWAKE_EVERY_S, self._stay_awake, loop)

    def stood_still_s(self, now: float) -> float:
        """Return how long the server may have left requests unread: on a busy machine it gets no core for a while."""
        return max(0.0, now - self._awake_at - _AWAKE_EVERY_S)

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._awake.cancel()
        self._server.close()
        for connection in list(self.open_connections):
            connection.abort()
        await self._server.wait_closed()
        self.log.flush(is_last=True)

    def postpone(self, respond: Callable[[], None]) -> None:
        """Answer later: one answer per iteration of the loop, and between two the sockets are read.

        Rendering 256 answers in one iteration would stamp the requests that wait 10 ms late, and the
        judge would see gaps that did not exist.
        """
        self._postponed.append(respond)
        if len(self._postponed) == 1:
            asyncio.get_running_loop().call_soon(self._respond_to_one)

    def _respond_to_one(self) -> None:
        # It stays in the queue while it runs, so that a `postpone` from within does not schedule a second call.
        try:
            self._postponed[0]()
        finally:
            self._postponed.popleft()
            if self._postponed:
                asyncio.get_running_loop().call_soon(self._respond_to_one)

    def answer(self, request: RequestHead, site: Site | None, arrived_at: float) -> WebAnswer:
        if request.method not in ("GET", "HEAD"):
            return _METHOD_NOT_ALLOWED
        if site is not None and site.strict_pace_s:
            last = self.last_arrival.get(site.name, 0.0)
            self.last_arrival[site.name] = arrived_at
            if arrived_at - last < site.strict_pace_s:
                return TOO_SOON
        return self.web.answer(
            request.host,
            request.target,
            if_none_match=request.if_none_match,
            if_modified_since=request.if_modified_since,
            accepts_gzip=request.accepts_gzip,
        )

    def control(self, target: str) -> WebAnswer:
        """Answer the operator's requests, which are not logged."""
        path, _, query = target.partition("?")
        if path == "/_log":
            return WebAnswer(200, "application/x-ndjson", encode_log(self.log.requests))
        if path == "/_plan":
            return WebAnswer(200, "application/json", msgspec.json.encode(self.plan))
        if path == "/_epoch" and query.isdecimal():
            self.web.epoch = int(query)
            return WebAnswer(200, body=b"time has passed\n")
        if path == "/_reset":
            self.log.clear()
            return WebAnswer(200, body=b"forgotten\n")
        if path != "/_audit":
            return WebAnswer(404, body=b"there are /_audit, /_log, /_plan, /_epoch, /_reset\n")
        try:
            rules = msgspec.convert(dict(parse_qsl(query)), JudgeRules, strict=False)
        except msgspec.ValidationError as error:
            return WebAnswer(400, body=f"{error}\n".encode())
        return WebAnswer(200, "application/json", judge(self.web, self.log.requests, rules).as_json())


class _Connection(asyncio.Protocol):
    """One client's connection: at most one request is being answered at a time."""

    def __init__(self, server: WebServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._current: LoggedRequest | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses of asyncio's
        peer = transport.get_extra_info("peername")
        if not peer or not peer[0].startswith("127."):
            transport.abort()
            return
        self._transport = transport
        self._server.connections += 1
        self._number = self._server.connections
        self._server.open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open_connections.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._end_request(0)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if self._current is None:
            self._serve_next()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _serve_next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                self.abort()
            return
        head = self._buffer[: end + 4]
        self._buffer = self._buffer[end + 4 :]
        request = parse_request(head)
        if request is None:
            self.abort()
        elif request.host in _CONTROL_HOSTS and request.target.startswith("/_"):
            self._send(request, None, self._server.control(request.target))
        else:
            self._begin(request)

    def _begin(self, request: RequestHead) -> None:
        now = monotonic()
        server = self._server
        site = server.web.site(request.host)
        host = site.name if site is not None else request.host
        server.in_flight[host] += 1
        self._current = LoggedRequest(now, host, request.target, self._number, server.in_flight[host], request.agent)
        self._current.max_late_s = server.stood_still_s(now)
        server.log.append(self._current)
        if site is not None and site.health is Health.CLOSED:
            self._end_request(0)
            self.abort()
            return
        server.postpone(partial(self._respond, request, site, now))

    def _respond(self, request: RequestHead, site: Site | None, arrived_at: float) -> None:
        if self._transport is None:
            return
        answer = self._server.answer(request, site, arrived_at)
        if site is not None and site.answer_delay_s:
            self._timer = self._loop.call_later(site.answer_delay_s, self._send, request, site, answer)
        else:
            self._send(request, site, answer)

    def _send(self, request: RequestHead, site: Site | None, answer: WebAnswer) -> None:
        transport = self._transport
        if transport is None:
            return
        data = encode_answer(
            answer,
            keeps_alive=request.keeps_alive,
            is_head=request.method == "HEAD",
            is_chunked=site is not None and site.is_chunked and answer.status == 200,
        )
        # Ended before it is written: the requests of a client that reads fast must not appear to overlap.
        self._end_request(answer.status)
        transport.write(data)
        if not request.keeps_alive:
            transport.close()
        elif self._buffer:
            self._serve_next()

    def _end_request(self, status: int) -> None:
        current = self._current
        if current is not None:
            current.finished_at = monotonic()
            current.status = status
            self._server.in_flight[current.host] -= 1
            self._current = None


def _loopback_socket(port: int) -> socket.socket:
    """A socket for all of 127.0.0.0/8, which only "every address" covers; other peers are refused."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    except (OSError, AttributeError):
        pass  # needs a privilege or Linux 5.7; connection_made checks every peer in any case
    listening.bind(("0.0.0.0", port))  # noqa: S104 - reason above
    listening.setblocking(False)
    return listening
