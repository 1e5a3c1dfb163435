"""What the hub measures of itself and of its workers."""

from __future__ import annotations

from bisect import bisect_left

from msgspec import Struct, field

from gossamer.model.figures import BOUNDS_S, Histogram
from gossamer.model.records import FetchTask, Result
from gossamer.runtime.workers.messages import WorkerReport

# How long do the phases of requests take? Counted per result, in the hub.
#
#     connect     until TCP is connected: only for new connections, like the next
#     tls         the handshake
#     first_byte  from the request to the first byte of the answer
#     body        from there to the last one
#     total       from the task to the last byte: with the wait in the worker, without that for the host's turn
#
# Name look-ups are counted by the resolver.


class TimeHistograms:
    def __init__(self) -> None:
        self._first_byte = Histogram()
        self._body = Histogram()
        self._total = Histogram()
        self._connect = Histogram()
        self._tls = Histogram()
        # Read for every result: 0.6 µs on a kept connection; by `Histogram.add` 0.9.
        self._counts = self._first_byte.counts, self._body.counts, self._total.counts

    def count(self, task: FetchTask, result: Result) -> None:
        """Count the phases of a request that was sent and answered."""
        first_at = result.first_byte_at
        if not first_at:
            return
        first_byte_s = first_at - result.sent_at
        body_s = result.finished_at - first_at
        total_s = result.finished_at - task.issued_at
        first_byte, body, total = self._counts
        first_byte[bisect_left(BOUNDS_S, first_byte_s)] += 1
        body[bisect_left(BOUNDS_S, body_s)] += 1
        total[bisect_left(BOUNDS_S, total_s)] += 1
        self._first_byte.sum_s += first_byte_s
        self._body.sum_s += body_s
        self._total.sum_s += total_s
        if result.connect_s >= 0:
            self._connect.add(result.connect_s)
            if result.tls_s >= 0:
                self._tls.add(result.tls_s)

    def copy(self) -> dict[str, Histogram]:
        """Return the histograms by phase; later counting does not change them."""
        phases = {"connect": self._connect, "tls": self._tls, "first_byte": self._first_byte}
        phases |= {"body": self._body, "total": self._total}
        return {name: histogram.copy() for name, histogram in phases.items()}


class HubStats(Struct):
    commits: int = 0
    commit_s: list[float] = field(default_factory=list)
    commit_time: Histogram = field(default_factory=Histogram)
    flush_time: Histogram = field(default_factory=Histogram)  # until the archives are on disk
    times: TimeHistograms = field(default_factory=TimeHistograms)
    worker_deaths: int = 0
    worker_cpu_s: float = 0.0
    crawl_cpu_s: float = 0.0  # of this process, from the first task to the last result
    worker_stall_p99_ms: float = 0.0  # of the worker whose loop was blocked longest
    worker_stall_max_ms: float = 0.0
    worker_core_wait_p99_ms: float = 0.0  # of the worker that waited longest for a core

    def add_commit(self, seconds: float) -> None:
        self.commits += 1
        self.commit_s.append(seconds)
        self.commit_time.add(seconds)

    def add_report(self, report: WorkerReport) -> None:
        self.worker_cpu_s += report.cpu_seconds
        self.worker_stall_p99_ms = max(self.worker_stall_p99_ms, report.stall_p99_ms)
        self.worker_stall_max_ms = max(self.worker_stall_max_ms, report.stall_max_ms)
        self.worker_core_wait_p99_ms = max(self.worker_core_wait_p99_ms, report.core_wait_p99_ms)
