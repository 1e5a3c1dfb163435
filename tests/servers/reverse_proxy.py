"""A reverse proxy on loopback, as small as one can be: it serves another server below a path of its own."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from msgspec import Struct


class ReverseProxy(Struct):
    """Passes what is below `path` on; a connection has one request. `target` is set when it is known."""

    path: str  # without a slash at its end
    port: int
    target: tuple[str, int] | None = None
    strips_path: bool = True
    keeps_host: bool = False  # the name by which browsers know it

    @property
    def url(self) -> str:
        """Where browsers find what is served."""
        return f"http://127.0.0.1:{self.port}{self.path}/"

    def pass_on(self, client: socket.socket) -> None:
        """Answer one connection."""
        assert self.target is not None
        with client, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(1 << 16)
                if not part:
                    return
                head += part
            first, _, rest = head.partition(b"\r\n")
            method, path, version = first.split(b" ")
            if not path.startswith(self.path.encode() + b"/"):
                client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            if self.strips_path:
                path = path[len(self.path) :]
            rest = re.sub(rb"(?i)(^|\r\n)connection:[^\r]*", rb"\1Connection: close", rest, count=1)
            if not self.keeps_host:
                own = f"{self.target[0]}:{self.target[1]}".encode()
                rest = re.sub(rb"(?i)(^|\r\n)host:[^\r]*", rb"\1Host: " + own, rest, count=1)
            with socket.create_connection(self.target) as server:
                server.sendall(b" ".join((method, path, version)) + b"\r\n" + rest)
                back = Thread(target=_copy, args=(client, server), daemon=True)
                back.start()
                _copy(server, client)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            target.sendall(part)


@contextmanager
def reverse_proxy(path: str, *, strips_path: bool, keeps_host: bool) -> Iterator[ReverseProxy]:
    """Serve while the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = ReverseProxy(path, listener.getsockname()[1], strips_path=strips_path, keeps_host=keeps_host)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    Thread(target=proxy.pass_on, args=(client,), daemon=True).start()

        thread = Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
