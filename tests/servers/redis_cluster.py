"""A Redis Cluster of three servers for tests."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from tests.servers.redis import RedisServer, free_port, running

SLOTS = 16384
READY_S = 20.0
NODE_TIMEOUT_MS = 4000  # with 2,000, a server that a busy machine let stand still was called dead by the others
OPTIONS = (
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    str(NODE_TIMEOUT_MS),
    "--cluster-require-full-coverage",
    "yes",
)


class RedisClusterServers:
    """Three servers with a third of the hash slots each. No replicas."""

    def __init__(self, program: str, folder: Path) -> None:
        self._bus_ports = [free_port() for _ in range(3)]
        self._left: list[RedisServer] = []  # servers that went back in time
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
        for server in self.servers:
            client: Any = server.client()
            wait_for(lambda: _is_whole(client.execute_command("CLUSTER INFO")))  # noqa: B023
            client.close()

    @contextmanager
    def replica_of(self, primary: RedisServer) -> Iterator[RedisServer]:
        """Run a fourth server, which has the same keys as one of the three and takes over if that is away."""
        bus_port = free_port()
        folder = primary.folder.with_name(f"{primary.folder.name}-replica")
        with running(primary.program, folder, *OPTIONS, "--cluster-port", str(bus_port)) as replica:
            client: Any = replica.client()
            client.execute_command("CLUSTER MEET", "127.0.0.1", primary.port, self._bus_port_of(primary))
            others: Any = primary.client()
            node_id = others.execute_command("CLUSTER MYID").decode()
            others.close()
            wait_for(lambda: node_id in str(client.execute_command("CLUSTER NODES")))
            client.execute_command("CLUSTER REPLICATE", node_id)
            wait_for(lambda: client.info("replication").get("master_link_status") == "up")
            client.close()
            yield replica

    def wait_until_same(self, primary: RedisServer, replica: RedisServer) -> None:
        """Wait until a replica has received everything."""
        clients: list[Any] = [primary.client(), replica.client()]
        offset = clients[0].info("replication")["master_repl_offset"]
        wait_for(lambda: clients[1].info("replication")["slave_repl_offset"] >= offset)
        for client in clients:
            client.close()

    def wait_until_primary(self, replica: RedisServer) -> None:
        """Wait until a replica has taken over, and all slots are served."""
        client: Any = replica.client()
        wait_for(lambda: client.info("replication")["role"] == "master")
        wait_for(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        client.close()

    def _bus_port_of(self, server: RedisServer) -> int:
        return self._bus_ports[self.servers.index(server)]

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
        # Moved, not removed: a child of the server that writes its append-only file anew may outlive it for a moment.
        server.folder.rename(server.folder.with_name(f"{server.folder.name}-{len(self._left)}-left"))
        self._left.append(server)
        copy.rename(server.folder)
        server.start()
        self.wait_until_whole()

    def stop(self, sig: int = signal.SIGKILL) -> None:
        for server in self.servers:
            server.stop(sig)


def _wait_until_written(server: RedisServer) -> None:
    """Wait until the append-only file has everything: while an earlier part is synced, writes are delayed."""
    client: Any = server.client()

    def is_written() -> bool:
        state = client.info("persistence")
        names = ("aof_buffer_length", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
        return not any(state[name] for name in names)

    wait_for(is_written)
    client.close()


def wait_for(is_so: Callable[[], bool], max_s: float = READY_S) -> None:
    """Ask until the answer is yes."""
    until = time.monotonic() + max_s
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def _is_whole(info: dict[str, str]) -> bool:
    return (
        info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) >= 3 and info["cluster_slots_ok"] == "16384"
    )


@contextmanager
def running_cluster(program: str, folder: Path) -> Iterator[RedisClusterServers]:
    cluster = RedisClusterServers(program, folder)
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        yield cluster
