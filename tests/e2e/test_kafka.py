"""A ledger on a real Kafka and a real Cassandra: what cannot be used is said, and what is missing is created."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.layout import Layout
from gossamer.backends.kafka.setup import create
from tests.e2e.program import run
from tests.e2e.test_cluster import verb
from tests.e2e.test_cluster_errors import crawled, said
from tests.servers import engines
from tests.servers.cassandra import running_cassandra
from tests.servers.kafka import allow, guarded_kafka
from tests.servers.kafka_cassandra import KEYSPACE, KafkaAndCassandra, shared_both
from tests.servers.redis import free_port


@pytest.fixture(scope="module", params=[engines.param("kafka", "cassandra")])
def both() -> KafkaAndCassandra:
    return shared_both()


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


def test_a_user_who_may_not(both: KafkaAndCassandra, tmp_path: Path) -> None:
    settings = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer"}
    with running_cassandra(tmp_path / "guarded", settings) as guarded:
        brokers = both.kafka.address
        line = crawled(f"kafka://{brokers}/x?cassandra=cassandra:wrong@{guarded.address}/k", tmp_path)
        assert "Cassandra refuses the user" in line
        assert "wrong" not in line


def test_a_user_whom_the_brokers_do_not_let_in(both: KafkaAndCassandra, tmp_path: Path) -> None:
    both.prepared(f"there-{os.getpid()}")
    name, rows = f"guarded-{os.getpid()}", f"{both.cassandra.address}/{KEYSPACE}"
    with guarded_kafka(tmp_path / "broker") as (server, address):
        create(place_of(f"kafka://{server.address}/{name}?cassandra={rows}", {}), Layout(8), replication=1)
        wrong, right = (f"kafka://me:{word}-one@{address}/{name}?cassandra={rows}" for word in ("wrong", "right"))
        line = crawled(wrong, tmp_path)
        assert "Kafka refuses the user" in line
        assert "GOSSAMER_KAFKA_PASSWORD" in line
        assert "wrong-one" not in line
        assert f"give one who may read and write {name}.frontier" in crawled(right, tmp_path)
        allow(server, f"{name}.frontier", AclOperation.DESCRIBE)
        assert f"Kafka does not let the user read and write {name}.frontier" in refused(right, tmp_path)
        allow(server, f"{name}.frontier", AclOperation.READ)
        assert f"Kafka does not let the user write {name}.frontier" in refused(right, tmp_path)
        line = said("init-cluster", right.replace(name, "other"))
        assert "Kafka refuses the user" in line


def refused(url: str, folder: Path) -> str:
    """Return the last line of a crawl that must not begin; before it there may be a warning about the servers."""
    done = run(
        "crawl", "http://127.0.0.1:9/", "--contact", "t@example.org", "--ledger", url, "-o", str(folder / "node")
    )
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


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
