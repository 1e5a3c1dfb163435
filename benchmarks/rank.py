"""Are the ranks of a million hosts computed within five minutes and 2 GB? And what do link farms gain?

    python benchmarks/rank.py [hosts, 1000000 unless told] [links, 20000000 unless told]

Hosts are on eight tenths as many domains; half of the links lead to an eighth of the hosts. Links arrive page by page,
as names. The memory is the largest that the process had, with the names and what makes the links.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from random import Random
from time import perf_counter

from gossamer.core.rank import HostGraph, rank_hosts, standings
from gossamer.foundation.kernel import rank_kernel

MAX_SECONDS = 300.0
MAX_GIGABYTES = 2.0
LINKS_PER_PAGE = 20
FARM = 1000
INDEPENDENT = 50


def names_of(hosts: int) -> list[str]:
    domains = hosts * 8 // 10
    return [
        f"example-{number}.com" if number < domains else f"www.example-{number % domains}.com"
        for number in range(hosts)
    ]


def pages(names: list[str], links: int) -> Iterator[tuple[str, list[str]]]:
    draw = Random(1).random
    hosts = len(names)
    for _ in range(links // LINKS_PER_PAGE):
        yield names[int(hosts * draw())], [names[int(hosts * draw() ** 3)] for _ in range(LINKS_PER_PAGE)]


def measure(hosts: int, links: int) -> bool:
    names = names_of(hosts)
    making = perf_counter()
    for _ in pages(names, links):
        pass
    making = perf_counter() - making
    graph = HostGraph()
    started = perf_counter()
    for source, targets in pages(names, links):
        graph.add(source, targets)
    different = len(graph.links)
    read_s = perf_counter() - started - making
    started = perf_counter()
    ranks = rank_hosts(graph)
    ranked_s = perf_counter() - started
    started = perf_counter()
    standings(ranks.hosts)
    standing_s = perf_counter() - started
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    total = read_s + ranked_s + standing_s
    print(
        f"{len(graph.hosts):,} hosts, {graph.domain_count:,} domains, {links:,} links, {different:,} of them different"
    )
    print(f"  links read      {read_s:6.1f} s (and {making:.1f} s to make them)")
    print(f"  ranks           {ranked_s:6.1f} s, {ranks.steps} steps; they add up to {sum(ranks.domains):.12f}")
    print(f"  standings       {standing_s:6.1f} s")
    print(f"  all             {total:6.1f} s (at most {MAX_SECONDS:.0f})")
    print(f"  memory          {gigabytes:6.2f} GB (at most {MAX_GIGABYTES:.0f})")
    return total < MAX_SECONDS and gigabytes < MAX_GIGABYTES


def farm_web(*, is_lifting: bool) -> HostGraph:
    """Return an honest web, a site with links from 50 of its domains, and a farm that three of them link to."""
    draw = Random(2).random
    graph = HostGraph()
    size = 20_000
    for number in range(size):
        targets = [f"h{int(size * draw() ** 2)}.com" for _ in range(LINKS_PER_PAGE - 1)]
        graph.add(f"h{number}.com", [*targets, "site.com" if number % (size // INDEPENDENT) == 0 else "h1.com"])
    farm = [f"farm{number}.com" for number in range(FARM)]
    for host in farm:
        graph.add(host, ["farm0.com"] if is_lifting and host != "farm0.com" else farm)
    for number in (500, 1200, 2900):
        graph.add(f"h{number}.com", ["farm0.com"])
    return graph


def measure_farms() -> bool:
    print(f"\na farm of {FARM:,} domains and a site with {INDEPENDENT} independent links; ranks in means of all hosts")
    is_met = True
    for is_lifting, trusted, wanted in ((False, 0, True), (False, 100, True), (True, 0, False), (True, 100, True)):
        graph = farm_web(is_lifting=is_lifting)
        ranks = rank_hosts(graph, [f"h{number * 150}.com" for number in range(trusted)])
        farm = max(ranks.hosts[number] for host, number in graph.hosts.items() if host.startswith("farm"))
        site, mean = ranks.hosts[graph.hosts["site.com"]], 1 / len(graph.hosts)
        kind = "all lift one of them" if is_lifting else "all link to each other"
        given = f"{trusted} seeds trusted" if trusted else "all given the same"
        print(f"  {kind:24}{given:20} best of the farm {farm / mean:8.2f}   the site {site / mean:6.2f}")
        is_met = is_met and (farm < site) == wanted
    return is_met


def main() -> int:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    links = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000_000
    print("with the compiled kernel" if rank_kernel is not None else "without the compiled kernel")
    is_met = measure(hosts, links)
    is_met = measure_farms() and is_met
    print("met" if is_met else "NOT MET")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
