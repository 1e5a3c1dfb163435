"""A web in which every name exists and every path is a page, with links to others of its host if there are to be any.

    python -m benchmarks.any_web HTTP_PORT DNS_PORT [--answer-after SECONDS] [--pages PER_HOST]

Prints one line per request: time (CLOCK_MONOTONIC), host, path. A server that is cheaper than what it is to measure.
"""

from __future__ import annotations

import argparse
import asyncio
import struct
import sys
import time
from typing import cast

_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b"
_BODY = b"<html><head><title>%b</title></head><body><p>%b, a page of this host, and of no other.</p>%b</body></html>"
_FANOUT = 3


class Pages(asyncio.Protocol):
    """Answers requests, one connection."""

    def __init__(self, answer_after_s: float, pages: int) -> None:
        self._after_s = answer_after_s
        self._pages = pages
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            path = lines[0].split(b" ")[1]
            hosts = [line[5:].strip() for line in lines if line[:5].lower() == b"host:"]
            host = hosts[0].partition(b":")[0] if hosts else b""
            sys.stdout.buffer.write(b"%.6f %b %b\n" % (time.monotonic(), host, path))
            what = host + path
            body = _BODY % (what, what, self._links(path))
            answer = _NOT_FOUND if path == b"/robots.txt" else _PAGE % (len(body), body)
            if self._after_s:
                asyncio.get_running_loop().call_later(self._after_s, self._transport.write, answer)
            else:
                self._transport.write(answer)

    def _links(self, path: bytes) -> bytes:
        number = int(path[1:] or 0) if self._pages and path[1:].isdigit() | (path == b"/") else self._pages
        first = number * _FANOUT + 1
        return b"".join(b'<a href="/%d">more</a>' % each for each in range(first, min(first + _FANOUT, self._pages)))


class Names(asyncio.DatagramProtocol):
    """Answers every question for an address with 127.0.0.1."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer a question."""
        end = data.index(b"\0", 12) + 5
        is_address = data[end - 4 : end - 2] == b"\0\x01"
        head = data[:2] + struct.pack("!5H", 0x8480, 1, int(is_address), 0, 0)
        answer = b"\xc0\x0c" + struct.pack("!2HLH4B", 1, 1, 3600, 4, 127, 0, 0, 1) if is_address else b""
        self._transport.sendto(head + data[12:end] + answer, addr)


async def serve(http_port: int, dns_port: int, answer_after_s: float, pages: int) -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(Names, ("127.0.0.1", dns_port))
    server = await loop.create_server(lambda: Pages(answer_after_s, pages), "127.0.0.1", http_port, backlog=4096)
    async with server:
        while True:
            await asyncio.sleep(0.2)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="any_web")
    parser.add_argument("http_port", type=int)
    parser.add_argument("dns_port", type=int)
    parser.add_argument("--answer-after", type=float, default=0.0)
    parser.add_argument("--pages", type=int, default=0)
    given = parser.parse_args()
    asyncio.run(serve(given.http_port, given.dns_port, given.answer_after, given.pages))
