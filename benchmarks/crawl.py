"""What does a page cost? A crawl of the synthetic web without delay, one worker and two.

python benchmarks/crawl.py [PAGES]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset


def crawl(web: RunningWeb, out: str, *more: str) -> dict[str, float]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gossamer.cli.main", "crawl", *web.seeds(10), "--out", out, "--json"),
            *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "0"),
            *("--scope", "any", "--max-pages", "1000000", *more),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    summary: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return summary


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for workers in ("1", "2"):
        with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=200, pages=pages)) as web:
            summary = crawl(web, f"{folder}/out", "--workers", workers)
        print(
            f"crawl with {workers} worker(s): {summary['pages']:,} pages, {summary['pages_per_second']:.0f} pages/s, "
            f"{summary['cpu_ms_per_page']:.3f} ms of CPU per page, "
            f"{summary['peak_private_bytes'] / 1e6:.0f} MB private, "
            f"at p99 loop held {summary['loop_stall_p99_ms']:.0f} ms, waited {summary['core_wait_p99_ms']:.0f} ms "
            f"for a core, commit {summary['commit_p99_ms']:.0f} ms"
        )


if __name__ == "__main__":
    main()
