"""Redis or Valkey for tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import redis

START_S = 20


# Below the ports that Linux takes for outgoing connections: a server that is killed finds its own port free again.
_FIRST_PORT, _PORTS_PER_PROCESS = 10_000, 2_000
_process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % 10
_ports = count(_FIRST_PORT + _process * _PORTS_PER_PROCESS + os.getpid() % (_PORTS_PER_PROCESS // 2))


def free_port() -> int:
    """Return a port that nobody uses, and that no other process of the test run will be given."""
    for port in _ports:
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


class RedisServer:
    """A server with an append-only file."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self.program = program
        self.folder = folder
        self.options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._has_started = False

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self.port)

    def start(self) -> None:
        """Start it; the first time at another port, if another process has taken this one (or that of the bus)."""
        self.folder.mkdir(exist_ok=True, parents=True)
        for _ in range(5):
            process = self._launch()
            if self._answers(process):
                self._has_started = True
                return
            process.kill()
            process.wait()
            if not self._has_started:
                self.port = free_port()
        raise RuntimeError(f"{self.program} does not start at port {self.port}")

    def _launch(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [
                self.program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), "--save", "",
                "--appendonly", "yes", "--appendfsync", "everysec", *self.options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self._process

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until it answers; return whether it does. If it has ended, whoever answers there is another one."""
        until = time.monotonic() + START_S
        with self.client() as client:
            while time.monotonic() < until and process.poll() is None:
                try:
                    client.ping()
                except redis.exceptions.AuthenticationError:
                    return process.poll() is None
                except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
                    time.sleep(0.02)
                else:
                    return process.poll() is None
        return False

    def stop(self, sig: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(sig)
            self._process.wait(START_S)
            self._process = None


@contextmanager
def running(program: str, folder: Path, *options: str) -> Iterator[RedisServer]:
    server = RedisServer(program, folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
