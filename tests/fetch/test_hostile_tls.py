"""What servers do before a request is sent: certificates, handshakes and tickets without measure."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest

from gossamer.fetch.http import FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome
from tests.amount import amount
from tests.servers.certificates import Certificate, certified, server_context

from .servers import LOOPBACK, QUICK, Script, Visit, answer, run, says, stage

PATIENT = FetchLimits(max_bytes=1_000_000)
CPU_S = 1.0  # of server and client together: what a request may take


def fetched(context: ssl.SSLContext, folder: Path, script: Script, *, ca: str = "site") -> tuple[Exchange, float]:
    """Request a page; return what came of it, and the CPU time of both sides."""

    async def main() -> Exchange:
        async with stage(script, tls=context, ca_file=str(folder / f"{ca}.pem"), limits=PATIENT) as scene:
            return await scene.get()

    began = time.process_time()
    return asyncio.run(main()), time.process_time() - began


@pytest.mark.parametrize(("names", "outcome"), [(1, Outcome.OK), (2_000, Outcome.OK), (10_000, Outcome.TLS_ERROR)])
def test_a_certificate_with_thousands_of_names(tmp_path: Path, names: int, outcome: Outcome) -> None:
    certified("site", *(f"n{number}.test" for number in range(names - 1)), "site.test").write(tmp_path)
    exchange, cpu_s = fetched(server_context(tmp_path, "site"), tmp_path, says(answer(b"page")))
    assert exchange.outcome is outcome, exchange.error
    assert cpu_s < CPU_S


@pytest.mark.parametrize(("length", "outcome"), [(2, Outcome.OK), (90, Outcome.OK), (110, Outcome.TLS_ERROR)])
def test_a_chain_of_a_hundred_certificates(tmp_path: Path, length: int, outcome: Outcome) -> None:
    chain: list[Certificate] = [certified("root", is_authority=True)]
    for number in range(length - 2):
        chain.append(certified(f"link{number}", by=chain[-1], is_authority=True))
    leaf = certified("leaf", "site.test", by=chain[-1])
    leaf.write(tmp_path)
    chain[0].write(tmp_path)
    (tmp_path / "leaf.pem").write_bytes(b"".join(each.pem for each in [leaf, *reversed(chain)]))
    exchange, cpu_s = fetched(server_context(tmp_path, "leaf"), tmp_path, says(answer(b"page")), ca="root")
    assert exchange.outcome is outcome, exchange.error
    assert cpu_s < CPU_S


def test_a_handshake_that_drips_ends_in_time() -> None:
    async def script(visit: Visit) -> None:
        await visit.reader.read(1)
        await visit.send(b"\x16\x03\x03\x40\x00")  # a record of 16 KB, of which a byte comes now and then
        while True:
            await visit.send(b"\x02")
            await asyncio.sleep(0.02)

    async def main() -> None:
        async with stage(script) as scene:
            scene.scheme = "https"
            began = time.monotonic()
            exchange = await scene.get()
            assert (exchange.outcome, exchange.requests_sent) == (Outcome.CONNECT_TIMEOUT, 0)
            assert time.monotonic() - began < 3 * QUICK.connect_timeout_s

    run(main)


@pytest.mark.parametrize("tickets", [0, 2, amount(5_000, 20_000)])
def test_a_flood_of_session_tickets(tmp_path: Path, tickets: int) -> None:
    certified("site", "site.test").write(tmp_path)
    context = server_context(tmp_path, "site")
    context.num_tickets = tickets
    exchange, _ = fetched(context, tmp_path, says(answer(b"page")))
    assert exchange.outcome in ((Outcome.OK,) if tickets <= 2 else (Outcome.OK, Outcome.PROTOCOL_ERROR)), exchange.error


@pytest.mark.parametrize("said", [answer(b"page"), b"", b"\x00" * 100])
def test_a_server_that_agrees_on_http_2_and_speaks_something_else(tmp_path: Path, said: bytes) -> None:
    certified("site", "site.test").write(tmp_path)
    context = server_context(tmp_path, "site")
    context.set_alpn_protocols(["h2"])

    async def script(visit: Visit) -> None:
        await visit.reader.read(100)
        await visit.send(said)

    exchange, cpu_s = fetched(context, tmp_path, script)
    assert exchange.outcome in (Outcome.PROTOCOL_ERROR, Outcome.DISCONNECTED), exchange.error
    assert exchange.body == b""
    assert cpu_s < CPU_S


def test_a_server_that_agrees_on_http_1_and_speaks_http_2(tmp_path: Path) -> None:
    certified("site", "site.test").write(tmp_path)
    context = server_context(tmp_path, "site")
    context.set_alpn_protocols(["http/1.1"])
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    exchange, _ = fetched(context, tmp_path, says(settings + b"\x00\x00\x04\x00\x01\x00\x00\x00\x01page"))
    assert exchange.outcome is Outcome.PROTOCOL_ERROR, exchange.error


def test_hosts_that_behave_are_fetched_beside_dripping_handshakes(tmp_path: Path) -> None:
    """Fifty handshakes that never end hold nobody up."""
    certified("site", "site.test").write(tmp_path)

    async def main() -> None:
        async def drip(visit: Visit) -> None:
            await visit.reader.read(1)
            await visit.send(b"\x16\x03\x03\x40\x00")
            while True:
                await visit.send(b"\x02")
                await asyncio.sleep(0.05)

        limits = FetchLimits(connect_timeout_s=1.0)
        tls = server_context(tmp_path, "site")
        ca_file = str(tmp_path / "site.pem")
        async with stage(drip) as bad, stage(says(answer(b"page")), tls=tls, ca_file=ca_file, limits=limits) as good:
            url = f"https://slow.test:{bad.port}/"
            waiting = [asyncio.ensure_future(good.fetcher.fetch(FetchRequest(url, LOOPBACK))) for _ in range(50)]
            await asyncio.sleep(0)
            began = time.monotonic()
            exchange = await good.get()
            assert exchange.outcome is Outcome.OK
            assert time.monotonic() - began < 0.7
            found = await asyncio.gather(*waiting)
            assert {each.outcome for each in found} == {Outcome.CONNECT_TIMEOUT}

    run(main)
