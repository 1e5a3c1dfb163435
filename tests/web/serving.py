"""A page's process in this one, and a client that sends what it likes."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from msgspec import Struct

from gossamer.control.target import target
from gossamer.model.commands import OperatorCommand
from gossamer.reading.folder import CrawlReader
from gossamer.settings.listening import Address, public_url_of
from gossamer.web.server import ListenPlan, serve
from gossamer.web.source import CrawlSource

WITHIN_S = 20.0


class Obedient(Struct):
    """A crawl whose commands a function obeys."""

    obey: Callable[[OperatorCommand, str], str]


class Reply(Struct):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """Where a page is served."""

    def __init__(self, lines: list[str]) -> None:
        urls = {line.split()[0]: line[line.index("http") :].split()[0] for line in lines}
        page = urls.pop("dashboard", "") or urls.popitem()[1]
        base, _, self.token = page.partition("/#token=")
        self.host = urls.get("listening", base).removeprefix("http://").removesuffix("/")
        self.metrics_host = urls.get("metrics", "").removeprefix("http://").removesuffix("/metrics")
        self.url = page

    def raw(self, data: bytes, host: str = "") -> bytes:
        """Send bytes; return everything that comes back until the server closes the connection."""
        name, _, port = (host or self.host).rpartition(":")
        with socket.create_connection((name, int(port)), WITHIN_S) as connection:
            connection.sendall(data)
            parts = []
            try:
                while part := connection.recv(1 << 16):
                    parts.append(part)
            except ConnectionResetError:
                pass
            return b"".join(parts)

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        host: str = "",
        with_token: bool = True,
    ) -> Reply:
        """Send one request."""
        sent = {"Host": host or self.host, "Connection": "close", "Content-Length": str(len(body))}
        if with_token:
            sent["Authorization"] = f"Bearer {self.token}"
        sent |= headers or {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        return parsed(self.raw("\r\n".join(lines).encode() + body, host if host == self.metrics_host else ""))

    def command(self, name: str, **fields: object) -> Reply:
        """Give a command."""
        body = json.dumps({"command": name, **fields}).encode()
        return self.ask("/api/control", method="POST", body=body, headers={"Content-Type": "application/json"})


def parsed(data: bytes) -> Reply:
    """Return an answer that ends with the connection."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Reply(int(first.split()[1]), headers, body)


@contextmanager
def served(
    folder: Path,
    *,
    obey: Callable[[OperatorCommand, str], str] | None = lambda _command, _by: "done",
    is_read_only: bool = False,
    has_metrics: bool = False,
    public: str = "",
    token_file: Path | None = None,
) -> Iterator[Served]:
    """Serve the page of a folder in a thread; commands are passed to a function, or to the crawl itself."""
    lines: Queue[str] = Queue()
    loop, ended = asyncio.new_event_loop(), asyncio.Event()
    find_target = target if obey is None else lambda _crawl: Obedient(obey)
    source = CrawlSource(lambda: CrawlReader(folder), str(folder), find_target=find_target, is_read_only=is_read_only)
    anywhere = Address("127.0.0.1", 0)
    public_url = public_url_of(public, "--ui-url") if public else None
    plan = ListenPlan(anywhere, anywhere if has_metrics else None, public_url, token_file)
    thread = Thread(target=lambda: loop.run_until_complete(serve(source, plan, lines.put, ended)))
    thread.start()
    try:
        yield Served([lines.get(timeout=WITHIN_S) for _ in range(1 + has_metrics + bool(public))])
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(WITHIN_S)
        loop.close()
