"""A site on loopback whose pages a test sets, and changes between two crawls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct


class Answer(Struct, frozen=True):
    """What the site answers for a path."""

    body: str = ""
    status: int = 200
    location: str = ""
    content_type: str = "text/html; charset=utf-8"
    charset: str = "utf-8"  # that it has, whatever its type says


class PlainSite:
    """Answers by path; a path without an answer is 404, a robots.txt without one allows everything."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []  # paths, in order
        self.arrivals: list[tuple[float, str]] = []  # when they came, and from which User-Agent
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}/"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        self.arrivals.append((time.monotonic(), request.headers.get("User-Agent", "")))
        answer = self.answers.get(request.path, Answer("<p>There is no such page.", 404))
        body = answer.body.encode(answer.charset)
        request.send_response(answer.status)
        if answer.location:
            request.send_header("Location", answer.location)
        request.send_header("Content-Type", answer.content_type)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def plain_site(address: str = "127.0.0.1") -> Iterator[PlainSite]:
    """Serve a site while the block runs."""
    site = PlainSite(address)
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        thread.join()
        site.server.server_close()
