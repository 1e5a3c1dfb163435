"""TLS and HTTP/2 (rows L)."""

from __future__ import annotations

import asyncio
import ssl
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from gossamer.fetch.http import OVERFED, Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.records import Outcome, Truncation
from tests.servers.certificates import certified, server_context

from .servers import IDENTITY, LOOPBACK, Visit, answer, keeps, run, says, stage

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key and a certificate for site.test that nobody vouches for."""
    folder = tmp_path_factory.mktemp("tls")
    certified("site", "site.test").write(folder)
    return folder


def test_l01_a_self_signed_certificate(folder: Path) -> None:
    async def main() -> None:
        async with stage(says(answer(b"secret")), tls=server_context(folder, "site"), limits=FetchLimits()) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.TLS_ERROR
            assert "certificate" in exchange.error
            assert exchange.requests_sent == 0

    run(main)


def test_l01_a_certificate_for_another_host(folder: Path) -> None:
    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(
            says(answer(b"x")), tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()
        ) as scene:
            request = FetchRequest(scene.url(host="other.test"), LOOPBACK)
            exchange = await scene.fetcher.fetch(request)
            assert exchange.outcome is Outcome.TLS_ERROR
            assert "other.test" in exchange.error

    run(main)


def test_l01_tls_1_0_is_not_spoken(folder: Path) -> None:
    context = server_context(folder, "site")
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1

    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(says(answer(b"x")), tls=context, ca_file=ca_file, limits=FetchLimits()) as scene:
            assert (await scene.get()).outcome is Outcome.TLS_ERROR

    run(main)


def test_connections_are_kept_over_tls(folder: Path) -> None:
    async def main() -> None:
        ca_file = str(folder / "site.pem")
        script = keeps(*[answer(b"page")] * 3)
        async with stage(script, tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()) as scene:
            for _ in range(3):
                assert (await scene.get()).body == b"page"
            assert scene.connections == 1

    run(main)


def test_l02_cut_off_without_a_word(folder: Path) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        await asyncio.sleep(0.05)
        visit.reset()

    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(script, tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.DISCONNECTED
            assert exchange.truncated is Truncation.DISCONNECT
            assert exchange.body == b"part"

    run(main)


async def _speak_http_2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of a connection over HTTP/2."""
    connection = H2Connection(H2Configuration(client_side=False))
    connection.initiate_connection()
    while data := await reader.read(1 << 16):
        for event in connection.receive_data(data):
            if isinstance(event, RequestReceived):
                assert event.stream_id is not None
                connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/html")])
                connection.send_data(event.stream_id, b"by http/2", end_stream=True)
        writer.write(connection.data_to_send())
    writer.close()


