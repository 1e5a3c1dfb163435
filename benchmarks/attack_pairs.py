"""Can one party silence another? Random pairs of a hostile and an honest party that share what they can, as a table.

    python -m benchmarks.attack_pairs [--minutes N] [--seed N] [--only SEED] [--program PATH/TO/gossamer]

A pair is made from its seed: what the two share (an address, the connections, a domain), what the hostile party does
(slow answers, slow names, many of them, redirects, refusals, and so on, in any combination), and when the honest hosts
are found. The honest party is five hosts; what counts are the requests that it gets within `SECONDS`, by its own log,
beside the same crawl without the hostile party. Under `FAIR` of that, or with too many requests at once to an address,
a pair is an offender; it is measured again before it is called so. Loopback only: one server for 127.0.0.0/8, and one
name server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

GOSSAMER = str(Path(sys.executable).parent / "gossamer")
SECONDS = 12.0
PACE_MS = 250
FAIR = 0.8
HOSTS = 5  # of the honest party
AT_ADDRESS = 20  # requests at once, which the program promises
SLOW_S = 25.0
SHARED = "127.9.9.9"
SEVERAL = 60  # addresses of a hostile party that has many
OTHERS = ["127.1.1.1", *(f"127.2.2.{n + 1}" for n in range(HOSTS)), *(f"127.3.{n}.3" for n in range(SEVERAL))]
PAGE_BYTES = 5_000_000
CLOSED_S = 0.02  # within which a request is over whose connection the crawl has closed: the next one may be here before

TRAITS = (
    "slow answers",
    "slow robots.txt",
    "dripping bodies",
    "silence",  # a connection is accepted, and nothing is said
    "slow names",
    "names that do not exist",
    "many addresses",
    "a second address",  # of somebody else, after one that refuses connections
    "redirects",
    "huge pages",
    "errors",
    "429 with Retry-After",
    "Crawl-delay",
    "invented names of the honest domain",
    "many new domains",
)


class Pair(Struct, frozen=True):
    """One hostile and one honest party."""

    seed: int
    traits: tuple[str, ...] = ()
    shares_address: bool = False
    shares_domain: bool = False  # all hosts are in one registrable domain
    connections: int = 256
    names: int = 100  # of the hostile party
    is_late: bool = False  # the honest hosts are found after some seconds

    def described(self) -> str:
        shared = [name for name, is_so in (("address", self.shares_address), ("domain", self.shares_domain)) if is_so]
        found = ", honest hosts found late" if self.is_late else ""
        what = " and ".join(self.traits) or "none"
        return f"{what}; {self.names} names; shared: {', '.join([*shared, f'{self.connections} connections'])}{found}"


def pair_of(seed: int) -> Pair:
    """Return the pair of a seed."""
    chance = random.Random(seed)
    return Pair(
        seed=seed,
        traits=tuple(sorted(chance.sample(TRAITS, chance.choice((1, 1, 2, 2, 3))))),
        shares_address=chance.random() < 0.6,
        connections=chance.choice((8, 32, 256, 256)),
        names=chance.choice((20, 100, 400)),
        is_late=chance.random() < 0.3,
    )


class Parties:
    """Both parties' servers and names, for one pair at a time."""

    def __init__(self) -> None:
        self.pair = Pair(0)
        self.is_attacked = False
        self.port = 0
        self.requests: Counter[str] = Counter()  # to honest hosts
        self.hostile = 0
        self._open: Counter[str] = Counter()  # requests in flight, by address
        self.most_open: Counter[str] = Counter()

    def begin(self, pair: Pair, *, is_attacked: bool) -> None:
        self.pair = pair
        self.is_attacked = is_attacked
        self.requests.clear()
        self.most_open.clear()
        self.hostile = 0

    # -- names ------------------------------------------------------------------------------------

    def honest(self, number: int) -> str:
        return f"honest{number}.shared.test" if self.pair.shares_domain else f"www.honest{number}.test"

    def hostile_name(self, number: int) -> str:
        if "many new domains" in self.pair.traits:
            return f"www.evil{number}.test"
        return f"evil{number}.{'shared' if self.pair.shares_domain else 'evil'}.test"

    def url(self, name: str, path: str = "/") -> str:
        return f"http://{name}:{self.port}{path}"

    def seeds(self) -> list[str]:
        hostile = [self.url(self.hostile_name(n)) for n in range(self.pair.names)] if self.is_attacked else []
        if self.pair.is_late:
            return [self.url("hub.hub.test"), *hostile]
        return [*hostile, *(self.url(self.honest(n)) for n in range(HOSTS))]

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of a name; none if it does not exist."""
        label = name.partition(".")[0]
        if name == "hub.hub.test":
            return ["127.1.1.1"]
        if "honest" in name:
            digits = "".join(each for each in name if each.isdigit())
            if not digits or int(digits) >= HOSTS or label.startswith("invented"):
                return []
            return [SHARED if self.pair.shares_address else f"127.2.2.{int(digits) + 1}"]
        number = int("".join(each for each in name if each.isdigit()) or 0)
        if "names that do not exist" in self.pair.traits and number % 2:
            return []
        several = SEVERAL if "many addresses" in self.pair.traits else 1
        own = f"127.3.{number % several}.3"
        if "a second address" in self.pair.traits:
            return [f"127.4.{number % 250}.0", SHARED]  # nobody listens there
        return [SHARED if self.pair.shares_address else own]

    async def name_delay(self, name: str) -> None:
        if "evil" in name and "slow names" in self.pair.traits:
            await asyncio.sleep(SLOW_S)

    # -- answers ----------------------------------------------------------------------------------

    async def answer(
        self, name: str, path: str, address: str, write: Callable[[bytes], Coroutine[Any, Any, None]]
    ) -> None:
        """Answer a request."""
        self._open[address] += 1
        asyncio.get_running_loop().call_later(CLOSED_S, self._count_open, address)
        try:
            if "evil" in name:
                self.hostile += 1
                await self._attack(name, path, write)
            else:
                if "honest" in name:
                    self.requests[name] += 1
                await self._serve(name, path, write)
        finally:
            self._open[address] -= 1

    def _count_open(self, address: str) -> None:
        self.most_open[address] = max(self.most_open[address], self._open[address])

    async def _serve(self, name: str, path: str, write: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        await asyncio.sleep(0.02)
        if path == "/robots.txt":
            await write(_head(404, b""))
        elif name == "hub.hub.test":
            await asyncio.sleep(3.0)
            await write(_page(name, path, [self.url(self.honest(n)) for n in range(HOSTS)]))
        else:
            number = int(path.strip("/p") or 0)
            await write(_page(name, path, [self.url(name, f"/p{3 * number + each}") for each in (1, 2, 3)]))

    async def _attack(self, name: str, path: str, write: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        traits = self.pair.traits
        is_robots = path == "/robots.txt"
        if "silence" in traits or ("slow robots.txt" in traits and is_robots):
            await asyncio.sleep(SLOW_S)
        if is_robots:
            text = b"User-agent: *\nCrawl-delay: 5\n" if "Crawl-delay" in traits else b"User-agent: *\nAllow: /\n"
            await write(_head(200, text, b"text/plain"))
            return
        if "slow answers" in traits:
            await asyncio.sleep(min(SLOW_S, 9.0))
        if "429 with Retry-After" in traits:
            await write(_head(429, b"", more=b"Retry-After: 3\r\n"))
        elif "errors" in traits:
            await write(_head(500, b"no"))
        elif "redirects" in traits:
            target = self.url(self.hostile_name(random.randrange(self.pair.names)), path + "r")
            await write(_head(302, b"", more=f"Location: {target}\r\n".encode()))
        else:
            await self._send_page(name, path, write)

    async def _send_page(self, name: str, path: str, write: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        traits = self.pair.traits
        links = [self.url(name, f"{path}x{n}") for n in range(5)]
        links += [self.url(self.hostile_name(random.randrange(5 * self.pair.names))) for _ in range(20)]
        if "invented names of the honest domain" in traits:
            links += [
                self.url(f"invented{random.randrange(100_000)}.honest{n}.test")
                for n in range(HOSTS)
                for _ in range(100)
            ]
        page = _page(name, path, links)
        if "huge pages" in traits:
            body = page.partition(b"\r\n\r\n")[2] + b"<p>" + b"word " * (PAGE_BYTES // 5)
            page = _head(200, body)
        if "dripping bodies" not in traits:
            await write(page)
            return
        for start in range(0, len(page), 1 + len(page) // 8):
            await write(page[start : start + 1 + len(page) // 8])
            await asyncio.sleep(3.0)


def _head(status: int, body: bytes, kind: bytes = b"text/html", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n%s" % (
        status,
        kind,
        len(body),
        more,
        body,
    )


def _page(name: str, path: str, links: list[str]) -> bytes:
    text = " ".join(f"{name}{path}{n}" for n in range(30))
    anchors = "".join(f'<a href="{link}">x</a> ' for link in links)
    return _head(200, f"<title>{name}{path}</title><p>{text} {anchors}".encode())


# -- servers ---------------------------------------------------------------------------------------


class _Names(asyncio.DatagramProtocol):
    """A name server for A records (RFC 1035)."""

    def __init__(self, parties: Parties) -> None:
        self._parties = parties
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, query: bytes, addr: tuple[str, int]) -> None:
        labels = []
        at = 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
            at += 1 + query[at]
        name = ".".join(labels)
        kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
        await self._parties.name_delay(name)
        found = self._parties.addresses(name)
        records = found if kind == 1 else []
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if found else 3), 1, len(records), 0, 0)
        answers = b"".join(
            b"\xc0\x0c\x00\x01\x00\x01" + struct.pack(">IH", 60, 4) + bytes(int(each) for each in record.split("."))
            for record in records
        )
        self._transport.sendto(head + query[12 : at + 5] + answers, addr)


async def _serve(parties: Parties, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    address = str(writer.get_extra_info("sockname")[0])

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        begun = b""
        while True:
            head = (begun + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ", 2)[1]
            host = next(line[5:].strip() for line in head.split("\r\n") if line.lower().startswith("host:"))
            answer = asyncio.ensure_future(parties.answer(host.partition(":")[0], path, address, write))
            more = asyncio.ensure_future(reader.read(1))  # of the next request; nothing, if the client is gone
            await asyncio.wait((answer, more), return_when=asyncio.FIRST_COMPLETED)
            if more.done() and not more.result():
                answer.cancel()
                break
            await answer
            begun = await more
            if not begun:
                break
    writer.close()


@contextmanager
def serving(parties: Parties) -> Iterator[str]:
    """Serve both parties and their names; yield the address of the name server."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    found: list[str] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve(parties, reader, writer)

    async def run() -> None:
        first = await asyncio.start_server(accept, SHARED, 0)
        parties.port = first.sockets[0].getsockname()[1]
        await asyncio.start_server(accept, OTHERS, parties.port)
        transport, _ = await loop.create_datagram_endpoint(lambda: _Names(parties), local_addr=("127.0.0.1", 0))
        found.append(f"127.0.0.1:{transport.get_extra_info('sockname')[1]}")
        ready.set()

    def work() -> None:
        loop.run_until_complete(run())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait()
    yield found[0]
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5.0)


