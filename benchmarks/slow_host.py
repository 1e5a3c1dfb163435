"""Does one host with a long delay and a long queue hold up the others? In virtual time and for real.

A host with a delay of 60 s and 100,000 queued URLs stands beside 1,000 fast ones. The pages
that the fast hosts give in the same time are compared with and without it.

    python benchmarks/slow_host.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from gossamer.core.limits import FrontierLimits
from gossamer.sim.running import RunningWeb
from gossamer.sim.scenarios import ImaginedHost, Scenario, many_hosts
from gossamer.sim.web import preset

SLOW = "slow.test"
HOSTS = 1000
QUEUED = 100_000
SECONDS = 20.0


def imagined(has_slow: bool) -> tuple[int, float]:
    web = many_hosts(HOSTS, 20)
    seeds = [f"http://{name}/" for name in web.hosts]
    if has_slow:
        robots = b"User-agent: *\nCrawl-delay: 60\n"
        web.hosts[SLOW] = ImaginedHost(pages=QUEUED, robots=robots, fanout=1, address="127.9.9.9")
        seeds += [f"http://{SLOW}/{n}" for n in range(QUEUED)]
    _, driver = Scenario(web, seeds, FrontierLimits(connections=256)).prepare()
    driver.run(until=driver.now + SECONDS)
    pages = sum(request.host != SLOW for request in driver.requests)
    return pages, pages / SECONDS


def real(has_slow: bool) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=HOSTS, pages=20 * HOSTS)) as web:
        config = Path(folder) / "crawl.toml"
        slow_host = web.seeds(1)[0].split("/")[2].split(":")[0]
        config.write_text(f'[[pace]]\nhost = "{slow_host}"\ndelay = 60\n' if has_slow else "", "utf-8")
        seeds = Path(folder) / "seeds.txt"
        lines = web.seeds()[1:]
        if has_slow:
            lines += [f"http://{slow_host}:{web.port}/queued/{n}" for n in range(QUEUED)]
        seeds.write_text("\n".join(lines) + "\n", "utf-8")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "gossamer.cli.main", "crawl", str(seeds), "--out", f"{folder}/out", "--json"),
                *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--config", str(config)),
                *("--politeness-ms", "2000", "--max-time", str(SECONDS), "--scope", "host", "-n", "1000000"),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        summary = json.loads(done.stdout.splitlines()[-1])
    return summary["pages"], summary["pages_per_second"]


def main() -> None:
    for name, crawl in (("virtual time", imagined), ("real time", real)):
        (without, rate), (beside, rate_beside) = crawl(False), crawl(True)
        print(
            f"{name}: {without} pages of {HOSTS} fast hosts alone ({rate:.0f}/s), {beside} beside a host "
            f"with a delay of 60 s and {QUEUED:,} queued URLs ({rate_beside:.0f}/s): {beside / without:.3f} times"
        )


if __name__ == "__main__":
    main()
