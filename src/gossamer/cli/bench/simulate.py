"""`gossamer simulate`: how long would a crawl of this shape take? The real engine in virtual time."""

from __future__ import annotations

import argparse
from collections import Counter

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder
from gossamer.sim.scenarios import Scenario, many_hosts
from gossamer.telemetry.text import count, duration, plural


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", type=int, default=1000, metavar="N", help="hosts (1000)")
    parser.add_argument("--pages", type=int, default=50, metavar="N", help="pages per host (50)")
    parser.add_argument("--latency-ms", type=float, default=200, metavar="N", help="of an answer (200)")
    parser.add_argument("--politeness-ms", type=float, default=1000, metavar="N", help="pace (1000)")
    parser.add_argument("-c", "--connections", type=int, default=256, metavar="N", help="concurrent requests (256)")
    parser.add_argument("--max-pages", "-n", type=int, metavar="N", help="stop after N pages")
    parser.add_argument("--slow-hosts", type=int, default=0, metavar="N", help="hosts with a Crawl-delay of 60 s")
    parser.add_argument("--dead-hosts", type=int, default=0, metavar="N", help="hosts that answer 500")
    parser.add_argument("--order", choices=[order.value for order in QueueOrder], default="breadth", help="(breadth)")


def run(arguments: argparse.Namespace) -> int:
    web = many_hosts(arguments.hosts, arguments.pages, latency_s=arguments.latency_ms / 1000)
    names = list(web.hosts)
    for name in names[: arguments.slow_hosts]:
        web.hosts[name].robots = b"User-agent: *\nCrawl-delay: 60\n"
    for name in names[arguments.slow_hosts : arguments.slow_hosts + arguments.dead_hosts]:
        web.hosts[name].status = lambda _url, _now: 500
    scenario = Scenario(
        web,
        [f"http://{name}/" for name in names],
        FrontierLimits(connections=arguments.connections, max_pages=arguments.max_pages),
        delay_s=arguments.politeness_ms / 1000,
        order=QueueOrder(arguments.order),
    )
    why, crawl, driver = scenario.run()
    seconds = driver.now - scenario.started_at
    busiest = Counter(request.host for request in driver.requests).most_common(1)
    print(f"pages        {count(crawl.totals.pages)}")
    print(f"requests     {count(len(driver.requests))}")
    print(f"it would take {duration(seconds)}: {crawl.totals.pages / seconds if seconds else 0:.1f} pages/s")
    print(f"finished     {why}; {plural(crawl.frontier.counts.queued, 'URL')} left")
    if busiest:
        print(f"bound by     {busiest[0][0]}: {plural(busiest[0][1], 'request')}, one at a time")
    return 0
