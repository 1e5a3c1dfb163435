"""What does it cost to look at a crawl? Crawls at full speed by turns, with and without the dashboard and metrics.

    python -m benchmarks.watching [--rounds 3] [--before PYTHONPATH]

The crawl and its dashboard have one core, nginx with the documentation, on several addresses, has the other. While a
crawl is watched, a client reads what the overview reads, and another asks for `/metrics` every second; a tailed one
has its fetches shown as well. Reported are the crawl's CPU time per page by its own summary, and the CPU time of the
page's process after its start as a share of a core. `--before` names the `src` folder of
another version, which is crawled with in turn, without its dashboard: what all telemetry costs.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from benchmarks.peers.measure import pinned
from benchmarks.peers.pages import START, build_root
from benchmarks.peers.rivals import gossamer_command
from benchmarks.peers.server import Nginx, free_port
from msgspec import Struct

CORE = 0
TICKS = os.sysconf("SC_CLK_TCK")
MAX_S = 300.0
ADDRESSES = tuple(f"127.0.0.{number}" for number in range(1, 7))
SHOWN = {"watched": "none", "tailed": "all"}


class Run(Struct, frozen=True):
    """One crawl."""

    cpu_ms_per_page: float
    pages_per_second: float
    page_share: float = 0.0  # of a core, by the page's process


def main() -> int:
    """Crawl by turns, print a table."""
    parser = argparse.ArgumentParser(prog="watching", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", metavar="PYTHONPATH", default="")
    arguments = parser.parse_args()
    kinds = [*(["before"] if arguments.before else []), "alone", "watched", "tailed"]
    runs: dict[str, list[Run]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Nginx(folder, build_root(folder), addresses=ADDRESSES) as server:
            seeds = [f"http://{address}:{server.port}{START}" for address in ADDRESSES]
            for number in range(arguments.rounds):
                for kind in kinds:
                    path = arguments.before if kind == "before" else ""
                    out = folder / f"{kind}-{number}"
                    out.mkdir()
                    runs[kind].append(_crawl(seeds, out, path, SHOWN.get(kind, "")))
                    print(f"round {number + 1}, {kind}: {runs[kind][-1].cpu_ms_per_page:.3f} ms per page", flush=True)
    print("\n| crawl | CPU ms per page | times the first | pages/s | page's process, share of a core |")
    print("|---|--:|--:|--:|--:|")
    first = median(run.cpu_ms_per_page for run in runs[kinds[0]])
    for kind, some in runs.items():
        cpu, rate = (median(getattr(run, field) for run in some) for field in ("cpu_ms_per_page", "pages_per_second"))
        share = median(run.page_share for run in some)
        print(f"| {kind} | {cpu:.3f} | {cpu / first:.3f} | {rate:,.0f} | {100 * share:.1f} % |")
    return 0


def _crawl(seeds: Sequence[str], out: Path, path: str, shown: str) -> Run:
    port = free_port()
    # Some pages link to a port where nobody answers: that host is not waited for.
    more = [*(word for seed in seeds[1:] for word in ("--seeds", seed)), "--max-wait", "1"]
    more += ["--ui", "--metrics-listen", f"127.0.0.1:{port}"] if shown else []
    command = gossamer_command(seeds[0], out, *more)
    environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    with pinned(CORE):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=out, env=environment
        )
    watch = _Watch(process, port, shown) if shown else None
    output, errors = process.communicate(timeout=MAX_S)
    if process.returncode != 0:
        sys.exit(f"watching: the crawl ended with {process.returncode}: {errors.strip()}")
    summary = json.loads(output.splitlines()[-1])
    share = watch.end() if watch is not None else 0.0
    return Run(summary["cpu_ms_per_page"], summary["pages_per_second"], share)


class _Watch:
    """Looks at a crawl as a person and Prometheus would, until it ends."""

    def __init__(self, process: subprocess.Popen[str], port: int, shown: str) -> None:
        assert process.stderr is not None
        address = next(line for line in process.stderr if "token=" in line)
        found = re.search(r"http://([0-9.]+:\d+)/\?token=(\S+)", address)
        assert found is not None
        self._page, self._token = found.groups()
        self._port = port
        self._pid = _dashboard_process(process.pid)
        self._shown = shown
        self._samples: list[tuple[float, float]] = []  # time and CPU time
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._read_events, self._scrape)]
        for thread in self._threads:
            thread.start()

    def _read_events(self) -> None:
        connection = http.client.HTTPConnection(self._page, timeout=MAX_S)
        try:
            connection.request(
                "GET", f"/api/events?show={self._shown}", headers={"Authorization": f"Bearer {self._token}"}
            )
            answer = connection.getresponse()
            while answer.read1(65536):
                pass
        except (OSError, http.client.HTTPException):
            return

    def _scrape(self) -> None:
        while not self._is_over.wait(1.0):
            try:
                with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                    answer.read()
                self._samples.append((time.monotonic(), _cpu_s(self._pid)))
            except (OSError, ValueError):
                return

    def end(self) -> float:
        """Return the share of a core that the page's process used after its start."""
        self._is_over.set()
        (begun, first_s), *_, (ended, last_s) = self._samples[1:]
        return (last_s - first_s) / (ended - begun)


def _dashboard_process(crawl: int) -> int:
    """Return the process of the page: the child of the crawl that is one."""
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        for pid in Path(f"/proc/{crawl}/task/{crawl}/children").read_text().split():
            if b"\0ui\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        time.sleep(0.02)
    sys.exit("watching: the crawl has started no page")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
