"""A name server for the synthetic web: UDP and TCP on 127.0.0.1, one port for both.

A names get the plan's address, AAAA and other types "no data", unknown names NXDOMAIN
with an SOA (RFC 2308). A `NameFault` makes one name misbehave. Invariants: an answer
repeats the question byte for byte (so that 0x20 case checks pass); an answer that does
not fit into a datagram is truncated with TC set and complete over TCP.
Cost: about 20 µs per question.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import cast

from msgspec import Struct

from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.web import WebPlan

_HEADER = struct.Struct("!6H")
_TYPE_A = 1
_TYPE_CNAME = 5
_TYPE_SOA = 6
_CLASS_IN = 1
_NOERROR = 0
_FORMERR = 1
_SERVFAIL = 2
_NXDOMAIN = 3
_REFUSED = 5
_FLAGS = 0x8480  # an answer, authoritative, recursion available
_TRUNCATED = 0x0200
_PLAIN_UDP_BYTES = 512
_EDNS_UDP_BYTES = 1232
_NEGATIVE_TTL_S = 60
_PORT_TRIES = 20


class FaultKind(StrEnum):
    SERVFAIL = "servfail"
    REFUSED = "refused"
    NXDOMAIN = "nxdomain"
    SILENT = "silent"  # no answer at all
    ANSWER = "answer"  # answers with the fault's own addresses or alias, after its delay


class NameFault(Struct, frozen=True):
    """What to do when a name is queried. `delay_s` delays any kind of answer."""

    kind: FaultKind = FaultKind.ANSWER
    delay_s: float = 0.0
    addresses: tuple[str, ...] = ()  # empty: the plan's
    alias: str = ""  # a CNAME instead of addresses
    ttl_s: int | None = None  # None: the plan's


class DnsReply(Struct, frozen=True):
    """What to send, and after how long."""

    message: bytes
    delay_s: float = 0.0


class Zone:
    """All names; no I/O. Counts the questions by name."""

    def __init__(self, plan: WebPlan, faults: Mapping[str, NameFault] | None = None) -> None:
        self._web = SyntheticWeb(plan, 0)
        self._ttl_s = plan.dns_ttl_s
        self._faults = dict(faults or {})
        self.asked: Counter[str] = Counter()

    def reply(self, query: bytes, *, is_tcp: bool = False) -> DnsReply | None:
        """The answer to a query; None if there is none."""
        if len(query) < _HEADER.size or query[2] & 0x80:
            return None
        parsed = _parse_question(query)
        if parsed is None:
            return DnsReply(_message(query, b"", _FORMERR, ()))
        name, question, kind = parsed
        self.asked[name] += 1
        fault = self._faults.get(name, NameFault())
        if fault.kind is FaultKind.SILENT:
            return None
        code, records = self._look_up(name, kind, fault)
        authority = () if records or code in (_SERVFAIL, _REFUSED) else (_soa(),)
        message = _message(query, question, code, records, authority)
        has_edns = query[10:12] != b"\0\0"
        if not is_tcp and len(message) > (_EDNS_UDP_BYTES if has_edns else _PLAIN_UDP_BYTES):
            message = _message(query, question, code | _TRUNCATED, ())
        return DnsReply(message, fault.delay_s)

    def _look_up(self, name: str, kind: int, fault: NameFault) -> tuple[int, tuple[bytes, ...]]:
        refusals = {FaultKind.SERVFAIL: _SERVFAIL, FaultKind.REFUSED: _REFUSED, FaultKind.NXDOMAIN: _NXDOMAIN}
        if fault.kind in refusals:
            return refusals[fault.kind], ()
        ttl_s = self._ttl_s if fault.ttl_s is None else fault.ttl_s
        if fault.alias:
            return _NOERROR, (_record(_TYPE_CNAME, ttl_s, _wire_name(fault.alias)),)
        site = self._web.site(name)
        addresses = fault.addresses or ((site.address,) if site is not None else ())
        if not addresses:
            return _NXDOMAIN, ()
        if kind != _TYPE_A:
            return _NOERROR, ()
        return _NOERROR, tuple(_record(_TYPE_A, ttl_s, socket.inet_aton(address)) for address in addresses)


def _parse_question(query: bytes) -> tuple[str, bytes, int] | None:
    """Name in lower case, the question as it was sent, its type."""
    if query[4:6] != b"\0\1":
        return None
    labels = []
    place = _HEADER.size
    while place < len(query) and (size := query[place]):
        # RFC 1035 4.1.4: a pointer makes no sense in a question.
        if size > 63 or place + size + 1 > len(query):
            return None
        labels.append(query[place + 1 : place + 1 + size])
        place += size + 1
    end = place + 5
    if end > len(query):
        return None
    name = b".".join(labels).decode("latin-1").lower()
    return name, query[_HEADER.size : end], int.from_bytes(query[place + 1 : place + 3], "big")


def _message(
    query: bytes, question: bytes, code: int, answers: tuple[bytes, ...], authority: tuple[bytes, ...] = ()
) -> bytes:
    asks_recursion = (query[2] & 1) << 8
    number = int.from_bytes(query[:2], "big")
    counts = (1 if question else 0, len(answers), len(authority), 0)
    return _HEADER.pack(number, _FLAGS | asks_recursion | code, *counts) + question + b"".join(answers + authority)


def _wire_name(name: str) -> bytes:
    labels = [label.encode("ascii") for label in name.strip(".").split(".")]
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"


def _record(kind: int, ttl_s: int, content: bytes, owner: bytes = b"\xc0\x0c") -> bytes:
    """A record; its owner is a pointer to the question's name unless given."""
    return owner + struct.pack("!HHIH", kind, _CLASS_IN, ttl_s, len(content)) + content


