from __future__ import annotations

from array import array
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.rank import (
    HostGraph,
    HostRanks,
    RankRules,
    domain_standings,
    plain_link_rank,
    plain_sort_unique,
    rank_hosts,
    standings,
)
from gossamer.core.url.domains import registrable_domain
from gossamer.foundation.kernel import RankKernel, rank_kernel


@pytest.fixture
def kernel() -> RankKernel:
    if rank_kernel is None:
        pytest.skip("need compiled parts: install a C compiler, then make clean test")
    return rank_kernel


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a system of linear equations by Gaussian elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        best = max(range(column, size), key=lambda number: abs(rows[number][column]))
        rows[column], rows[best] = rows[best], rows[column]
        for number in range(column + 1, size):
            factor = rows[number][column] / rows[column][column]
            if factor:
                rows[number] = [one - factor * two for one, two in zip(rows[number], rows[column], strict=True)]
    found = [0.0] * size
    for column in reversed(range(size)):
        rest = sum(rows[column][other] * found[other] for other in range(column + 1, size))
        found[column] = (rows[column][size] - rest) / rows[column][column]
    return found


def reference(links: dict[str, set[str]], trusted: set[str], rules: RankRules) -> dict[str, float]:
    """Return the rank of domains by the definition: a dense system of equations, solved exactly."""
    hosts = set(links).union(*links.values())
    domains = sorted({registrable_domain(host) for host in hosts})
    place = {domain: number for number, domain in enumerate(domains)}
    size = len(domains)
    chosen = {registrable_domain(host) for host in trusted} or set(domains)
    given = [1 / len(chosen) if domain in chosen else 0.0 for domain in domains]
    matrix = [[float(row == column) for column in range(size)] for row in range(size)]
    for domain in domains:
        own = {host for host in hosts if registrable_domain(host) == domain}
        targets = {registrable_domain(target) for host in own for target in links.get(host, ())}
        others, column = targets - {domain}, place[domain]
        kept = rules.self_share if domain in targets and others else 0.0
        for row in range(size):
            is_target = domains[row] in others
            share = (1 - kept) / len(others) if is_target else (0.0 if others else given[row])
            share += kept if row == column else 0.0
            matrix[row][column] -= rules.damping * share
    return dict(zip(domains, solved(matrix, [(1 - rules.damping) * each for each in given]), strict=True))


def graph_of(links: dict[str, set[str]]) -> HostGraph:
    graph = HostGraph()
    for source, targets in links.items():
        graph.add(source, sorted(targets))
    return graph


def by_domain(graph: HostGraph, ranks: HostRanks) -> dict[str, float]:
    return {registrable_domain(host): ranks.domains[graph.domain_of[number]] for host, number in graph.hosts.items()}


