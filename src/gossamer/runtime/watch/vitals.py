"""Measures of the process: CPU, private memory, how long the event loop stalled or waited for a core."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import sys
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

PROBE_S = 0.05
_STEP_S = 0.005
_CONTENDED_S = 0.002  # wait for a core since the last probe from which samples are taken every step
_TIMER_GRAIN_S = 0.0005  # uvloop's timers and its clock have a resolution of milliseconds
_SWITCH_S = 0.0005
_M_MMAP_THRESHOLD = -3  # malloc.h
_MAX_SAMPLES = 20_000


def cpu_seconds() -> float:
    """Return the CPU time of this process so far."""
    return time.process_time()


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process, including mapped files."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def private_bytes(pid: int | None = None) -> int:
    """Return the private memory of a process, by default this one, without mapped files; 0 if it is gone. 15 µs."""
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
    """Return the memory of this machine, or of the container that this process is in, if that is less."""
    bytes_here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([bytes_here, *_container_limits()])


def _container_limits(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Yield the memory limits of the control groups that this process is in, including the outer ones."""
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
    """How long a thread has waited for a core since it started. 1.4 µs per reading."""

    def __init__(self) -> None:
        self._file: int | None = None

    def open(self) -> None:
        """Start with the calling thread. If the kernel does not report waits, they are always 0."""
        try:
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None

    def seconds(self) -> float:
        if self._file is None:
            return 0.0
        return int(os.pread(self._file, 64, 0).split()[1]) / 1e9  # ns on a core, ns waited for one, time slices

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class MemoryWatch(Struct, frozen=True):
    """Receives the private memory of this process and its workers, 20 times per second."""

    worker_pids: Callable[[], Sequence[int]]
    on_memory: Callable[[int], None]


class StallProbe:
    """Measures how late a timer of 50 ms fires, and why: the program blocked the loop, or the loop waited for a core.

    The kernel reports how long the loop's thread has waited for a core so far. The wait since the last sample is
    subtracted from the delay; the rest is caused by the program: its own work, a system call, another thread that holds
    the interpreter's lock. A wait earlier in the 50 ms delays nothing; so while cores are scarce a sample is taken
    every 5 ms, and a stall is underestimated by at most the wait between the last sample and the timer's due time.
    If cores are free these samples are skipped: waking a sleeping process costs more than everything else here.
    """

    def __init__(self, core_wait: CoreWait | None = None, *, memory: MemoryWatch | None = None) -> None:
        self._core_wait = core_wait or CoreWait()
        self._memory = memory
        self._stalls_s: list[float] = []  # sorted, like the next
        self._waited_s: list[float] = []
        self._longest_stall_s = 0.0
        self._recent_stall_s = 0.0  # the longest since it was last asked for
        self.last_run_at = 0.0  # of the loop, by time.monotonic
        self._handle: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._wait_at_sample_s = 0.0
        self._wait_at_probe_s = 0.0
        self._is_contended = False
        self.private_bytes = 0  # of this process and its workers, when it was last measured
        self.peak_private = 0
        self._worker_bytes: dict[int, int] = {}
        self._turn = 0

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Start measuring on the running loop, in its thread."""
        loop = loop or asyncio.get_running_loop()
        self._core_wait.open()
        self.last_run_at = time.monotonic()
        self._wait_at_sample_s = self._wait_at_probe_s = self._core_wait.seconds()
        self._due = loop.time() + PROBE_S
        self._handle = loop.call_at(self._due, self._sample, loop)

    def _sample(self, loop: asyncio.AbstractEventLoop) -> None:
        self.last_run_at = time.monotonic()
        late_s = loop.time() - self._due
        wait_s = self._core_wait.seconds()
        if late_s > -_TIMER_GRAIN_S:
            self._record(max(0.0, late_s), wait_s - self._wait_at_sample_s)
            self._is_contended = wait_s - self._wait_at_probe_s > _CONTENDED_S
            self._wait_at_probe_s = wait_s
            if self._memory is not None:
                self.measure_memory()
            self._due = loop.time() + PROBE_S
        self._wait_at_sample_s = wait_s
        next_s = min(self._due, loop.time() + _STEP_S) if self._is_contended else self._due
        self._handle = loop.call_at(next_s, self._sample, loop)

    def _record(self, late_s: float, waited_s: float) -> None:
        waited_s = min(late_s, waited_s)
        self._longest_stall_s = max(self._longest_stall_s, late_s - waited_s)
        self._recent_stall_s = max(self._recent_stall_s, late_s - waited_s)
        if len(self._stalls_s) < _MAX_SAMPLES:
            insort(self._stalls_s, late_s - waited_s)
            insort(self._waited_s, waited_s)

    def measure_memory(self) -> None:
        """Record the memory in use now; that of the workers is from their last measurement."""
        in_use = private_bytes() + self._measure_workers()
        self.private_bytes = in_use
        self.peak_private = max(self.peak_private, in_use)
        if self._memory is not None:
            self._memory.on_memory(in_use)

    def _measure_workers(self) -> int:
        """Measure one worker per call, in turn, so that many cost no more than one."""
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
        """Return the 99th percentile of the time that the program blocked the loop."""
        return _p99_ms(self._stalls_s)

    def stall_max_ms(self) -> float:
        """Return the longest time that the program blocked the loop."""
        return 1000 * self._longest_stall_s

    def take_longest_s(self) -> float:
        """Return the longest time that the program blocked the loop since the last call."""
        longest_s = self._recent_stall_s
        self._recent_stall_s = 0.0
        return longest_s

    def core_wait_p99_ms(self) -> float:
        """Return the 99th percentile of the time that the loop waited for a core."""
        return _p99_ms(self._waited_s)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._core_wait.close()


def _p99_ms(sorted_s: Sequence[float]) -> float:
    return 1000 * sorted_s[int(len(sorted_s) * 0.99)] if sorted_s else 0.0


def trim_memory() -> None:
    """Return freed memory to the system: glibc retains what the tree of a large page took (70 MB, 2 ms)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def switch_threads_often() -> None:
    """Return the interpreter soon to the event loop while a thread reads a big answer.

    The loop loses it with each call of the system: with Python's default of 5 ms, a turn that wrote 80 requests beside
    such a thread took 0.4 s. For programs only: with the library, the application decides.
    """
    sys.setswitchinterval(_SWITCH_S)


def map_large_blocks() -> None:
    """Map blocks from 256 KiB individually, so that freeing a body returns its memory immediately.

    By default glibc raises that threshold when the first large block is freed, and then retains the others.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 256 * 1024)
