"""Several nodes on a real ledger: kill and stop nodes, kill the servers, or make them lose a second; is anything lost?

    python -m benchmarks.cluster_chaos --rounds 20                        # make clusterchaos
    python -m benchmarks.cluster_chaos --ledger kafka --nodes 3           # or postgresql

A round is one fault. Each crawl of the synthetic web gets a few of them, then ends by itself; the servers' own log, the
rows, all archives and the catalog beside them must agree. Nodes that were killed start again with their folder or stay
away. A crawl of the kind "resized" begins with one node; the faults are nodes that join and leave.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from tests.e2e.test_cluster import LEASE_S, WINDOW_PAGES, Nodes, Server, verb
from tests.servers import engines
from tests.servers.kafka_cassandra import running_both
from tests.servers.postgresql import running_postgres
from tests.servers.redis import running
from tests.servers.web import RunningWeb

from gossamer.sim.web.web import preset

NAMES = ("a", "b", "c", "d")
FAULTS_PER_CRAWL = 4
PAGES = 900
BUDGET = 600
ADDRESS_DELAY_MS = 25
KINDS = {  # of crawls, in turn
    "whole": [],
    "budget": ["--max-pages", str(BUDGET)],
    "address": ["--address-politeness-ms", str(ADDRESS_DELAY_MS)],
    "resized": [],
}
NODE_FAULTS = ("kill", "kill", "replace", "stop")
CUT_BYTES = 200_000  # of the append-only file: about two seconds of a crawl


class Ledger(Struct, frozen=True):
    """Where a crawl is, and what can happen there, besides to nodes."""

    server: Server
    faults: Mapping[str, Callable[[random.Random], None]]
    catalog: str = ""  # which gets the rows of pages as well


@contextmanager
def _redis(folder: Path) -> Iterator[Ledger]:
    program = engines.redis_or_valkey()
    with running(program, folder / "redis", "--appendfsync", "everysec") as server:

        def cut(rng: random.Random) -> None:
            server.stop()
            _cut(server.folder, rng.randint(1, CUT_BYTES))
            server.start()

        yield Ledger(server, {"restart": lambda _: _restart(server), "cut": cut})


@contextmanager
def _postgresql(_: Path) -> Iterator[Ledger]:
    with running_postgres() as server:
        yield Ledger(server, {"restart": lambda _: _restart(server)}, server.url)


@contextmanager
def _kafka(folder: Path) -> Iterator[Ledger]:
    with running_both(folder) as both:
        faults = {"broker": lambda _: _restart(both.kafka), "cassandra": lambda _: _restart(both.cassandra)}
        catalog = f"cassandra://{both.cassandra.address}/catalog"
        verb("init-cluster", catalog)
        yield Ledger(both, faults, catalog)


LEDGERS = {"redis": _redis, "postgresql": _postgresql, "kafka": _kafka}


class _Restartable(Protocol):
    def stop(self) -> None: ...
    def start(self) -> None: ...


def _restart(server: _Restartable) -> None:
    server.stop()
    server.start()


def main() -> int:
    """Run the rounds; return 1 if anything was wrong."""
    engines.allow(*engines.ENGINES)
    parser = argparse.ArgumentParser(prog="cluster_chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", choices=LEDGERS, default="redis")
    parser.add_argument("--nodes", type=int, choices=(2, 3, 4), default=4)
    arguments = parser.parse_args()
    names = NAMES[: arguments.nodes]
    rng, made, number, wrong = random.Random(arguments.seed), 0, 0, 0
    while made < arguments.rounds:
        with tempfile.TemporaryDirectory(prefix="gossamer-cluster-") as scratch:
            count = min(FAULTS_PER_CRAWL, arguments.rounds - made)
            started = time.monotonic()
            with LEDGERS[arguments.ledger](Path(scratch)) as ledger:
                crawl = _Crawl(ledger, Path(scratch), names, rng, arguments.seed + number)
                result = crawl.run(count)
            wrong += result != "ok"
            told = f"{crawl.kind}: {', '.join(crawl.faults)}: {result} ({time.monotonic() - started:.0f} s)"
            print(f"crawl {number}, {told}", flush=True)
        made, number = made + count, number + 1
    verdict = f"{wrong} with problems" if wrong else "nothing lost, nothing doubled, always polite"
    print(f"{made} faults in {number} crawls: {verdict}")
    return 1 if wrong else 0


class _Crawl:
    """One crawl with its faults."""

    def __init__(self, ledger: Ledger, folder: Path, names: Sequence[str], rng: random.Random, seed: int) -> None:
        self._ledger = ledger
        self._folder = folder
        self._names = names
        self._rng = rng
        self._seed = seed
        self.kind = list(KINDS)[seed % len(KINDS)]
        self.faults: list[str] = []

    def run(self, count: int) -> str:
        """Return what was wrong, or ok."""
        pages = 4 * PAGES if self.kind == "resized" else PAGES  # nodes need time to come and go
        plan = preset("small", seed=self._seed, pages=pages, domains_per_address=4)
        with RunningWeb(plan) as web:
            catalog = ["--catalog", self._ledger.catalog] if self._ledger.catalog else []
            nodes = Nodes(web, self._ledger.server, self._folder, more=[*KINDS[self.kind], *catalog])
            try:
                alive = self._resize(nodes) if self.kind == "resized" else self._harm(nodes, count)
                for name in alive:
                    nodes.end(name)
                self._judge(nodes, count)
            except AssertionError as error:
                return f"{str(error)[:400]}"
            finally:
                for process in nodes.running.values():
                    process.kill()
        return "ok"

    def _judge(self, nodes: Nodes, count: int) -> None:
        max_more = (count + 1) * len(self._names) * WINDOW_PAGES
        if self.kind == "budget":
            nodes.check_budget(BUDGET, max_more=max_more)
        else:
            nodes.check(max_twice=max_more)
        if self._ledger.catalog:
            nodes.check_catalog(self._ledger.catalog, max_more=max_more if self.kind == "budget" else 0)
        if self.kind == "address":
            nodes.check_address(ADDRESS_DELAY_MS / 1000)

    def _resize(self, nodes: Nodes) -> list[str]:
        """One node, then all, then one again, while the crawl runs."""
        first, *others = self._names
        nodes.start(first)
        nodes.wait_for_requests(PAGES // 6)
        nodes.start(*others)
        nodes.wait_for(lambda: _live(nodes) == set(self._names))
        nodes.wait_for_requests(len(nodes.log()) + PAGES // 3)
        for name in others:
            verb("leave", nodes.url, "--node", name)
            nodes.end(name, status=11)
        self.faults = [f"1 to {len(self._names)} nodes", f"{len(self._names)} nodes to 1"]
        return [first]

    def _harm(self, nodes: Nodes, count: int) -> list[str]:
        nodes.start(*self._names)
        alive = list(self._names)
        kinds = (*NODE_FAULTS, *self._ledger.faults)
        self.faults = [self._rng.choice(kinds) for _ in range(count)]
        for position, fault in enumerate(self.faults):
            nodes.wait_for_requests((position + 1) * PAGES // (count + 2))
            self._make(fault, nodes, alive)
        return alive

    def _make(self, fault: str, nodes: Nodes, alive: list[str]) -> None:
        name = self._rng.choice(alive)
        match fault:
            case "kill" if len(alive) > 2:
                nodes.kill(name)
                alive.remove(name)
            case "kill" | "replace":
                nodes.kill(name)
                nodes.start(name)
            case "stop":
                nodes.running[name].send_signal(signal.SIGSTOP)
                time.sleep(LEASE_S * self._rng.uniform(0.5, 2.0))
                nodes.running[name].send_signal(signal.SIGCONT)
            case _:
                self._ledger.faults[fault](self._rng)


def _live(nodes: Nodes) -> set[str]:
    status = json.loads(verb("status", nodes.url, "--json"))
    return {node["name"] for node in status["nodes"] if node["is_live"]}


def _cut(folder: Path, count: int) -> None:
    """Cut the end of the append-only file off, as a machine that lost its power does."""
    newest = max(folder.rglob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
    size = newest.stat().st_size
    with newest.open("r+b") as file:
        file.truncate(max(0, size - count))


if __name__ == "__main__":
    sys.exit(main())
