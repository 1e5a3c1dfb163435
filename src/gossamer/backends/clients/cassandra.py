"""How do we connect to Cassandra? For catalogs, and for ledgers on Kafka.

Statements are prepared once per session, and sent to a replica that has their rows. All reads and writes need a quorum
of the replicas in the local data centre. `$keyspace` in a statement is the keyspace. What differs between the ports is
the table of errors, and how rows are read.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

from cassandra import ConsistencyLevel, DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    ResponseFuture,
    Session,
)
from cassandra.connection import ConnectionBusy
from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.pool import NoConnectionsAvailable
from cassandra.query import PreparedStatement
from msgspec import Struct

from gossamer.backends.clients.errors import DriverErrors

DRIVER_ERRORS = (DriverException, NoHostAvailable, OSError)
MIN_VERSION = 4
CONNECT_S = 5.0
REQUEST_S = 10.0
BUSY_S = 0.01  # until a request is made again that the connection had no room for
PROTOCOL = 4  # all servers since 2.2: one that is too old can still say so. The next makes checksums, in Python


class Servers(Struct, frozen=True):
    """Servers of one engine, and how to log in."""

    hosts: tuple[tuple[str, int], ...]
    user: str = ""
    password: str = ""

    @property
    def text(self) -> str:
        """The servers, as in a URL."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


class CassandraSession:
    """A session with the servers of a keyspace. Connects with the first statement. Thread-safe."""

    def __init__(
        self,
        servers: Servers,
        keyspace: str,
        errors: DriverErrors,
        *,
        dc: str = "",  # the local data centre; empty: that of the first server that answers
        tls: str = "",  # a file with the certificates to trust
        **profile: Any,  # noqa: ANN401 - of the driver: how rows are read, …
    ) -> None:
        self.errors = errors
        self.keyspace = keyspace
        self._servers = servers
        self._dc = dc
        self._tls = tls
        self._profile = profile
        self._lock = Lock()
        self._cluster: Cluster | None = None
        self._session: Session | None = None
        self._prepared: dict[str, PreparedStatement] = {}

    def session(self) -> Session:
        """Return the session; connect first if there is none."""
        with self._lock:
            if self._session is None:
                self._cluster = cluster = self._new_cluster()
                try:
                    with self.errors:
                        self._session = self._connected(cluster)
                except BaseException:
                    cluster.shutdown()
                    self._cluster = None
                    raise
                self._prepared = {}
            return self._session

    def _connected(self, cluster: Cluster) -> Session:
        return cluster.connect()

    def _new_cluster(self) -> Cluster:
        servers = self._servers
        local = DCAwareRoundRobinPolicy(self._dc) if self._dc else DCAwareRoundRobinPolicy()
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(local),
            consistency_level=ConsistencyLevel.LOCAL_QUORUM,
            request_timeout=REQUEST_S,
            **self._profile,
        )
        context = None
        if self._tls:
            context = ssl.create_default_context(cafile=self._tls)
            context.check_hostname = False  # servers are found by address; their certificate is of our authority
        return Cluster(
            list(servers.hosts),
            auth_provider=PlainTextAuthProvider(servers.user, servers.password) if servers.user else None,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            protocol_version=PROTOCOL,
            ssl_context=context,
            reconnection_policy=ConstantReconnectionPolicy(1.0, None),
            connect_timeout=CONNECT_S,
            control_connection_timeout=CONNECT_S,
            application_name="gossamer",
        )

    def close(self) -> None:
        """Close all connections. The next statement makes others."""
        with self._lock:
            cluster = self._cluster
            self._cluster = None
            self._session = None
            self._prepared = {}
        if cluster is not None:
            cluster.shutdown()

    def named(self, query: str) -> str:
        """Return a statement with the name of the keyspace."""
        return query.replace("$keyspace", f'"{self.keyspace}"')

    def prepare(self, query: str, *, is_serial: bool = False) -> PreparedStatement:
        """Return a statement; the servers have seen it when it is sent the second time.

        A serial one sees changes that are made under conditions, the last one included.
        """
        session = self.session()
        found = self._prepared.get(query)
        if found is None:
            with self.errors:
                found = session.prepare(self.named(query))
            found.consistency_level = ConsistencyLevel.LOCAL_SERIAL if is_serial else ConsistencyLevel.LOCAL_QUORUM
            self._prepared[query] = found
        return found

    def run_together(self, requests: Iterable[tuple[Any, Sequence[object] | None]], at_once: int) -> Iterator[Any]:
        """Yield the results of requests in their order, of which some are under way at the same time."""
        session = self.session()
        waiting: deque[tuple[ResponseFuture, Any, Sequence[object] | None]] = deque()
        with self.errors:
            for statement, values in requests:
                waiting.append((session.execute_async(statement, values), statement, values))
                if len(waiting) >= at_once:
                    yield _result(session, *waiting.popleft())
            for each in waiting:
                yield _result(session, *each)


def _result(session: Session, future: ResponseFuture, statement: Any, values: Sequence[object] | None) -> Any:  # noqa: ANN401
    """Return the result of a request; make it again while the connection has no room for it."""
    until = time.monotonic() + REQUEST_S
    while True:
        try:
            return future.result()
        except NoHostAvailable as error:
            causes = error.errors.values() if isinstance(error.errors, dict) else ()
            is_busy = causes and all(isinstance(each, ConnectionBusy | NoConnectionsAvailable) for each in causes)
            if not is_busy or time.monotonic() > until:
                raise
            time.sleep(BUSY_S)
            future = session.execute_async(statement, values)


def causes_of(error: BaseException) -> list[BaseException]:
    """Return what the servers said, if none could be used, and the error itself."""
    by_server: object = getattr(error, "errors", None)
    causes = list(by_server.values()) if isinstance(error, NoHostAvailable) and isinstance(by_server, dict) else []
    return [*causes, error]
