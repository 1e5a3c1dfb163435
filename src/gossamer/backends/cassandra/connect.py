"""From a URL to a session with Cassandra: `cassandra://[user:password@]host:port,…/keyspace[?dc=NAME]`.

A session that has failed is dropped, and the next call makes another: whoever calls repeats what it did, once at
least. Statements are prepared once per session, and sent to a replica that has their rows. All reads and writes need a
quorum of the replicas in the local data centre. `$keyspace` in a statement is the keyspace of the URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    InvalidRequest,
    ProtocolVersion,
    RequestExecutionException,
    Unauthorized,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent
from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.query import PreparedStatement
from msgspec import Struct

from gossamer.model.errors import EngineUnavailableError, GossamerError, UsageError

CONNECT_S = 5.0
ANSWER_S = 10.0
DEFAULT_PORT = 9042
MIN_VERSION = 4
_AT_ONCE = 64  # statements that are on their way
_ROWS_PER_ANSWER = 1000
EXPECTED = "expected cassandra://host:port,…/keyspace"
_Done = TypeVar("_Done")


class MissingTableError(GossamerError):
    """A table is not there, or not yet: another client may be creating it."""


class Place(Struct, frozen=True):
    """What the URL of a keyspace says."""

    hosts: tuple[tuple[str, int], ...]
    keyspace: str
    user: str = ""
    password: str = ""
    dc: str = ""  # the local data centre; empty: that of the first server that answers


def shown(url: str) -> str:
    """Return a URL for people: without user, password and options."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


def place_of(url: str) -> Place:
    """Return what a URL says; raise UsageError if it says something else."""
    _, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    login, _, hosts = authority.rpartition("@")
    user, _, password = login.partition(":")
    keyspace, _, query = path.partition("?")
    options = dict(parse_qsl(query))
    unknown = sorted(options.keys() - {"dc"})
    if unknown:
        raise UsageError(f"{shown(url)}: unknown option {unknown[0]}; expected ?dc=NAME, the local data centre")
    try:
        points = tuple(_point(host) for host in hosts.split(","))
    except ValueError:
        raise UsageError(f"{shown(url)}: not a host with a port; {EXPECTED}") from None
    return Place(points, keyspace.strip("/"), unquote(user), unquote(password), options.get("dc", ""))


def _point(host: str) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.strip("[]"), DEFAULT_PORT
    return name.strip("[]"), int(port)


