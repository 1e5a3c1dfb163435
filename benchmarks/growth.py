"""Does a page cost more, and how much memory does a URL take, as a crawl comes to know more URLs?

A crawl is begun, its ledger is filled up with fetched URLs of other hosts (500 each), and it goes on:
the same pages of the synthetic web on top of 10,000 and of 3,000,000 known URLs, then of 10,000,000.
Each is opened twice, once for next to no pages, so that what opening costs is taken off the cost of a page.

    python benchmarks/growth.py [--pages 20000] [--known 10000,3000000,10000000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.model.records import HostRecord, QueuedUrl, UrlState
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

URLS_PER_HOST = 500
HOSTS_PER_COMMIT = 100
FIRST_PAGES = 10
MAX_TIMES = 1.15
MAX_BYTES_PER_URL = 20
MAX_BYTES = {10_000_000: 700_000_000}
GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")


class Stage(Struct, frozen=True):
    """A crawl that went on with this many known URLs."""

    known: int
    cpu_ms_per_page: float
    open_cpu_s: float
    private_bytes: int
    pages: int


def fill(state: Path, known: int) -> None:
    """Add fetched URLs to a ledger until it knows so many."""
    ledger = LocalLedger(state)
    ledger.open()
    for number in range(known // URLS_PER_HOST):
        host = f"h{number}.test"
        links = [link_to(f"http://{host}/articles/{page}/some-words-in-a-path") for page in range(URLS_PER_HOST)]
        batch = [QueuedUrl(link.url, link.id, host, priority=1, seq=page, depth=1) for page, link in enumerate(links)]
        for url in ledger.admit(batch):
            row = record_of(url)
            row.state, row.status, row.content_type = UrlState.DONE, 200, "text/html"
            ledger.finish(url, row)
        ledger.put_host(HostRecord(host, host, queued=0, pages=URLS_PER_HOST, delay_s=1.0))
        if number % HOSTS_PER_COMMIT == HOSTS_PER_COMMIT - 1:
            ledger.commit()
    ledger.close()


def crawl(web: RunningWeb, out: Path, pages: int) -> dict[str, float]:
    """Crawl, or go on, to so many pages; return the summary."""
    done = subprocess.run(
        [
            *(*GOSSAMER, "crawl", *web.seeds(10), "--out", str(out), "--json", "--no-progress"),
            *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "0"),
            *("--scope", "any", "--max-pages", str(pages)),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    summary: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return summary


def measure(known: int, pages: int) -> Stage:
    """Begin a crawl, fill its ledger, and let it go on."""
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=200, pages=pages)) as web:
        out = Path(folder) / "out"
        begun = crawl(web, out, FIRST_PAGES)
        fill(out / "state", known)
        opened = crawl(web, out, 2 * FIRST_PAGES)
        summary = crawl(web, out, pages)
    open_cpu_s = opened["cpu_seconds"] - begun["cpu_seconds"]
    run_cpu_s = summary["cpu_seconds"] - opened["cpu_seconds"] - open_cpu_s
    count = int(summary["pages"] - opened["pages"])
    return Stage(known, 1000 * run_cpu_s / count, open_cpu_s, int(summary["peak_private_bytes"]), count)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description="What growth costs.")
    parser.add_argument("--pages", type=int, default=20_000, help="crawled on top (20000)")
    parser.add_argument("--known", default="10000,3000000,10000000", help="known URLs, from few to many")
    arguments = parser.parse_args()
    stages = []
    for known in map(int, arguments.known.split(",")):
        begun = time.monotonic()
        stage = measure(known, arguments.pages)
        stages.append(stage)
        print(
            f"{known:>12,} known URLs: {stage.cpu_ms_per_page:.3f} ms of CPU per page over {stage.pages:,} pages, "
            f"{stage.private_bytes / 1e6:.0f} MB private at most, opened with {stage.open_cpu_s:.1f} s of CPU "
            f"(took {time.monotonic() - begun:.0f} s)",
            flush=True,
        )
    verdicts = [judge(stages[0], stage) for stage in stages[1:]]
    return 0 if all(verdicts) else 1


def judge(few: Stage, many: Stage) -> bool:
    """Compare two ends; tell whether all limits are kept."""
    times = many.cpu_ms_per_page / few.cpu_ms_per_page
    bytes_a_url = (many.private_bytes - few.private_bytes) / (many.known - few.known)
    max_bytes = MAX_BYTES.get(many.known)
    is_met = times <= MAX_TIMES and bytes_a_url <= MAX_BYTES_PER_URL
    is_met = is_met and (max_bytes is None or many.private_bytes <= max_bytes)
    limit = f", {many.private_bytes / 1e6:.0f} of {max_bytes / 1e6:.0f} MB" if max_bytes else ""
    print(
        f"from {few.known:,} to {many.known:,}: {times:.2f} times the CPU per page (at most {MAX_TIMES}), "
        f"{bytes_a_url:.1f} bytes private per URL (at most {MAX_BYTES_PER_URL}){limit}: "
        f"{'met' if is_met else 'NOT MET'}"
    )
    return is_met


if __name__ == "__main__":
    sys.exit(main())
