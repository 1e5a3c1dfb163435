"""TLS that fails, and HTTP/2 that floods (L), with certificates and frames made here."""

from __future__ import annotations

import asyncio
import ssl
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation
from tests.e2e.program import run, summary_of
from tests.fetch.servers import IDENTITY, LOOPBACK, Visit, answer, says, stage
from tests.hostile.crawling import whole_server
from tests.servers.certificates import certified, server_context

LIMITS = FetchLimits(connect_timeout_s=1, first_byte_timeout_s=1, silence_s=1, total_timeout_s=2, max_bytes=100_000)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def certificate(folder: Path, name: str, until: datetime | None = None) -> ssl.SSLContext:
    """Make a self-signed certificate for site.test and return a server's context with it."""
    certified(name, "site.test", until=until).write(folder)
    return server_context(folder, name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def sound(folder: Path) -> ssl.SSLContext:
    return certificate(folder, "sound")


def asked(context: ssl.SSLContext, ca_file: Path | None, host: str = "site.test") -> Exchange:
    async def main() -> Exchange:
        trusted = str(ca_file) if ca_file else ""
        async with stage(says(answer(b"secret")), tls=context, ca_file=trusted, limits=LIMITS) as scene:
            return await scene.fetcher.fetch(FetchRequest(scene.url(host=host), LOOPBACK))

    return asyncio.run(main())


def refused(exchange: Exchange, *words: str) -> None:
    assert exchange.outcome is Outcome.TLS_ERROR
    assert exchange.requests_sent == 0
    assert exchange.error
    assert not words or any(word in exchange.error for word in words), exchange.error


def test_l01_expired(folder: Path) -> None:
    old = certificate(folder, "old", until=datetime(2020, 1, 2, tzinfo=UTC))
    refused(asked(old, folder / "old.pem"), "expired")


def test_l01_self_signed(sound: ssl.SSLContext) -> None:
    refused(asked(sound, None), "self-signed", "self signed")


def test_l01_for_another_host(folder: Path, sound: ssl.SSLContext) -> None:
    refused(asked(sound, folder / "sound.pem", "other.test"), "other.test")


def test_l01_tls_1_0(folder: Path) -> None:
    context = certificate(folder, "tls10")
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    refused(asked(context, folder / "tls10.pem"))


def test_l01_null_ciphers(folder: Path) -> None:
    context = certificate(folder, "null")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("NULL:@SECLEVEL=0")  # RC4 is not in OpenSSL any more; this is as bad
    refused(asked(context, folder / "null.pem"))


def test_l01_a_crawl_never_falls_back_to_http(tmp_path: Path, sound: ssl.SSLContext) -> None:
    with whole_server(tls=sound) as server:
        done = run(
            *(
                "crawl",
                f"https://t07.test:{server.tls_port}/",
                "--dns",
                server.dns_address,
                "--out",
                str(tmp_path / "o"),
            ),
            *("--allow-network", "127.0.0.1/32", "--retry-wait", "0.02", "--max-wait", "1", "--json"),
        )
        assert server.seen == []
    assert summary_of(done.stdout)["pages"] == 0


def test_l02_a_stalled_handshake() -> None:
    async def script(visit: Visit) -> None:
        await visit.reader.read()

    async def main() -> None:
        async with stage(script) as scene:
            scene.scheme = "https"
            exchange = await scene.get()
            assert exchange.outcome is Outcome.CONNECT_TIMEOUT
            assert "TLS" in exchange.error

    asyncio.run(main())


def test_l02_closed_without_close_notify(folder: Path, sound: ssl.SSLContext) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        visit.writer.get_extra_info("socket")._sock.shutdown(1)  # TCP ends, TLS does not

    async def main() -> None:
        async with stage(script, tls=sound, ca_file=str(folder / "sound.pem"), limits=LIMITS) as scene:
            exchange = await scene.get()
            assert exchange.truncated is Truncation.DISCONNECT
            assert exchange.outcome is Outcome.DISCONNECTED

    asyncio.run(main())


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(4, 0, 0)
STATUS_200 = b"\x88"  # RFC 7541: the eighth entry of the static table is ":status 200"
HEADER = b"\x00\x05x-odd\x7f\x81\x07" + b"v" * 1024  # a literal of 1 KiB
TRICKS = {
    "continuation flood": (frame(1, 0, 1, STATUS_200), frame(9, 0, 1, HEADER) * 8),
    "one header block without end": (
        frame(1, 0, 1, STATUS_200),
        frame(9, 0, 1, b"\x00\x01x\x7f\xff\xff\xff\x7f" + b"v" * 8000),
    ),
    "ping flood": (b"", frame(6, 0, 0, b"12345678") * 500),
    "settings flood": (b"", frame(4, 0, 0, b"\0\3\0\0\0\x64") * 500),
    "rapid reset": (frame(1, 4, 1, STATUS_200), frame(3, 0, 1, b"\0\0\0\7")),
    "a window of 2^31": (frame(8, 0, 0, b"\x7f\xff\xff\xff"), frame(8, 0, 0, b"\x7f\xff\xff\xff")),
    "empty data without end": (frame(1, 4, 1, STATUS_200), frame(0, 0, 1) * 500),
    "data without end": (frame(1, 4, 1, STATUS_200), frame(0, 0, 1, b"x" * 16_000)),
    "promises": (b"", frame(5, 4, 1, b"\0\0\0\2" + STATUS_200) * 100),
    "goaway": (frame(7, 0, 0, b"\0\0\0\0\0\0\0\x0b"), b""),
    "garbage": (b"\xff" * 100, b"\xff" * 1000),
}


@asynccontextmanager
async def http2(folder: Path, trick: str) -> AsyncIterator[tuple[Fetcher, int]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "sound.pem", folder / "sound_key.pem")
    context.set_alpn_protocols(["h2"])
    start, repeated = TRICKS[trick]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(len(_PREFACE))
            writer.write(SETTINGS + start)
            for _ in range(20_000_000 // max(1, len(repeated)) if repeated else 0):
                writer.write(repeated)
                await writer.drain()
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    policy = AddressPolicy(allowed_addresses=LOOPBACK)
    try:
        async with Fetcher(LIMITS, IDENTITY, policy, time.time, ca_file=str(folder / "sound.pem")) as fetcher:
            yield fetcher, server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize("trick", TRICKS)
def test_l03_tricks_of_http_2_end_under_our_caps(folder: Path, sound: ssl.SSLContext, trick: str) -> None:
    async def main() -> Exchange:
        async with asyncio.timeout(6), http2(folder, trick) as (fetcher, port):
            return await fetcher.fetch(FetchRequest(f"https://site.test:{port}/", LOOPBACK))

    exchange = asyncio.run(main())
    assert len(exchange.body) <= LIMITS.max_bytes
    assert len(exchange.response_head) <= LIMITS.max_header_bytes
    if trick == "data without end":
        assert (exchange.outcome, exchange.truncated) == (Outcome.OK, Truncation.LENGTH)
    else:
        assert exchange.outcome is not Outcome.OK