# -- measuring -------------------------------------------------------------------------------------


class Measured(Struct, frozen=True):
    """What a crawl asked of both parties."""

    honest: int
    hostile: int
    most_at_address: int
    violations: int = 0


def crawl(parties: Parties, names: str, program: str, pair: Pair, *, is_attacked: bool) -> Measured:
    """Crawl a pair, or the honest party alone."""
    parties.begin(pair, is_attacked=is_attacked)
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds.txt"
        out = Path(folder) / "crawl"
        seeds.write_text("\n".join(parties.seeds()) + "\n", "utf-8")
        command = [
            *(program, "crawl", str(seeds), "--out", str(out), "--no-progress", "--json", "--scope", "any"),
            *("--dns", names, "--allow-network", "127.0.0.0/8", "--politeness-ms", str(PACE_MS)),
            *("--connections", str(pair.connections), "--max-time", str(SECONDS), "--max-wait", "60"),
            *("--max-pages", "1000000", "--max-hosts-per-domain", "500"),
        ]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=SECONDS + 30, check=False)
        measured = Measured(parties.requests.total(), parties.hostile, max(parties.most_open.values(), default=0))
        audit = [program, "audit", str(out), "--json"]
        found = subprocess.run(audit, capture_output=True, timeout=120, check=False)
        with suppress(ValueError):
            return replace(measured, violations=sum(json.loads(found.stdout).get("breaches", {}).values()))
    return measured


