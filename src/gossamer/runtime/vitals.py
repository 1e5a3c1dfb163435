"""How is the process itself? CPU, private memory, and how long the event loop was held."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import time
from bisect import insort
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


def private_bytes() -> int:
    """Return the memory that is this process's own: without mapped files."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return peak_rss_bytes()
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest}
    return 1024 * (kib.get("RssAnon", 0) + kib.get("RssShmem", 0))


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
        self._due = loop.time() + PROBE_S
        self._handle = loop.call_at(self._due, self._tick, loop)

    def note_memory(self) -> None:
        """Take note of the memory in use now."""
        self.peak_private = max(self.peak_private, private_bytes())

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
