"""A server with MongoDB's protocol for tests: FerretDB, with SQLite behind it. `make engines` builds it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure

from gossamer.backends.mongodb.connect import Document
from tests.servers import engines
from tests.servers.redis import free_port

START_S = 20
USER, PASSWORD = "spider", "web"
WITH_LOGIN = (
    "--test-enable-new-auth",
    "--setup-database=crawl",
    f"--setup-username={USER}",
    f"--setup-password={PASSWORD}",
)


class MongoServer:
    """A server with its data in a folder; it can be stopped and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str, port: int | None = None) -> str:
        return f"mongodb://127.0.0.1:{port or self.port}/{database}"

    def client(self) -> MongoClient[Document]:
        return MongoClient("127.0.0.1", self.port, serverSelectionTimeoutMS=1000 * START_S)

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True, parents=True)
        self._process = subprocess.Popen(
            [
                str(engines.program("mongodb")), "--handler=sqlite", f"--sqlite-url=file:{self.folder}/",
                f"--listen-addr=127.0.0.1:{self.port}", "--debug-addr=-", "--state-dir=-", "--telemetry=disable",
                "--log-level=error", *self.options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._await()

    def _await(self) -> None:
        with self.client() as client, suppress(OperationFailure):  # one that wants a login runs, too
            client.admin.command("ping")  # tries to connect until it can

    def stop(self, sig: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(sig)
            self._process.wait(START_S)
            self._process = None


@contextmanager
def running(folder: Path, *options: str) -> Iterator[MongoServer]:
    server = MongoServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
