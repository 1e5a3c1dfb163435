"""Serves one of the sites of `trap_sites` over loopback: an endless one, or an honest one with a number of pages.

Page 0 is the front page. A page links to the next `FANOUT` pages, so a crawl meets them in about the order of their
numbers. A path is served only if a page linked to it before. The requests are counted, robots.txt apart.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final

from tests.support.sites.trap_sites import Site

FANOUT: Final = 5


class TrapServer:
    """A site on a port of its own; `with` starts and stops it. `pages` is None for a site without end."""

    def __init__(self, site: Site, pages: int | None, address: str = "127.0.0.1") -> None:
        self._site = site
        self._pages = pages
        self._numbers = {"/": 0}
        self.requests = 0
        self.paths: list[str] = []
        self._server = ThreadingHTTPServer((address, 0), self._answering())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def seed(self) -> str:
        """The URL of the front page."""
        address, port = self._server.server_address[:2]
        return f"http://{address!s}:{port}/"

    def __enter__(self) -> TrapServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def page(self, path: str) -> bytes | None:
        """Return the page at a path, or None if there is none."""
        number = self._numbers.get(path)
        if number is None:
            return None
        self.requests += 1
        self.paths.append(path)
        last = number + FANOUT if self._pages is None else min(self._pages, number + FANOUT)
        links = []
        for following in range(number + 1, last + 1):
            target = self._site.path(following)
            self._numbers.setdefault(target, following)
            links.append(f'<a href="{target}"></a>'.replace("&", "&amp;"))
        text = self._site.text(number) if number else "The front page of a site."
        return f"<!doctype html><html><body><p>{text}</p>{''.join(links)}</body></html>".encode()

    def _answering(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                body = server.page(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        return Answering
