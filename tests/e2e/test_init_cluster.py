"""`gossamer init-cluster` on real servers: what it creates, that it can be repeated, and what it refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.catalog_places import CassandraPlace, PostgresPlace, places_of
from tests.e2e.program import crawl_options, run
from tests.servers import engines
from tests.servers.cassandra import shared_cassandra
from tests.servers.kafka import shared_kafka
from tests.servers.postgresql import PostgresServer, running_postgres
from tests.servers.redis import free_port, running
from tests.servers.topics import new_topic, read_topic
from tests.servers.web import RunningWeb


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=60, slow=0.0)) as web:
        yield web


@pytest.fixture(scope="module", params=[engines.param("postgresql")])
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


def made(*words: str) -> list[str]:
    done = run("init-cluster", *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def refused(*words: str) -> str:
    done = run("init-cluster", *words)
    assert done.returncode == 2, done.stdout
    (line,) = done.stderr.splitlines()
    return line


def crawled(web: RunningWeb, out: Path, *more: str) -> None:
    done = run("crawl", *web.seeds(), *crawl_options(web, out, 20), "-n", "10", *more)
    assert done.returncode == 0, done.stderr


@pytest.mark.engine("cassandra")
def test_a_catalog_in_cassandra(web: RunningWeb, tmp_path: Path) -> None:
    server, name = shared_cassandra(), f"made_{os.getpid()}"
    url = f"cassandra://{server.address}/{name}"
    first = made(url, "--buckets", "3")
    assert first[0].startswith(f"Cassandra 5.0.6 at {url}")
    assert first[1:] == [
        f"keyspace {name}: created, 1 copy of everything",
        "tables of the catalog: created, 3 buckets per host",
    ]
    assert made(url)[1:] == [
        f"keyspace {name}: was there, 1 copy of everything",
        "tables of the catalog: were there, 3 buckets per host",
    ]
    assert "its tables have 3 buckets, which cannot change" in refused(url, "--buckets", "4")
    assert "expected --replication 1, or ALTER KEYSPACE first" in refused(url, "--replication", "2")
    assert "there are 1 servers" in refused(url + "_other", "--replication", "2")
    crawled(web, tmp_path / "named", "--catalog", url)
    place = CassandraPlace(server, name)
    assert {row["crawl"] for row in place.rows("pages")} == {"named"}
    assert {row["bucket"] for row in place.query("SELECT bucket FROM pages_by_host")} <= {0, 1, 2}


@pytest.mark.engine("kafka")
def test_the_topic_of_a_feed(web: RunningWeb, tmp_path: Path) -> None:
    kafka = shared_kafka()
    url = f"kafka://{kafka.address}/made-{os.getpid()}"
    name = url.rpartition("/")[2]
    line = f"topic {name} at {url}: created, 5 partitions, 1 copies of everything"
    assert made(url, "--partitions", "5") == [line]
    assert made(url) == [line.replace("created", "was there")]
    assert "the topic was there, with 5 partitions" in refused(url, "--partitions", "6")
    assert "there are 1 brokers" in refused(url + "-other", "--replication", "3")
    crawled(web, tmp_path / "out", "--feed", url)
    assert len([document for document in read_topic(url).values() if document is not None]) == 10


@pytest.mark.engine("kafka")
def test_a_topic_that_loses_or_cuts_documents_is_pointed_out() -> None:
    kafka = shared_kafka()
    url = new_topic(kafka, 2, {"cleanup.policy": "delete"})
    lines = made(url)
    assert "was there, 2 partitions" in lines[0]
    assert "cleanup.policy is delete: Kafka removes documents by age" in lines[1]
    assert "larger documents are sent without their text" in lines[2]


def test_schemas_in_postgresql(web: RunningWeb, postgres: PostgresServer, tmp_path: Path) -> None:
    ledger = f"{postgres.url}/example"
    assert made(ledger)[1] == "schema gossamer_example of the ledger: created"
    assert made(ledger)[1] == "schema gossamer_example of the ledger: was there"
    catalog = f"{postgres.url}/pages_of_mine"
    assert made(catalog, "--for", "catalog")[0].endswith("pages_of_mine: created")
    assert made(catalog, "--for", "catalog")[0].endswith("pages_of_mine: were there")
    assert made(postgres.url)[0].endswith("/postgres: created"), "without a name it is a catalog"
    crawled(web, tmp_path / "named", "--catalog", catalog)
    assert {row["crawl"] for row in PostgresPlace(postgres, "pages_of_mine").rows("pages")} == {"named"}
    assert "--partitions has no meaning for a ledger at postgresql://" in refused(ledger, "--partitions", "3")


@pytest.mark.engine("mongodb")
def test_a_catalog_in_mongodb(web: RunningWeb, tmp_path: Path) -> None:
    with places_of("mongodb") as make:
        place = make()
        assert made(place.url()) == [f"collections of the catalog {place.url()}: created"]
        assert made(place.url()) == [f"collections of the catalog {place.url()}: were there"]
        crawled(web, tmp_path / "named", "--catalog", place.url())
        assert {row["crawl"] for row in place.rows("pages")} == {"named"}


def test_a_redis_is_checked(tmp_path: Path) -> None:
    program = engines.valkey()
    with running(program, tmp_path / "right") as server:
        (line,) = made(f"{server.url}/example")
        assert "removes no keys when it is full, has no such crawl yet; nothing to create" in line
        server.client().config_set("appendonly", "no")
        assert "Redis writes no append-only file" in made(f"{server.url}/example")[1]
    with running(program, tmp_path / "wrong", "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru") as server:
        assert "maxmemory-policy allkeys-lru" in refused(f"{server.url}/example")


@pytest.mark.parametrize(("words", "says"), [
    (["nothing"], "expected redis://"),
    (["mysql://h/x"], "no ledger has a URL like this; expected redis://"),
    (["cassandra://u:secret@h/Upper"], "not the name of a keyspace"),
    (["kafka://u:secret@h/a/b"], "not the name of a topic"),
    (["kafka://h/t", "--partitions", "1025"], "--partitions 1025: expected 1 to 1,024"),
    (["kafka://h/t", "--buckets", "2"], "--buckets has no meaning for a feed at kafka://"),
    (["kafka://h/t", "--replication", "0"], "--replication 0: expected 1 to"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(words: list[str], says: str) -> None:
    line = refused(*words)
    assert says in line
    assert "secret" not in line


def test_a_server_that_is_not_there_is_one_line() -> None:
    port = free_port()
    assert "no answer" in refused(f"cassandra://u:secret@127.0.0.1:{port}/catalog")
    assert "no broker answers" in refused(f"kafka://127.0.0.1:{port}/topic")
    for url in (f"redis://127.0.0.1:{port}/0/x", f"postgresql://127.0.0.1:{port}/database/x"):
        assert str(port) in refused(url) or "refused" in refused(url)
