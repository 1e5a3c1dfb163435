"""Nodes with labels on one real server: which node asks for what, and what waits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from gossamer.cli.main import main
from gossamer.sim.web.web import preset
from tests.e2e.test_cluster import Nodes
from tests.servers.mmdb import write_countries
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

# Ids have a random key, so where a host without a label goes is random, too: 18 of them never go to one of two nodes.
PLAN = preset("small", seed=5, pages=180, domains=30, hosts=33, suffixes=("de", "org", "test", "test", "test"))
RULES = ("--region", ".de=eu", "--region", ".org=us")
READERS = (
    ["status"], ["hosts"], ["report"], ["traps"], ["verify"], ["audit"], ["feed"], ["search", "the"],
    ["retry", "--list"], ["export", "--format", "jsonl"], ["export", "--format", "cdxj"],
    ["export", "--format", "links"],
)  # fmt: skip
Output = pytest.CaptureFixture[str]


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


class RegionNodes(Nodes):
    """Nodes with labels. Each writes an event when it sends a request."""

    def label(self, name: str, *labels: str, more: tuple[str, ...] = ()) -> None:
        """Set the labels of a node."""
        given = [word for label in labels for word in ("--label", label)]
        self.own_options[name] = [*given, *more]

    def asked_by(self, *suffixes: str, since: float = 0.0) -> set[str]:
        """Return the nodes that sent requests to hosts with a suffix."""
        found: set[str] = set()
        for name in self.running:
            for path in (self._folder / name / "events").glob("*.jsonl"):
                events = [json.loads(line) for line in path.read_text().splitlines() if '"sent_at":' in line]
                if any(each["sent_at"] > since and each["host"].endswith(suffixes) for each in events):
                    found.add(name)
        return found


def shown(capsys: Output, *words: str, status: int = 0) -> str:
    capsys.readouterr()
    done = main(words)
    out, err = capsys.readouterr()
    assert done == status, err
    return out


def test_hosts_are_fetched_by_the_nodes_with_their_label(
    web: RunningWeb, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    nodes = RegionNodes(web, server, tmp_path, more=[*RULES, "--strict-regions", "--politeness-ms", "2000"])
    nodes.label("a", "eu", more=("--workers", "2"))
    nodes.label("b", "us")
    nodes.start("a", "b")
    nodes.wait_for(lambda: nodes.asked_by(".test") == {"a", "b"})
    nodes.quicken()
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check()
    assert nodes.asked_by(".de") == {"a"}
    assert nodes.asked_by(".org") == {"b"}
    assert nodes.asked_by(".test") == {"a", "b"}, "hosts without a label are shared"
    for words in READERS:
        assert shown(capsys, words[0], nodes.url, *words[1:]) or words[0] in ("traps", "search")
    home = next(url for url in web.seeds() if ".org" in url)
    told = json.loads(shown(capsys, "why", nodes.url, home, "--json"))
    assert (told["state"], told["place"]["label"], told["place"]["stored_on"]) == ("done", "us", "b")
    assert "(label us)" in shown(capsys, "why", nodes.url, home)
    page = json.loads(shown(capsys, "hosts", nodes.url, told["host"], "--json"))
    assert [each["url"] for each in page["requests"] if each["url"] == home]
    urls = {json.loads(line)["url"] for line in shown(capsys, "export", nodes.url, "--format", "jsonl").splitlines()}
    assert home in urls
    assert json.loads(shown(capsys, "why", str(tmp_path / "b"), home, "--json"))["state"] == "done", "the node's folder"


def test_what_has_a_label_waits_for_its_node_if_regions_are_strict(
    web: RunningWeb, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    nodes = RegionNodes(web, server, tmp_path, more=[*RULES, "--strict-regions"])
    nodes.label("a", "eu")
    nodes.label("b", "us", "eu")
    nodes.start("a")
    nodes.wait_for_requests(1)

    def is_waiting() -> bool:
        status = json.loads(shown(capsys, "status", nodes.url, "--json"))
        waiting = status["waiting"].get("us", {}).get("urls", 0)
        return bool(waiting) and waiting == status["urls_queued"]

    nodes.wait_for(is_waiting)
    assert nodes.running["a"].poll() is None, "it waits"
    assert nodes.asked_by(".org") == set()
    assert "shards wait for a node with label us" in shown(capsys, "status", nodes.url)
    home = next(url for url in web.seeds() if ".org" in url)
    told = shown(capsys, "why", nodes.url, home)
    assert "state       queued" in told
    assert "waits for   a node with label us: regions are strict, and no live node has it" in told
    nodes.start("b")
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check()
    assert nodes.asked_by(".org") == {"b"}
    events = "".join(path.read_text() for path in (tmp_path / "a" / "events").glob("*.jsonl"))
    assert "wait for a node with label us; join with --label us to fetch them" in events
    shown(capsys, "verify", nodes.url)


def test_a_node_that_comes_later_takes_over_what_has_its_label(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = RegionNodes(web, server, tmp_path, more=[*RULES, "--politeness-ms", "500"])
    nodes.label("a", "eu")
    nodes.label("b", "us")
    nodes.start("a")
    nodes.wait_for(lambda: nodes.asked_by(".org"))
    nodes.start("b")
    nodes.wait_for(lambda: "b" in nodes.asked_by(".org"))
    before = time.time()
    nodes.quicken()
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check()
    assert "b" not in nodes.asked_by(".de")
    assert "a" not in nodes.asked_by(".org", since=before)


def test_other_rules_than_those_of_the_crawl_are_refused(
    web: RunningWeb, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    nodes = RegionNodes(web, server, tmp_path, more=[*RULES, "--strict-regions"])
    nodes.label("a", "eu")
    nodes.start("a")
    nodes.wait_for_requests(1)
    seed, out = web.seeds()[0], str(tmp_path / "x")
    for words in (["crawl", seed, "--contact", "t@example.org", "--ledger", nodes.url], ["join", nodes.url]):
        shown(capsys, *words, "--region", ".fr=eu", "-o", out, status=2)
        main([*words, "--region", ".fr=eu", "-o", out])
        assert "--region is the same on all nodes; the crawl crawl has region = .de=eu" in capsys.readouterr().err
    main(["stop", nodes.url])
    nodes.end("a", status=11)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--label", "eu"], "--label is for a node of a crawl on many machines; expected --ledger URL as well"),
        (["--region", ".de=eu"], "--region divides a crawl between many machines; expected --ledger URL as well"),
        (["--ledger", "redis://127.0.0.1:1/0/x", "--label", "e u"], "--label: 'e u' is not a label"),
        (["--ledger", "redis://127.0.0.1:1/0/x", "--region", "de=eu"], "expected .de=eu"),
        (["--ledger", "redis://127.0.0.1:1/0/x", "--strict-regions"], "expected --region RULE=LABEL as well"),
    ],
)
def test_bad_options_are_named_in_one_line(words: list[str], expected: str, tmp_path: Path, capsys: Output) -> None:
    assert main(["crawl", "http://127.0.0.1:1/", "-o", str(tmp_path / "x"), *words]) == 2
    err = capsys.readouterr().err
    assert expected in err
    assert err.count("\n") == 1


class Places(NamedTuple):
    """Where the hosts of the web are."""

    hosts: dict[str, str]  # their seeds
    domains: dict[str, str]  # by host
    homes: dict[str, str]  # countries, by domain
    networks: dict[str, str]  # countries, by network

    def rules(self, file: Path) -> list[str]:
        """Write the file of countries; return the options for it."""
        countries = ["--region", "country:DE,AT=eu", "--region", "country:US=us", "--strict-regions"]
        return [*countries, "--geoip", str(write_countries(file, self.networks))]


def places_of(web: RunningWeb) -> Places:
    hosts = {urlsplit(url).hostname or "": url for url in web.seeds()}
    domains = {host: ".".join(host.split(".")[-2:]) for host in hosts}
    homes = {domain: ("DE", "US", "")[number % 3] for number, domain in enumerate(sorted(set(domains.values())))}
    sites = {host: site for host in hosts if (site := PLAN.site(host)) is not None}
    networks = {f"{site.address}/32": homes[domains[host]] for host, site in sites.items() if homes[domains[host]]}
    return Places(hosts, domains, homes, networks)


def test_hosts_are_fetched_by_nodes_in_the_country_of_their_address(
    web: RunningWeb, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    places = places_of(web)
    hosts, homes, domains = places.hosts, places.homes, places.domains
    rules = places.rules(tmp_path / "countries.mmdb")
    nodes = RegionNodes(web, server, tmp_path, more=rules)
    nodes.label("a", "eu", more=("--workers", "2"))
    nodes.label("b", "us")
    nodes.start("a", "b")
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check()
    for domain, country in homes.items():
        if country:
            assert nodes.asked_by(domain) == {{"DE": "a", "US": "b"}[country]}, domain
    for words in READERS:
        assert shown(capsys, words[0], nodes.url, *words[1:]) or words[0] in ("traps", "search")
    listed = [each["name"] for each in json.loads(shown(capsys, "hosts", nodes.url, "--json"))["hosts"]]
    assert sorted(listed) == sorted(hosts), "each host once"
    host = next(host for host in sorted(hosts) if homes[domains[host]] == "US")
    told = json.loads(shown(capsys, "why", nodes.url, hosts[host], "--json"))
    assert (told["state"], told["place"]["label"], told["place"]["stored_on"]) == ("done", "us", "b")
    assert "(label us; its address is in US)" in shown(capsys, "why", nodes.url, hosts[host])
    assert json.loads(shown(capsys, "why", str(tmp_path / "b"), hosts[host], "--json"))["state"] == "done"
    shown(capsys, "join", nodes.url, "--geoip", str(tmp_path / "none"), "-o", str(tmp_path / "c"), status=2)


def test_a_node_that_dies_takes_no_home_of_a_domain_with_it(
    web: RunningWeb, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    places = places_of(web)
    nodes = RegionNodes(web, server, tmp_path, more=places.rules(tmp_path / "countries.mmdb"))
    for name, label in {"a": "eu", "b": "us", "c": "us", "d": "eu"}.items():
        nodes.label(name, label)
    nodes.start("a", "b", "c", "d")
    nodes.wait_for_requests(60)
    nodes.kill("b")
    nodes.kill("d")
    assert nodes.end("a")["finished"] == nodes.end("c")["finished"] == "exhausted"
    nodes.check(max_twice=200)
    for domain, country in places.homes.items():
        if country:
            assert nodes.asked_by(domain) <= {"DE": {"a", "d"}, "US": {"b", "c"}}[country], domain
    shown(capsys, "verify", nodes.url)
