"""Nodes on a Redis Cluster of three servers: nothing is lost when a node or a server dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.test_cluster import WINDOW_PAGES, Nodes, verb
from tests.servers import engines
from tests.servers.redis_cluster import RedisClusterServers, running_cluster
from tests.servers.web import RunningWeb

PLAN = preset("small", seed=13, pages=300, domains_per_address=4)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[RedisClusterServers]:
    program = engines.valkey()
    with running_cluster(program, tmp_path / "servers") as cluster:
        yield cluster


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


def test_a_node_that_is_killed_is_replaced_by_the_other(
    web: RunningWeb, servers: RedisClusterServers, tmp_path: Path
) -> None:
    nodes = Nodes(web, servers, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    nodes.kill("b")
    assert nodes.end("a")["finished"] == "exhausted"
    nodes.check(max_twice=WINDOW_PAGES)
    assert "node a" in verb("status", nodes.url)
    assert "stored on   node" in verb("why", nodes.url, web.seeds()[0])


@pytest.mark.parametrize("has_control_keys", [True, False])
def test_a_server_that_is_killed_comes_back(
    web: RunningWeb, servers: RedisClusterServers, tmp_path: Path, *, has_control_keys: bool
) -> None:
    of_control = servers.server_of("gossamer:crawl:{crawl}:")
    server = of_control if has_control_keys else next(each for each in servers.servers if each is not of_control)
    nodes = Nodes(web, servers, tmp_path)
    nodes.start("a", "b")
    nodes.wait_for_requests(100)
    server.stop()
    server.start()
    servers.wait_until_whole()
    assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
    nodes.check(max_twice=2 * WINDOW_PAGES)
