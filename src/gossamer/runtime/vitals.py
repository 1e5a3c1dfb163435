"""How is the process itself? CPU, private memory, how long the event loop was held or waited for a core."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

PROBE_S = 0.05
_STEP_S = 0.005
_CROWDED_S = 0.002  # waited for a core since the last probe, from which on every step is looked at
_GRAIN_S = 0.0005  # uvloop's timers and its clock go by milliseconds
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


class CoreWait:
    """How long a thread has stood in the queue for a core since it began. 1.4 µs a look."""

    def __init__(self) -> None:
        self._file: int | None = None

    def open(self) -> None:
        """Begin with the thread that calls. Where the kernel does not tell, no wait is ever seen."""
        try:
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None

    def seconds(self) -> float:
        """Return the wait so far."""
        if self._file is None:
            return 0.0
        return int(os.pread(self._file, 64, 0).split()[1]) / 1e9  # ns on a core, ns waited for one, turns

    def close(self) -> None:
        """Look no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class MemoryWatch(Struct, frozen=True):
    """Who wants to know, 20 times per second, how much private memory this process and its workers use."""

    worker_pids: Callable[[], Sequence[int]]
    on_memory: Callable[[int], None]


class StallProbe:
    """Measures how late a timer of 50 ms comes, and why: the loop was held by the program, or waited for a core.

    The kernel tells how long the loop's thread has waited for a core so far. What it waited since the last look is
    taken off the delay; the rest is the program's: its own work, a system call, another thread that has the
    interpreter's lock. A wait earlier in the 50 ms made nothing late; so while cores are scarce there is a look every
    5 ms, and a stall is told too short by no more than the wait between the last look and the time the timer was due.
    With cores to spare these looks are left out: to wake a process that sleeps costs more than all the rest.
    """

    def __init__(self, core_wait: CoreWait | None = None, *, memory: MemoryWatch | None = None) -> None:
        self._core_wait = core_wait or CoreWait()
        self._memory = memory
        self._held_s: list[float] = []  # sorted, as the next
        self._waited_s: list[float] = []
        self._handle: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._wait_at_look_s = 0.0
        self._wait_at_probe_s = 0.0
        self._is_crowded = False
        self.private_bytes = 0  # of this process and its workers, when it was last measured
        self.peak_private = 0
        self._worker_bytes: dict[int, int] = {}
        self._turn = 0

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Begin measuring on the running loop, in its thread."""
        loop = loop or asyncio.get_running_loop()
        self._core_wait.open()
        self._wait_at_look_s = self._wait_at_probe_s = self._core_wait.seconds()
        self._due = loop.time() + PROBE_S
        self._handle = loop.call_at(self._due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        late_s = loop.time() - self._due
        wait_s = self._core_wait.seconds()
        if late_s > -_GRAIN_S:
            self._record(max(0.0, late_s), wait_s - self._wait_at_look_s)
            self._is_crowded = wait_s - self._wait_at_probe_s > _CROWDED_S
            self._wait_at_probe_s = wait_s
            if self._memory is not None:
                self.note_memory()
            self._due = loop.time() + PROBE_S
        self._wait_at_look_s = wait_s
        next_s = min(self._due, loop.time() + _STEP_S) if self._is_crowded else self._due
        self._handle = loop.call_at(next_s, self._look, loop)

    def _record(self, late_s: float, waited_s: float) -> None:
        waited_s = min(late_s, waited_s)
        if len(self._held_s) < _KEPT:
            insort(self._held_s, late_s - waited_s)
            insort(self._waited_s, waited_s)

    def note_memory(self) -> None:
        """Take note of the memory in use now, with what the workers had when they were last looked at."""
        in_use = private_bytes() + self._of_workers()
        self.private_bytes = in_use
        self.peak_private = max(self.peak_private, in_use)
        if self._memory is not None:
            self._memory.on_memory(in_use)

    def _of_workers(self) -> int:
        """Look at one worker, each in its turn, so that many cost no more than one."""
        pids = self._memory.worker_pids() if self._memory is not None else ()
        if not pids:
            return 0
        self._turn = (self._turn + 1) % len(pids)
        known = self._worker_bytes
        self._worker_bytes = {pid: known[pid] for pid in pids if pid in known}
        for pid in {pids[self._turn], *(pid for pid in pids if pid not in known)}:
            self._worker_bytes[pid] = private_bytes(pid)
        return sum(self._worker_bytes.values())

    def stall_p99_ms(self) -> float:
        """Return the 99th percentile of the time that the program held the loop."""
        return _p99_ms(self._held_s)

    def core_wait_p99_ms(self) -> float:
        """Return the 99th percentile of the time that the loop waited for a core."""
        return _p99_ms(self._waited_s)

    def stop(self) -> None:
        """Stop measuring."""
        if self._handle is not None:
            self._handle.cancel()
        self._core_wait.close()


def _p99_ms(sorted_s: Sequence[float]) -> float:
    return 1000 * sorted_s[int(len(sorted_s) * 0.99)] if sorted_s else 0.0


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
