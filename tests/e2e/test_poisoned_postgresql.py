"""Messages and rows in PostgreSQL that no node has written: as `test_poisoned_ledger` for Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.engine.cluster.link_messages import LinkMessage, NodeMessage, encode_message
from gossamer.model.records import FetchKind, Source
from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import LEASE_S, Nodes
from tests.e2e.test_poisoned_ledger import warnings_of
from tests.servers import engines
from tests.servers.postgresql import PostgresServer, running_postgres
from tests.servers.web import RunningWeb

POISONED = [
    b"\xff\xfe",
    b"\x91" * 100_000,
    encode_message(NodeMessage(links=[LinkMessage("javascript:alert(1)", 1, Source.LINK, FetchKind.PAGE)])),
]


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=3, pages=40)) as web:
        yield web


@pytest.fixture(scope="module", params=[engines.param("postgresql")])
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


def test_poisoned_messages_are_set_aside(web: RunningWeb, postgres: PostgresServer, tmp_path: Path) -> None:
    nodes = Nodes(web, postgres, tmp_path, "poisoned", more=["--politeness-ms", "200"])
    nodes.start("a")
    nodes.wait_for_requests(5)
    with postgres.connection() as connection:
        for number, links in enumerate(POISONED):
            connection.execute(
                "INSERT INTO gossamer_poisoned.inbox (shard, id, links) VALUES (7, %s, %s)",
                [f"evil/1/{number}".encode(), links],
            )
    assert nodes.end("a")["finished"] == "exhausted"
    assert len(warnings_of(tmp_path / "a")) == len(POISONED)
    assert {path.read_bytes() for path in (tmp_path / "a" / "aside").glob("message-*")} == set(POISONED)


@pytest.mark.parametrize(("change", "expected"), [
    ("UPDATE {}.urls SET value = '\\xffff'", "in urls: it cannot be decoded"),
    ("UPDATE {}.hosts SET record = '[]'", "the ledger has a value that no node can have written"),
    ("UPDATE {}.hosts SET record = jsonb_set(record::jsonb, '{{backoff}}', '1000000000')::json", "impossible number"),
    ("UPDATE {}.robots SET record = '7'", "the ledger has a value that no node can have written"),
])  # fmt: skip
def test_a_row_that_no_node_has_written_is_a_line(
    web: RunningWeb, postgres: PostgresServer, tmp_path: Path, change: str, expected: str
) -> None:
    name = tmp_path.name.replace("[", "").replace("]", "").lower()[-20:].strip("_")
    nodes = Nodes(web, postgres, tmp_path, name, more=["--politeness-ms", "300"])
    nodes.start("a")

    def is_stored() -> bool:
        with postgres.connection() as connection:
            row = connection.execute(f"SELECT count(*) FROM gossamer_{name}.robots").fetchone()
        return row is not None and row[0] > 0

    nodes.wait_for_requests(20)
    nodes.wait_for(is_stored)
    nodes.kill("a")
    with postgres.connection() as connection:
        connection.execute(change.format(f"gossamer_{name}"))
    done = run("join", nodes.url, "--node", "b", "-o", str(tmp_path / "b"), "--lease", str(LEASE_S), "--no-progress")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert expected in done.stderr