def _soa() -> bytes:
    numbers = struct.pack("!5I", 1, 3600, 600, 86_400, _NEGATIVE_TTL_S)
    content = _wire_name("ns.test") + _wire_name("office.test") + numbers
    return _record(_TYPE_SOA, _NEGATIVE_TTL_S, content, _wire_name("test"))


class NameServer:
    """A zone on a port; `async with` opens and closes it."""

    def __init__(self, zone: Zone, port: int = 0) -> None:
        self.zone = zone
        self.port = port
        self._udp: asyncio.BaseTransport | None = None
        self._tcp: asyncio.Server | None = None
        self._clients: set[asyncio.BaseTransport] = set()

    @property
    def address(self) -> str:
        """In the form of `--dns`."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> NameServer:
        loop = asyncio.get_running_loop()
        stream, datagrams = _bound_pair(self.port)
        self.port = stream.getsockname()[1]
        self._udp, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self.zone, loop), sock=datagrams)
        self._tcp = await loop.create_server(lambda: _Stream(self.zone, loop, self._clients), sock=stream)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()
            for transport in list(self._clients):
                transport.close()
            await self._tcp.wait_closed()


def _bound_pair(port: int) -> tuple[socket.socket, socket.socket]:
    """Return a TCP and a UDP socket on one port. Port 0: any that is free for both, which few others use."""
    tries = _PORT_TRIES if port == 0 else 1
    while True:
        tries -= 1
        stream = socket.create_server(("127.0.0.1", port), backlog=128)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.setblocking(False)
        try:
            datagrams.bind(stream.getsockname())
        except OSError:
            stream.close()
            datagrams.close()
            if not tries:
                raise
        else:
            return stream, datagrams


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, zone: Zone, loop: asyncio.AbstractEventLoop) -> None:
        self._zone = zone
        self._loop = loop
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        reply = self._zone.reply(data)
        if reply is None:
            return
        if reply.delay_s:
            self._loop.call_later(reply.delay_s, self._send, reply.message, addr)
        else:
            self._send(reply.message, addr)

    def _send(self, message: bytes, address: tuple[str | object, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(message, address)


class _Stream(asyncio.Protocol):
    """DNS over TCP: each message is preceded by its length in two bytes (RFC 1035 4.2.2)."""

    def __init__(self, zone: Zone, loop: asyncio.AbstractEventLoop, clients: set[asyncio.BaseTransport]) -> None:
        self._zone = zone
        self._loop = loop
        self._clients = clients
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._clients.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._clients.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 2:
            end = 2 + int.from_bytes(self._buffer[:2], "big")
            if len(self._buffer) < end:
                return
            reply = self._zone.reply(self._buffer[2:end], is_tcp=True)
            self._buffer = self._buffer[end:]
            if reply is not None:
                self._loop.call_later(reply.delay_s, self._send, reply.message)

    def _send(self, message: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(len(message).to_bytes(2, "big") + message)
