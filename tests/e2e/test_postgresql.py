"""Nodes on a real PostgreSQL: they lose nothing when the server dies, and say what cannot be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.e2e.test_cluster import PLAN, WINDOW_PAGES, Nodes, verb
from tests.e2e.test_cluster_errors import crawled, said
from tests.servers import engines
from tests.servers.postgresql import PostgresServer, running_postgres
from tests.servers.redis import free_port
from tests.servers.web import RunningWeb


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


@pytest.fixture(scope="module", params=[engines.param("postgresql")])
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        with server.connection() as connection:
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
        yield server


def test_the_server_is_killed_and_comes_back(web: RunningWeb, postgres: PostgresServer, tmp_path: Path) -> None:
    nodes = Nodes(web, postgres, tmp_path, "restarted")
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    postgres.stop()
    postgres.start()
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check(max_twice=2 * WINDOW_PAGES)
    host = json.loads(verb("hosts", nodes.url, "--json"))["hosts"][0]["name"]
    with postgres.connection() as connection:
        query = "SELECT record ->> 'domain' FROM \"gossamer_restarted\".hosts WHERE name = %s"
        assert connection.execute(query, [host]).fetchone() is not None, "a person can read it"


# -- what cannot be used --------------------------------------------------------------------------


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    line = crawled(f"postgresql://127.0.0.1:{free_port()}/crawls/x", tmp_path)
    assert "ledger x: PostgreSQL cannot be used now" in line
    assert "Connection refused" in line


@pytest.mark.parametrize(("login", "database", "expected"), [
    ("nobody", "postgres", 'role "nobody" does not exist'),
    ("postgres", "elsewhere", 'database "elsewhere" does not exist'),
    ("reader", "postgres", "permission denied for database"),
])  # fmt: skip
def test_a_user_or_a_database_that_is_wrong(
    postgres: PostgresServer, tmp_path: Path, login: str, database: str, expected: str
) -> None:
    line = crawled(f"postgresql://{login}:secret@127.0.0.1:{postgres.port}/{database}/x", tmp_path)
    assert expected in line
    assert "may create a schema" in line
    assert "secret" not in line


@pytest.mark.parametrize("url", ["postgresql://h/db", "postgresql://h:port/db/x", "postgresql:///db/x"])
def test_a_url_that_is_wrong(tmp_path: Path, url: str) -> None:
    assert "expected postgresql://host:port/database/NAME" in crawled(url, tmp_path)


def test_a_server_that_may_lose_commits_is_warned_of(tmp_path: Path, postgres: PostgresServer) -> None:
    with postgres.connection() as connection:
        connection.execute("ALTER ROLE postgres SET synchronous_commit = off")
    try:
        url = f"{postgres.url}/unsafe"
        assert "synchronous_commit off" in said("join", url, "--wait", "0", "-o", str(tmp_path / "a"), lines=2)
    finally:
        with postgres.connection() as connection:
            connection.execute("ALTER ROLE postgres RESET synchronous_commit")


def test_what_is_wrong_in_the_database_is_one_line(postgres: PostgresServer) -> None:
    with psycopg.connect(**postgres.parameters, autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("CREATE SCHEMA gossamer_broken")
        connection.execute("CREATE TABLE gossamer_broken.crawl (version int)")
    assert "column" in said("status", f"{postgres.url}/broken", status=1)
