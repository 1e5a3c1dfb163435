"""How long does a first pass of 10,000 registrable domains take, politely, with one worker?

500 seeds in a CSV, one second between two requests to a host, robots.txt first. The servers'
own log decides whether it was polite.

    python benchmarks/first_pass.py [DOMAINS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from gossamer.sim.running import RunningWeb
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset


def main() -> None:
    target = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("broad")) as web:
        csv = Path(folder) / "domains.csv"
        csv.write_text("rank,domain\n" + "".join(f"{n},{seed}\n" for n, seed in enumerate(web.seeds(500), 1)), "utf-8")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "gossamer.cli.main", "crawl", "--domain-seeds-csv", str(csv)),
                *("--target-unique-domains", str(target), "--out", f"{folder}/out", "--json"),
                *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8"),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        summary = json.loads(done.stdout.splitlines()[-1])
        report = web.judge(JudgeRules(politeness_s=1.0, slack_s=0.002, scope="any", first_seeds=500))
    print(
        f"first pass: {summary['unique_domains']:,} domains in {summary['seconds']:.1f} s, "
        f"{summary['fetches']:,} requests, "
        f"{summary['cpu_ms_per_page']:.2f} ms of CPU a domain, loop held {summary['loop_stall_p99_ms']:.0f} ms at p99, "
        f"waited {summary['core_wait_p99_ms']:.0f} ms for a core; "
        f"by the servers' log {'polite' if report.is_polite else 'NOT POLITE'}, least gap {report.min_gap_s:.3f} s"
    )


if __name__ == "__main__":
    main()
