"""Does a crawl go faster with each node? One web, bound by the time of its answers, and 1, 2, 4, ... nodes.

    python -m benchmarks.cluster_throughput [--nodes 1 4] [--pages 16000] [--connections 32] [--answer-after 0.2]
    python -m benchmarks.cluster_throughput --nodes 1 2 7 15 20 --pages 10000 --plot workers.svg

Every host has ten pages and is asked at most twice per second; a node has few connections, so that it is bound by them.
All nodes, the server of the ledger and the web share this machine. Pages per second count from the first request
to the last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct
from tests.servers import engines
from tests.servers.redis import RedisServer, free_port, running

PER_HOST = 10
POLITENESS_MS = 500
MANY = ("--max-hosts-per-address", "0", "--max-pages", "100000000")  # all hosts are at one address
REFERENCE = {2: 0.32, 7: 0.60, 15: 0.16, 20: 0.33}  # pages/s of a crawler whose workers fight for locks in Redis


class Reading(Struct, frozen=True):
    """What one crawl took."""

    nodes: int
    pages: int
    seconds: float
    cpu_s: float  # of all nodes
    commands: int  # scripts that Redis was sent: nearly all it is sent
    redis_bytes: int

    @property
    def rate(self) -> float:
        """Pages per second."""
        return self.pages / self.seconds


def main() -> int:
    """Run the crawls, print a table."""
    parser = argparse.ArgumentParser(prog="cluster_throughput", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--pages", type=int, default=16_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--answer-after", type=float, default=0.2)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    program = engines.redis_or_valkey()
    readings: list[Reading] = []
    print("| nodes | pages/s | times one | CPU ms/page | commands/page | bytes in Redis/page | reference, pages/s |")
    print("|---|---|---|---|---|---|---|")
    for count in arguments.nodes:
        scratch = tempfile.TemporaryDirectory(prefix="gossamer-throughput-")
        with scratch as folder, running(program, Path(folder) / "redis") as server:
            reading = _crawl(server, Path(folder), count, arguments)
        readings.append(reading)
        pages, first = reading.pages, readings[0]
        print(
            f"| {count} | {reading.rate:,.0f} | {reading.rate / first.rate:.2f} | {1000 * reading.cpu_s / pages:.2f} | "
            f"{reading.commands / pages:.3f} | {reading.redis_bytes / pages:,.0f} | {REFERENCE.get(count, '')} |",
            flush=True,
        )
    if arguments.plot is not None:
        arguments.plot.write_text(_plot(readings))
    return 0


def _crawl(server: RedisServer, folder: Path, count: int, arguments: argparse.Namespace) -> Reading:
    http, dns = free_port(), free_port()
    seeds = folder / "seeds.txt"
    hosts = arguments.pages // PER_HOST
    seeds.write_text("".join(f"http://h{number}.d{number}.test:{http}/\n" for number in range(hosts)))
    web_command = [sys.executable, "-m", "benchmarks.any_web", str(http), str(dns), "--pages", str(PER_HOST)]
    log = folder / "requests.log"
    with log.open("wb") as out:
        web = subprocess.Popen([*web_command, "--answer-after", str(arguments.answer_after)], stdout=out)
    nodes: list[subprocess.Popen[str]] = []
    try:
        url = f"{server.url}/speed"
        where = ["--dns", f"127.0.0.1:{dns}", "--allow-network", "127.0.0.0/8", "--address-connections", "0", *MANY]
        pace = ["--politeness-ms", str(POLITENESS_MS), "--max-wait", "2"]
        first = ["crawl", "--seeds", str(seeds), "--ledger", url, *where, *pace]
        for number in range(count):
            how = ["join", url] if number else first
            mine = ["--node", f"n{number}", "-o", str(folder / f"n{number}"), "--no-progress", "--json"]
            command = [sys.executable, "-m", "gossamer", *how, *mine, "--connections", str(arguments.connections)]
            nodes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        summaries = [json.loads(node.communicate(timeout=600)[0].splitlines()[-1]) for node in nodes]
    finally:
        web.kill()
        for process in nodes:
            process.kill()
    time.sleep(0.3)  # the last lines of the log
    times = [float(line.split(" ")[0]) for line in log.read_text().splitlines()]
    client = server.client()
    scripts = client.info("commandstats")["cmdstat_evalsha"]["calls"]
    memory = client.info("memory")
    client.close()
    pages = summaries[0]["pages"]
    cpu_s = summaries[0]["cpu_seconds"]  # of all nodes, as every summary has it
    return Reading(count, pages, max(times) - min(times), cpu_s, scripts, memory["used_memory"])


def _plot(readings: list[Reading]) -> str:
    """Return a picture: pages per second by nodes, and the reference."""
    width, height, left, top = 640, 360, 60, 20
    most = max(reading.rate for reading in readings)
    last = max(reading.nodes for reading in readings)

    def place(nodes: float, rate: float) -> str:
        return f"{left + nodes / last * (width - left - 20):.0f},{top + (1 - rate / most) * (height - top - 40):.0f}"

    ours = " ".join(place(reading.nodes, reading.rate) for reading in readings)
    theirs = " ".join(place(nodes, rate) for nodes, rate in REFERENCE.items())
    marks = [(place(reading.nodes, 0).partition(",")[0], reading.nodes) for reading in readings]
    texts = [
        *(f'<text x="{x}" y="{height - 20}" text-anchor="middle">{nodes}</text>' for x, nodes in marks),
        f'<text x="{left}" y="{top}">{most:,.0f} pages/s</text>',
        f'<text x="{width // 2}" y="{height - 4}">nodes</text>',
        f'<text x="{left + 20}" y="{top + 20}" fill="#1f6feb">Gossamer</text>',
        f'<text x="{left + 20}" y="{height - 60}" fill="#d1242f">workers that fight for locks (0.16 to 0.60)</text>',
    ]
    lines = [
        f'<polyline points="{ours}" fill="none" stroke="#1f6feb" stroke-width="2"/>',
        f'<polyline points="{theirs}" fill="none" stroke="#d1242f" stroke-width="2"/>',
    ]
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect {size} fill="white"/>', *lines, *texts, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
