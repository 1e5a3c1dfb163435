"""What the hub measures of itself and of its workers."""

from __future__ import annotations

from msgspec import Struct, field

from gossamer.model.figures import Histogram
from gossamer.runtime.hub.request_times import RequestTimes
from gossamer.runtime.workers.messages import Report


class HubStats(Struct):
    """Measurements of the hub and of its workers."""

    commits: int = 0
    commit_s: list[float] = field(default_factory=list)
    commit_time: Histogram = field(default_factory=Histogram)
    flush_time: Histogram = field(default_factory=Histogram)  # until the archives are on disk
    times: RequestTimes = field(default_factory=RequestTimes)
    worker_deaths: int = 0
    worker_cpu_s: float = 0.0
    crawl_cpu_s: float = 0.0  # of this process, from the first order to the last result
    worker_stall_p99_ms: float = 0.0  # of the worker whose loop was blocked longest
    worker_stall_max_ms: float = 0.0
    worker_core_wait_p99_ms: float = 0.0  # of the worker that waited longest for a core

    def add_commit(self, seconds: float) -> None:
        """Count a commit."""
        self.commits += 1
        self.commit_s.append(seconds)
        self.commit_time.add(seconds)

    def add_report(self, report: Report) -> None:
        """Add what a worker reported at its end."""
        self.worker_cpu_s += report.cpu_seconds
        self.worker_stall_p99_ms = max(self.worker_stall_p99_ms, report.stall_p99_ms)
        self.worker_stall_max_ms = max(self.worker_stall_max_ms, report.stall_max_ms)
        self.worker_core_wait_p99_ms = max(self.worker_core_wait_p99_ms, report.core_wait_p99_ms)
