"""From a ledger URL to one server or a cluster: the server says which it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.backends.redis.cluster_ledger import RedisClusterLedger
from gossamer.backends.redis.connect import RedisAddress, connect
from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.model.errors import LedgerUnavailableError, UsageError
from gossamer.ports.shared_ledger import SharedLedger
from tests.servers import engines
from tests.servers.redis import RedisServer, free_port, running
from tests.servers.redis_cluster import OPTIONS, RedisClusterServers, running_cluster


@pytest.fixture(scope="module")
def program() -> str:
    return engines.valkey()


@pytest.fixture(scope="module")
def cluster(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisClusterServers]:
    with running_cluster(program, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


def opened(url: str) -> tuple[SharedLedger, list[str]]:
    """Return the ledger behind a URL, closed, and what the operator was told."""
    told: list[str] = []
    ledger = connect(url, told.append)
    assert ledger.record() is None
    ledger.close()
    return ledger, told


def refused(url: str) -> str:
    with pytest.raises(UsageError) as failure:
        opened(url)
    text = str(failure.value)
    assert "\n" not in text
    return text


def test_a_url_names_one_server_or_several() -> None:
    one = RedisAddress("redis://u:p%40w@10.0.0.5/0/books")
    assert (one.servers, one.user, one.password, one.name) == ([("10.0.0.5", 6379)], "u", "p@w", "books")
    several = RedisAddress("rediss://u:pw@a:1,b,[::1]:3/0/books")
    assert several.servers == [("a", 1), ("b", 6379), ("::1", 3)]
    assert (several.user, several.password, several.is_tls) == ("u", "pw", True)


@pytest.mark.parametrize("url", ["redis://a:1,/0/x", "redis://,/0/x", "redis:///0/x", "redis://a:x,b/0/x"])
def test_a_list_with_a_gap_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected redis://host:port/db/NAME"):
        RedisAddress(url)


def test_the_server_says_whether_it_is_a_cluster(server: RedisServer, cluster: RedisClusterServers) -> None:
    assert isinstance(opened(f"{server.url}/x")[0], RedisSharedLedger)
    for each in cluster.servers:
        assert isinstance(opened(f"{each.url}/x")[0], RedisClusterLedger)


def test_one_server_of_the_list_that_answers_is_enough(cluster: RedisClusterServers) -> None:
    url = f"redis://127.0.0.1:{free_port()},127.0.0.1:{cluster.servers[1].port}/0/x"
    assert isinstance(opened(url)[0], RedisClusterLedger)
    with pytest.raises(LedgerUnavailableError, match="cannot be reached"):
        opened(f"redis://127.0.0.1:{free_port()},127.0.0.1:{free_port()}/0/x")


def test_several_servers_must_be_a_cluster(server: RedisServer) -> None:
    line = refused(f"redis://127.0.0.1:{free_port()},127.0.0.1:{server.port}/0/x")
    assert "no Redis Cluster; name one server" in line


def test_a_cluster_has_one_database(cluster: RedisClusterServers) -> None:
    line = refused(f"redis://127.0.0.1:{cluster.servers[0].port}/1/x")
    assert line.endswith("; expected redis://host:port/0/NAME")


def test_another_database_of_a_cluster_is_refused_even_if_the_server_has_it(tmp_path: Path) -> None:
    options = (*OPTIONS, "--cluster-port", str(free_port()), "--cluster-databases", "2")
    with running(engines.valkey(), tmp_path, *options) as server:
        line = refused(f"redis://127.0.0.1:{server.port}/1/x")
    assert "a Redis Cluster has database 0 only" in line


def test_each_server_of_a_cluster_is_looked_at(cluster: RedisClusterServers) -> None:
    client: Any = cluster.servers[2].client()
    url = f"{cluster.url}/x"
    assert opened(url)[1] == []
    client.config_set("appendonly", "no")
    (told,) = opened(url)[1]
    client.config_set("appendonly", "yes")
    assert "no append-only file" in told
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    line = refused(url)
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "0")
    client.close()
    assert "set it to noeviction" in line


def test_a_cluster_without_all_slots_is_not_complete(program: str, tmp_path: Path) -> None:
    with running(program, tmp_path, *OPTIONS, "--cluster-port", str(free_port())) as server:
        client: Any = server.client()
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 100)
        client.close()
        with pytest.raises(LedgerUnavailableError, match="the Redis Cluster is not complete") as failure:
            opened(f"{server.url}/x")
    assert "\n" not in str(failure.value)
