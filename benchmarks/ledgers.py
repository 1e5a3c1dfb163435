"""What does a shared ledger cost? The same crawl by turns on a folder, Redis, PostgreSQL, and Kafka with Cassandra.

    python -m benchmarks.ledgers [--rounds 3] [--pages 16000] [--only folder,redis]

One node, one worker, small pages of many hosts whose answers take 50 ms. CPU per page is that of the crawl by its own
summary; the CPU of the server is reported apart, with what the server stores per known URL when the crawl is over:
rows, hosts, contents and signatures. Of several rounds the median counts.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

from msgspec import Struct
from tests.servers import engines
from tests.servers.kafka_cassandra import KEYSPACE, running_both
from tests.servers.postgresql import running_postgres
from tests.servers.redis import free_port, running

PAGES_PER_HOST = 10
ANSWER_AFTER_S = "0.05"
MAX_S = 600


class Server(Struct, frozen=True):
    """Where the ledger is, and what it costs there."""

    url: str
    cpu_s: Callable[[], float]
    stored_bytes: Callable[[], int]
    ledger: str = ""  # its URL, if that is not the server's with a name


class Reading(Struct, frozen=True):
    """One crawl."""

    cpu_ms: float  # per page
    pages_per_second: float
    server_cpu_ms: float
    bytes_per_url: float


@contextmanager
def _folder(_: Path) -> Iterator[Server | None]:
    yield None


@contextmanager
def _redis(folder: Path) -> Iterator[Server | None]:
    program = engines.redis_or_valkey()
    with running(program, folder / "redis") as server:
        client = server.client()

        def cpu_s() -> float:
            used = client.info("cpu")
            return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

        yield Server(server.url, cpu_s, lambda: int(client.info("memory")["used_memory"]))


@contextmanager
def _postgresql(_: Path) -> Iterator[Server | None]:
    with running_postgres() as server:

        def stored_bytes() -> int:
            with server.connection() as connection:
                connection.execute("CHECKPOINT")
                found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
                assert found is not None
                return int(found[0])

        yield Server(server.url, server.cpu_s, stored_bytes)


@contextmanager
def _kafka(folder: Path) -> Iterator[Server | None]:
    with running_both(folder) as both:

        def cpu_s() -> float:
            return both.kafka.cpu_s() + both.cassandra.cpu_s()

        calls = count()

        def stored_bytes() -> int:
            if not next(calls):
                return 0  # before the crawl
            both.cassandra.stop(signal.SIGTERM)  # writes what is in its memory
            tables = (both.cassandra.folder / "data" / KEYSPACE).rglob("*.db")
            links = (both.kafka.folder / "logs").rglob("crawl.frontier-*/*.log")
            return sum(file.stat().st_size for file in (*tables, *links))

        yield Server("", cpu_s, stored_bytes, both.prepared("crawl"))


LEDGERS = {"folder": _folder, "redis": _redis, "postgresql": _postgresql, "kafka": _kafka}


def main() -> int:
    """Crawl by turns, print a table."""
    engines.allow(*engines.ENGINES)
    parser = argparse.ArgumentParser(prog="ledgers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=16_000)
    parser.add_argument("--only", default=",".join(LEDGERS))
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    readings: dict[str, list[Reading]] = {name: [] for name in names}
    for number in range(arguments.rounds):
        for name in names:
            readings[name].append(_measure(name, arguments.pages))
            print(f"round {number + 1}, {name}: {readings[name][-1].cpu_ms:.3f} ms per page", flush=True)
    print("\n| ledger | CPU ms per page | times the first | pages/s | server's CPU ms per page | bytes per known URL |")
    print("|---|--:|--:|--:|--:|--:|")
    first = _median(readings[names[0]], "cpu_ms")
    for name, some in readings.items():
        cpu, rate = _median(some, "cpu_ms"), _median(some, "pages_per_second")
        server, stored = _median(some, "server_cpu_ms"), _median(some, "bytes_per_url")
        print(f"| {name} | {cpu:.3f} | {cpu / first:.2f} | {rate:,.0f} | {server:.2f} | {stored:,.0f} |")
    return 0


def _median(readings: Sequence[Reading], field: str) -> float:
    return float(median(getattr(reading, field) for reading in readings))


def _measure(name: str, pages: int) -> Reading:
    with tempfile.TemporaryDirectory(prefix="gossamer-ledgers-") as place, LEDGERS[name](Path(place)) as server:
        folder, http, dns = Path(place), free_port(), free_port()
        seeds = folder / "seeds.txt"
        hosts = range(pages // PAGES_PER_HOST)
        seeds.write_text("".join(f"http://h{number}.d{number}.test:{http}/\n" for number in hosts))
        web = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.any_web", str(http), str(dns), "--pages", str(PAGES_PER_HOST),
             "--answer-after", ANSWER_AFTER_S],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        words = [
            *("crawl", "--seeds", str(seeds), "--dns", f"127.0.0.1:{dns}", "--allow-network", "127.0.0.0/8"),
            *("--address-connections", "0", "--max-hosts-per-address", "0", "--max-pages", "10000000"),
            *("--politeness-ms", "100", "--max-wait", "2", "--connections", "64", "--json", "--no-progress"),
            *("-o", str(folder / "node")),
        ]
        if server is not None:
            words += ["--ledger", server.ledger or f"{server.url}/crawl", "--node", "n0"]
        before_s, before = (0.0, 0) if server is None else (server.cpu_s(), server.stored_bytes())
        try:
            command = [sys.executable, "-m", "gossamer", *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_S, check=True)
        finally:
            web.kill()
        summary = json.loads(done.stdout.splitlines()[-1])
        server_s, stored = (0.0, 0) if server is None else (server.cpu_s() - before_s, server.stored_bytes() - before)
        return Reading(
            summary["cpu_ms_per_page"],
            summary["pages_per_second"],
            1000 * server_s / summary["pages"],
            stored / summary["urls_seen"],
        )


if __name__ == "__main__":
    sys.exit(main())
