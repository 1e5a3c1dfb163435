"""Four nodes on a real Redis: kill and stop nodes, kill the server, cut its append-only file; is anything lost?

    python -m benchmarks.cluster_chaos --rounds 20        # make clusterchaos

A round is one fault. Each crawl of the synthetic web gets a few of them, then ends by itself; the servers' own log, the
rows and all archives must agree. Nodes that were killed start again with their folder or stay away.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.test_cluster import LEASE_S, WINDOW_PAGES, Nodes
from tests.servers.redis import RedisServer, redis_program, running

from gossamer.sim.running import RunningWeb
from gossamer.sim.web import preset

NAMES = ("a", "b", "c", "d")
FAULTS_PER_CRAWL = 4
PAGES = 900
BUDGET = 600
ADDRESS_DELAY_MS = 25
KINDS = {  # of crawls, in turn
    "whole": [],
    "budget": ["--max-pages", str(BUDGET)],
    "address": ["--address-politeness-ms", str(ADDRESS_DELAY_MS)],
}
CUT_BYTES = 200_000  # of the append-only file: about two seconds of a crawl


def main() -> int:
    """Run the rounds; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="cluster_chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = redis_program()
    if program is None:
        print("no redis-server: make engines", file=sys.stderr)
        return 2
    rng, made, number, wrong = random.Random(arguments.seed), 0, 0, 0
    while made < arguments.rounds:
        with tempfile.TemporaryDirectory(prefix="gossamer-cluster-") as scratch:
            count = min(FAULTS_PER_CRAWL, arguments.rounds - made)
            faults = [rng.choice(("kill", "kill", "replace", "stop", "restart", "cut")) for _ in range(count)]
            started = time.monotonic()
            result = _one_crawl(program, Path(scratch), faults, rng, arguments.seed + number)
            wrong += result != "ok"
            print(f"crawl {number}: {', '.join(faults)}: {result} ({time.monotonic() - started:.0f} s)", flush=True)
        made, number = made + count, number + 1
    verdict = f"{wrong} with problems" if wrong else "nothing lost, nothing doubled, always polite"
    print(f"{made} faults in {number} crawls: {verdict}")
    return 1 if wrong else 0


def _one_crawl(program: str, folder: Path, faults: list[str], rng: random.Random, seed: int) -> str:
    kind = list(KINDS)[seed % len(KINDS)]
    plan = preset("small", seed=seed, pages=PAGES, domains_per_address=4)
    with RunningWeb(plan) as web, running(program, folder / "redis", "--appendfsync", "everysec") as server:
        nodes = Nodes(web, server, folder, more=KINDS[kind])
        nodes.start(*NAMES)
        alive = list(NAMES)
        try:
            for position, fault in enumerate(faults):
                nodes.wait_for_requests((position + 1) * PAGES // (len(faults) + 2))
                _make(fault, nodes, alive, server, rng)
            for name in alive:
                nodes.end(name)
            max_more = (len(faults) + 1) * len(NAMES) * WINDOW_PAGES
            if kind == "budget":
                nodes.check_budget(BUDGET, max_more=max_more)
            else:
                nodes.check(max_twice=max_more)
            if kind == "address":
                nodes.check_address(ADDRESS_DELAY_MS / 1000)
        except AssertionError as error:
            return f"{str(error)[:400]}"
        finally:
            for process in nodes.running.values():
                process.kill()
        return "ok"


def _make(fault: str, nodes: Nodes, alive: list[str], server: RedisServer, rng: random.Random) -> None:
    name = rng.choice(alive)
    match fault:
        case "kill" if len(alive) > 2:
            nodes.kill(name)
            alive.remove(name)
        case "kill" | "replace":
            nodes.kill(name)
            nodes.start(name)
        case "stop":
            nodes.running[name].send_signal(signal.SIGSTOP)
            time.sleep(LEASE_S * rng.uniform(0.5, 2.0))
            nodes.running[name].send_signal(signal.SIGCONT)
        case "restart":
            server.stop()
            server.start()
        case "cut":
            server.stop()
            _cut(server.folder, rng.randint(1, CUT_BYTES))
            server.start()


def _cut(folder: Path, count: int) -> None:
    """Cut the end of the append-only file off, as a machine that lost its power does."""
    newest = max(folder.rglob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
    size = newest.stat().st_size
    with newest.open("r+b") as file:
        file.truncate(max(0, size - count))


if __name__ == "__main__":
    sys.exit(main())
