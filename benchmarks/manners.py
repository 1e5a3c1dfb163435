"""Is a crawler polite to 200 hosts that answer in every way that robots.txt and pace can meet?

A minute of real time each: with one worker, with two, and killed half-way and taken up again.
The servers' own log decides, then `gossamer audit` says what the crawl's own records show.

    python benchmarks/manners.py [SECONDS] [HOSTS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.sites.manners_server import ManneredServer, offences

POLITENESS_S = 0.3
GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")


def crawl_manners(
    seconds: float, hosts: int, workers: int, *, kill_after_s: float = 0.0
) -> tuple[int, float, list[str], str]:
    """Return the requests made and their seconds, the offences by the servers' log, and what the audit says."""
    with tempfile.TemporaryDirectory() as folder, ManneredServer(hosts, pages=round(seconds / POLITENESS_S)) as server:
        seeds = Path(folder) / "seeds.txt"
        seeds.write_text("\n".join(server.web.seeds()), "utf-8")
        out = Path(folder) / "crawl"
        command = [
            *(*GOSSAMER, "crawl", str(seeds), "--out", str(out), "--dns", server.dns_address),
            *("--allow-network", "127.0.0.0/8", "--politeness-ms", str(round(POLITENESS_S * 1000))),
            *("--workers", str(workers), "--max-wait", "30", "--no-progress", "--max-pages", "1000000"),
        ]
        if kill_after_s:
            process = subprocess.Popen([*command, "--max-time", str(seconds)], stdout=subprocess.DEVNULL)
            time.sleep(kill_after_s)
            process.kill()
            process.wait()
        done = subprocess.run(
            [*command, "--max-time", str(seconds - kill_after_s)], check=False, capture_output=True, text=True
        )
        found = [f"{one.host}{one.path}: {one.what}" for one in offences(server.web, server.seen, POLITENESS_S)]
        if done.returncode:
            found.append(f"exit status {done.returncode}: {done.stderr}")
        said = subprocess.run([*GOSSAMER, "audit", str(out)], check=False, capture_output=True, text=True)
        arrivals = [one.arrived_at for one in server.seen]
        return len(arrivals), max(arrivals) - min(arrivals), found, said.stdout + said.stderr


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    hosts = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    is_clean = True
    for name, workers, kill_after_s in (
        ("1 worker", 1, 0.0),
        ("2 workers", 2, 0.0),
        ("1 worker, killed and resumed", 1, seconds / 3),
        ("2 workers, killed and resumed", 2, seconds / 3),
    ):
        requests, lasted_s, found, audit = crawl_manners(seconds, hosts, workers, kill_after_s=kill_after_s)
        verdict = audit.strip().splitlines()[-1]
        print(
            f"{name}: {requests:,} requests to {hosts} hosts in {lasted_s:.0f} s,"
            f" {len(found)} offences by the servers' log; {verdict}"
        )
        for line in [*found[:10], *([audit] if "NOT" in verdict else [])]:
            print(f"  {line}")
        is_clean = is_clean and not found and "NOT" not in verdict
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