def random_links(seed: int, domains: int = 60) -> dict[str, set[str]]:
    """Return links with everything in them: subdomains, links to oneself, domains without links."""
    draw = Random(seed)
    hosts = [
        f"{prefix}d{number}.com" for number in range(domains) for prefix in ("", "www.", "shop.")[: 1 + number % 3]
    ]
    return {
        host: {hosts[int(len(hosts) * draw.random() ** 2)] for _ in range(draw.randrange(8))} | {host}
        for host in hosts
        if draw.random() < 0.8
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_trusted", [False, True])
@pytest.mark.parametrize("rules", [RankRules(), RankRules(damping=0.5, self_share=0.0), RankRules(self_share=0.6)])
def test_ranks_are_those_of_the_definition(seed: int, has_trusted: bool, rules: RankRules) -> None:
    links = random_links(seed)
    trusted = {"d1.com", "www.d5.com", "d30.com"} if has_trusted else set()
    graph = graph_of(links)
    for host in trusted:
        graph.add_host(host)
    ranks = rank_hosts(graph, trusted, rules)
    expected = reference(links | {host: links.get(host, set()) for host in trusted}, trusted, rules)
    found = by_domain(graph, ranks)
    assert found.keys() == expected.keys()
    for domain, rank in expected.items():
        assert found[domain] == pytest.approx(rank, rel=1e-6, abs=1e-15)
    assert sum(ranks.domains) == pytest.approx(1.0)
    assert sum(ranks.hosts) == pytest.approx(1.0)


def test_c_and_python_agree(kernel: RankKernel) -> None:
    draw = Random(1)
    numbers = array("Q", [draw.choice((draw.getrandbits(64), draw.randrange(50))) for _ in range(5000)])
    copy = array("Q", numbers)
    count = kernel.sort_unique(numbers)
    assert count == plain_sort_unique(copy)
    assert numbers[:count] == copy[:count] == array("Q", sorted(set(copy)))
    size = 200
    links = array("Q", sorted({draw.randrange(size) << 32 | draw.randrange(size) for _ in range(900)}))
    links = array("Q", [link for link in links if link >> 32 != link & 0xFFFFFFFF])
    teleport = array("d", [1 / size]) * size
    kept = array("d", [draw.choice((0.0, 0.2)) for _ in range(size)])
    one, other = array("d", bytes(8 * size)), array("d", bytes(8 * size))
    steps = kernel.link_rank(links, teleport, kept, one, 0.85, 1e-9, 500)
    assert abs(steps - plain_link_rank(links, teleport, kept, other, RankRules())) <= 1
    assert one == pytest.approx(other, rel=1e-8)


def test_sorting_nothing_and_one_number(kernel: RankKernel) -> None:
    for numbers in (array("Q"), array("Q", [7]), array("Q", [7, 7, 7])):
        assert kernel.sort_unique(array("Q", numbers)) == len(set(numbers))


@pytest.mark.parametrize("link", [5 << 32, 1 << 32 | 5, 1 << 32 | 1])
def test_the_kernel_refuses_links_of_nodes_that_do_not_exist(kernel: RankKernel, link: int) -> None:
    shares = array("d", [0.5, 0.5])
    with pytest.raises(ValueError, match="expected links from a node to another one"):
        kernel.link_rank(array("Q", [link]), shares, shares, array("d", shares), 0.85, 1e-9, 5)
    with pytest.raises(ValueError, match="wrong size"):
        kernel.link_rank(array("Q"), shares, array("d", [1.0]), array("d", shares), 0.85, 1e-9, 5)


def test_a_graph_without_links_and_one_without_hosts() -> None:
    assert list(rank_hosts(HostGraph()).hosts) == []
    graph = HostGraph()
    graph.add("a.com", [])
    graph.add("b.com", [])
    assert list(rank_hosts(graph).hosts) == pytest.approx([0.5, 0.5])


def test_repeated_links_do_not_count_and_are_not_stored() -> None:
    graph = HostGraph()
    for _ in range(100):
        graph.add("a.com", ["b.com"] * 3 + ["c.com"])
    assert len(graph.links) == 2
    found = by_domain(graph, rank_hosts(graph))
    assert found["b.com"] == pytest.approx(found["c.com"])


def test_a_domain_is_one_voter_however_many_hosts_it_has() -> None:
    graph = HostGraph()
    for number in range(500):
        graph.add(f"s{number}.farm.com", ["target.com"])
    graph.add("honest.com", ["site.com"])
    found = by_domain(graph, rank_hosts(graph))
    assert found["target.com"] == pytest.approx(found["site.com"])


def test_the_rank_of_a_domain_is_divided_by_who_links_to_its_hosts() -> None:
    graph = HostGraph()
    for number in range(9):
        graph.add(f"d{number}.com", ["www.site.com"])
        graph.add(f"x.d{number}.com", ["www.site.com"])  # the same domain again
    graph.add("d0.com", ["old.site.com"])
    ranks = rank_hosts(graph)
    www, old = (ranks.hosts[graph.hosts[host]] for host in ("www.site.com", "old.site.com"))
    assert www / old == pytest.approx(10 / 2)
    assert www + old == pytest.approx(by_domain(graph, ranks)["site.com"])


def test_links_to_oneself_help_only_so_far() -> None:
    links = {"a.com": {"c.com"}, "b.com": {"c.com"}, "c.com": {"a.com", "b.com"}}
    plain = graph_of(links)
    vain = graph_of(links | {"a.com": {"c.com", "a.com", *(f"s{number}.a.com" for number in range(300))}})
    before = by_domain(plain, rank_hosts(plain))["a.com"]
    after = by_domain(vain, rank_hosts(vain))["a.com"]
    assert before < after < before / (1 - 0.85 * 0.2)


def honest_web(domains: int = 3000, links: int = 20) -> HostGraph:
    """Return a web in which every site links to 20 others, and `site.com` has links from 50 of them."""
    draw = Random(7)
    graph = HostGraph()
    for number in range(domains):
        targets = [f"h{int(domains * draw.random() ** 2)}.com" for _ in range(links - 1)]
        graph.add(f"h{number}.com", [*targets, "site.com" if number % (domains // 50) == 0 else "h1.com"])
    return graph


def farm_ranks(graph: HostGraph, ranks: HostRanks) -> list[float]:
    return [ranks.hosts[number] for host, number in graph.hosts.items() if host.startswith("farm")]


def test_a_thousand_domains_that_link_to_each_other_do_not_outrank_a_site_with_50_independent_links() -> None:
    graph = honest_web()
    farm = [f"farm{number}.com" for number in range(1000)]
    for host in farm:
        graph.add(host, farm)
    graph.add("h500.com", [farm[0]])  # by which the crawl has found it
    ranks = rank_hosts(graph)
    assert max(farm_ranks(graph, ranks)) < ranks.hosts[graph.hosts["site.com"]]


@pytest.mark.parametrize("has_way_back", [False, True])
def test_a_thousand_domains_that_lift_one_target_gain_nothing_if_seeds_are_trusted(has_way_back: bool) -> None:
    graph = honest_web()
    farm = [f"farm{number}.com" for number in range(1000)]
    for host in farm:
        graph.add(host, ["farm-target.com"])
    graph.add("farm-target.com", farm if has_way_back else [])
    for number in (500, 1200, 2900):
        graph.add(f"h{number}.com", ["farm-target.com"])
    site, target = graph.hosts["site.com"], graph.hosts["farm-target.com"]
    everybody = rank_hosts(graph)
    assert everybody.hosts[target] > everybody.hosts[site]  # what plain PageRank does
    trusting = rank_hosts(graph, [f"h{number}.com" for number in range(0, 3000, 30)])
    assert trusting.hosts[target] < trusting.hosts[site]
    assert max(farm_ranks(graph, trusting)) < trusting.hosts[site]


def test_standings_are_the_share_of_hosts_below() -> None:
    assert list(standings(array("d", [0.4, 0.1, 0.2, 0.1, 0.2]))) == [1.0, 0.0, 0.5, 0.0, 0.5]
    assert list(standings(array("d", [0.3]))) == [0.0]
    assert list(standings(array("d"))) == []


def test_a_domain_stands_by_the_rank_of_those_below_it() -> None:
    found = domain_standings(array("d", [0.4, 0.1, 0.2, 0.1, 0.2]))
    assert list(found) == pytest.approx([1.0, 0.0, 0.2 / 0.6, 0.0, 0.2 / 0.6])
    assert list(domain_standings(array("d", [0.3, 0.3 + 1e-12]))) == [0.5, 0.5]
    assert list(domain_standings(array("d", [1.0, 0.0, 0.0]))) == [1.0, 0.0, 0.0]
    assert list(domain_standings(array("d", [1.0]))) == [0.5]
    assert list(domain_standings(array("d"))) == []


@given(st.lists(st.integers(0, 50), min_size=2, max_size=60).filter(any))
def test_standings_of_domains_follow_their_ranks(weights: list[int]) -> None:
    ranks = array("d", [weight / sum(weights) for weight in weights])
    found = domain_standings(ranks)
    assert all(0.0 <= standing <= 1.0 for standing in found)
    for one, other in zip(weights, found, strict=True):
        assert all(standing <= other + 1e-9 for weight, standing in zip(weights, found, strict=True) if weight <= one)


def test_a_thousand_domains_without_rank_below_one_do_not_lift_it() -> None:
    honest = [10.0, 20.0, 30.0, 40.0]
    alone, above_farm = (
        domain_standings(array("d", [rank / sum(ranks) for rank in ranks]))[0]
        for ranks in ([1.0, *honest], [1.0, *honest, *([0.0001] * 1000)])
    )
    assert alone == 0.0
    assert above_farm < 0.002


def test_trusted_hosts_that_nobody_knows_leave_all_equal() -> None:
    graph = graph_of({"a.com": {"b.com"}})
    assert rank_hosts(graph, ["unknown.com"]).hosts == rank_hosts(graph).hosts
