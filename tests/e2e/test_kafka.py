"""Several nodes on a real Kafka and a real Cassandra: they lose nothing when one dies, and say what cannot be used."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.database import Database
from gossamer.backends.kafka.owners import Owners
from gossamer.sim.running import RunningWeb
from tests.e2e.test_cluster import PLAN, WINDOW_PAGES, Nodes, verb
from tests.e2e.test_cluster_errors import crawled, said
from tests.servers.cassandra import running_cassandra
from tests.servers.kafka_cassandra import KEYSPACE, KafkaAndCassandra, shared_both
from tests.servers.redis import free_port


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


@pytest.fixture(scope="module")
def both() -> KafkaAndCassandra:
    return shared_both()


def nodes_of(web: RunningWeb, both: KafkaAndCassandra, folder: Path, name: str) -> Nodes:
    return Nodes(web, both, folder, f"{name}-{os.getpid()}")


def owners(url: str) -> set[str]:
    database = Database(place_of(url, {}))
    found = {owner.name for owner in Owners(database).read().values()}
    database.close()
    return found


def test_three_nodes_share_a_crawl_that_one_of_them_does_not_survive(
    web: RunningWeb, both: KafkaAndCassandra, tmp_path: Path
) -> None:
    nodes = nodes_of(web, both, tmp_path, "killed")
    nodes.start("a", "b", "c")
    nodes.wait_for_requests(100)
    nodes.kill("b")
    summaries = [nodes.end(name) for name in ("a", "c")]
    nodes.check(max_twice=WINDOW_PAGES)
    assert {summary["finished"] for summary in summaries} == {"exhausted"}


def test_a_node_that_stands_still_longer_than_its_lease_does_no_harm(
    web: RunningWeb, both: KafkaAndCassandra, tmp_path: Path
) -> None:
    nodes = nodes_of(web, both, tmp_path, "still")
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    nodes.running["b"].send_signal(signal.SIGSTOP)
    nodes.wait_for(lambda: owners(nodes.url) == {"a"})
    nodes.running["b"].send_signal(signal.SIGCONT)
    assert nodes.end("a")["finished"] == "exhausted"
    assert nodes.end("b").get("finished", "exhausted") == "exhausted"
    nodes.check(max_twice=WINDOW_PAGES)


def test_verbs_read_and_steer_a_crawl(web: RunningWeb, both: KafkaAndCassandra, tmp_path: Path) -> None:
    nodes = nodes_of(web, both, tmp_path, "steered")
    nodes.start("a", "b")
    nodes.wait_for_requests(50)
    verb("pause", nodes.url)
    assert json.loads(verb("status", nodes.url, "--json"))["state"] == "paused"
    verb("resume", nodes.url)
    verb("leave", nodes.url, "--node", "b")
    assert nodes.end("b", status=11)["finished"] == "left"
    pages = nodes.end("a")["pages"]
    nodes.check()
    assert json.loads(verb("report", nodes.url, "--json"))["summary"]["pages"] == pages
    assert "fetched" in verb("why", nodes.url, web.seeds()[0])


def test_a_crawl_moves_there_and_back(web: RunningWeb, both: KafkaAndCassandra, tmp_path: Path) -> None:
    nodes = nodes_of(web, both, tmp_path, "moved")
    verb(*nodes.options(), "-o", str(tmp_path / "folder"), "--max-pages", "60", "--no-progress")
    verb("migrate", str(tmp_path / "folder"), nodes.url)
    assert json.loads(verb("status", nodes.url, "--json"))["pages"] == 60
    verb("migrate", nodes.url, str(tmp_path / "back"), "--node-folder", f"origin={tmp_path / 'folder'}")
    assert json.loads(verb("status", str(tmp_path / "back"), "--json"))["pages"] == 60
    verb("verify", str(tmp_path / "back"))


# -- what cannot be used --------------------------------------------------------------------------


def test_servers_that_are_not_there(both: KafkaAndCassandra, tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    line = crawled(f"kafka://{both.kafka.address}/x?cassandra={nowhere}/{KEYSPACE}", tmp_path)
    assert f"ledger x: Cassandra at {nowhere} cannot be used now" in line
    both.prepared(f"there-{os.getpid()}")
    url = f"kafka://{nowhere}/unbrokered?cassandra={both.cassandra.address}/{KEYSPACE}"
    assert f"Kafka at {nowhere} cannot be used now" in crawled(url, tmp_path)


def test_a_topic_and_a_keyspace_that_are_not_there(both: KafkaAndCassandra, tmp_path: Path) -> None:
    both.prepared(f"there-{os.getpid()}")
    line = crawled(both.url_of("untopical"), tmp_path)
    assert "there is no topic untopical.frontier" in line
    assert "gossamer init-cluster" in line
    line = crawled(f"kafka://{both.kafka.address}/x?cassandra={both.cassandra.address}/nowhere", tmp_path)
    assert "nowhere" in line
    assert "gossamer init-cluster" in line


def test_a_crawl_that_is_not_there(both: KafkaAndCassandra) -> None:
    url = both.prepared(f"unstarted-{os.getpid()}")
    assert f"no crawl unstarted-{os.getpid()} in this ledger" in said("status", url)


def test_a_crawl_of_another_version(web: RunningWeb, both: KafkaAndCassandra, tmp_path: Path) -> None:
    nodes = nodes_of(web, both, tmp_path, "newer")
    nodes.start("a")
    nodes.wait_for_requests(1)
    verb("stop", nodes.url)
    nodes.end("a", status=11)
    with both.cassandra.cluster() as cluster:
        session = cluster.connect(KEYSPACE)
        session.execute("UPDATE crawls SET format = 99 WHERE crawl = %s IF EXISTS", [nodes.name])
    assert "another version of Gossamer started it" in said("status", nodes.url)


def test_a_user_who_may_not(both: KafkaAndCassandra, tmp_path: Path) -> None:
    settings = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer"}
    with running_cassandra(tmp_path / "guarded", settings) as guarded:
        brokers = both.kafka.address
        line = crawled(f"kafka://{brokers}/x?cassandra=cassandra:wrong@{guarded.address}/k", tmp_path)
        assert "Cassandra refuses the user" in line
        assert "wrong" not in line


# -- init-cluster ---------------------------------------------------------------------------------


def test_what_a_crawl_needs_is_created_once(both: KafkaAndCassandra) -> None:
    url = both.url_of(f"init-{os.getpid()}")
    first = verb("init-cluster", url, "--partitions", "8", "--buckets", "2").splitlines()
    assert f"topic init-{os.getpid()}.frontier: created, partitions: 8, copies of everything: 1" in first
    assert first[-1].endswith("buckets per partition of the topic: 2")
    again = verb("init-cluster", url).splitlines()
    assert f"topic init-{os.getpid()}.frontier: was there, partitions: 8" in again
    assert again[-1] == first[-1]


@pytest.mark.parametrize(("options", "expected"), [
    (["--partitions", "48"], "expected a power of two from 1 to 1,024"),
    (["--partitions", "32"], "has 8 partitions, which cannot change"),
    (["--replication", "3"], "expected at most as many copies"),
    (["--buckets", "1000"], "expected a number from 1 to 256"),
])  # fmt: skip
def test_what_cannot_be_created_is_refused(both: KafkaAndCassandra, options: list[str], expected: str) -> None:
    verb("init-cluster", both.url_of(f"once-{os.getpid()}"), "--partitions", "8")
    name = f"new-{os.getpid()}" if options[0] == "--replication" else f"once-{os.getpid()}"
    assert expected in said("init-cluster", both.url_of(name), *options)
