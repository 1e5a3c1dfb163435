"""Runs a program and measures it from outside: CPU time, peak memory, time. It need not be the one under test.

Memory is resident memory over the process and those that it started, looked at every `LOOK_S`. For a single
process that is its high-water mark; for several, the largest sum that was seen of memory that they do not share.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

LOOK_S = 0.02


class Usage(Struct, frozen=True):
    """How a program ended, and what it took."""

    status: int  # negative: the signal that ended it
    is_overdue: bool  # killed, because its time was over
    stdout: str
    stderr: str
    seconds: float
    cpu_s: float  # of the process and of those that it waited for
    peak_bytes: int


def measure(command: Sequence[str], limit_s: float, environment: Mapping[str, str] | None = None) -> Usage:
    """Run a program to its end, or kill it when its time is over."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        peak, ended = 0, None
        while ended is None:
            time.sleep(LOOK_S)
            peak = max(peak, memory_of(process.pid))
            if time.monotonic() - began > limit_s:
                process.kill()
                ended = os.wait4(process.pid, 0)
            else:
                pid, status, used = os.wait4(process.pid, os.WNOHANG)
                ended = (pid, status, used) if pid else None
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        return Usage(
            status=process.returncode,
            is_overdue=seconds > limit_s,
            stdout=_text(out.fileno()),
            stderr=_text(err.fileno()),
            seconds=seconds,
            cpu_s=ended[2].ru_utime + ended[2].ru_stime,
            peak_bytes=peak,
        )


def _text(fd: int) -> str:
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0).decode("utf-8", "replace")


def memory_of(pid: int) -> int:
    """Return the memory of a process at its peak, or of it and its children now, if that is more; 0 if it is gone."""
    children = [child for each in children_of(pid) for child in (each, *children_of(each))]
    if not children:
        return _status_bytes(pid, "VmHWM:")
    return sum(_private_bytes(each) for each in (pid, *children))


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, from any of its threads."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue
    return found


def _status_bytes(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def _private_bytes(pid: int) -> int:
    """Return the resident memory of a process without files that are mapped, which others share."""
    return _status_bytes(pid, "RssAnon:") + _status_bytes(pid, "RssShmem:")


def bytes_in(folder: Path) -> int:
    """Return what a folder has on disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