def test_http_2_is_spoken_over_tls(folder: Path) -> None:
    async def main() -> None:
        context = server_context(folder, "site")
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(_speak_http_2, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        policy = AddressPolicy(allowed_addresses=LOOPBACK)
        async with (
            server,
            Fetcher(FetchLimits(), IDENTITY, policy, time.time, ca_file=str(folder / "site.pem")) as fetcher,
        ):
            request = FetchRequest(f"https://site.test:{port}/", LOOPBACK)
            exchanges = await asyncio.gather(*(fetcher.fetch(request) for _ in range(5)))
            exchange = exchanges[0]
            assert {each.body for each in exchanges} == {b"by http/2"}
            assert (exchange.http_version, exchange.tls_version) == ("2", "TLSv1.3")
            assert exchange.response_head.startswith(b"HTTP/2 200 \r\n")
            assert exchange.header("content-type") == "text/html"
            assert exchange.request_head.startswith(b"GET / HTTP/1.1\r\nHost: site.test:")

    run(main)


def _flood(frames: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Answer the second request of a connection with frames that never end; others properly."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for event in connection.receive_data(data):
                    if not isinstance(event, RequestReceived):
                        continue
                    assert event.stream_id is not None
                    connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/html")])
                    if event.stream_id == 3:
                        writer.write(connection.data_to_send())
                        stream = frames.replace(b"STRM", event.stream_id.to_bytes(4, "big"))
                        for _ in range(FLOOD_BYTES // len(stream)):
                            writer.write(stream)
                            await writer.drain()
                    connection.send_data(event.stream_id, b"x" * 1000, end_stream=True)
                writer.write(connection.data_to_send())
        writer.close()

    return speak


FLOOD_BYTES = 8_000_000_000  # some seconds; a flood is found within half of one
PINGS = b"\x00\x00\x08\x06\x01\x00\x00\x00\x00" + b"12345678"
PADDING = b"\x00\x01\x00\x00\x08STRM" + b"\xff" + bytes(255)


@pytest.mark.parametrize("frames", [PINGS * 1000, PADDING * 100])
def test_frames_that_belong_to_no_body_count_against_the_cap(folder: Path, frames: bytes) -> None:
    async def main() -> None:
        context = server_context(folder, "site")
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(_flood(frames), "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        policy = AddressPolicy(allowed_addresses=LOOPBACK)
        limits = FetchLimits(max_bytes=1_000_000)
        async with server, Fetcher(limits, IDENTITY, policy, time.time, ca_file=str(folder / "site.pem")) as fetcher:
            request = FetchRequest(f"https://site.test:{port}/", LOOPBACK)
            first = await fetcher.fetch(request)
            assert (first.outcome, len(first.body)) == (Outcome.OK, 1000)
            began = time.monotonic()
            exchange = await fetcher.fetch(request)
            assert (exchange.outcome, exchange.error) == (Outcome.PROTOCOL_ERROR, OVERFED)
            assert time.monotonic() - began < limits.total_timeout_s / 3

    run(main)


def test_many_answers_on_a_connection_beside_a_slow_one_are_no_flood(folder: Path) -> None:
    """A slow answer is in progress while others on its connection have many times the cap together."""
    released = asyncio.Event()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False, header_encoding=False))
        connection.initiate_connection()
        slow = 0
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for event in connection.receive_data(data):
                    if not isinstance(event, RequestReceived):
                        continue
                    assert event.stream_id is not None
                    connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/html")])
                    if (b":path", b"/slow") in (event.headers or []):
                        slow = event.stream_id
                        continue
                    for _ in range(3):
                        connection.send_data(event.stream_id, b"x" * 16_000)
                    connection.end_stream(event.stream_id)
                if slow and released.is_set():
                    connection.send_data(slow, b"late", end_stream=True)
                    slow = 0
                writer.write(connection.data_to_send())
        writer.close()

    async def main() -> None:
        context = server_context(folder, "site")
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        policy = AddressPolicy(allowed_addresses=LOOPBACK)
        limits = FetchLimits(max_bytes=100_000, silence_s=5.0)
        async with server, Fetcher(limits, IDENTITY, policy, time.time, ca_file=str(folder / "site.pem")) as fetcher:
            request = FetchRequest(f"https://site.test:{port}/", LOOPBACK)
            await fetcher.fetch(request)  # one connection, which all share
            late = asyncio.ensure_future(fetcher.fetch(FetchRequest(f"{request.url}slow", LOOPBACK)))
            until = time.monotonic() + 1.2
            fetched = 0
            while time.monotonic() < until:
                assert (await fetcher.fetch(request)).outcome is Outcome.OK
                fetched += 48_000
            assert fetched > 3 * limits.max_bytes
            released.set()
            assert (await fetcher.fetch(request)).outcome is Outcome.OK
            slow = await late
            assert (slow.outcome, slow.error, slow.body) == (Outcome.OK, "", b"late")

    run(main)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_version_of_tls_is_known_for_every_answer(folder: Path, version: ssl.TLSVersion) -> None:
    async def main() -> None:
        context = server_context(folder, "site")
        context.minimum_version = context.maximum_version = version
        async with stage(keeps(answer(b"x")), tls=context, ca_file=str(folder / "site.pem")) as scene:
            seen = [(await scene.get()).tls_version for _ in range(3)]
            assert seen == [version.name.replace("_", ".")] * 3

    run(main)


@pytest.mark.parametrize("piece", [b"1;%b\r\nx\r\n" % (b"e" * 16_000), b"1\r\nx\r\n" * 3000])
def test_n03_what_is_between_chunks_counts_against_the_cap(folder: Path, piece: bytes) -> None:
    limits = FetchLimits(max_bytes=100_000)
    sent = 0

    async def script(visit: Visit) -> None:
        nonlocal sent
        await visit.request()
        await visit.send(CHUNKED)
        while True:
            await visit.send(piece)
            sent += len(piece)

    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(script, tls=server_context(folder, "site"), ca_file=ca_file, limits=limits) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.OK
            assert exchange.truncated is Truncation.LENGTH
            assert 0 < len(exchange.body) < limits.max_bytes
            assert exchange.body.strip(b"x") == b""
            assert sent < 50_000_000  # most of it in the buffers of the sockets; without a cap, gigabytes

    run(main)


def test_n03_one_endless_line_between_chunks(folder: Path) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(CHUNKED + b"1;")
        while True:
            await visit.send(b"e" * 10_000)

    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(script, tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()) as scene:
            assert (await scene.get()).outcome is Outcome.HEADER_TOO_LARGE

    run(main)


def test_chunks_that_arrive_in_any_pieces_are_read_and_the_connection_is_kept(folder: Path) -> None:
    data = CHUNKED + b"5;a=b\r\nhello\r\n10\r\n, chunked world!\r\n0\r\nT: v\r\n\r\n"

    async def script(visit: Visit) -> None:
        for size in (1, 7, len(data)):
            await visit.request()
            for start in range(0, len(data), size):
                await visit.send(data[start : start + size])
                await asyncio.sleep(0)

    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(script, tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()) as scene:
            for _ in range(3):
                exchange = await scene.get()
                assert (exchange.outcome, exchange.body) == (Outcome.OK, b"hello, chunked world!")
            assert scene.connections == 1

    run(main)


def test_n11_the_connection_is_not_used_again_after_chunks_with_a_length(folder: Path) -> None:
    page = CHUNKED.replace(b"Transfer", b"Content-Length: 3\r\nTransfer") + b"5\r\nhello\r\n0\r\n\r\n"

    async def main() -> None:
        ca_file = str(folder / "site.pem")
        script = keeps(page, page)
        async with stage(script, tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()) as scene:
            for _ in range(2):
                exchange = await scene.get()
                assert (exchange.outcome, exchange.body) == (Outcome.OK, b"hello")
                assert exchange.truncated is Truncation.NONE
            assert scene.connections == 2

    run(main)


def test_a_new_connection_has_times_to_connect_and_for_the_handshake_a_kept_one_has_none(folder: Path) -> None:
    async def main() -> None:
        ca_file = str(folder / "site.pem")
        async with stage(
            keeps(answer(b"x")), tls=server_context(folder, "site"), ca_file=ca_file, limits=FetchLimits()
        ) as scene:
            first, second = await scene.get(), await scene.get()
            assert 0 < first.connect_s < first.connect_s + first.tls_s < 5
            assert (second.connect_s, second.tls_s) == (-1.0, -1.0)

    run(main)
