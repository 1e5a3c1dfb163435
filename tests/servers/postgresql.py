"""PostgreSQL for tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from tests.servers import engines
from tests.servers.redis import free_port
from tests.servers.redis_cluster import wait_for

START_S = 30


class PostgresServer:
    """A server with a database `postgres`, in which its user may do anything. It refuses to run as root."""

    def __init__(self, programs: Path, folder: Path, *options: str) -> None:
        self._programs = programs
        self.folder = folder
        self._options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def parameters(self) -> dict[str, str | int]:
        return {"host": "127.0.0.1", "port": self.port, "dbname": "postgres", "user": "postgres"}

    def connection(self) -> AbstractContextManager[psycopg.Connection[tuple[Any, ...]]]:
        """Return a connection; what is done with it is committed at its end."""
        return psycopg.connect(**self.parameters)  # type: ignore[arg-type]

    def cpu_s(self) -> float:
        """Return the CPU time of the server and of its processes that have ended or are there."""
        assert self._process is not None
        pids = [self._process.pid, *_children_of(self._process.pid)]
        return sum(_cpu_s(pid) for pid in pids)

    def create(self, *options: str) -> None:
        """Create the files of the server."""
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        words = ["-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", *options]
        self._run("initdb", "-D", str(self.folder), *words)

    def _command(self, program: str, *words: str) -> list[str]:
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
        return [*user, str(self._programs / program), *words]

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(self._command(program, *words), check=True, capture_output=True, cwd="/")

    def start(self) -> None:
        wait_for(self._runs_and_answers)

    def _runs_and_answers(self) -> bool:
        """Start the server, again if it ends: processes of a killed one hold its memory for a moment."""
        if self._process is None or self._process.poll() is not None:
            words = ["-D", str(self.folder), "-p", str(self.port), "-c", "listen_addresses=127.0.0.1"]
            words += ["-c", f"unix_socket_directories={self.folder}", "-c", "max_connections=200", *self._options]
            command = self._command("postgres", *words)
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        return self._answers()

    def _answers(self) -> bool:
        try:
            psycopg.connect(**self.parameters).close()  # type: ignore[arg-type]
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, sig: int = signal.SIGKILL) -> None:
        """Stop the server; by default as a power cut would, as far as the processes are concerned."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if sig == signal.SIGKILL else sig)
            self._process.wait(START_S)
            self._process = None


def _children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:  # one that has ended since it was listed
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running_postgres(*options: str) -> Iterator[PostgresServer]:
    """Run a server. Its folder is not one of pytest's, which only their owner may enter."""
    with TemporaryDirectory(prefix="gossamer-postgres-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(engines.program("postgresql"), Path(folder), *options)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
