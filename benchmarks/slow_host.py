"""Does one host with a long delay and a long queue hold up the others? In virtual time and for real.

A host with a delay of 60 s and 100,000 queued URLs stands beside 1,000 fast ones. The pages
that the fast hosts give in the same time are compared with and without it.

    python benchmarks/slow_host.py [--queued N] [--virtual]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.forms import link_to
from gossamer.sim.running import RunningWeb
from gossamer.sim.scenarios import ImaginedHost, Scenario, many_hosts
from gossamer.sim.web.web import preset

SLOW = "slow.test"
HOSTS = 1000
SECONDS = 20.0
SEEDS_PER_COMMIT = 20_000


def imagined(has_slow: bool, queued: int) -> tuple[int, float]:
    web = many_hosts(HOSTS, 20)
    seeds = [f"http://{name}/" for name in web.hosts]
    if has_slow:
        robots = b"User-agent: *\nCrawl-delay: 60\n"
        web.hosts[SLOW] = ImaginedHost(pages=queued, robots=robots, fanout=1, address="127.9.9.9")
        seeds += [f"http://{SLOW}/{n}" for n in range(queued)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = LocalLedger(Path(folder) / "state")
        ledger.open()
        crawl, driver = Scenario(web, seeds[:HOSTS], FrontierLimits(connections=256), ledger=ledger).prepare()
        for start in range(HOSTS, len(seeds), SEEDS_PER_COMMIT):
            crawl.add_seeds([link_to(seed) for seed in seeds[start : start + SEEDS_PER_COMMIT]], driver.now)
            ledger.commit()
        driver.run(until=driver.now + SECONDS)
        ledger.close()
    used_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"virtual time, {len(seeds):,} seeds: at most {used_mb:.0f} MB so far", flush=True)
    pages = sum(request.host != SLOW for request in driver.requests)
    return pages, pages / SECONDS


def real(has_slow: bool, queued: int) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=HOSTS, pages=20 * HOSTS)) as web:
        config = Path(folder) / "crawl.toml"
        slow_host = web.seeds(1)[0].split("/")[2].split(":")[0]
        config.write_text(f'[[pace]]\nhost = "{slow_host}"\ndelay = 60\n' if has_slow else "", "utf-8")
        seeds = Path(folder) / "seeds.txt"
        lines = web.seeds()[1:]
        if has_slow:
            lines += [f"http://{slow_host}:{web.port}/queued/{n}" for n in range(queued)]
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
    parser = argparse.ArgumentParser(prog="slow_host", description=__doc__)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--virtual", action="store_true", help="in virtual time only")
    arguments = parser.parse_args()
    crawls = {"virtual time": imagined} if arguments.virtual else {"virtual time": imagined, "real time": real}
    for name, crawl in crawls.items():
        (without, rate), (beside, rate_beside) = (crawl(has_slow, arguments.queued) for has_slow in (False, True))
        print(
            f"{name}: {without} pages of {HOSTS} fast hosts alone ({rate:.0f}/s), {beside} beside a host "
            f"with a delay of 60 s and {arguments.queued:,} queued URLs ({rate_beside:.0f}/s): "
            f"{beside / without:.3f} times"
        )


if __name__ == "__main__":
    main()
