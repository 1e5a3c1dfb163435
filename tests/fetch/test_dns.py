from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
import uvloop

from gossamer.fetch.names.dns import Resolution, Resolver, literal_address, read_hosts
from gossamer.model.errors import UsageError
from gossamer.model.records import Outcome

from .servers import run

A, AAAA, CNAME = 1, 28, 5
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Zone:
    """What the fake server answers: records, or a response code, or None for silence."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], list[tuple[int, str, int]] | int | None] = {}
        self.asked: list[tuple[str, int]] = []
        self.hold: asyncio.Event | None = None

    def add(self, name: str, *addresses: str, ttl: int = 300) -> None:
        for address in addresses:
            kind = AAAA if ":" in address else A
            records = self.answers.setdefault((name, kind), [])
            assert isinstance(records, list)
            records.append((kind, address, ttl))

    def reply(self, query: bytes) -> bytes | None:
        name, kind, question = _question(query)
        self.asked.append((name, kind))
        answer = self.answers.get((name, kind), [])
        if answer is None:
            return None
        records = answer if isinstance(answer, list) else []
        code = answer if isinstance(answer, int) else 0
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        return head + question + b"".join(_record(*record) for record in records)


def _question(query: bytes) -> tuple[str, int, bytes]:
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels).lower(), struct.unpack(">H", query[at + 1 : at + 3])[0], query[12 : at + 5]


def _name(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in name.split(".")) + b"\0"


def _record(kind: int, value: str, ttl: int) -> bytes:
    data = _name(value) if kind == CNAME else ip_address(value).packed
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


class _Protocol(asyncio.DatagramProtocol):
    def __init__(self, zone: Zone) -> None:
        self.zone = zone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        reply = self.zone.reply(data)
        if reply is not None:
            self.transport.sendto(reply, address)


@asynccontextmanager
async def resolving(
    zone: Zone,
    clock: Callable[[], float],
    *,
    deadline_s: float = 5.0,
    cache_size: int = 50_000,
    max_rate: float = 0.0,
) -> AsyncIterator[Resolver]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Protocol(zone), ("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    try:
        server = f"127.0.0.1:{port}"
        resolver = Resolver(clock, server=server, deadline_s=deadline_s, cache_size=cache_size, max_rate=max_rate)
        async with resolver:
            yield resolver
    finally:
        transport.close()


def test_a_name_is_looked_up_once_while_its_time_runs() -> None:
    async def main() -> None:
        zone, clock = Zone(), Clock()
        zone.add("a.test", "192.0.2.1", "192.0.2.2", ttl=100)
        async with resolving(zone, clock) as resolver:
            first = await resolver.resolve("a.test")
            assert first.outcome is Outcome.OK
            assert sorted(first.addresses) == ["192.0.2.1", "192.0.2.2"]
            assert first.expires_at == 1100
            clock.now = 1099
            assert await resolver.resolve("a.test") is first
            clock.now = 1100
            assert await resolver.resolve("a.test") is not first

    run(main)


def test_queries_are_no_more_frequent_than_allowed() -> None:
    async def main() -> None:
        zone = Zone()
        for number in range(6):
            zone.add(f"n{number}.test", "192.0.2.1")
        async with resolving(zone, Clock(), max_rate=50.0) as resolver:
            began = asyncio.get_running_loop().time()
            found = await asyncio.gather(*(resolver.resolve(f"n{number}.test") for number in range(6)))
            assert all(each.outcome is Outcome.OK for each in found)
            assert asyncio.get_running_loop().time() - began >= 5 / 50
            assert resolver.queries == 6

    run(main)


def test_only_one_query_is_sent_if_there_is_an_ipv4_address() -> None:
    async def main() -> None:
        zone = Zone()
        zone.add("both.test", "192.0.2.1", "2001:db8::1")
        zone.add("six.test", "2001:db8::2")
        async with resolving(zone, Clock()) as resolver:
            assert (await resolver.resolve("both.test")).addresses == ("192.0.2.1",)
            assert (await resolver.resolve("six.test")).addresses == ("2001:db8::2",)
        assert zone.asked == [("both.test", A), ("six.test", A), ("six.test", AAAA)]

    run(main)


def test_look_ups_of_one_name_share_a_query() -> None:
    async def main() -> None:
        zone = Zone()
        zone.add("a.test", "192.0.2.1")
        async with resolving(zone, Clock()) as resolver:
            answers = await asyncio.gather(*(resolver.resolve("a.test") for _ in range(20)))
            assert len({answer.addresses for answer in answers}) == 1
        assert len(zone.asked) == 1

    run(main)


def test_a_name_can_be_looked_up_without_waiting() -> None:
    async def main() -> None:
        zone, told = Zone(), list[tuple[str, Outcome]]()
        zone.add("a.test", "192.0.2.1")
        zone.answers["none.test", A] = NXDOMAIN
        hosts = ["a.test", "a.test", "none.test", "127.0.0.1", "a..b"]

        def note(host: str, found: Resolution) -> None:
            told.append((host, found.outcome))

        async with resolving(zone, Clock()) as resolver:
            for host in hosts:
                resolver.resolve_soon(host, partial(note, host))
                assert not told  # later, never at once
            while len(told) < len(hosts):
                await asyncio.sleep(0.01)
        bad = Outcome.DNS_NOT_FOUND
        names = [("127.0.0.1", Outcome.OK), ("a..b", bad), ("a.test", Outcome.OK), ("a.test", Outcome.OK)]
        assert sorted(told) == [*names, ("none.test", bad)]
        assert sorted(zone.asked) == [("a.test", A), ("none.test", A)]

    run(main)


def test_who_waits_without_waiting_learns_of_the_end() -> None:
    async def main() -> None:
        zone, told = Zone(), list[Outcome]()
        zone.answers["silent.test", A] = None
        async with resolving(zone, Clock()) as resolver:
            resolver.resolve_soon("silent.test", lambda found: told.append(found.outcome))
            await asyncio.sleep(0)
        assert told == [Outcome.DNS_FAILED]

    run(main)


def test_whoever_gives_up_does_not_take_the_answer_from_the_others() -> None:
    async def main() -> None:
        zone = Zone()
        zone.add("a.test", "192.0.2.1")
        async with resolving(zone, Clock()) as resolver, asyncio.TaskGroup() as group:
            hasty = group.create_task(resolver.resolve("a.test"))
            patient = group.create_task(resolver.resolve("a.test"))
            await asyncio.sleep(0)
            hasty.cancel()
            assert (await patient).addresses == ("192.0.2.1",)

    run(main)


@pytest.mark.parametrize(("ttl", "lives_s"), [(0, 30), (29, 30), (31, 31), (3600, 3600), (999_999, 3600)])
def test_times_to_live_have_a_floor_and_a_ceiling(ttl: int, lives_s: float) -> None:
    async def main() -> None:
        zone = Zone()
        zone.add("a.test", "192.0.2.1", ttl=ttl)
        async with resolving(zone, Clock()) as resolver:
            assert (await resolver.resolve("a.test")).expires_at == 1000 + lives_s

    run(main)


@pytest.mark.parametrize(
    ("code", "outcome", "lives_s"),
    [
        (NXDOMAIN, Outcome.DNS_NOT_FOUND, 300),
        (SERVFAIL, Outcome.DNS_FAILED, 5),
        (REFUSED, Outcome.DNS_FAILED, 5),
    ],
)
def test_bad_answers_are_remembered_for_a_while(code: int, outcome: Outcome, lives_s: float) -> None:
    async def main() -> None:
        zone, clock = Zone(), Clock()
        zone.answers["a.test", A] = code
        async with resolving(zone, clock, deadline_s=0.3) as resolver:
            answer = await resolver.resolve("a.test")
            assert (answer.outcome, answer.addresses) == (outcome, ())
            assert answer.expires_at == 1000 + lives_s
            assert "a.test" in answer.error
            asked = len(zone.asked)
            await resolver.resolve("a.test")
            assert len(zone.asked) == asked
            clock.now += lives_s
            zone.answers.clear()
            zone.add("a.test", "192.0.2.1")
            assert (await resolver.resolve("a.test")).outcome is Outcome.OK

    run(main)


def test_a_name_without_addresses_is_not_found() -> None:
    async def main() -> None:
        async with resolving(Zone(), Clock()) as resolver:
            assert (await resolver.resolve("empty.test")).outcome is Outcome.DNS_NOT_FOUND

    run(main)


def test_silence_ends_at_the_deadline() -> None:
    async def main() -> None:
        zone = Zone()
        zone.answers["a.test", A] = None
        loop = asyncio.get_running_loop()
        async with resolving(zone, Clock(), deadline_s=0.5) as resolver:
            started = loop.time()
            assert (await resolver.resolve("a.test")).outcome is Outcome.DNS_FAILED
            assert loop.time() - started < 1.0
        assert 1 <= len(zone.asked) <= 2

    run(main)


def test_leaving_tells_those_who_wait() -> None:
    async def main() -> None:
        zone = Zone()
        zone.answers["a.test", A] = None
        async with asyncio.TaskGroup() as group:
            async with resolving(zone, Clock()) as resolver:
                waiting = group.create_task(resolver.resolve("a.test"))
                while not zone.asked:
                    await asyncio.sleep(0.001)
            assert (await waiting).outcome is Outcome.DNS_FAILED

    run(main)


def test_d02_of_a_thousand_addresses_four_are_kept() -> None:
    async def main() -> None:
        zone = Zone()
        zone.add("many.test", *(f"192.0.2.{number}" for number in range(50)))
        async with resolving(zone, Clock()) as resolver:
            assert len((await resolver.resolve("many.test")).addresses) == 4

    run(main)


def test_d02_aliases_are_followed_and_loops_end() -> None:
    async def main() -> None:
        zone = Zone()
        zone.answers["alias.test", A] = [(CNAME, "real.test", 60), (A, "192.0.2.7", 300)]
        zone.answers["loop.test", A] = [(CNAME, "loop.test", 300)]
        async with resolving(zone, Clock()) as resolver:
            answer = await resolver.resolve("alias.test")
            assert answer.addresses == ("192.0.2.7",)
            assert answer.expires_at == 1060
            assert (await resolver.resolve("loop.test")).outcome is Outcome.DNS_NOT_FOUND

    run(main)


def test_addresses_and_localhost_are_never_asked_for() -> None:
    async def main() -> None:
        zone = Zone()
        async with resolving(zone, Clock()) as resolver:
            for host, addresses in (
                ("192.0.2.9", ("192.0.2.9",)),
                ("[2001:DB8::1]", ("2001:db8::1",)),
                ("localhost", ("127.0.0.1", "::1")),
                ("a.LocalHost.", ("127.0.0.1", "::1")),
            ):
                assert (await resolver.resolve(host)).addresses == addresses
        assert zone.asked == []

    run(main)


@pytest.mark.parametrize("host", ["", ".", "a..b", "x" * 64 + ".test", "é.test", "a b.test", "a.test\0b", "y." * 200])
def test_names_that_cannot_be_are_not_found(host: str) -> None:
    async def main() -> None:
        async with resolving(Zone(), Clock()) as resolver:
            assert (await resolver.resolve(host)).outcome in (Outcome.DNS_NOT_FOUND, Outcome.DNS_FAILED)

    run(main)


def test_a_trailing_dot_changes_nothing() -> None:
    async def main() -> None:
        zone = Zone()
        zone.add("a.test", "192.0.2.1")
        async with resolving(zone, Clock()) as resolver:
            assert (await resolver.resolve("a.test.")).addresses == ("192.0.2.1",)

    run(main)


def test_the_least_recently_used_name_leaves_first() -> None:
    async def main() -> None:
        zone = Zone()
        for name in ("a.test", "b.test", "c.test"):
            zone.add(name, "192.0.2.1")
        async with resolving(zone, Clock(), cache_size=2) as resolver:
            for name in ("a.test", "b.test", "a.test", "c.test"):
                await resolver.resolve(name)
            assert resolver.cached("a.test") is not None
            assert resolver.cached("b.test") is None

    run(main)


def test_many_names_at_once_under_uvloop() -> None:
    async def main() -> None:
        zone = Zone()
        for number in range(100):
            zone.add(f"h{number}.test", f"192.0.2.{number}")
        async with resolving(zone, Clock()) as resolver:
            answers = await asyncio.gather(*(resolver.resolve(f"h{number}.test") for number in range(100)))
            assert [answer.addresses for answer in answers] == [(f"192.0.2.{number}",) for number in range(100)]

    uvloop.run(main())


def test_the_hosts_file_is_read_if_no_server_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# names\n::9 web.test\n192.0.2.5 Web.test alias # web\nbroken\n\nnot-an-ip x\n")
    assert read_hosts(path) == {"web.test": ("192.0.2.5", "::9"), "alias": ("192.0.2.5",)}
    assert read_hosts(tmp_path / "missing") == {}

    async def main() -> None:
        async with Resolver(Clock(), hosts_file=path) as resolver:
            assert (await resolver.resolve("alias")).addresses == ("192.0.2.5",)

    run(main)


def test_a_server_that_cannot_be_is_the_operators_mistake() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="--dns"):
            async with Resolver(Clock(), server="not an address"):
                pass

    run(main)


@pytest.mark.parametrize(
    ("host", "address"),
    [("1.2.3.4", "1.2.3.4"), ("[::1]", "::1"), ("::1", "::1"), ("a1", None), ("1.2.3", None), ("", None), ("x:", None)],
)
def test_which_hosts_are_addresses(host: str, address: str | None) -> None:
    assert literal_address(host) == address


def test_an_answer_says_nothing_about_other_names() -> None:
    """A server of one name answers with the address of another one: it may lie about its own name only."""

    class Liar(Zone):
        def reply(self, query: bytes) -> bytes | None:
            name, _, question = _question(query)
            self.asked.append((name, A))
            other = _name("bank.test") + struct.pack(">HHIH", A, 1, 300, 4) + ip_address("192.0.2.66").packed
            head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 1)
            return head + question + other + other

    async def main() -> None:
        zone = Liar()
        async with resolving(zone, Clock()) as resolver:
            await resolver.resolve("evil.test")
            before = len(zone.asked)
            await resolver.resolve("bank.test")
            assert len(zone.asked) > before, "the answer of another name was remembered"

    run(main)


@pytest.mark.parametrize("change", [
    lambda reply: reply[:2] + struct.pack(">H", 0x8180 | NXDOMAIN) + reply[4:],  # no such name, and its address
    lambda reply: reply[:20],
    lambda reply: reply[:-2],
    lambda reply: reply[:6] + b"\xff\xff" + reply[8:],  # 65,535 records are announced
    lambda reply: b"\0\0" + reply[2:],  # to another query
    lambda reply: reply[:12] + b"\xc0\x0c" * 100,  # names that lead to themselves
    lambda reply: b"",
])  # fmt: skip
def test_answers_that_contradict_themselves_have_no_addresses(change: Callable[[bytes], bytes]) -> None:
    class Torn(Zone):
        def reply(self, query: bytes) -> bytes | None:
            whole = super().reply(query)
            return None if whole is None else change(whole)

    async def main() -> None:
        zone = Torn()
        zone.add("a.test", "192.0.2.1")
        async with resolving(zone, Clock(), deadline_s=0.5) as resolver:
            answer = await resolver.resolve("a.test")
            assert answer.addresses == ()
            assert answer.outcome in (Outcome.DNS_NOT_FOUND, Outcome.DNS_FAILED)

    run(main)


@pytest.mark.parametrize("length", [1, 7, 100])
def test_a_chain_of_aliases_in_one_answer_ends(length: int) -> None:
    """c-ares follows the aliases that an answer has; none costs a query."""

    class Chain(Zone):
        def reply(self, query: bytes) -> bytes | None:
            name, kind, question = _question(query)
            self.asked.append((name, kind))
            names = [name, *(f"alias{number}.test" for number in range(length))]
            records = b""
            for owner, target in pairwise(names):
                data = _name(target)
                records += _name(owner) + struct.pack(">HHIH", CNAME, 1, 300, len(data)) + data
            records += _name(names[-1]) + struct.pack(">HHIH", A, 1, 300, 4) + ip_address("192.0.2.5").packed
            return query[:2] + struct.pack(">HHHHH", 0x8180, 1, length + 1, 0, 0) + question + records

    async def main() -> None:
        zone = Chain()
        async with resolving(zone, Clock()) as resolver:
            began = time.process_time()
            answer = await resolver.resolve("long.test")
            assert answer.addresses in ((), ("192.0.2.5",))
            assert len(zone.asked) <= 2
            assert time.process_time() - began < 0.5

    run(main)


def test_of_a_thousand_ipv6_addresses_four_are_kept() -> None:
    """Over TCP, since they do not fit a datagram: or none, if the server does not speak it."""

    async def main() -> None:
        zone = Zone()
        zone.add("many.test", *(f"2606:4700::{number:x}" for number in range(1, 1001)))
        async with resolving(zone, Clock(), deadline_s=1.0) as resolver:
            assert len((await resolver.resolve("many.test")).addresses) in (0, 4)

    run(main)
