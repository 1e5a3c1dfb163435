"""The program with a fault in how it reads pages: `python -m tests.hostile.planted FAULT crawl …`.

Shows that the bounds on the costs of a case find something.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from gossamer.cli.main import main
from gossamer.model.records import Result
from gossamer.ports import FetchedPage
from gossamer.runtime.workers.worker import Worker
from tests.hostile.costs import MAX_CPU_S, MAX_DECODED_BYTES, MAX_GROWTH_BYTES


def burn_cpu() -> None:
    until = time.process_time() + MAX_CPU_S + 0.5
    while time.process_time() < until:
        pass


def take_memory() -> None:
    kept.append(b"x" * (MAX_GROWTH_BYTES + 30_000_000))


def fill_disk() -> None:
    (Path(sys.argv[sys.argv.index("--out") + 1]) / "more").write_bytes(bytes(MAX_DECODED_BYTES + 1_000_000))


def hang() -> None:
    time.sleep(1000)


FAULTS: dict[str, Callable[[], None]] = {"cpu": burn_cpu, "memory": take_memory, "disk": fill_disk, "hang": hang}
kept: list[bytes] = []


def plant(fault: Callable[[], None]) -> None:
    """Let the fault happen with every answer that is read."""
    read = Worker._read

    def read_badly(worker: Worker, page: FetchedPage) -> Result:
        fault()
        return read(worker, page)

    Worker._read = read_badly  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    plant(FAULTS[sys.argv.pop(1)])
    sys.exit(main())
