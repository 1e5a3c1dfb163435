"""A ledger that cannot be used: one clear line, the right status, and nothing lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import Nodes
from tests.servers import engines
from tests.servers.redis import RedisServer, free_port, running
from tests.servers.web import RunningWeb

SEED = "http://127.0.0.1:9/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        client = server.client()
        client.acl_setuser(
            "reader", enabled=True, passwords="+pass", keys=["*"], categories=["+@read"], commands=["+info"]
        )
        client.acl_setuser("stranger", enabled=True, passwords="+pass", keys=["other:*"], categories=["+@all"])
        client.close()
        yield server


def said(*words: str, status: int = 2, lines: int = 1) -> str:
    """Run a verb that fails; return its first line, by default the only one."""
    done = run(*words)
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) == lines, done.stderr
    return done.stderr.splitlines()[0]


def crawled(url: str, tmp_path: Path) -> str:
    line = said("crawl", SEED, "--ledger", url, "-o", str(tmp_path / "node"))
    assert not (tmp_path / "node" / "archive").exists()
    return line


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    line = crawled(f"redis://127.0.0.1:{free_port()}/0/x", tmp_path)
    assert "ledger x: Redis cannot be reached" in line
    assert "Connection refused" in line


@pytest.mark.parametrize(("user", "expected"), [
    ("reader:wrong", "invalid username-password pair"),
    ("reader:pass", "no permissions to run"),
    ("stranger:pass", "give a user and a password that may"),
])  # fmt: skip
def test_a_user_that_may_not(server: RedisServer, tmp_path: Path, user: str, expected: str) -> None:
    line = crawled(server.url.replace("//", f"//{user}@") + "/x", tmp_path)
    assert expected in line
    assert "gossamer:x:*" in line
    assert "pass@" not in line


def test_a_database_that_is_not_there(server: RedisServer, tmp_path: Path) -> None:
    line = crawled(f"redis://127.0.0.1:{server.port}/99/x", tmp_path)
    assert "no database of this number" in line


@pytest.mark.parametrize("verb", ["join", "status", "stop", "leave", "hosts"])
def test_a_crawl_that_is_not_there(server: RedisServer, tmp_path: Path, verb: str) -> None:
    more = {"join": ["--wait", "0", "-o", str(tmp_path / "b")], "leave": ["--node", "b"]}
    assert "no crawl nowhere in this ledger" in said(verb, f"{server.url}/nowhere", *more.get(verb, []))


def test_a_crawl_of_another_version(server: RedisServer, tmp_path: Path) -> None:
    client = server.client()
    client.hset("gossamer:newer:record", mapping={"version": 1, "body": b"\x81\xa5terms\x07", "ended": ""})
    line = said("join", f"{server.url}/newer", "-o", str(tmp_path / "b"))
    client.close()
    assert "another version of Gossamer started it" in line


def test_a_server_that_is_full_at_the_start(server: RedisServer, tmp_path: Path) -> None:
    client = server.client()
    client.config_set("maxmemory", "1mb")
    line = crawled(f"{server.url}/full", tmp_path)
    client.config_set("maxmemory", "0")
    client.close()
    assert "Redis is full (maxmemory); give it more memory" in line


def test_a_server_without_an_append_only_file_is_warned_of(server: RedisServer, tmp_path: Path) -> None:
    client = server.client()
    client.config_set("appendonly", "no")
    ledger = ["--ledger", f"{server.url}/memory"]
    done = run("crawl", SEED, *ledger, "-o", str(tmp_path / "a"), "--max-time", "3", "--no-progress")
    client.config_set("appendonly", "yes")
    client.close()
    assert "Redis writes no append-only file" in done.stderr
    assert "--appendonly yes" in done.stderr


@pytest.mark.parametrize("is_killed", [False, True])
def test_while_a_server_is_full_fetching_is_paused_on_every_node_and_nothing_is_lost(
    server: RedisServer, tmp_path: Path, *, is_killed: bool
) -> None:
    client = server.client()
    name = f"filled{is_killed}"
    with RunningWeb(preset("small", seed=3, pages=400)) as web:
        nodes = Nodes(web, server, tmp_path, name=name, more=["--politeness-ms", "200"])
        nodes.start("a", "b")
        nodes.wait_for(lambda: all('"event":"fetch_ok"' in events_of(tmp_path / each) for each in ("a", "b")))
        client.config_set("maxmemory", "1mb")
        nodes.wait_for(lambda: all("fetching is paused: ledger" in events_of(tmp_path / each) for each in ("a", "b")))
        nodes.wait_for(lambda: all(is_paused(each) for each in shown_nodes(nodes)))
        before = len(web.log())
        begun_at = time.monotonic()
        nodes.wait_for(lambda: time.monotonic() > begun_at + 2.0)
        assert len(web.log()) == before
        if is_killed:
            nodes.kill("a")
            nodes.kill("b")
        client.config_set("maxmemory", "0")
        if is_killed:
            nodes.start("a", "b")
        nodes.quicken()
        assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
        nodes.check(max_twice=100 if is_killed else 0)
    client.close()


def shown_nodes(nodes: Nodes) -> list[dict[str, Any]]:
    done = run("status", nodes.url, "--json")
    assert done.returncode == 0, done.stderr
    shown: list[dict[str, Any]] = json.loads(done.stdout)["nodes"]
    return shown


def is_paused(node: dict[str, Any]) -> bool:
    return node["is_live"] and not node["in_flight"] and node["load"]["evidence"] == "it is paused: ledger"


def events_of(folder: Path) -> str:
    """Return the latest events of a node."""
    files = sorted((folder / "events").glob("*.jsonl"))
    return files[-1].read_text() if files else ""


def test_a_setting_that_is_the_same_on_all_nodes_is_named(server: RedisServer, tmp_path: Path) -> None:
    url = f"{server.url}/settled"
    with RunningWeb(preset("small", seed=3, pages=20)) as web:
        nodes = Nodes(web, server, tmp_path, name="settled", more=["--max-pages", "3"])
        nodes.start("a")
        assert nodes.end("a")["finished"] == "max_pages"
    for option, value, has in (("--max-pages", "7", "3"), ("--max-depth", "2", "10"), ("--scope", "host", "domain")):
        line = f"{option} is the same on all nodes; the crawl settled has {option[2:]} = {has}"
        assert line in said("join", url, "-o", str(tmp_path / "b"), option, value)
