"""Proxies on loopback that reach every name at 127.0.0.1: one that speaks HTTP, one that speaks SOCKS 5."""

from __future__ import annotations

import base64
import select
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HEAD_END = b"\r\n\r\n"
_LIMIT_S = 10.0


class LoopbackProxy:
    """A proxy that runs; `targets` are the hosts that it was asked for, `heads` what it was sent over HTTP."""

    def __init__(self, scheme: str, login: str = "") -> None:
        self.targets: list[str] = []
        self.heads: list[bytes] = []
        self.scheme = scheme
        self.login = login  # user:password that it demands
        self.ports: dict[int, int] = {}  # what is reached instead of a port
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.settimeout(_LIMIT_S)
                try:
                    (proxy.serve_http if scheme == "http" else proxy.serve_socks)(self.request)
                except (OSError, ValueError):
                    pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"{scheme}://{self.address}"

    # -- HTTP ---------------------------------------------------------------------------------------

    def serve_http(self, client: socket.socket) -> None:
        while head := _read_head(client):
            self.heads.append(head)
            method, target, _ = head.split(b" ", 2)
            if self.login and _basic(self.login) not in head:
                client.sendall(b"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
                continue
            if method == b"CONNECT":
                self.targets.append(target.decode())
                with _reach(int(target.rpartition(b":")[2])) as server:
                    client.sendall(b"HTTP/1.1 200 Connected\r\nX-Of-The-Proxy: yes\r\n\r\n")
                    _join(client, server)
                return
            self._forward(client, head, target)

    def _forward(self, client: socket.socket, head: bytes, target: bytes) -> None:
        """Send a request in absolute form on, without what is the proxy's, and its whole answer back."""
        authority, _, path = target.removeprefix(b"http://").partition(b"/")
        self.targets.append(authority.decode())
        lines = [line for line in head.split(b"\r\n")[1:] if line and not line.lower().startswith(b"proxy-")]
        with _reach(int(authority.partition(b":")[2] or 80)) as server:
            server.sendall(b"\r\n".join([b"GET /" + path + b" HTTP/1.1", *lines, b"Connection: close", b"", b""]))
            answer = b""
            while data := server.recv(65536):
                answer += data
        client.sendall(answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        client.shutdown(socket.SHUT_RDWR)

    # -- SOCKS 5 (RFC 1928, 1929) -------------------------------------------------------------------

    def serve_socks(self, client: socket.socket) -> None:
        _, methods = _exactly(client, 2)
        offered = _exactly(client, methods)
        method = 2 if self.login else 0
        if method not in offered:
            client.sendall(b"\x05\xff")
            return
        client.sendall(bytes((5, method)))
        if self.login and not self._knows_login(client):
            return
        _, _, _, kind = _exactly(client, 4)
        if kind == 3:
            host = _exactly(client, _exactly(client, 1)[0]).decode()
        else:
            host = socket.inet_ntop(
                *((socket.AF_INET, _exactly(client, 4)) if kind == 1 else (socket.AF_INET6, _exactly(client, 16)))
            )
        (port,) = struct.unpack(">H", _exactly(client, 2))
        self.targets.append(f"{host}:{port}")
        with _reach(self.ports.get(port, port)) as server:
            client.sendall(b"\x05\x00\x00\x01" + bytes(6))
            _join(client, server)

    def _knows_login(self, client: socket.socket) -> bool:
        _, size = _exactly(client, 2)
        user = _exactly(client, size)
        password = _exactly(client, _exactly(client, 1)[0])
        is_known = f"{user.decode()}:{password.decode()}" == self.login
        client.sendall(b"\x01\x00" if is_known else b"\x01\x01")
        return is_known


def _basic(login: str) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(login.encode())


def _reach(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), _LIMIT_S)


def _read_head(client: socket.socket) -> bytes:
    head = b""
    while not head.endswith(HEAD_END):
        data = client.recv(1)
        if not data:
            return b""
        head += data
    return head


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ValueError("the client hung up")
        data += more
    return data


def _join(one: socket.socket, other: socket.socket) -> None:
    """Copy in both directions until one side is done."""
    while True:
        ready, _, _ = select.select([one, other], [], [], _LIMIT_S)
        for sock in ready:
            data = sock.recv(65536)
            if not data:
                return
            (other if sock is one else one).sendall(data)
        if not ready:
            return


@contextmanager
def loopback_proxy(scheme: str = "http", login: str = "") -> Iterator[LoopbackProxy]:
    """Run a proxy while the block runs; `scheme` is http, socks5 or socks5h."""
    proxy = LoopbackProxy(scheme, login)
    thread = threading.Thread(target=proxy.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield proxy
    finally:
        proxy.server.shutdown()
        thread.join()
        proxy.server.server_close()
