"""Which sites without end are cut, after how many requests, and is an honest site ever cut? By real crawls.

python -m benchmarks.traps [--pages N] [--python PATH]

Every site of `tests.support.sites.trap_sites` is served over loopback and crawled by the program, into a folder of its
own. An honest site has N pages (2,000); one that turns into a trap is honest for as long. Then a mix: 20 honest hosts
and 5 traps in one crawl, once without a stop and once stopped in the middle and resumed. Prints tables as in
docs/hostile.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import HONEST, TRAPS, Site, turning

from gossamer.core.traps.quarantine import BUDGET

MIXED_HONEST, MIXED_PAGES = 20, 600
MIXED_TRAPS = ("a calendar", "session ids", "facets", "an endless path", "invented items")
OWN_NAMES = {"invented items", "a counter"}  # pages that repeat their own address: under another one they are new
MAX_SHARE = 0.1  # of a crawl's requests, for each trap of a mix
OPTIONS = ("--politeness-ms", "0", "--max-depth", "100000", "--json", "--no-progress")


class Crawled:
    """A crawl folder, and what is known of it."""

    def __init__(self, folder: str, python: str) -> None:
        self._python = python
        self.out = Path(folder) / "out"
        self.summary: dict[str, Any] = {}

    def run(self, *arguments: str) -> None:
        """Crawl, or go on with the crawl."""
        command = [self._python, "-m", "gossamer", "crawl", *arguments, "-o", str(self.out), *OPTIONS]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.summary = msgspec.json.decode(done.stdout.splitlines()[-1])

    def pages_until_held(self) -> int | None:
        """Return how many pages were fetched until a pattern was held; None if none was."""
        pages: int = 0
        for path in sorted((self.out / "events").glob("*.jsonl")):
            for line in path.read_bytes().splitlines():
                event = msgspec.json.decode(line)
                pages += int(event["event"] == "fetch_ok")
                if event["event"] == "trap_quarantined" or event["reason"] == "calendar":
                    return pages
        return None


def crawl(python: str, site: Site, pages: int | None, max_pages: int) -> tuple[int, int | None, dict[str, Any]]:
    """Crawl a site; return the requests in all and until a pattern was held, and the summary."""
    with TemporaryDirectory() as folder, TrapServer(site, pages) as server:
        crawled = Crawled(folder, python)
        crawled.run(server.seed, "-n", str(max_pages))
        return server.requests, crawled.pages_until_held(), crawled.summary


def crawl_mix(python: str, stops_at: int | None) -> tuple[dict[str, int], dict[str, int]]:
    """Crawl honest hosts and traps together; return the requests of each trap, and what is missing of honest hosts."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        honest = [list(HONEST.items())[number % len(HONEST)] for number in range(MIXED_HONEST)]
        sites: list[tuple[str, Site, int | None]] = [(name, site, MIXED_PAGES) for name, site in honest]
        sites += [(name, TRAPS[name], None) for name in MIXED_TRAPS]
        servers = [
            (name, stack.enter_context(TrapServer(site, pages, f"127.0.1.{number}")), site, pages)
            for number, (name, site, pages) in enumerate(sites, 1)
        ]
        crawled, seeds = Crawled(folder, python), [server.seed for _, server, _, _ in servers]
        networks = ("--allow-network", "127.0.1.0/24")
        if stops_at is not None:
            crawled.run(*seeds, *networks, "-n", str(stops_at))
        crawled.run(*seeds, *networks, "-n", "1000000")
        print(
            f"    {crawled.summary['pages']} pages; {_held(crawled.summary)}; finished: {crawled.summary['finished']}"
        )
        missing = {
            name: 1 + len({site.path(number) for number in range(1, pages + 1)}) - len(set(server.paths))
            for name, server, site, pages in servers
            if pages is not None
        }
        return {name: server.requests for name, server, _, pages in servers if pages is None}, missing


def main() -> int:
    """Print a line per site; fail if a trap goes on or an honest site is cut."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--python", default=sys.executable, help="that of another version, to compare with")
    arguments = parser.parse_args()
    pages, python = arguments.pages, arguments.python
    wrong = 0
    for name, site in TRAPS.items():
        requests, held_at, summary = crawl(python, site, None, 4 * BUDGET)
        wrong += requests > BUDGET
        print(
            f"| trap | {name} | held after {held_at} pages, {requests} requests in all | {_held(summary)} |", flush=True
        )
    for name, site in HONEST.items():
        requests, _, summary = crawl(python, site, pages, 10 * pages)
        there_are = 1 + len({site.path(number) for number in range(1, pages + 1)})
        wrong += requests != there_are or bool(summary["held"])
        print(f"| honest | {name} | {requests} of {there_are} pages | {_held(summary)} |", flush=True)
    for name in TRAPS.keys() - OWN_NAMES:
        requests, held_at, summary = crawl(
            python, turning(HONEST["an archive by date"], TRAPS[name], pages), None, 4 * pages
        )
        late = (held_at or requests) - pages
        wrong += requests > pages + BUDGET + 400
        print(
            f"| late | {name} | held {late} pages after it became a trap, {requests} in all | {_held(summary)} |",
            flush=True,
        )
    for stops_at in (None, MIXED_HONEST * MIXED_PAGES // 2):
        print(f"| mix | {MIXED_HONEST} honest hosts, {len(MIXED_TRAPS)} traps | stopped at {stops_at} |", flush=True)
        traps, missing = crawl_mix(python, stops_at)
        allowed = min(BUDGET, MAX_SHARE * (sum(traps.values()) + MIXED_HONEST * MIXED_PAGES))
        wrong += sum(requests > allowed for requests in traps.values()) + any(missing.values())
        print(f"    requests per trap: {traps}; missing of honest hosts: {sum(missing.values())}", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


def _held(summary: dict[str, Any]) -> str:
    return ", ".join(f"{urls} URLs by {rule}" for rule, urls in summary["held"].items()) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
