"""How is the process itself? CPU, private memory, and how long the event loop was held."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PROBE_S = 0.05
_M_MMAP_THRESHOLD = -3  # malloc.h
_KEPT = 20_000


def cpu_seconds() -> float:
    """Return the CPU time of this process so far."""
    return time.process_time()


def peak_rss_bytes() -> int:
    """Return the most memory that this process had resident, mapped files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def private_bytes(pid: int | None = None) -> int:
    """Return the memory that is a process's own, without mapped files: this one's, or 0 of one that is gone. 15 µs."""
    try:
        with open(f"/proc/{pid or 'self'}/status", "rb", buffering=0) as file:
            status = file.read(8192)
    except OSError:
        return peak_rss_bytes() if pid is None else 0
    return 1024 * (_kib(status, b"RssAnon:") + _kib(status, b"RssShmem:"))


def _kib(status: bytes, name: bytes) -> int:
    at = status.find(name)
    return int(status[at + len(name) :].split(None, 1)[0]) if at >= 0 else 0


def machine_bytes() -> int:
    """Return the memory of this machine, or of the container that this process is in, where that is less."""
    bytes_here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([bytes_here, *_container_limits()])


def _container_limits(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Yield the memory limits of the control groups that this process is in, the outer ones too."""
    try:
        lines = proc.read_text("ascii").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            try:
                limit = (folder / name).read_text("ascii").strip()
            except OSError:
                limit = ""
            if limit.isdigit():
                yield int(limit)
            if folder == top:
                break


def open_files() -> tuple[int, int]:
    """Return how many files are open, and how many may be."""
    try:
        count = len(os.listdir("/proc/self/fd"))
    except OSError:
        count = 0
    return count, resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class StallProbe:
    """Measures how late a timer of 50 ms comes: the time that the loop was held by something else."""

    def __init__(self) -> None:
        self._late_s: list[float] = []
        self._handle: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.worst_s = 0.0
        self.peak_private = 0
        self._on_memory: Callable[[int], None] | None = None
        self._worker_pids: Callable[[], Sequence[int]] = tuple
        self._worker_bytes: dict[int, int] = {}
        self._turn = 0

    def watch_memory(self, worker_pids: Callable[[], Sequence[int]], on_memory: Callable[[int], None]) -> None:
        """Have a function told 20 times a second how much memory this process and its workers have of their own."""
        self._worker_pids = worker_pids
        self._on_memory = on_memory

    def start(self) -> None:
        """Begin measuring on the running loop."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + PROBE_S
        self._handle = loop.call_at(self._due, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        late_s = max(0.0, loop.time() - self._due)
        self.worst_s = max(self.worst_s, late_s)
        if len(self._late_s) < _KEPT:
            insort(self._late_s, late_s)
        if self._on_memory is not None:
            self.note_memory()
        self._due = loop.time() + PROBE_S
        self._handle = loop.call_at(self._due, self._tick, loop)

    def note_memory(self) -> None:
        """Take note of the memory in use now, with what the workers had when they were last looked at."""
        in_use = private_bytes() + self._of_workers()
        self.peak_private = max(self.peak_private, in_use)
        if self._on_memory is not None:
            self._on_memory(in_use)

    def _of_workers(self) -> int:
        """Look at one worker, each in its turn, so that many cost no more than one."""
        pids = self._worker_pids()
        if not pids:
            return 0
        self._turn = (self._turn + 1) % len(pids)
        known = self._worker_bytes
        self._worker_bytes = {pid: known[pid] for pid in pids if pid in known}
        for pid in {pids[self._turn], *(pid for pid in pids if pid not in known)}:
            self._worker_bytes[pid] = private_bytes(pid)
        return sum(self._worker_bytes.values())

    def p99_ms(self) -> float:
        """Return the 99th percentile of the delay."""
        return 1000 * self._late_s[int(len(self._late_s) * 0.99)] if self._late_s else 0.0

    def stop(self) -> None:
        """Stop measuring."""
        if self._handle is not None:
            self._handle.cancel()


def trim_memory() -> None:
    """Give freed memory back to the system: glibc keeps what the tree of a large page took (70 MB, 2 ms)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_large_blocks_apart() -> None:
    """Have blocks from 256 KiB mapped one by one, so that freeing a body gives its memory back at once.

    By itself glibc raises that size with the first large block that is freed, and then keeps the others.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 256 * 1024)
