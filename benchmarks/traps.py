"""Which sites without end are cut, after how many requests, and is an honest site ever cut? By real crawls.

python -m benchmarks.traps [PAGES]

Every site of `gossamer.sim.trap_sites` is served over loopback and crawled by the program, into a folder of its own.
An honest site has PAGES pages (2,000); one that turns into a trap is honest for as long. Prints a table as in
docs/hostile.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from gossamer.sim.trap_server import TrapServer
from gossamer.sim.trap_sites import HONEST, TRAPS, Site, turning

MAX_REQUESTS = 300  # until a trap is cut
MAX_LATE_REQUESTS = 1200  # after a site that was honest for long became one
OPTIONS = ("--politeness-ms", "0", "--max-depth", "100000", "--json", "--no-progress")


def crawl(site: Site, pages: int | None, max_pages: int) -> tuple[int, dict[str, Any]]:
    """Crawl a site; return how many pages were requested, and the summary."""
    with TemporaryDirectory() as folder, TrapServer(site, pages) as server:
        out = str(Path(folder) / "out")
        command = [sys.executable, "-m", "gossamer", "crawl", server.seed, "-o", out, "-n", str(max_pages), *OPTIONS]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return server.requests, msgspec.json.decode(done.stdout.splitlines()[-1])


def main() -> int:
    """Print a line per site; fail if a trap goes on or an honest site is cut."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    wrong = 0
    for name, site in TRAPS.items():
        requests, summary = crawl(site, None, 4 * MAX_REQUESTS)
        wrong += requests > MAX_REQUESTS
        print(f"| trap | {name} | cut after {requests} requests | {_held(summary)} |", flush=True)
    for name, site in HONEST.items():
        requests, summary = crawl(site, pages, 10 * pages)
        there_are = 1 + len({site.path(number) for number in range(1, pages + 1)})
        wrong += requests != there_are or bool(summary["held"])
        print(f"| honest | {name} | {requests} of {there_are} pages | {_held(summary)} |", flush=True)
    for name in TRAPS:
        requests, summary = crawl(turning(HONEST["an archive by date"], TRAPS[name], pages), None, 4 * pages)
        wrong += requests > pages + MAX_LATE_REQUESTS
        print(f"| late | {name} | cut {requests - pages} pages after it became a trap | {_held(summary)} |", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


def _held(summary: dict[str, Any]) -> str:
    return ", ".join(f"{urls} URLs by {rule}" for rule, urls in summary["held"].items()) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
