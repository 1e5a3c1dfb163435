"""From a ledger URL to a connected ledger: `redis://[user:password@]host:port/db/NAME`, `rediss://…` over TLS.

The server itself says whether it belongs to a Redis Cluster. Then several servers may be named, separated by commas:
one that answers is enough. User and password may come from the environment instead: GOSSAMER_REDIS_USER,
GOSSAMER_REDIS_PASSWORD.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from gossamer.backends.redis.calls import database_of_cluster, errors_of
from gossamer.backends.redis.cluster_calls import ClusterCalls
from gossamer.backends.redis.cluster_ledger import RedisClusterLedger
from gossamer.backends.redis.scripted_ledger import ScriptedLedger
from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.model.errors import LedgerUnavailableError, UsageError
from gossamer.ports.shared_ledger import SharedLedger

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_EXPECTED = "expected redis://host:port/db/NAME"
TIMEOUT_S = 5.0


class RedisAddress:
    """The parts of a ledger URL."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        place, _, path = rest.partition("/")
        login, at, hosts = place.rpartition("@")
        try:
            parts = [urlsplit(f"{scheme}://{login}{at}{host}") for host in hosts.split(",")]
            self.servers = [(part.hostname or "", part.port or 6379) for part in parts]
        except ValueError as error:
            raise UsageError(f"{without_password(url)}: {error}; {_EXPECTED}") from None
        database, _, name = path.strip("/").partition("/")
        if scheme not in ("redis", "rediss") or not all(host for host, _ in self.servers) or not database.isdigit():
            raise UsageError(f"{without_password(url)}: not a ledger URL; {_EXPECTED}")
        if not _NAME.fullmatch(name):
            raise UsageError(f"{without_password(url)}: the name of a crawl has letters, digits and ._-; {_EXPECTED}")
        self.database = int(database)
        self.name = name
        self.user = unquote(parts[0].username or "") or os.environ.get("GOSSAMER_REDIS_USER") or None
        self.password = unquote(parts[0].password or "") or os.environ.get("GOSSAMER_REDIS_PASSWORD") or None
        self.is_tls = scheme == "rediss"

    @property
    def options(self) -> dict[str, Any]:
        """How each server is connected to."""
        return {
            "username": self.user,
            "password": self.password,
            "ssl": self.is_tls,
            "socket_timeout": TIMEOUT_S,
            "socket_connect_timeout": TIMEOUT_S,
            "retry": Retry(NoBackoff(), 0),  # the callers try again, as long as they may
            "protocol": 2,
        }


def connect(url: str, warn: Callable[[str], None]) -> SharedLedger:
    """Return the ledger behind a URL; raises `LedgerUnavailableError` if no server can be reached."""
    address = RedisAddress(url)
    client, is_cluster = _first_that_answers(address)
    ledger: ScriptedLedger
    if is_cluster:
        client.close()
        if address.database:  # Valkey can be configured to have more; our client of a cluster has one
            raise database_of_cluster(address.name)
        ledger = RedisClusterLedger(ClusterCalls(_cluster(address), address.name))
    elif len(address.servers) > 1:
        client.close()
        raise UsageError(f"{without_password(url)}: the servers are no Redis Cluster; name one server")
    else:
        ledger = RedisSharedLedger(client, address.name)
    if caveat := ledger.check_server():
        warn(caveat)
    return ledger


def _first_that_answers(address: RedisAddress) -> tuple[redis.Redis, bool]:
    """Return a client of a server, and whether that belongs to a cluster."""
    for host, port in address.servers:
        client = redis.Redis(host=host, port=port, db=address.database, **address.options)
        try:
            with errors_of(address.name):
                mode: Any = client.info("cluster")
        except LedgerUnavailableError as error:
            client.close()
            failure = error
            continue
        return client, bool(mode.get("cluster_enabled"))
    raise failure


def _cluster(address: RedisAddress) -> RedisCluster:
    node: Any = ClusterNode  # it has no types
    nodes = [node(host, port) for host, port in address.servers]
    with errors_of(address.name):
        return RedisCluster(startup_nodes=nodes, **address.options)


def server_version(address: RedisAddress) -> str:
    """Return the version of the first server that answers."""
    client, _ = _first_that_answers(address)
    with closing(client), errors_of(address.name):
        found: Any = client.info("server")
        return str(found.get("redis_version", "0"))


def without_password(url: str) -> str:
    """Return a URL for people: without the password."""
    return re.sub(r"//[^/@]*@", "//", url)
