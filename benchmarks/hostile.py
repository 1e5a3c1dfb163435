"""What does the hostile web cost the others? The whole catalogue in one crawl beside healthy hosts.

python benchmarks/hostile.py [PAGES]

Three crawls: healthy hosts alone, the catalogue alone, both at once. The CPU of a healthy page beside the
catalogue is what both took less what the catalogue takes by itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.hostile.crawling import NOT_SEEDS, OPTIONS, WHOLE, whole_server

from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset


def crawl(seeds: list[str], dns_address: str, out: str) -> dict[str, float]:
    options = [*OPTIONS, "--dns", dns_address, "--allow-network", "127.0.0.0/8", "--max-pages", "1000000"]
    done = subprocess.run(
        [sys.executable, "-m", "gossamer.cli.main", "crawl", *seeds, *options, "--politeness-ms", "0", "--out", out],
        check=True,
        capture_output=True,
        text=True,
    )
    summary: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return summary


def show(name: str, summary: dict[str, float]) -> None:
    print(
        f"{name}: {summary['pages']:,} pages, {summary['cpu_seconds']:.2f} s of CPU, {summary['seconds']:.1f} s, "
        f"{summary['peak_rss_bytes'] / 1e6:.0f} MB resident, loop held {summary['loop_stall_p99_ms']:.0f} ms at p99, "
        f"waited {summary['core_wait_p99_ms']:.0f} ms for a core"
    )


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    plan = preset("plain", domains=200, pages=pages, page_tail=1.0)
    with tempfile.TemporaryDirectory() as folder, RunningWeb(plan) as web, whole_server(plan=plan) as server:
        hostile = [f"http://{name}.test:{server.port}/" for name in WHOLE.scripts if name not in NOT_SEEDS]
        alone = crawl(web.seeds(), server.dns_address, f"{folder}/alone")
        catalogue = crawl(hostile, server.dns_address, f"{folder}/catalogue")
        web.forget()
        both = crawl([*web.seeds(), *hostile], server.dns_address, f"{folder}/both")
        coverage = web.judge().coverage
    show("healthy alone", alone)
    show("catalogue alone", catalogue)
    show("both", both)
    start_s = 0.28  # of CPU: what every process takes to begin
    beside = both["cpu_seconds"] - (catalogue["cpu_seconds"] - start_s)
    print(f"CPU of a healthy page beside the catalogue: {beside / alone['cpu_seconds']:.3f} times that without")
    print(f"memory grows by {(both['peak_rss_bytes'] - alone['peak_rss_bytes']) / 1e6:.0f} MB")
    print(f"coverage of healthy hosts: {coverage:.2%}")


if __name__ == "__main__":
    main()
