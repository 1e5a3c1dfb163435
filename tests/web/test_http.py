"""The server: slow clients, many clients, and what a connection may do."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

import pytest

from gossamer.settings.listening import Address
from gossamer.web import http
from gossamer.web.http import HttpRequest, Response, listening, served

Client = Callable[[str, int], None]


def exchange(answer: Callable[[HttpRequest], Awaitable[Response]], client: Client) -> None:
    """Serve while a client runs in a thread."""

    async def main() -> None:
        async with listening(Address("127.0.0.1", 0), "--ui-listen") as listener, served(listener, answer):
            await asyncio.to_thread(client, *listener.getsockname()[:2])

    asyncio.run(main())


async def hello(request: HttpRequest) -> Response:
    return Response(200, request.path.encode(), "text/plain")


def all_of(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("READ_WITHIN_S", "FIRST_WITHIN_S", "WRITE_WITHIN_S"):
        monkeypatch.setattr(http, name, 0.3)


@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"],
)
def test_a_client_that_sends_nothing_more_is_left(sent: bytes) -> None:
    def client(host: str, port: int) -> None:
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(sent)
            started = time.monotonic()
            assert all_of(connection) == b""
            assert time.monotonic() - started < 5

    exchange(hello, client)


def test_a_head_that_comes_line_by_line_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "READ_WITHIN_S", 0.3)

    def client(host: str, port: int) -> None:
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            started = time.monotonic()
            with suppress(ConnectionError):
                while time.monotonic() < started + 5:
                    connection.sendall(b"X-A: b\r\n")
                    time.sleep(0.05)
            assert time.monotonic() < started + 5

    exchange(hello, client)


@pytest.mark.usefixtures("short_times")
def test_a_client_that_does_not_read_is_left() -> None:
    ended = asyncio.Event()

    async def endless(_: HttpRequest) -> Response:
        async def parts() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield b"x" * (1 << 16)
            finally:
                ended.set()

        return Response(200, parts(), "text/plain")

    def client(host: str, port: int) -> None:
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            until = time.monotonic() + 10
            while not ended.is_set() and time.monotonic() < until:
                time.sleep(0.02)
            assert ended.is_set()

    exchange(endless, client)


def test_several_requests_share_a_connection_and_head_has_no_body() -> None:
    def client(host: str, port: int) -> None:
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(
                b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nHEAD /b HTTP/1.1\r\nHost: x\r\n\r\n"
                b"GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            data = all_of(connection)
        assert data.count(b"HTTP/1.1 200 OK\r\n") == 3
        assert data.endswith(b"/c")
        assert b"\r\n\r\n/a" in data
        assert b"\r\n\r\n/b" not in data

    exchange(hello, client)


def asked(connection: socket.socket) -> bytes:
    """Ask on a connection; return what comes back at first, or nothing if it is closed."""
    with suppress(ConnectionError):
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(1 << 16)
    return b""


@pytest.mark.parametrize(("name", "requests"), [("FIRST_WITHIN_S", 0), ("IDLE_S", 2)])
def test_a_client_that_asks_nothing_is_left_earlier_if_it_never_asked(
    monkeypatch: pytest.MonkeyPatch, name: str, requests: int
) -> None:
    monkeypatch.setattr(http, name, 0.3)

    def client(host: str, port: int) -> None:
        with socket.create_connection((host, port), 4) as connection:  # less than the other limit
            for _ in range(requests):
                assert asked(connection).startswith(b"HTTP/1.1 200")
            assert connection.recv(1 << 16) == b""

    exchange(hello, client)


@pytest.mark.parametrize("is_known", [False, True])
def test_idle_clients_take_no_place_from_those_who_ask(is_known: bool) -> None:
    def client(host: str, port: int) -> None:
        idle = []
        for _ in range(http.MAX_CONNECTIONS):
            idle.append(socket.create_connection((host, port), 10))
            assert not is_known or asked(idle[-1]).startswith(b"HTTP/1.1 200")
        with socket.create_connection((host, port), 10) as late:
            assert asked(late).startswith(b"HTTP/1.1 200")
            assert idle[0].recv(1 << 16) == b"", "the one that was idle for longest"
            assert asked(idle[-1]).startswith(b"HTTP/1.1 200")
        for each in idle:
            each.close()

    exchange(hello, client)


def half_sent(where: tuple[str, int], source: str) -> socket.socket:
    connection = socket.create_connection(where, 10, (source, 0))
    connection.sendall(b"GET /x HTTP/1.1\r\n")
    return connection


def test_half_sent_requests_take_no_place_from_those_who_ask() -> None:
    def client(host: str, port: int) -> None:
        where = (host, port)
        quiet = half_sent(where, "127.0.0.2")
        crowd = [half_sent(where, "127.0.0.1") for _ in range(http.MAX_CONNECTIONS - 1)]
        for number in range(3):
            with socket.create_connection(where, 10, (f"127.0.0.{number + 3}", 0)) as late:
                assert asked(late).startswith(b"HTTP/1.1 200")
        quiet.sendall(b"Host: x\r\n\r\n")
        assert quiet.recv(1 << 16).startswith(b"HTTP/1.1 200"), "that of another client stays, though it is the oldest"
        for each in (*crowd, quiet):
            each.close()

    exchange(hello, client)


def test_more_clients_than_there_may_be_are_turned_away_if_all_others_are_being_answered() -> None:
    released = threading.Event()

    async def all_slow(request: HttpRequest) -> Response:
        waiting.append(request)
        while not released.is_set():
            await asyncio.sleep(0.01)
        return await hello(request)

    waiting: list[HttpRequest] = []

    def client(host: str, port: int) -> None:
        busy = [socket.create_connection((host, port), 10) for _ in range(http.MAX_CONNECTIONS)]
        for each in busy:
            each.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        until = time.monotonic() + 10
        while len(waiting) < http.MAX_CONNECTIONS and time.monotonic() < until:
            time.sleep(0.01)
        with socket.create_connection((host, port), 10) as late:
            assert asked(late) == b""
        released.set()
        for each in busy:
            assert each.recv(1 << 16).startswith(b"HTTP/1.1 200")
            each.close()
        with socket.create_connection((host, port), 10) as again:
            assert asked(again).startswith(b"HTTP/1.1 200")

    exchange(all_slow, client)


def test_head_of_a_stream_has_no_body_and_ends_the_stream() -> None:
    ended = asyncio.Event()

    async def endless(_: HttpRequest) -> Response:
        async def parts() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield b"part"
            finally:
                ended.set()

        return Response(200, parts(), "text/plain")

    def client(host: str, port: int) -> None:
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(
                b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            data = all_of(connection)
        assert data.count(b"HTTP/1.1 200 OK\r\n") == 2
        assert b"part" not in data
        assert ended.is_set()

    exchange(endless, client)


def test_a_large_answer_may_take_long_if_it_is_read_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "WRITE_WITHIN_S", 0.5)
    size = 24 << 20

    async def large(_: HttpRequest) -> Response:
        return Response(200, bytes(size), "application/octet-stream")

    def client(host: str, port: int) -> None:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            connection.settimeout(10)
            connection.connect((host, port))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            received, started = 0, time.monotonic()
            while part := connection.recv(1 << 20):
                received += len(part)
                while time.monotonic() < started + 1.2 * received / size:
                    time.sleep(0.005)  # the pace of a slow network
        assert received > size

    exchange(large, client)


def test_the_end_of_an_answer_waits_for_a_client_that_reads_late() -> None:
    body = bytes(http._BUFFER_BYTES - 4096)  # fits into what may wait

    async def main() -> None:
        async with listening(Address("127.0.0.1", 0), "--ui-listen") as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
            async with served(listener, answer):
                await asyncio.to_thread(client, *listener.getsockname()[:2])

    async def answer(request: HttpRequest) -> Response:
        return Response(200, body if request.path == "/large" else b"", "application/octet-stream")

    def client(host: str, port: int) -> None:
        with socket.socket() as late:
            late.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
            late.connect((host, port))
            late.settimeout(10)
            late.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            for _ in range(3):  # the server has done what it can for the first one
                with socket.create_connection((host, port), 10) as other:
                    assert asked(other).startswith(b"HTTP/1.1 200")
            assert all_of(late).endswith(body)

    asyncio.run(main())


def test_an_error_while_serving_is_not_said_to_be_one_of_listening() -> None:
    async def main() -> None:
        async with listening(Address("127.0.0.1", 0), "--ui-listen"):
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        asyncio.run(main())
