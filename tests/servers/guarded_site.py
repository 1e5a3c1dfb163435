"""A site on loopback that lets nobody in without a login, a cookie or a certificate; and the keys for it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from msgspec import Struct

from tests.servers.certificates import certified, server_context

PAGES = 3
ROBOTS = "User-agent: *\nDisallow: /secret-area/\n"


class Seen(Struct):
    """One request that the site got."""

    path: str
    headers: dict[str, str]  # names in lower case


Check = Callable[[Seen], int]  # returns the status for a request


class GuardedSite:
    """`/`, `/p1` … are pages if `check` says 200; `/robots.txt` is guarded, too. `/enter` sets a cookie."""

    def __init__(self, check: Check = lambda _: 200, tls: ssl.SSLContext | None = None) -> None:
        self.seen: list[Seen] = []
        self.check = check
        self.cookies: list[str] = []  # that /enter sets
        self.redirect = ""  # where /away leads
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # a client that refuses the certificate, or is refused

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            # Not at once: a handshake that hangs must not hold up the others.
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_port
        self.scheme = "http" if tls is None else "https"

    def url(self, host: str = "127.0.0.1", path: str = "/") -> str:
        """Return the URL of a page, by any name that leads to loopback."""
        return f"{self.scheme}://{host}:{self.port}{path}"

    def header(self, path: str, name: str) -> list[str | None]:
        """Return the values of a header in all requests for a path."""
        return [each.headers.get(name) for each in self.seen if each.path == path]

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        seen = Seen(request.path, {name.lower(): value for name, value in request.headers.items()})
        self.seen.append(seen)
        status = 302 if request.path == "/away" and self.redirect else self.check(seen)
        links = "".join(f'<a href="/p{number}">p</a>' for number in range(PAGES))
        body = ROBOTS if request.path == "/robots.txt" else f"<title>{request.path}</title>{links}<a href=/enter>e</a>"
        if status != 200:
            body = "no"
        request.send_response(status)
        if status == 302:
            request.send_header("Location", self.redirect)
        if status == 401:
            request.send_header("WWW-Authenticate", "Basic")
        if request.path == "/enter":
            for cookie in self.cookies:
                request.send_header("Set-Cookie", cookie)
        request.send_header("Content-Type", "text/plain" if request.path == "/robots.txt" else "text/html")
        request.send_header("Content-Length", str(len(body.encode())))
        request.end_headers()
        request.wfile.write(body.encode())


@contextmanager
def guarded_site(check: Check = lambda _: 200, tls: ssl.SSLContext | None = None) -> Iterator[GuardedSite]:
    """Serve a site while the block runs."""
    site = GuardedSite(check, tls)
    thread = threading.Thread(target=site.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        thread.join()
        site.server.server_close()


class Keys(Struct, frozen=True):
    """Files of keys: an authority (`ca`), a server by it, a client by it (key encrypted), and a server by nobody."""

    folder: Path
    pin: str  # of the server's public key
    own_pin: str  # of that which nobody vouches for

    def __getattr__(self, name: str) -> str:
        """Return the path of a file: `ca`, `server`, `server_key`, `client`, `client_key`, `own`, `own_key`."""
        return str(self.folder / f"{name}.pem")

    def context(self, name: str = "server", *, asks_client: bool = False) -> ssl.SSLContext:
        """Return what a server needs to speak TLS."""
        context = server_context(self.folder, name)
        if asks_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.folder / "ca.pem")
        return context


KEY_PASSWORD = "opens-the-key"


def make_keys(folder: Path) -> Keys:
    """Make the files of keys, all for localhost and *.test."""
    names = ("localhost", "site.test", "other.test", "127.0.0.1")
    authority = certified("ca", is_authority=True)
    server, own = certified("server", *names, by=authority), certified("own", *names)
    for made in (authority, server, own):
        made.write(folder)
    certified("client", *names, by=authority).write(folder, KEY_PASSWORD)
    return Keys(folder, server.pin, own.pin)
