"""Ranks of a real crawl: from the links that an export has, equal to the exact solution."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from gossamer.core.rank import HostGraph, RankRules
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.handover.export.export import export
from gossamer.handover.rank.ranking import CrawlRanks, RankedHost, RankFigures, read_links
from gossamer.reading.folder import CrawlReader
from tests.core.test_rank import reference
from tests.reading.folders import Crawled, finished, small_web

__all__ = ["finished", "small_web"]


def exported_links(crawled: Crawled, out: Path) -> dict[str, set[str]]:
    """Return the hosts that each host links to, by the export and the catalog."""
    with CrawlReader(crawled.path) as crawl:
        export(crawl, "links", out)
        export(crawl, "jsonl", out.with_suffix(".pages"))
    pages = [json.loads(line)["url"] for line in out.with_suffix(".pages").read_bytes().splitlines()]
    links: dict[str, set[str]] = {host_of(url): set() for url in pages}
    for line in map(json.loads, out.read_bytes().splitlines()):
        if not line["nofollow"]:
            links[host_of(line["from"])].add(host_of(line["to"]))
    for url, row in crawled.rows().items():
        if row.redirect_to and row.source != 5:
            links.setdefault(host_of(url), set()).add(host_of(row.redirect_to))
    return links


def test_ranks_are_the_exact_solution_for_the_exported_links(finished: Crawled, tmp_path: Path) -> None:
    links = exported_links(finished, tmp_path / "links.jsonl")
    with CrawlReader(finished.path) as crawl:
        found = read_links(crawl)
    some = sorted(found.seeds)[:2]
    for trusted in ([], some):
        expected = reference(links, set(trusted), RankRules())
        ranks = {one.domain: one for one in CrawlRanks(found.graph, trusted).best(0)}
        assert ranks.keys() == expected.keys()
        assert len(ranks) > 5
        for domain, rank in expected.items():
            assert ranks[domain].rank == pytest.approx(rank, rel=1e-6, abs=1e-15)
            linking = {
                registrable_domain(source)
                for source, targets in links.items()
                if domain in map(registrable_domain, targets)
            }
            assert ranks[domain].domains_in == len(linking - {domain})


def test_seeds_are_those_of_the_crawl(finished: Crawled) -> None:
    with CrawlReader(finished.path) as crawl:
        found = read_links(crawl)
    assert found.seeds == {registrable_domain(host_of(url)) for url, row in finished.rows().items() if row.source == 0}
    assert found.pages == finished.summary.pages
    assert found.known([*found.seeds, "nobody.example"]) <= found.seeds


def test_what_is_stored_are_all_hosts_best_first(tmp_path: Path) -> None:
    graph = HostGraph()
    graph.add("a.com", ["www.b.com", "shop.b.com", "c.com"])
    graph.add("c.com", ["www.b.com"])
    figures = RankFigures(computed_at="2026-01-01", pages=2, links=4, domain_links=3, hosts=4, domains=3)
    CrawlRanks(graph, ["a.com"]).store(figures, tmp_path / "ranks.jsonl.gz")
    first, *lines = gzip.decompress((tmp_path / "ranks.jsonl.gz").read_bytes()).splitlines()
    assert msgspec.json.decode(first, type=RankFigures) == figures
    hosts = [msgspec.json.decode(line, type=RankedHost) for line in lines]
    exact = reference({"a.com": {"www.b.com", "shop.b.com", "c.com"}, "c.com": {"www.b.com"}}, {"a.com"}, RankRules())
    assert [host.rank for host in hosts] == sorted((host.rank for host in hosts), reverse=True)
    assert sum(host.rank for host in hosts) == pytest.approx(1.0)
    by_name = {host.host: host for host in hosts}
    assert by_name.keys() == {"a.com", "www.b.com", "shop.b.com", "c.com"}
    assert all(host.domain_rank == pytest.approx(exact[host.domain], rel=1e-6) for host in hosts)
    assert [by_name[name].domains_in for name in ("a.com", "www.b.com", "shop.b.com", "c.com")] == [0, 2, 2, 1]
    assert (hosts[0].standing, hosts[-1].standing) == (1.0, 0.0)
    assert [path.name for path in tmp_path.iterdir()] == ["ranks.jsonl.gz"]
