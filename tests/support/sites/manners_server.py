"""The web of manners on a socket, in a separate thread, with its name server and its judge.

The judge uses only what the servers saw of the crawler: arrivals, answers, and what those
answers asked for. Times are `time.monotonic()`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import pairwise

from msgspec import Struct

from gossamer.sim.web.dns import NameFault, NameServer, Zone
from gossamer.sim.web.pages import WebAnswer
from gossamer.sim.web.server import encode_answer, parse_request
from gossamer.sim.web.web import preset
from tests.support.sites.manners import MANNERS, PAGES, Manner, ManneredWeb

_REFUSED = (429, 503)


class Seen(Struct):
    """A request as its server saw it."""

    host: str
    path: str
    arrived_at: float
    in_flight: int
    answered_at: float = 0.0
    status: int = 0
    quiet_s: float = 0.0  # how long the server asked to be left alone


class ManneredServer:
    """Serves a web of manners on loopback; `with` starts and stops it."""

    def __init__(self, hosts: int, pages: int = PAGES) -> None:
        self._count = hosts
        self._pages = pages
        self.web = ManneredWeb(0, 0)
        self.seen: list[Seen] = []
        self.dns_address = ""
        self._in_flight: defaultdict[str, int] = defaultdict(int)
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ManneredServer:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            server = await asyncio.start_server(self._answer_all, "0.0.0.0", 0, backlog=1024)
            port = server.sockets[0].getsockname()[1]
            self.web = ManneredWeb(self._count, port, self._pages)
            faults = {
                host: NameFault(addresses=(f"127.9.{number >> 8}.{1 + number % 250}",))
                for number, host in enumerate(self.web.hosts)
            }
            names = await stack.enter_async_context(NameServer(Zone(preset("small"), faults)))
            self.dns_address = names.address
            self._ready.set()
            await self._stop.wait()
            server.close()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if writer.get_extra_info("peername")[0].startswith("127."):
                while await self._answer_one(reader, writer):
                    pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = parse_request(await reader.readuntil(b"\r\n\r\n"))
        arrived_at = time.monotonic()
        if request is None or request.host not in self.web.hosts:
            return False
        self._in_flight[request.host] += 1
        seen = Seen(request.host, request.target, arrived_at, self._in_flight[request.host])
        self.seen.append(seen)
        try:
            answer, latency_s = self.web.answer(request.host, request.target, time.time())
            if latency_s:
                await _think(reader, latency_s)
            seen.status, seen.quiet_s = answer.status, _quiet_s(answer)
        finally:
            self._in_flight[request.host] -= 1
            seen.answered_at = time.monotonic()
        writer.write(encode_answer(answer, keeps_alive=request.keeps_alive))
        await writer.drain()
        return request.keeps_alive


async def _think(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait; a client that hangs up in the meantime is no longer served. (No client here pipelines.)"""
    hung_up = asyncio.ensure_future(reader.read(1))
    done, _ = await asyncio.wait({hung_up}, timeout=seconds)
    if done:
        raise ConnectionResetError
    hung_up.cancel()
    await asyncio.wait({hung_up})


def _quiet_s(answer: WebAnswer) -> float:
    """Return how long a refusal asks to be left alone; at least 2 s if it does not specify a time."""
    if answer.status not in _REFUSED:
        return 0.0
    said = answer.retry_after_s
    if isinstance(said, int):
        return float(said) or (2.0 if answer.status == 429 else 0.0)
    return 2.9 if "GMT" in said else 2.0  # a date has no fractions of a second: up to one is lost


class Offence(Struct, frozen=True):
    """Something that a server would complain about."""

    host: str
    path: str
    what: str


def offences(web: ManneredWeb, seen: list[Seen], politeness_s: float, slack_s: float = 0.003) -> Iterator[Offence]:
    """Yield what was wrong according to the servers' log."""
    by_host: defaultdict[str, list[Seen]] = defaultdict(list)
    for one in sorted(seen, key=lambda one: one.arrived_at):
        by_host[one.host].append(one)
    for host, asked in by_host.items():
        manner = MANNERS[web.hosts[host]]
        yield from _robots_offences(manner, asked)
        yield from _pace_offences(max(politeness_s, manner.crawl_delay_s), politeness_s, slack_s, asked)


def _robots_offences(manner: Manner, asked: list[Seen]) -> Iterator[Offence]:
    known_at = min((one.answered_at for one in asked if _is_decisive(one)), default=float("inf"))
    for one in asked:
        if one.path in ("/robots.txt", "/rules.txt"):
            continue
        if manner.forbids_all or one.arrived_at < known_at:
            yield Offence(one.host, one.path, "requested before robots.txt was known")
        elif manner.forbids_private and one.path.startswith("/private/"):
            yield Offence(one.host, one.path, "forbidden by robots.txt")


def _is_decisive(one: Seen) -> bool:
    """Return whether an answer for robots.txt decides anything; a redirect does, leniently, with its first hop."""
    return one.path == "/robots.txt" and 0 < one.status < 500 and one.status != 429


def _pace_offences(delay_s: float, politeness_s: float, slack_s: float, asked: list[Seen]) -> Iterator[Offence]:
    knows_delay = False
    for before, one in pairwise(asked):
        knows_delay = knows_delay or _is_decisive(before)
        min_s = delay_s if knows_delay else politeness_s
        gap_s = one.arrived_at - before.arrived_at
        if gap_s < min_s - slack_s:
            yield Offence(one.host, one.path, f"{gap_s * 1000:.1f} ms after the previous request, {min_s:g} s required")
        away_s = one.arrived_at - before.answered_at
        if before.quiet_s and away_s < before.quiet_s - slack_s:
            yield Offence(one.host, one.path, f"{away_s:.2f} s after a {before.status}, {before.quiet_s:g} s required")
        if one.in_flight > 1:
            yield Offence(one.host, one.path, f"{one.in_flight} concurrent requests")
