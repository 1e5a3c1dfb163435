"""Requests over plain HTTP/1: all concurrently, from one event loop.

Our own sockets, watched by one epoll set that the event loop watches in turn, so that a batch of events
costs one callback. A connection is for one address and one authority, and is kept alive for the next
request to both. libcurl does the same for TLS (`curl/client`); over plain TCP, without the cost of
cryptography, its own work and its calls into Python take as much CPU as the kernel does.

Invariants
- `_open` contains every open socket by its number; a socket that is closed is removed at once.
- a connection has a transfer, or is idle (in `_idle`), never both. If an idle one receives data, it is closed.
- `on_end` is not called from within `begin`, nor after the transfer was dropped.

CPU per request, including all of this package, under uvloop: see docs/performance.md.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gossamer.core.url.forms import port_of
from gossamer.fetch.exchange import judged
from gossamer.fetch.identity import request_head
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.plain.transfer import PlainTransfer
from gossamer.fetch.transfer import DEAD_CONNECTION, KEEP_ALIVE_S, Clock, Transfer
from gossamer.model.records import Outcome

_EVENTS: Final = 256  # per batch: they are processed before the loop continues
_RECEIVE_BYTES: Final = 64 * 1024  # at a time, so that one large answer does not delay the others
_KIND: Final = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
_IN = select.EPOLLIN
_OUT = select.EPOLLOUT
_BROKEN: Final = select.EPOLLERR | select.EPOLLHUP
_UNDER_WAY: Final = frozenset((0, errno.EINPROGRESS))
_NO_DESCRIPTOR: Final = frozenset((errno.EMFILE, errno.ENFILE))

Key = tuple[str, str]  # authority and address


class Connection:
    """A socket, its peer, and the request that it serves, if any."""

    __slots__ = ("has_served", "kept_at", "key", "sock", "transfer", "unsent", "watched")

    def __init__(self, sock: socket.socket, key: Key, transfer: PlainTransfer) -> None:
        self.sock = sock
        self.key = key
        self.transfer: PlainTransfer | None = transfer
        self.unsent = b""
        self.watched = _OUT  # the events it is registered for
        self.has_served = False  # an answer was received on it before
        self.kept_at = 0.0


class PlainClient:
    """Runs transfers over plain HTTP; each ends in one call of `on_end`, or of `on_fault` if our code raised."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: FetchLimits,
        policy: AddressPolicy,
        clock: Clock,
        *,
        on_end: Callable[[Transfer, Outcome, str], None],
        on_fault: Callable[[Transfer, Exception], None],
        head_tail: bytes,
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._on_end = on_end
        self._on_fault = on_fault
        self._policy = policy
        self._clock = clock
        self._head_tail = head_tail
        self._max_idle = limits.max_idle_connections
        self._spare: list[PlainTransfer] = []
        self._beginning: dict[PlainTransfer, None] = {}
        self._serving: dict[PlainTransfer, Connection] = {}
        self._open: dict[int, Connection] = {}
        self._idle: OrderedDict[Connection, None] = OrderedDict()  # longest idle first
        self._kept_for: dict[Key, list[Connection]] = {}
        self._buffer = memoryview(bytearray(_RECEIVE_BYTES))
        self._epoll = select.epoll()
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def transfer(self) -> PlainTransfer:
        return self._spare.pop() if self._spare else PlainTransfer(self._limits, self._policy, self._clock)

    def begin(self, transfer: PlainTransfer) -> None:
        """Start a prepared transfer, in the next iteration of the loop."""
        if not self._beginning:
            self._loop.call_soon(self._begin_all)
        self._beginning[transfer] = None

    def drop(self, transfer: PlainTransfer) -> None:
        """Abandon a request and close its connection; `on_end` is not called."""
        self._beginning.pop(transfer, None)
        connection = self._serving.get(transfer)
        if connection is not None:
            self._close(connection)

    def put_back(self, transfer: PlainTransfer) -> None:
        self._spare.append(transfer)

    def close(self) -> None:
        """Close all connections; transfers in progress must have been dropped."""
        self._loop.remove_reader(self._epoll.fileno())
        for connection in list(self._open.values()):
            self._close(connection)
        self._epoll.close()
        self._spare.clear()

    def close_stale(self, now: float) -> bool:
        """Close connections that were idle for too long; return whether others are left."""
        while self._idle:
            oldest = next(iter(self._idle))
            if now - oldest.kept_at <= KEEP_ALIVE_S:
                return True
            self._close(oldest)
        return False

    # -- requests ---------------------------------------------------------------------------------

    def _begin_all(self) -> None:
        if self._epoll.closed:
            return
        if self._idle:
            self._on_ready()  # an idle connection may have been closed by now
        transfers = self._beginning
        self._beginning = {}
        for transfer in transfers:
            try:
                self._begin(transfer)
            except Exception as fault:  # the others must still begin
                self._on_fault(transfer, fault)

    def _begin(self, transfer: PlainTransfer) -> None:
        if transfer.on_done is None:
            return  # cancelled before it began; `drop` follows
        url = transfer.request.url
        authority = url[7 : url.index("/", 7)]
        if "@" in authority:
            self._on_end(transfer, Outcome.PROTOCOL_ERROR, "credentials in the URL")
            return
        key = (authority, transfer.address)
        connection = self._pop_idle(key)
        if connection is None:
            self._connect(transfer, key)
        else:
            connection.transfer = transfer
            self._serving[transfer] = connection
            self._write(connection, transfer)

    def _connect(self, transfer: PlainTransfer, key: Key) -> None:
        address = transfer.address
        refusal = self._policy.refusal(address)
        if refusal is not None:
            self._on_end(transfer, Outcome.BLOCKED_ADDRESS, refusal)
            return
        try:
            sock = self._new_socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        except OSError as error:
            self._on_end(transfer, Outcome.CONNECT_FAILED, f"no socket: {error.strerror}")
            return
        fd = sock.fileno()
        try:
            code = sock.connect_ex((address, port_of(transfer.request.url)))
            if code in _UNDER_WAY:
                self._epoll.register(fd, _OUT)
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code not in _UNDER_WAY:
            sock.close()
            self._on_end(transfer, Outcome.CONNECT_FAILED, f"connect: {os.strerror(code)}")
            return
        connection = Connection(sock, key, transfer)
        self._open[fd] = connection
        self._serving[transfer] = connection

    def _new_socket(self, family: int) -> socket.socket:
        """Return a socket; if no descriptor is free, close an idle connection first."""
        try:
            return socket.socket(family, _KIND)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR or not self._idle:
                raise
        self._close(next(iter(self._idle)))
        return socket.socket(family, _KIND)

    def _write(self, connection: Connection, transfer: PlainTransfer) -> None:
        """Write the request, or as much of it as fits into the socket's buffer."""
        if transfer.on_done is None:
            return  # cancelled; `drop` follows
        if not transfer.requests_sent:
            request = transfer.request
            method = "HEAD" if request.is_head else "GET"
            connection.unsent = request_head(request.url, self._head_tail, request.headers, method)
            try:
                transfer.record_sent(connection.unsent)
            except Exception as fault:  # the other transfers of this batch must still be served
                self._loop.call_exception_handler({"message": f"on_sent of {request.url}", "exception": fault})
            if transfer.on_done is None:
                return  # by `on_sent`
            if not connection.has_served:
                transfer.connect_s = transfer.sent_at - transfer.attempt_at
        try:
            sent = connection.sock.send(connection.unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._lose(connection, transfer, Outcome.DISCONNECTED, f"send: {error.strerror}")
            return
        connection.unsent = connection.unsent[sent:]
        wanted = _IN | _OUT if connection.unsent else _IN
        if wanted != connection.watched:
            connection.watched = wanted
            self._epoll.modify(connection.sock.fileno(), wanted)

    # -- answers ----------------------------------------------------------------------------------

    def _on_ready(self) -> None:
        for fd, events in self._epoll.poll(0, _EVENTS):
            connection = self._open.get(fd)
            if connection is None:
                continue  # closed because of an earlier event of this batch
            transfer = connection.transfer
            if transfer is None:
                self._close(connection)  # closed by the server, or it sent unrequested data
                continue
            try:
                if transfer.requests_sent and events & ~_OUT:
                    self._read(connection, transfer)
                elif events & _BROKEN:
                    error = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    self._lose(connection, transfer, Outcome.CONNECT_FAILED, f"connect: {os.strerror(error)}")
                else:
                    self._write(connection, transfer)
            except Exception as fault:  # the other connections of this batch must still be served
                self._on_fault(transfer, fault)

    def _read(self, connection: Connection, transfer: PlainTransfer) -> None:
        try:
            size = connection.sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(connection, transfer, Outcome.DISCONNECTED, f"receive: {error.strerror}")
            return
        if not size:
            self._lose(connection, transfer, *transfer.hang_up())
        elif transfer.feed(bytes(self._buffer[:size])):
            self._end(connection, transfer, *judged(transfer))

    def _lose(self, connection: Connection, transfer: PlainTransfer, outcome: Outcome, error: str) -> None:
        """The connection is closed or broken. A reused one without any data was closed before the request."""
        if connection.has_served and transfer.is_silent:
            error = DEAD_CONNECTION
        self._close(connection)
        self._on_end(transfer, outcome, error)

    def _end(self, connection: Connection, transfer: PlainTransfer, outcome: Outcome, error: str) -> None:
        """End a transfer: nothing more of the answer is needed."""
        if transfer.is_reusable and not connection.unsent:
            del self._serving[transfer]
            self._keep_alive(connection)
        else:
            self._close(connection)
        self._on_end(transfer, outcome, error)

    # -- connections ------------------------------------------------------------------------------

    def _keep_alive(self, connection: Connection) -> None:
        connection.transfer = None
        connection.has_served = True
        connection.kept_at = self._clock()
        self._idle[connection] = None
        self._kept_for.setdefault(connection.key, []).append(connection)
        if len(self._idle) > self._max_idle:
            self._close(next(iter(self._idle)))

    def _pop_idle(self, key: Key) -> Connection | None:
        """Return the connection that was used last, the most likely to be alive."""
        connections = self._kept_for.get(key)
        if not connections:
            return None
        connection = connections.pop()
        del self._idle[connection]
        if not connections:
            del self._kept_for[key]
        return connection

    def _close(self, connection: Connection) -> None:
        if connection.transfer is None:
            del self._idle[connection]
            others = self._kept_for[connection.key]
            others.remove(connection)
            if not others:
                del self._kept_for[connection.key]
        else:
            del self._serving[connection.transfer]
        del self._open[connection.sock.fileno()]
        connection.sock.close()  # the kernel removes it from the epoll set
