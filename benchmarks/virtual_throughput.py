"""Does a crawl go faster with each node, up to a hundred? In virtual time, so that one machine is enough.

    python -m benchmarks.virtual_throughput [--nodes 1 100] [--hosts-per-node 200] [--pages-per-host 20]

Every node is bound by its connections: an answer takes 200 ms, a host is asked twice per second at most. The engines,
their commits, leases and messages are real; CPU time is not counted, so this shows whether nodes wait for each other,
not what a machine can do. The rate is that between the first 40 and 70 % of all pages: before that nodes join and take
their shards, which takes about ten seconds, and after it some have nothing left.
"""

from __future__ import annotations

import argparse
import sys
import time

from msgspec import Struct

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.sim.cluster.cluster import ClusterSim
from gossamer.sim.cluster.plan import ClusterPlan, Faults
from gossamer.sim.scenarios import START, Scenario, many_hosts

ANSWER_AFTER_S, DELAY_S = 0.2, 0.5
QUIET = Faults(until_s=0.0, deaths=0.0, pauses=0.0, lost_answers=0.0, cuts=0.0, outages=0.0, roll_backs=0.0)


class Reading(Struct, frozen=True):
    """What one crawl took, in virtual time."""

    nodes: int
    pages: int
    rate: float
    seconds: float  # the whole crawl


def main() -> int:
    """Run the crawls, print a table."""
    parser = argparse.ArgumentParser(prog="virtual_throughput", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--hosts-per-node", type=int, default=200)
    parser.add_argument("--pages-per-host", type=int, default=20)
    parser.add_argument("--connections", type=int, default=32)
    arguments = parser.parse_args()
    readings: list[Reading] = []
    print("| nodes | pages | pages/s | times one | whole crawl, s | computed in, s |\n|--:|--:|--:|--:|--:|--:|")
    for nodes in arguments.nodes:
        began = time.monotonic()
        reading = _measure(nodes, arguments.hosts_per_node * nodes, arguments.pages_per_host, arguments.connections)
        readings.append(reading)
        times = reading.rate / readings[0].rate
        took_s = time.monotonic() - began
        print(f"| {nodes} | {reading.pages:,} | {reading.rate:,.0f} | {times:.1f} | {reading.seconds:.0f} "
              f"| {took_s:.0f} |", flush=True)  # fmt: skip
    return 0


def _measure(nodes: int, hosts: int, pages: int, connections: int) -> Reading:
    web = many_hosts(hosts, pages, latency_s=ANSWER_AFTER_S, cross_links=())

    def scenario() -> Scenario:
        limits = FrontierLimits(max_depth=pages, connections=connections)
        return Scenario(web, [f"http://{name}/" for name in web.hosts], limits, DELAY_S)

    sim = ClusterSim(ClusterPlan(scenario, nodes=nodes, faults=QUIET), seed=1)
    why = sim.run()
    fetched = sorted(request.at for request in sim.requests if not request.url.endswith("/robots.txt"))
    if why != "exhausted" or len(fetched) != hosts * pages:
        raise SystemExit(f"the crawl ended with {why!r} after {len(fetched):,} of {hosts * pages:,} pages")
    first, last = len(fetched) * 4 // 10, len(fetched) * 7 // 10
    rate = (last - first) / (fetched[last] - fetched[first])
    return Reading(nodes, len(fetched), rate, sim.now - START)


if __name__ == "__main__":
    sys.exit(main())
