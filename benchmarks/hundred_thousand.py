"""Is a crawl of 100,000 pages clean from end to end, and what does it take?

One worker, the synthetic web, no delay. Then `verify` (archive, index and catalog agree) and
`audit` (robots.txt and pace were kept) must pass.

    python benchmarks/hundred_thousand.py [PAGES]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")


def main() -> int:
    """Crawl, check, print."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=500, pages=pages)) as web:
        out = Path(folder) / "crawl"
        done = subprocess.run(
            [
                *(*GOSSAMER, "crawl", *web.seeds(10), "--out", str(out), "--json", "--no-progress"),
                *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "0"),
                *("--scope", "any", "--max-pages", str(10 * pages), "--max-depth", "1000"),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        summary = json.loads(done.stdout.splitlines()[-1])
        size = sum(path.stat().st_blocks * 512 for path in out.rglob("*") if path.is_file())
        checks = {verb: check(verb, out) for verb in ("verify", "audit")}
    print(
        f"{summary['pages']:,} of {pages:,} pages in {summary['seconds']:.0f} s, "
        f"{summary['pages_per_second']:.0f} pages/s, {summary['cpu_ms_per_page']:.3f} ms of CPU per page, "
        f"{summary['peak_private_bytes'] / 1e6:.0f} MB private, {summary['errors']} errors, "
        f"at p99 loop held {summary['loop_stall_p99_ms']:.0f} ms, waited {summary['core_wait_p99_ms']:.0f} ms "
        f"for a core, commit {summary['commit_p99_ms']:.0f} ms, "
        f"{size / summary['pages'] / 1000:.1f} kB on disk a page"
    )
    for verb, (is_good, text) in checks.items():
        print(f"{verb}: {'passed' if is_good else 'FAILED'}, {text}")
    is_clean = summary["pages"] == pages and not summary["errors"] and all(good for good, _ in checks.values())
    print("clean" if is_clean else "NOT CLEAN")
    return 0 if is_clean else 1


def check(verb: str, out: Path) -> tuple[bool, str]:
    """Run a verb on the crawl; return whether it passed, and its last line."""
    begun = time.monotonic()
    done = subprocess.run([*GOSSAMER, verb, str(out)], check=False, capture_output=True, text=True)
    last = (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()[-1].strip()
    return done.returncode == 0, f"{time.monotonic() - begun:.0f} s: {last}"


if __name__ == "__main__":
    sys.exit(main())
