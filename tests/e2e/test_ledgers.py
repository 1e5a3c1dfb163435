"""Several nodes on a real ledger: they lose nothing when one dies, and verbs read, steer and move the crawl.

The same on every ledger; those on Redis are in `test_cluster*`, with more faults.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.owners import Owners
from tests.e2e.test_cluster import PLAN, WINDOW_PAGES, Nodes, verb
from tests.e2e.test_cluster_errors import said
from tests.servers import engines
from tests.servers.kafka_cassandra import KEYSPACE, KafkaAndCassandra, shared_both
from tests.servers.postgresql import PostgresServer, running_postgres
from tests.servers.web import RunningWeb

RANKED_PAGES = 50


class Place(Protocol):
    """A ledger on servers that run, and what a test must know of its tables."""

    def nodes(self, web: RunningWeb, folder: Path, name: str) -> Nodes:
        """Return the nodes of a new crawl."""
        ...

    def url_without_crawl(self) -> str:
        """Return the URL of a crawl `nowhere` that nobody has started."""
        ...

    def owners(self, nodes: Nodes) -> set[str]:
        """Return the nodes that own shards."""
        ...

    def make_newer(self, nodes: Nodes) -> None:
        """Give a crawl a format that this version does not know."""
        ...


class OnPostgres:
    """PostgreSQL: a schema per crawl."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def nodes(self, web: RunningWeb, folder: Path, name: str) -> Nodes:
        return Nodes(web, self._server, folder, name)

    def url_without_crawl(self) -> str:
        return f"{self._server.url}/nowhere"

    def owners(self, nodes: Nodes) -> set[str]:
        with self._server.connection() as connection:
            query = f'SELECT DISTINCT name FROM "gossamer_{nodes.name}".owners'
            return {owner for (owner,) in connection.execute(query)}

    def make_newer(self, nodes: Nodes) -> None:
        with self._server.connection() as connection:
            connection.execute(f'UPDATE "gossamer_{nodes.name}".crawl SET format = 99')


class OnKafka:
    """Kafka and Cassandra: names that no other test run uses, since its servers are shared."""

    def __init__(self, both: KafkaAndCassandra) -> None:
        self._both = both

    def nodes(self, web: RunningWeb, folder: Path, name: str) -> Nodes:
        return Nodes(web, self._both, folder, f"{name}-{os.getpid()}")

    def url_without_crawl(self) -> str:
        return self._both.prepared("nowhere")

    def owners(self, nodes: Nodes) -> set[str]:
        database = Keyspace(place_of(nodes.url, {}))
        found = {owner.name for owner in Owners(database).read().values()}
        database.close()
        return found

    def make_newer(self, nodes: Nodes) -> None:
        with self._both.cassandra.cluster() as cluster:
            session = cluster.connect(KEYSPACE)
            session.execute("UPDATE crawls SET format = 99 WHERE crawl = %s IF EXISTS", [nodes.name])


@pytest.fixture(
    scope="module",
    params=[
        engines.param("postgresql"),
        engines.param("kafka", "cassandra"),
    ],
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "kafka":
        yield OnKafka(shared_both())
        return
    with running_postgres() as server:
        yield OnPostgres(server)


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


def test_three_nodes_share_a_crawl_that_one_of_them_does_not_survive(
    web: RunningWeb, place: Place, tmp_path: Path
) -> None:
    nodes = place.nodes(web, tmp_path, "killed")
    nodes.start("a", "b", "c")
    nodes.wait_for_requests(100)
    nodes.kill("b")
    summaries = [nodes.end(name) for name in ("a", "c")]
    nodes.check(max_twice=WINDOW_PAGES)
    assert {summary["finished"] for summary in summaries} == {"exhausted"}


def test_a_node_that_stands_still_longer_than_its_lease_does_no_harm(
    web: RunningWeb, place: Place, tmp_path: Path
) -> None:
    nodes = place.nodes(web, tmp_path, "still")
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    nodes.running["b"].send_signal(signal.SIGSTOP)
    nodes.wait_for(lambda: place.owners(nodes) == {"a"})
    nodes.running["b"].send_signal(signal.SIGCONT)
    assert nodes.end("a")["finished"] == "exhausted"
    assert nodes.end("b").get("finished", "exhausted") == "exhausted"
    nodes.check(max_twice=WINDOW_PAGES)


def test_verbs_read_and_steer_a_crawl(web: RunningWeb, place: Place, tmp_path: Path) -> None:
    nodes = place.nodes(web, tmp_path, "steered")
    nodes.start("a", "b")
    nodes.wait_for_requests(50)
    verb("pause", nodes.url)
    assert json.loads(verb("status", nodes.url, "--json"))["state"] == "paused"
    verb("resume", nodes.url)
    # Committed pages are ranked; a few of them may not link to each other's domains.
    nodes.wait_for(lambda: json.loads(verb("status", nodes.url, "--json"))["pages"] >= RANKED_PAGES)
    assert json.loads(verb("rank", nodes.url, "--json"))["computed_from"]["pages_missing"] == 0
    verb("leave", nodes.url, "--node", "b")
    assert nodes.end("b", status=11)["finished"] == "left"
    pages = nodes.end("a")["pages"]
    nodes.check()
    assert json.loads(verb("report", nodes.url, "--json"))["summary"]["pages"] == pages
    assert "fetched" in verb("why", nodes.url, web.seeds()[0])
    hosts = json.loads(verb("hosts", nodes.url, "--json"))["hosts"]
    assert len({host["rank"] for host in hosts}) > 1


def test_a_crawl_moves_there_and_back(web: RunningWeb, place: Place, tmp_path: Path) -> None:
    nodes = place.nodes(web, tmp_path, "moved")
    verb(*nodes.options(), "-o", str(tmp_path / "folder"), "--max-pages", "60", "--no-progress")
    verb("migrate", str(tmp_path / "folder"), nodes.url)
    assert json.loads(verb("status", nodes.url, "--json"))["pages"] == 60
    verb("migrate", nodes.url, str(tmp_path / "back"), "--node-folder", f"origin={tmp_path / 'folder'}")
    assert json.loads(verb("status", str(tmp_path / "back"), "--json"))["pages"] == 60
    verb("verify", str(tmp_path / "back"))


def test_a_crawl_that_is_not_there(place: Place) -> None:
    assert "no crawl nowhere in this ledger" in said("status", place.url_without_crawl())


def test_a_crawl_of_another_version(web: RunningWeb, place: Place, tmp_path: Path) -> None:
    nodes = place.nodes(web, tmp_path, "newer")
    nodes.start("a")
    nodes.wait_for_requests(1)
    verb("stop", nodes.url)
    nodes.end("a", status=11)
    place.make_newer(nodes)
    assert "another version of Gossamer started it" in said("status", nodes.url)
