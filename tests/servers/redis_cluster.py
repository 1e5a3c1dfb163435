"""A Redis Cluster of three servers for tests."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from tests.servers.redis import RedisServer, free_port

SLOTS = 16384
READY_S = 20.0
OPTIONS = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "yes")


class RedisClusterServers:
    """Three servers with a third of the hash slots each. No replicas."""

    def __init__(self, program: str, folder: Path) -> None:
        self._bus_ports = [free_port() for _ in range(3)]
        self.servers = [
            RedisServer(program, folder / str(number), *OPTIONS, "--cluster-port", str(port))
            for number, port in enumerate(self._bus_ports)
        ]

    @property
    def url(self) -> str:
        """With all servers: one that answers is enough."""
        return f"redis://{','.join(f'127.0.0.1:{server.port}' for server in self.servers)}/0"

    def client(self) -> RedisCluster:
        node: Any = ClusterNode
        nodes = [node("127.0.0.1", server.port) for server in self.servers]
        return RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), 0), protocol=2)

    def start(self) -> None:
        """Start the servers, divide the slots among them, and wait until all agree."""
        for number, server in enumerate(self.servers):
            server.start()
            client: Any = server.client()
            first, after = SLOTS * number // 3, SLOTS * (number + 1) // 3
            client.execute_command("CLUSTER ADDSLOTSRANGE", first, after - 1)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            for other in range(number):
                client.execute_command("CLUSTER MEET", "127.0.0.1", self.servers[other].port, self._bus_ports[other])
            client.close()
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Wait until every server knows all others and their slots."""
        until = time.monotonic() + READY_S
        for server in self.servers:
            client: Any = server.client()
            while not _is_whole(client.execute_command("CLUSTER INFO")):
                assert time.monotonic() < until, "the servers did not become a cluster"
                time.sleep(0.01)
            client.close()

    def server_of(self, key: str) -> RedisServer:
        """Return the server that has a key."""
        client: Any = self.client()
        port = client.get_node_from_key(key).port
        client.close()
        return next(server for server in self.servers if server.port == port)

    @contextmanager
    def going_back(self, server: RedisServer) -> Iterator[None]:
        """Let a server lose what happens inside: kill it at the end, and start it with the files of the beginning."""
        _wait_until_written(server)
        copy = server.folder.with_name(f"{server.folder.name}-copy")
        shutil.copytree(server.folder, copy)
        yield
        server.stop()
        shutil.rmtree(server.folder)
        copy.rename(server.folder)
        server.start()
        self.wait_until_whole()

    def stop(self, sig: int = signal.SIGKILL) -> None:
        for server in self.servers:
            server.stop(sig)


def _wait_until_written(server: RedisServer) -> None:
    """Wait until the append-only file has everything: while an earlier part is synced, writes are delayed."""
    client: Any = server.client()
    until = time.monotonic() + READY_S
    while client.info("persistence")["aof_buffer_length"]:
        assert time.monotonic() < until, "the append-only file is not written"
        time.sleep(0.01)
    client.close()


def _is_whole(info: dict[str, str]) -> bool:
    return info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "3" and info["cluster_slots_ok"] == "16384"


@contextmanager
def running_cluster(program: str, folder: Path) -> Iterator[RedisClusterServers]:
    cluster = RedisClusterServers(program, folder)
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        yield cluster
