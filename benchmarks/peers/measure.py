"""What does a program take? Its CPU time and peak memory, pinned to one core.

CPU is what the kernel accounts to the process and its children when it has ended (wait4).
Memory is VmHWM, looked at ten times per second: `ru_maxrss` would begin with the parent's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

RIVAL_CORE = 0
SERVER_CORE = 1
_LOOK_EVERY_S = 0.1


class Taken(Struct, frozen=True):
    """What a run of a program took."""

    user_s: float
    system_s: float
    seconds: float
    peak_bytes: int
    page_faults: int
    context_switches: int
    status: int
    output: str

    @property
    def cpu_s(self) -> float:
        """User and system time."""
        return self.user_s + self.system_s

    @property
    def is_good(self) -> bool:
        """Whether it ended by itself and well."""
        return self.status == 0


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Run what this thread starts in between on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def run_pinned(
    command: Sequence[str],
    cwd: Path,
    *,
    max_s: float = 600.0,
    env: Mapping[str, str] | None = None,
    core: int = RIVAL_CORE,
) -> Taken:
    """Run a program on one core until it ends; one that takes too long is killed."""
    out, err = cwd / "stdout.txt", cwd / "stderr.txt"
    begun = time.monotonic()
    with out.open("wb") as stdout, err.open("wb") as stderr, pinned(core):
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    watch = _MemoryWatch(process.pid)
    killer = threading.Timer(max_s, os.killpg, (process.pid, signal.SIGKILL))
    killer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begun
    text = out.read_text("utf-8", "replace") if process.returncode == 0 else err.read_text("utf-8", "replace")
    return Taken(
        user_s=usage.ru_utime,
        system_s=usage.ru_stime,
        seconds=seconds,
        peak_bytes=watch.stop(),
        page_faults=usage.ru_minflt,
        context_switches=usage.ru_nvcsw + usage.ru_nivcsw,
        status=process.returncode,
        output=text,
    )


class _MemoryWatch:
    """Looks at the peak memory of a process until it is told to stop."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/status")
        self._peak = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            try:
                lines = self._path.read_text("ascii", "replace").splitlines()
            except OSError:
                return
            self._peak = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), self._peak)

    def stop(self) -> int:
        self._is_over.set()
        self._thread.join()
        return self._peak