class Pairs:
    """Measures pairs; controls are measured once for each kind of honest party."""

    def __init__(self, parties: Parties, names: str, program: str) -> None:
        self._parties = parties
        self._names = names
        self._program = program
        self._controls: dict[Pair, Measured] = {}

    def control(self, pair: Pair, *, is_again: bool = False) -> Measured:
        alone = replace(pair, seed=0, traits=(), names=0)
        if is_again or alone not in self._controls:
            self._controls[alone] = crawl(self._parties, self._names, self._program, alone, is_attacked=False)
        return self._controls[alone]

    def measure(self, pair: Pair) -> tuple[str, bool]:
        """Return the row of a pair, and whether it is an offender: measured twice before it is."""
        row = ""
        for attempt in range(2):
            control = self.control(pair, is_again=attempt > 0)
            found = crawl(self._parties, self._names, self._program, pair, is_attacked=True)
            share = found.honest / max(1, control.honest)
            wrong = [
                *([f"only {share:.0%}"] if share < FAIR else []),
                *([f"{found.most_at_address} at one address"] if found.most_at_address > AT_ADDRESS else []),
                *([f"{found.violations} violations"] if found.violations else []),
            ]
            row = (
                f"| {pair.seed} | {pair.described()} | {control.honest} | {found.honest} | {share:.0%} "
                f"| {found.hostile} | {found.most_at_address} | {', '.join(wrong) and '**' + ', '.join(wrong) + '**'} |"
            )
            if not wrong:
                return row, False
        return row, True


HEAD = (
    "| seed | pair | honest requests alone | beside it | share | hostile requests | at once at an address | offends |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure random pairs of a hostile and an honest party.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--seed", type=int, default=1, help="of the first pair; the next ones follow")
    parser.add_argument("--only", type=int, help="one pair only, by its seed")
    parser.add_argument("--program", default=GOSSAMER, help="the program to measure")
    arguments = parser.parse_args()
    parties = Parties()
    until = time.monotonic() + 60 * arguments.minutes
    offenders = count = 0
    print(HEAD, flush=True)
    with serving(parties) as names:
        pairs = Pairs(parties, names, arguments.program)
        seed = arguments.seed if arguments.only is None else arguments.only
        while time.monotonic() < until:
            row, is_offender = pairs.measure(pair_of(seed))
            print(row, flush=True)
            offenders += is_offender
            count += 1
            seed += 1
            if arguments.only is not None:
                break
    print(f"\n{count} pairs, {offenders} offenders")
    sys.exit(1 if offenders else 0)


if __name__ == "__main__":
    main()
