"""Several nodes on one real server: they share the work, and lose nothing when one of them or the server dies."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pytest

from gossamer.archive.reader import ArchiveReader
from gossamer.backends.registry import open_catalog, open_shared
from gossamer.cli.main import main
from gossamer.control.record import open_crawl
from gossamer.reading.cluster import SharedReader
from gossamer.sim.web.server_judge import JudgeRules, ServerVerdict
from gossamer.sim.web.web import preset
from tests.e2e.program import start
from tests.servers.kafka_cassandra import KafkaAndCassandra
from tests.servers.postgresql import PostgresServer
from tests.servers.redis import RedisServer
from tests.servers.redis_cluster import RedisClusterServers
from tests.servers.web import RunningWeb

LEASE_S = 3
LONGEST_S = 120.0
POLITENESS_MS = 40
SLACK_S = 0.01  # by which a busy server may be late to note a request
WINDOW_PAGES = 200  # of a commit: what is fetched again after a kill
PLAN = preset("small", seed=11, pages=300, domains_per_address=4)


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


Server: TypeAlias = RedisServer | RedisClusterServers | PostgresServer | KafkaAndCassandra


class Nodes:
    """The nodes of one crawl."""

    lease_s = LEASE_S

    def __init__(
        self,
        web: RunningWeb,
        server: Server,
        folder: Path,
        name: str = "crawl",
        more: Sequence[str] = (),
    ) -> None:
        self._web = web
        self._more = more
        self._folder = folder
        self.name = name
        self.url = server.prepared(name) if isinstance(server, KafkaAndCassandra) else f"{server.url}/{name}"
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.own_options: dict[str, Sequence[str]] = {}  # by node

    def start(self, *names: str) -> None:
        """Start nodes; the very first one starts the crawl."""
        for name in names:
            verb = ["join", self.url] if self.running else self._crawl()
            where = ["--node", name, "-o", str(self._folder / name), "--lease", str(LEASE_S)]
            more = ["--json", "--no-progress", *self.own_options.get(name, ())]
            self.running[name] = start(*verb, *where, *more)

    def _crawl(self) -> list[str]:
        return [*self.options(), "--ledger", self.url]

    def options(self) -> list[str]:
        """Return a command that crawls the web, on one machine."""
        pace = ["--politeness-ms", str(POLITENESS_MS), "--connections", "16", "--max-wait", "5"]
        where = ["--dns", self._web.dns_address, "--allow-network", "127.0.0.0/8"]
        return ["crawl", *self._web.seeds(), "--contact", "t@example.org", *where, *pace, *self._more]

    def end(self, name: str, status: int = 0) -> dict[str, object]:
        """Wait for the end of a node; return its summary."""
        out, err = self.running[name].communicate(timeout=LONGEST_S)
        assert self.running[name].returncode == status, err
        summary: dict[str, object] = json.loads(out.splitlines()[-1]) if out else {}
        return summary

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].communicate()

    def wait_for(self, is_so: Callable[[], object]) -> None:
        until = time.monotonic() + LONGEST_S
        while not is_so():
            assert time.monotonic() < until, "it did not happen"
            time.sleep(0.05)

    def quicken(self, delay_s: float = 0.04) -> None:
        """Change the pace of a crawl: it was slow until now, so that on a busy machine nothing is over too soon."""
        verb("pace", self.url, "*", str(delay_s))

    def log(self) -> Sequence[object]:
        """Return all requests so far, by the servers' own log."""
        return self._web.log()

    def wait_for_requests(self, count: int) -> None:
        self.wait_for(lambda: len(self._web.log()) >= count)

    def check(self, *, max_twice: int = 0) -> None:
        """Compare what the servers saw with what all nodes have stored."""
        verdict = self._verdict()
        assert verdict.missing == 0, verdict.missing_samples
        assert verdict.fetched_twice.count <= max_twice
        assert len(self._stored_once()) == verdict.pages_fetched

    def check_budget(self, pages: int, *, max_more: int) -> None:
        """Check that exactly as many pages are stored as the budget allows, and hardly more were requested."""
        verdict = self._verdict()
        stored = len(self._stored_once())
        assert stored == pages, f"{stored} pages are stored, {pages} were allowed"
        assert verdict.pages_fetched <= pages + max_more, f"{verdict.pages_fetched} pages were fetched"

    def check_catalog(self, url: str, *, max_more: int = 0) -> None:
        """Check that a catalog has every page that is stored, once.

        Of a crawl that ends at its budget it may have pages whose commit was never made: they are not fetched again.
        """
        catalog = open_catalog(url)
        visits = Counter(visit.url for visit in catalog.visits())
        catalog.close()
        assert {page: count for page, count in visits.items() if count > 1} == {}, "pages are in the catalog twice"
        stored = self._stored_once().keys()
        assert not stored - visits.keys(), f"{len(stored - visits.keys())} pages are not in the catalog"
        more = len(visits.keys() - stored)
        assert more <= max_more, f"{more} pages are in the catalog and nowhere else"

    def check_address(self, delay_s: float) -> None:
        """Check the distance between requests to an address, to whichever of its hosts."""
        times: dict[str, list[tuple[float, float]]] = {}
        for request in self._web.log():
            site = self._web.plan.site(request.host)
            address = site.address if site is not None else ""
            times.setdefault(address, []).append((request.arrived_at, request.max_late_s))
        gaps = [
            after - before + max_late_s
            for each in times.values()
            for (before, max_late_s), (after, _) in pairwise(sorted(each))
        ]
        assert min(gaps) >= delay_s - SLACK_S, f"{min(gaps) * 1000:.1f} ms between two requests to an address"

    def _verdict(self) -> ServerVerdict:
        verdict = self._web.judge(JudgeRules(politeness_s=POLITENESS_MS / 1000, slack_s=SLACK_S), self._web.truth())
        assert verdict.is_polite, verdict.render()
        return verdict

    def _stored_once(self) -> Counter[str]:
        stored = self._stored()
        assert {url: count for url, count in stored.items() if count > 1} == {}
        return stored

    def _stored(self) -> Counter[str]:
        ledger = open_shared(self.url)
        pages: Counter[str] = Counter()
        for name in self.running:
            for file, end in ledger.archive_ends(name).items():
                folder = self._folder / name / "archive"
                path = folder / file if (folder / file).exists() else folder / f"{file}.open"
                for record in ArchiveReader(path):
                    is_page = record.type in ("response", "revisit") and record.block[9:12] == b"200"
                    is_robots = record.target.endswith(("/robots.txt", ".xml", ".xml.gz", "/sitemap.txt"))
                    if is_page and record.offset < end and not is_robots:
                        pages[record.target] += 1
        ledger.close()
        return pages


