"""The name server: the zone's answers byte by byte, then over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pycares
import pytest

from gossamer.sim.web.dns import FaultKind, NameFault, NameServer, Zone
from gossamer.sim.web.web import WebPlan

PLAN = WebPlan(domains=10, hosts=20, pages=20)
A, AAAA, SOA = 1, 28, 6


def query(name: str, kind: int = A, number: int = 7) -> bytes:
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    return number.to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\1"


def ask(zone: Zone, name: str, kind: int = A, *, is_tcp: bool = False) -> bytes:
    reply = zone.reply(query(name, kind), is_tcp=is_tcp)
    assert reply is not None
    return reply.message


def code(message: bytes) -> int:
    return message[3] & 15


def counts(message: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(message[place : place + 2], "big") for place in (4, 6, 8, 10))


def test_a_host_of_the_plan_has_its_address_and_time_to_live() -> None:
    message = ask(Zone(PLAN), "Site-00003.TEST")
    assert message[:2] == b"\0\7"
    assert code(message) == 0
    assert counts(message) == (1, 1, 0, 0)
    assert b"\nSite-00003\4TEST\0" in message  # the question as it was asked
    assert message.endswith((300).to_bytes(4, "big") + b"\0\4" + socket.inet_aton(PLAN.address(3)))


def test_other_types_have_no_data_and_other_names_do_not_exist() -> None:
    zone = Zone(PLAN)
    no_data, no_name = ask(zone, "site-00003.test", AAAA), ask(zone, "site-00010.test")
    assert (code(no_data), counts(no_data)) == (0, (1, 0, 1, 0))
    assert (code(no_name), counts(no_name)) == (3, (1, 0, 1, 0))
    assert b"\4test\0" + SOA.to_bytes(2, "big") in no_name
    assert zone.asked["site-00003.test"] == 1


def test_faults_do_what_they_say() -> None:
    many = tuple(f"127.9.{n // 250}.{1 + n % 250}" for n in range(1000))
    zone = Zone(
        PLAN,
        {
            "site-00001.test": NameFault(FaultKind.SERVFAIL),
            "site-00002.test": NameFault(FaultKind.SILENT),
            "site-00003.test": NameFault(delay_s=1.5),
            "many.test": NameFault(addresses=many),
            "loop.test": NameFault(alias="loop.test", ttl_s=0),
        },
    )
    assert code(ask(zone, "site-00001.test")) == 2
    assert zone.reply(query("site-00002.test")) is None
    slow = zone.reply(query("site-00003.test"))
    assert slow is not None
    assert slow.delay_s == 1.5
    cut, whole = ask(zone, "many.test"), ask(zone, "many.test", is_tcp=True)
    assert cut[2] & 2
    assert counts(cut)[1] == 0
    assert not whole[2] & 2
    assert counts(whole)[1] == 1000
    assert ask(zone, "loop.test").endswith(b"\4loop\4test\0")


@pytest.mark.parametrize("junk", [b"", b"\0" * 11, query("a.test")[:-3], query("a.test")[:14] + b"\xc0\x0c\0\1\0\1"])
def test_junk_is_refused_or_left_alone(junk: bytes) -> None:
    reply = Zone(PLAN).reply(junk)
    assert reply is None or code(reply.message) == 1


async def _resolve(port: int, name: str) -> list[str]:
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[list[str]] = loop.create_future()

    def done(result: pycares.AddrInfoResult | None, error: int | None) -> None:
        addresses = [node.addr[0] for node in result.nodes] if result is not None else []
        loop.call_soon_threadsafe(answered.set_result, [address.decode() for address in addresses])

    channel = pycares.Channel(servers=[f"127.0.0.1:{port}"], timeout=2.0, tries=1)
    try:
        channel.getaddrinfo(name, None, family=socket.AF_INET, callback=done)
        return await asyncio.wait_for(answered, 5)
    finally:
        channel.close()


def test_a_real_resolver_gets_the_plan_s_addresses_by_udp_and_by_tcp() -> None:
    many = tuple(f"127.9.1.{1 + n}" for n in range(200))

    async def run() -> None:
        zone = Zone(PLAN, {"many.test": NameFault(addresses=many)})
        async with NameServer(zone) as names:
            assert names.address == f"127.0.0.1:{names.port}"
            assert await _resolve(names.port, "site-00004.test") == [PLAN.address(4)]
            assert await _resolve(names.port, "nobody.test") == []
            # c-ares asks again by TCP where the datagram was cut.
            assert sorted(await _resolve(names.port, "many.test")) == sorted(many)

    asyncio.run(run())


def test_a_free_port_is_free_for_both_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        create, ports = socket.create_server, [taken.getsockname()[1], 0]
        monkeypatch.setattr(socket, "create_server", lambda address, **how: create((address[0], ports.pop(0)), **how))

        async def run() -> None:
            async with NameServer(Zone(PLAN)) as names:
                assert names.port != taken.getsockname()[1]
                assert await _resolve(names.port, "site-00004.test") == [PLAN.address(4)]

        asyncio.run(run())
        monkeypatch.undo()
        with pytest.raises(OSError, match="in use"):
            asyncio.run(NameServer(Zone(PLAN), taken.getsockname()[1]).__aenter__())
