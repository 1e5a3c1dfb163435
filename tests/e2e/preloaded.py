"""Starts the program and the synthetic web without loading them anew: a process that has loaded them divides itself.

A start costs 0.1 to 0.2 s of CPU less, and a run of all tests starts more than a thousand. What is different from a
start by the shell: memory that is shared with the process that divides itself, and one seed of hashes for all starts.
Tests to which this matters ask for a new process.

Between the two sides: a request with three files as which the program has its standard ones; the process's number;
and, when it has ended, its status.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, AnyStr, cast

ROOT = Path(__file__).parents[2]
PROGRAM = "gossamer.cli.main"
WEB = "gossamer.sim.running"
MODULES = (
    PROGRAM,
    WEB,
    "gossamer.assembly.run",
    "gossamer.runtime.session.session",
    "gossamer.backends.redis.connect",
    "uvloop",
)
_NUMBER = struct.Struct("<i")
_MAX_REQUEST = 1 << 20

GOSSAMER = (sys.executable, "-m", PROGRAM)


class Preloaded(subprocess.Popen[AnyStr]):
    """A process that began with everything loaded: `python -m MODULE ARGUMENTS`. For its user as any other."""

    _socket: socket.socket

    def _execute_child(self, command: Sequence[str], *more: Any) -> None:
        environment = os.environ if more[5] is None else more[5]
        to_read, _, _, to_write, _, to_complain = more[9:15]
        self._socket = _connected()
        _, _, module, *arguments = command
        request = pickle.dumps((module, arguments, dict(environment), os.getcwd()))
        files = [file if file != -1 else number for number, file in enumerate((to_read, to_write, to_complain))]
        socket.send_fds(self._socket, [request], files)
        self.pid = _NUMBER.unpack(self._socket.recv(_NUMBER.size))[0]
        self._child_created = True
        self._close_pipe_fds(*more[9:15])  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        is_over = not flags & os.WNOHANG or bool(select.select([self._socket], [], [], 0)[0])
        return (self.pid, _NUMBER.unpack(self._socket.recv(_NUMBER.size))[0]) if is_over else (0, 0)

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self._socket.fileno() < 0 and self.returncode is None:  # collected as garbage: nobody has waited for it
            self.returncode = _deadstate
        elif self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
                self._socket.close()
        return cast("int | None", self.returncode)


@cache
def _address() -> str:
    """Start the process that divides itself; return where it is asked to."""
    address = f"\0gossamer-tests-{os.getpid()}"
    ready, told = os.pipe()
    command = [sys.executable, "-m", __name__, address[1:], str(told)]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[told], cwd=ROOT)
    os.close(told)
    assert os.read(ready, 1) == b"."
    os.close(ready)
    return address


def start(arguments: Sequence[str], environment: Mapping[str, str]) -> Preloaded[str]:
    """Start the program, without input; its output is for the test."""
    return Preloaded(
        [*GOSSAMER, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _connected() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(_address())
    return connection


def _serve(address: str, told: int) -> None:
    parent = os.getppid()
    for name in MODULES:
        importlib.import_module(name)
    for name, _ in sys.modules["gossamer.cli.verbs"].VERBS.values():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{address}")
    listener.listen()
    listener.settimeout(1.0)
    os.write(told, b".")
    os.close(told)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.getppid() == parent:  # else the tests are over
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _start(connection)
        connection.close()


def _start(connection: socket.socket) -> None:
    """Run the program in a process of its own, and report its status."""
    connection.setblocking(True)
    request, files, _, _ = socket.recv_fds(connection, _MAX_REQUEST, 3)
    pid = os.fork()
    if pid == 0:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        _become(*pickle.loads(request))
    for file in files:
        os.close(file)
    connection.sendall(_NUMBER.pack(pid))
    _, status = os.waitpid(pid, 0)
    connection.sendall(_NUMBER.pack(status))
    os._exit(0)


def _become(module: str, arguments: list[str], environment: dict[str, str], folder: str) -> None:
    from gossamer.foundation import failpoints

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    failpoints.arm(environment.get(failpoints.VARIABLE, ""))
    loaded = sys.modules[module]
    sys.argv = [str(loaded.__file__), *arguments]
    status = 1
    try:
        if module == PROGRAM:
            loaded.run_program()
        status = loaded.main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:  # as the interpreter does
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
