"""What does a crawl use of its machine, at one moment? Measured once per second: 0.1 ms, and as much per worker."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct


class Machine(Struct, frozen=True):
    open_files: int
    max_files: int
    free_bytes: int
    wall_ahead_s: float = 0.0  # the machine's clock minus one that cannot be set
    hub_cpu_s: float = 0.0  # of the thread that runs the event loop, since it began; like the next
    worker_cpu_s: dict[int, float] = {}  # by process
    stall_s: float = 0.0  # for which the program blocked an event loop, at most, since the last measurement

    @classmethod
    def measured(cls, folder: Path, pids: Sequence[int], stall_s: float = 0.0) -> Machine:
        """Measure: the open files are those of the process that has most. The stall is measured by others."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = os.statvfs(folder)
        return cls(
            open_files=max(_open_files("self"), *(_open_files(str(pid)) for pid in pids), 0),
            max_files=soft,
            free_bytes=room.f_bavail * room.f_frsize,
            wall_ahead_s=time.time() - time.monotonic(),
            hub_cpu_s=_cpu_s(os.getpid(), threading.get_native_id()),
            worker_cpu_s={pid: _cpu_s(pid, pid) for pid in pids},
            stall_s=stall_s,
        )


def _open_files(pid: str) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it has ended
        return 0


def _cpu_s(pid: int, thread: int) -> float:
    """Return how long a thread was on a core; 0 if it has ended, or the kernel does not report it."""
    try:
        with open(f"/proc/{pid}/task/{thread}/schedstat", "rb", buffering=0) as file:
            return int(file.read(64).split(None, 1)[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