class Ring:
    """The servers behind a URL, and one keyspace of theirs. Used by one thread at a time; closed by any."""

    def __init__(self, url: str, label: str) -> None:
        self.place = place_of(url)
        self.label = label  # how messages begin
        self._lock = Lock()
        self._cluster: Cluster | None = None
        self._session: Session | None = None
        self._prepared: dict[str, PreparedStatement] = {}

    # -- sessions ---------------------------------------------------------------------------------

    def repeated(self, act: Callable[[], _Done]) -> _Done:
        """Do something; if the servers cannot be used, connect anew and try once more."""
        try:
            return act()
        except EngineUnavailableError:
            self.close()
            return act()

    def session(self) -> Session:
        """Return the session; connect first if there is none."""
        with self._lock:
            if self._session is None:
                self._cluster = cluster = self._new_cluster()
                try:
                    with self.errors_as_ours():
                        self._session = cluster.connect()
                except BaseException:
                    cluster.shutdown()
                    self._cluster = None
                    raise
                self._prepared = {}
            return self._session

    def _new_cluster(self) -> Cluster:
        place = self.place
        local = DCAwareRoundRobinPolicy(place.dc) if place.dc else DCAwareRoundRobinPolicy()
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(local),
            consistency_level=ConsistencyLevel.LOCAL_QUORUM,
            request_timeout=ANSWER_S,
        )
        login = PlainTextAuthProvider(place.user, place.password) if place.user else None
        return Cluster(
            list(place.hosts),
            port=place.hosts[0][1],
            auth_provider=login,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(1.0, None),
            connect_timeout=CONNECT_S,
            control_connection_timeout=CONNECT_S,
            protocol_version=ProtocolVersion.V4,  # all servers since 2.2: one that is too old can still say so
            application_name="gossamer",
        )

    def close(self) -> None:
        """Close all connections. The next call makes others."""
        with self._lock:
            cluster = self._cluster
            self._cluster = None
            self._session = None
        if cluster is not None:
            cluster.shutdown()

    # -- what the servers have --------------------------------------------------------------------

    def check_server(self) -> str:
        """Return the version of the servers; raise UsageError if it is too old."""
        (row,) = self.execute("SELECT release_version FROM system.local")
        version = str(row.release_version)
        if int(version.partition(".")[0]) < MIN_VERSION:
            raise UsageError(f"{self.label}: Cassandra {version} is too old; expected {MIN_VERSION}.0 or newer")
        return version

    def has_keyspace(self) -> bool:
        """Return whether the keyspace is there."""
        query = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
        return bool(self.execute(query, (self.place.keyspace,)))

    def tables(self) -> set[str]:
        """Return the names of the tables in the keyspace; raise UsageError if there is no such keyspace."""
        if not self.has_keyspace():
            raise UsageError(
                f"{self.label}: there is no keyspace {self.place.keyspace}; create it with 'gossamer init-cluster "
                "URL --replication N', or with CREATE KEYSPACE"
            )
        query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
        return {row.table_name for row in self.execute(query, (self.place.keyspace,))}

    # -- statements -------------------------------------------------------------------------------

    def execute(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows of a statement that is sent once."""
        session = self.session()
        with self.errors_as_ours():
            return list(session.execute(self._named(query), values or None))

    def prepare(self, query: str) -> PreparedStatement:
        """Return a statement; the servers have seen it when it is sent the second time."""
        session = self.session()
        if query not in self._prepared:
            with self.errors_as_ours():
                self._prepared[query] = session.prepare(self._named(query))
        return self._prepared[query]

    def run(self, query: str, values: Sequence[object]) -> list[Any]:
        """Return all rows of a prepared statement."""
        statement = self.prepare(query)
        session = self.session()
        with self.errors_as_ours():
            return list(session.execute(statement, values))

    def run_all(self, statements: Sequence[tuple[Any, Sequence[object]]]) -> list[Any]:
        """Run statements at the same time; return all their rows. On return, all of them are done."""
        session = self.session()
        with self.errors_as_ours():
            answers = execute_concurrent(session, statements, concurrency=_AT_ONCE, raise_on_first_error=True)
            return [row for answer in answers for row in answer.result_or_exc]

    def scan(self, query: str) -> Iterator[Any]:
        """Yield all rows of a table, in the order of the servers, in parts."""
        session = self.session()
        with self.errors_as_ours():
            statement = session.prepare(self._named(query))
            statement.fetch_size = _ROWS_PER_ANSWER
            yield from session.execute(statement)

    def _named(self, query: str) -> str:
        return query.replace("$keyspace", f'"{self.place.keyspace}"')

    # -- errors -----------------------------------------------------------------------------------

    @contextmanager
    def errors_as_ours(self) -> Iterator[None]:
        """Turn errors of the driver into ours, in one line."""
        try:
            yield
        except (DriverException, NoHostAvailable, OSError) as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: Exception) -> GossamerError:
        cause = _cause_of(error)
        text = _told(cause)
        if isinstance(cause, AuthenticationFailed):
            return UsageError(
                f"{self.label}: the server refuses user or password ({text}); expected them in the URL, or the "
                "password in GOSSAMER_CASSANDRA_PASSWORD"
            )
        if isinstance(cause, Unauthorized):
            return UsageError(
                f"{self.label}: {text}; expected a user with the rights SELECT and MODIFY in the keyspace "
                f"{self.place.keyspace}, and CREATE if its tables are not there"
            )
        if isinstance(cause, InvalidRequest) and re.search(r"table .*does not exist|unconfigured table", text):
            return MissingTableError(f"{self.label}: {text}")
        if isinstance(cause, InvalidRequest):
            return GossamerError(f"{self.label}: {text}")
        kind = "Cassandra cannot be used now" if isinstance(cause, RequestExecutionException) else "no answer"
        return EngineUnavailableError(f"{self.label}: {kind}: {text or type(cause).__name__}")


def _cause_of(error: Exception) -> Exception:
    """Return what the first server said, if none could be used."""
    by_server: object = getattr(error, "errors", None)
    causes = list(by_server.values()) if isinstance(error, NoHostAvailable) and isinstance(by_server, dict) else []
    return causes[0] if causes and isinstance(causes[0], Exception) else error


def _told(error: Exception) -> str:
    """Return what the driver says, without what it repeats."""
    text = " ".join(str(error).split())
    found = re.search(r'message="(.*?)"', text) or re.search(r"Last error: ([^\"']*)", text)
    return (found.group(1) if found else text)[:200]
