"""Servers that run in a Java machine: Kafka and Cassandra. `make engines` brings their programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import ClassVar, TypeVar

from tests.servers import engines
from tests.servers.redis import free_port

START_S = 240  # on a machine that others use, Cassandra took a minute
FOLDER_VARIABLE = "TEST_SERVERS_FOLDER"  # not a setting of the program: servers that all processes of a test run share


class JavaServer(ABC):
    """A process with its data in a folder, which can be stopped and started again."""

    engine: ClassVar[str]  # the folder of its programs

    def __init__(self, folder: Path, ports: tuple[int, ...] = (), settings: Mapping[str, object] | None = None) -> None:
        self.folder = folder
        self.ports = ports or (free_port(), free_port())
        self.settings = settings or {}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.ports[0]}"

    @abstractmethod
    def create(self) -> None:
        """Write the configuration and create the server's files."""

    @abstractmethod
    def start(self) -> None:
        """Start the server, and wait until it answers."""

    def run(self, words: Sequence[str]) -> None:
        """Start the process. What it prints is in `log` in its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["java", *words], stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )

    @property
    def log_tail(self) -> str:
        """Return the last lines of the log."""
        return (self.folder / "log").read_text("utf-8", "replace")[-2000:]

    def cpu_s(self) -> float:
        """Return the CPU time of the server."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def stop(self, sig: int = signal.SIGKILL) -> None:
        """Stop the server."""
        if self.process is not None:
            self.process.send_signal(sig)
            self.process.wait(START_S)
            self.process = None


_Server = TypeVar("_Server", bound=JavaServer)


@contextmanager
def running(kind: type[_Server], folder: Path, settings: Mapping[str, object] | None = None) -> Iterator[_Server]:
    """Run a server of one's own."""
    server = kind(folder, (), settings)
    server.create()
    try:
        server.start()
        yield server
    finally:
        server.stop()


def shared(kind: type[_Server]) -> _Server:
    """Return the server that all processes of a test run share: the first that needs it starts it."""
    engines.program(kind.engine)
    place = Path(os.environ[FOLDER_VARIABLE])
    known = place / f"{kind.engine}.json"
    with (place / f"{kind.engine}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if known.exists():
            return kind(Path(), tuple(json.loads(known.read_text())["ports"]))
        server = kind(place / kind.engine)
        server.create()
        server.start()
        assert server.process is not None
        known.write_text(json.dumps({"pid": server.process.pid, "ports": server.ports}))
        return server


def begin_sharing() -> None:
    """Prepare a folder for shared servers. In the process that starts the others."""
    if FOLDER_VARIABLE not in os.environ:
        os.environ[FOLDER_VARIABLE] = tempfile.mkdtemp(prefix="gossamer-servers-")


def end_sharing() -> None:
    """Stop the shared servers. In the process that has started the others, at its end."""
    place = os.environ.pop(FOLDER_VARIABLE, None)
    if place is None:
        return
    for known in Path(place).glob("*.json"):
        with suppress(ProcessLookupError):
            os.kill(json.loads(known.read_text())["pid"], signal.SIGKILL)
    shutil.rmtree(place, ignore_errors=True)
