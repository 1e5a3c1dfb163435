"""Hosts on loopback whose pages change, appear and vanish as time goes by; the log is what the servers saw.

Page n of a host changes every `PERIODS_S[n]` seconds. Pages have entity tags, except one, which shows the time of day.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

from msgspec import Struct

FOREVER_S = 1e9
PERIODS_S = (FOREVER_S, 1.5, 2.5, 4.5, 10.0, *[FOREVER_S] * 9)
CLOCK, VANISHES, APPEARS, MOVES = 6, 7, 8, 9
AFTER_S = 3.0  # when pages vanish, appear and move
_WORDS = (
    "river mountain valley forest meadow harbour lantern window garden kitchen bridge market winter summer captain "
    "sailor painter writer doctor teacher orchard village island desert canyon glacier prairie"
).split()


class Asked(Struct, frozen=True):
    """A request as its server saw it."""

    at: float
    host: str
    path: str
    status: int


class ChangingSite:
    """The hosts, and what they were asked."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self.log: list[Asked] = []
        self.begun_at = time.time()
        self._news = threading.Condition()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        port = 0
        self.servers: list[ThreadingHTTPServer] = []
        for host in hosts:
            server = ThreadingHTTPServer((host, port), Handler)
            server.daemon_threads = True
            port = server.server_port
            self.servers.append(server)
        self.seeds = [f"http://{host}:{port}/0" for host in hosts]

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        now = time.time()
        host, path = str(request.connection.getsockname()[0]), request.path
        status, body, etag = self._content(host, path, now - self.begun_at)
        if etag and request.headers.get("If-None-Match") == etag:
            status, body = 304, b""
        with self._news:
            self.log.append(Asked(now, host, path, status))
            self._news.notify_all()
        request.send_response(status)
        if status == 302:
            request.send_header("Location", "/0")
        if etag:
            request.send_header("ETag", etag)
        if status != 304:
            request.send_header("Content-Type", "text/html" if path != "/robots.txt" else "text/plain")
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    @staticmethod
    def _content(host: str, path: str, age_s: float) -> tuple[int, bytes, str]:
        if path == "/robots.txt":
            return 200, b"User-agent: *\nDisallow: /secret\n", ""
        number = int(path[1:]) if path[1:].isdigit() else len(PERIODS_S)
        is_late = age_s > AFTER_S
        is_there = number < len(PERIODS_S) and not (number == VANISHES and is_late) and (number != APPEARS or is_late)
        if not is_there:
            return 404, b"<p>There is no such page.", ""
        if number == MOVES and is_late:
            return 302, b"", ""
        version = int(age_s / PERIODS_S[number])
        links = (
            "".join(f'<a href="/{other}">page {other}</a> ' for other in range(len(PERIODS_S))) if number == 0 else ""
        )
        clock = f"<p>It is {time.strftime('%A, %H:%M:%S')} now.</p>" if number == CLOCK else ""
        same, new = _paragraph(f"{host} {number}"), _paragraph(f"{host} {number} {version}")
        body = f"<title>page {number}</title>{links}<p>{same}</p><p>{new}</p>{clock}".encode()
        return 200, body, "" if clock else f'"{number}-{version}"'

    def wait_for(self, requests: int, timeout_s: float = 60.0) -> None:
        """Wait until there were so many requests for pages."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.pages()) >= requests, timeout_s), len(self.pages())

    def pages(self) -> list[Asked]:
        """Return the requests for pages."""
        return [asked for asked in self.log if asked.path != "/robots.txt"]

    def visits(self) -> dict[tuple[str, str], list[Asked]]:
        """Return the requests for pages, by host and path."""
        found: dict[tuple[str, str], list[Asked]] = defaultdict(list)
        for asked in self.pages():
            found[asked.host, asked.path].append(asked)
        return found

    def by_host(self) -> dict[str, list[Asked]]:
        """Return all requests, by host."""
        found: dict[str, list[Asked]] = defaultdict(list)
        for asked in self.log:
            found[asked.host].append(asked)
        return found


def _paragraph(seed: str) -> str:
    draw = Random(seed)
    return " ".join(draw.choice(_WORDS) for _ in range(60))


@contextmanager
def changing_site(hosts: Sequence[str]) -> Iterator[ChangingSite]:
    """Serve the hosts while the block runs."""
    site = ChangingSite(hosts)
    threads = [threading.Thread(target=server.serve_forever) for server in site.servers]
    for thread in threads:
        thread.start()
    try:
        yield site
    finally:
        for server in site.servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()
