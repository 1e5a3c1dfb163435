"""TLS and HTTP/2 (rows L)."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import time
import warnings
from pathlib import Path

import pytest

from gossamer.fetch.guard import AddressPolicy
from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.records import Outcome, Truncation

from .servers import IDENTITY, LOOPBACK, Visit, answer, keeps, run, says, stage

HTTP2_SERVER = """
const fs = require('fs');
const server = require('http2').createSecureServer({key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem')},
  (request, response) => { response.writeHead(200, {'content-type': 'text/html'}); response.end('by http/2'); });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key and a certificate for site.test that nobody vouches for."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=site.test"
    files = ["-keyout", "key.pem", "-out", "cert.pem", "-addext", "subjectAltName=DNS:site.test"]
    subprocess.run([*command.split(), *files], check=True, capture_output=True, cwd=folder)
    return folder


def _context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def test_l01_a_self_signed_certificate(folder: Path) -> None:
    async def main() -> None:
        async with stage(says(answer(b"secret")), tls=_context(folder), limits=FetchLimits()) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.TLS_ERROR
            assert "certificate" in exchange.error
            assert exchange.requests_sent == 0

    run(main)


def test_l01_a_certificate_for_another_host(folder: Path) -> None:
    async def main() -> None:
        ca_file = str(folder / "cert.pem")
        async with stage(says(answer(b"x")), tls=_context(folder), ca_file=ca_file, limits=FetchLimits()) as scene:
            request = FetchRequest(scene.url(host="other.test"), LOOPBACK)
            exchange = await scene.fetcher.fetch(request)
            assert exchange.outcome is Outcome.TLS_ERROR
            assert "other.test" in exchange.error

    run(main)


def test_l01_tls_1_0_is_not_spoken(folder: Path) -> None:
    context = _context(folder)
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1

    async def main() -> None:
        ca_file = str(folder / "cert.pem")
        async with stage(says(answer(b"x")), tls=context, ca_file=ca_file, limits=FetchLimits()) as scene:
            assert (await scene.get()).outcome is Outcome.TLS_ERROR

    run(main)


def test_connections_are_kept_over_tls(folder: Path) -> None:
    async def main() -> None:
        ca_file = str(folder / "cert.pem")
        script = keeps(*[answer(b"page")] * 3)
        async with stage(script, tls=_context(folder), ca_file=ca_file, limits=FetchLimits()) as scene:
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
        ca_file = str(folder / "cert.pem")
        async with stage(script, tls=_context(folder), ca_file=ca_file, limits=FetchLimits()) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.DISCONNECTED
            assert exchange.truncated is Truncation.DISCONNECT
            assert exchange.body == b"part"

    run(main)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node as an HTTP/2 server")
def test_http_2_is_spoken_over_tls(folder: Path) -> None:
    async def main() -> None:
        server = await asyncio.create_subprocess_exec(
            "node", "-e", HTTP2_SERVER, stdout=asyncio.subprocess.PIPE, cwd=folder
        )
        assert server.stdout is not None
        try:
            port = int(await server.stdout.readline())
            policy = AddressPolicy(allowed_addresses=LOOPBACK)
            ca_file = str(folder / "cert.pem")
            async with Fetcher(FetchLimits(), IDENTITY, policy, time.time, ca_file=ca_file) as fetcher:
                request = FetchRequest(f"https://site.test:{port}/", LOOPBACK)
                exchanges = await asyncio.gather(*(fetcher.fetch(request) for _ in range(5)))
                exchange = exchanges[0]
                assert {each.body for each in exchanges} == {b"by http/2"}
                assert exchange.http_version == "2"
                assert exchange.response_head.startswith(b"HTTP/2 200 \r\n")
                assert exchange.header("content-type") == "text/html"
                assert exchange.request_head.startswith(b"GET / HTTP/1.1\r\nHost: site.test:")
        finally:
            server.kill()
            await server.wait()

    run(main)