def test_three_nodes_share_a_crawl(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b", "c")
    summaries = [nodes.end(name) for name in ("a", "b", "c")]
    nodes.check()
    assert {summary["finished"] for summary in summaries} == {"exhausted"}
    pages = {summary["pages"] for summary in summaries}
    assert pages == {sum(int(str(summary["node_pages"])) for summary in summaries)}
    nodes.start("d")
    assert nodes.end("d") == {}, "the crawl is over"


def test_a_node_that_is_killed_is_replaced_by_the_others(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b", "c")
    nodes.wait_for_requests(100)
    nodes.kill("b")
    assert nodes.end("a")["finished"] == nodes.end("c")["finished"] == "exhausted"
    nodes.check(max_twice=WINDOW_PAGES)


def test_a_node_that_is_killed_joins_again_with_its_folder(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    nodes.kill("a")
    nodes.start("a")
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check(max_twice=WINDOW_PAGES)


def test_a_node_that_stands_still_longer_than_its_lease_does_no_harm(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    nodes.running["b"].send_signal(signal.SIGSTOP)
    owners = server.client()
    nodes.wait_for(lambda: set(owners.hvals("gossamer:crawl:owners")) == {owners.hget("gossamer:crawl:owners", "0")})
    nodes.running["b"].send_signal(signal.SIGCONT)
    assert nodes.end("a")["finished"] == "exhausted"
    assert nodes.end("b").get("finished", "exhausted") == "exhausted"
    nodes.check(max_twice=WINDOW_PAGES)
    owners.close()


def test_a_node_that_is_told_to_stop_hands_its_shards_over(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(60)
    nodes.running["a"].send_signal(signal.SIGTERM)
    assert nodes.end("a", status=11)["finished"] == "signal"
    assert nodes.end("b")["finished"] == "exhausted"
    nodes.check()


def test_the_server_is_killed_and_comes_back(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    server.stop()
    server.start()
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check(max_twice=2 * WINDOW_PAGES)


def verb(*words: str) -> str:
    """Run a verb in this process: on a busy machine the crawl might be over before another has started."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words)
    assert status == 0, err.getvalue()
    return out.getvalue()


def test_an_operator_sees_the_nodes_sends_one_away_and_stops_the_rest(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(30)
    verb("leave", nodes.url, "--node", "b")
    assert nodes.end("b", status=11)["finished"] == "left"
    status = json.loads(verb("status", nodes.url, "--json"))
    assert [(line["name"], line["is_live"]) for line in status["nodes"]] == [("a", True), ("b", False)]
    load = status["nodes"][0]["load"]
    assert load["private_bytes"] > 0
    assert (status["private_bytes"], status["warnings"]) == (load["private_bytes"], [])
    assert status["bound_by"] == ({load["bound_by"]: 1} if load["bound_by"] else {})
    shown = verb("status", nodes.url)
    assert "node a" in shown
    assert "private, all nodes" in shown
    shared, record = open_crawl(nodes.url)
    with SharedReader(shared, record, nodes.url, {}, time.time()) as reader:
        figures = reader.figures()
    assert figures.private_bytes > 0
    assert figures.rates.keys() == {"10s"}
    assert figures.bound_by is None or figures.bound_by.evidence.startswith("1 of 1 node; ")
    verb("stop", nodes.url)
    assert nodes.end("a", status=11)["finished"] == "stopped"
    nodes.start("a", "b")
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check()


def test_nodes_keep_the_distance_at_an_address_together(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path, more=["--address-politeness-ms", str(POLITENESS_MS), "--max-pages", "150"])
    nodes.start("a", "b", "c")
    nodes.wait_for_requests(50)
    nodes.kill("b")
    assert nodes.end("a")["finished"] == nodes.end("c")["finished"] == "max_pages"
    nodes.check_address(POLITENESS_MS / 1000)
    nodes.check_budget(150, max_more=WINDOW_PAGES)


@pytest.mark.parametrize("after", ["stop", "continue"])
def test_nodes_reach_the_target_of_domains_together(server: RedisServer, tmp_path: Path, after: str) -> None:
    target = ["--target-unique-domains", "12", "--after-target", after]
    with RunningWeb(preset("small", seed=11, pages=120, domains_per_address=4)) as web:
        nodes = Nodes(web, server, tmp_path, more=[*target, "--scope", "any"])
        nodes.start("a", "b")
        ends = [nodes.end("a"), nodes.end("b")]
        fetched = len(web.log())
        if after == "continue":
            nodes.check()
    assert {end["finished"] for end in ends} == {"target_domains" if after == "stop" else "exhausted"}
    assert ends[0]["unique_domains"] >= 12  # type: ignore[operator]
    assert (fetched < 100) == (after == "stop")
