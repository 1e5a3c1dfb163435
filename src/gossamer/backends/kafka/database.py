"""Statements to Cassandra: prepared, token-aware, at a quorum; its errors as ours, in one line."""

from __future__ import annotations

import re
import ssl
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    RequestExecutionException,
    Unauthorized,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    ResponseFuture,
    ResultSet,
    Session,
)
from cassandra.connection import ConnectionBusy
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.pool import NoConnectionsAvailable
from cassandra.query import BatchStatement, BatchType, PreparedStatement, tuple_factory

from gossamer.backends.kafka.address import Place
from gossamer.model.errors import EngineUnavailableError, GossamerError, UsageError

Fields: TypeAlias = tuple[Any, ...]
Statement: TypeAlias = tuple[bool, bytes, list[bytes]]  # of a batch: prepared, its id, values as they are sent
MIN_VERSION = 4
REQUEST_S = 10.0
CONNECT_S = 5.0
IN_FLIGHT = 96  # requests at once
BATCHES_IN_FLIGHT = 16
READ_AHEAD = 8
MAX_BATCH_BYTES = 64 << 10
MAX_BATCH_ROWS = 500
BUSY_S = 0.01  # until a request is made again that the connection had no room for
PAGE_OF_ROWS = 5000
PROTOCOL = 4  # the next one makes checksums of every frame, in Python
int_bytes = struct.Struct(">i").pack
long_bytes = struct.Struct(">q").pack


class Batch(BatchStatement):  # type: ignore[misc]
    """Statements to one partition, whose values are bytes already: nothing is bound, which is most of the work."""

    def __init__(self, routing_key: Sequence[bytes], statements: Sequence[Statement], kind: BatchType) -> None:
        super().__init__(kind)
        self.routing_key = list(routing_key)
        self._statements_and_parameters.extend(statements)


class Database:
    """The tables of a keyspace. Connects with the first statement. Thread-safe."""

    def __init__(self, place: Place) -> None:
        self.name = place.name
        self.label = f"ledger {place.name}"
        self._place = place
        self._lock = Lock()
        self._cluster: Cluster | None = None
        self._session: Session | None = None
        self._prepared: dict[str, PreparedStatement] = {}

    # -- connection -------------------------------------------------------------------------------

    def session(self) -> Session:
        """Return the session, connected."""
        with self._lock:
            if self._session is None:
                self._cluster = self._new_cluster()
                try:
                    self._session = self._cluster.connect(self._place.keyspace)
                except BaseException:
                    self._cluster.shutdown()
                    raise
            return self._session

    def bare_session(self) -> Session:
        """Return a session without the keyspace, which may not be there yet."""
        with self._lock:
            self._cluster = self._new_cluster()
            return self._cluster.connect()

    def _new_cluster(self) -> Cluster:
        servers = self._place.cassandra
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy()),
            consistency_level=ConsistencyLevel.LOCAL_QUORUM,
            serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
            request_timeout=REQUEST_S,
            row_factory=tuple_factory,
        )
        context = None
        if self._place.cassandra_tls:
            context = ssl.create_default_context(cafile=self._place.cassandra_tls)
            context.check_hostname = False  # servers are found by address; their certificate is of our authority
        return Cluster(
            servers.hosts,
            auth_provider=PlainTextAuthProvider(servers.user, servers.password) if servers.user else None,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            protocol_version=PROTOCOL,
            ssl_context=context,
            connect_timeout=CONNECT_S,
            control_connection_timeout=CONNECT_S,
            schema_metadata_enabled=True,
        )

    def replication(self) -> int:
        """Return how many copies there are of every row."""
        with self.errors_as_ours():
            strategy = self.session().cluster.metadata.keyspaces[self._place.keyspace.lower()].replication_strategy
            factors = strategy.export_for_schema()
        return sum(int(each) for each in re.findall(r"'[^']+': '([0-9]+)'", factors))

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._cluster is not None:
                self._cluster.shutdown()
            self._cluster = self._session = None
            self._prepared = {}

    def prepared(self, text: str, *, is_serial: bool = False) -> PreparedStatement:
        """Return a statement that the servers know."""
        found = self._prepared.get(text)
        if found is None:
            found = self.session().prepare(text)
            found.fetch_size = PAGE_OF_ROWS
            found.consistency_level = ConsistencyLevel.LOCAL_SERIAL if is_serial else ConsistencyLevel.LOCAL_QUORUM
            self._prepared[text] = found
        return found

    # -- statements -------------------------------------------------------------------------------

    def read(self, text: str, *values: object) -> list[Fields]:
        """Return what a statement finds."""
        with self.errors_as_ours():
            return list(self.session().execute(self.prepared(text), values))

    def read_last(self, text: str, *values: object) -> list[Fields]:
        """The same, of what is changed under conditions: the last change is seen."""
        with self.errors_as_ours():
            return list(self.session().execute(self.prepared(text, is_serial=True), values))

    def read_many(self, requests: Iterable[tuple[str, Sequence[object]]]) -> list[list[Fields]]:
        """Return what several statements find, asked at the same time."""
        with self.errors_as_ours():
            session = self.session()
            return [list(each) for each in _together(session, ((self.prepared(text), of) for text, of in requests))]

    def read_slices(self, text: str, *values: object) -> Iterator[list[Fields]]:
        """Yield what a statement finds, page by page."""
        with self.errors_as_ours():
            yield from _pages(self.session().execute(self.prepared(text), values))

    def read_ahead(self, requests: Sequence[tuple[str, Sequence[object]]]) -> Iterator[Iterator[list[Fields]]]:
        """Yield the pages that each statement finds; the next statements are under way meanwhile."""
        with self.errors_as_ours():
            statements = ((self.prepared(text), values) for text, values in requests)
            for found in _together(self.session(), statements, READ_AHEAD):
                yield _pages(found)

    def write(self, text: str, *values: object) -> None:
        """Make a statement."""
        with self.errors_as_ours():
            self.session().execute(self.prepared(text), values)

    def change(self, text: str, *values: object) -> bool:
        """Make a statement that has a condition; return whether it was so."""
        with self.errors_as_ours():
            return bool(self.session().execute(self.prepared(text), values).was_applied)

    def change_together(self, routing_key: Sequence[bytes], statements: Sequence[Statement]) -> bool:
        """Make statements with conditions in one partition: all of them or none."""
        with self.errors_as_ours():
            return bool(self.session().execute(Batch(routing_key, statements, BatchType.UNLOGGED)).was_applied)

    def change_many(self, batches: Sequence[tuple[Sequence[bytes], Sequence[Statement]]]) -> list[bool]:
        """Make several such batches at the same time."""
        with self.errors_as_ours():
            made = ((Batch(key, some, BatchType.UNLOGGED), None) for key, some in batches)
            return [bool(each.was_applied) for each in _together(self.session(), made, BATCHES_IN_FLIGHT)]

    def write_batches(self, batches: Iterable[tuple[Sequence[bytes], Sequence[Statement]]]) -> None:
        """Make statements, each group of which is for one partition."""
        with self.errors_as_ours():
            made = (
                (Batch(key, some, BatchType.UNLOGGED), None) for key, all_of in batches for some in _divided(all_of)
            )
            for _ in _together(self.session(), made, BATCHES_IN_FLIGHT):
                pass

    def statement(self, text: str, *values: bytes) -> Statement:
        """Return a statement for a batch; its values are as they are sent."""
        return True, self.prepared(text).query_id, list(values)

    # -- errors -----------------------------------------------------------------------------------

    @contextmanager
    def errors_as_ours(self) -> Iterator[None]:
        """Turn errors of the client into ours."""
        try:
            yield
        except (DriverException, NoHostAvailable, OSError) as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: Exception) -> GossamerError:
        causes = [error]
        if isinstance(error, NoHostAvailable) and isinstance(error.errors, dict) and error.errors:
            causes = list(error.errors.values())
        text = " ".join(str(causes[0]).split()).rstrip(".")
        if "using keyspace" in text:
            text = f"Cassandra has no keyspace {self._place.keyspace}, or the user may not use it"
            return UsageError(f"{self.label}: {text}; make it: gossamer init-cluster '{self._place.shown}'")
        if any(isinstance(each, AuthenticationFailed | Unauthorized) for each in causes):
            return UsageError(f"{self.label}: Cassandra refuses the user: {text}; give one who may read and write")
        if isinstance(error, InvalidRequest) and ("does not exist" in text or "unconfigured table" in text):
            return UsageError(f"{self.label}: {text}; make it: gossamer init-cluster '{self._place.shown}'")
        unavailable = (NoHostAvailable, OperationTimedOut, RequestExecutionException, OSError)
        if isinstance(error, unavailable) and not isinstance(error, InvalidRequest):
            where = self._place.cassandra.text
            return EngineUnavailableError(f"{self.label}: Cassandra at {where} cannot be used now: {text}")
        return GossamerError(f"{self.label}: {text}")


def require_version(version: str, label: str) -> None:
    """Raise if Cassandra is too old."""
    if int(version.partition(".")[0]) < MIN_VERSION:
        raise UsageError(f"{label}: Cassandra {version} is too old; expected {MIN_VERSION} or newer")


def _pages(found: ResultSet) -> Iterator[list[Fields]]:
    while True:
        yield list(found.current_rows)
        if not found.has_more_pages:
            return
        found.fetch_next_page()


def _together(
    session: Session, requests: Iterable[tuple[Any, Sequence[object] | None]], at_once: int = IN_FLIGHT
) -> Iterator[Any]:
    """Yield the results of requests in their order, of which some are under way at the same time."""
    waiting: deque[tuple[ResponseFuture, Any, Sequence[object] | None]] = deque()
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


def _divided(statements: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """Yield runs of statements that are not too long for one request."""
    start = size = 0
    for number, (_, _, values) in enumerate(statements):
        length = sum(map(len, values)) + 40
        if number > start and (size + length > MAX_BATCH_BYTES or number - start >= MAX_BATCH_ROWS):
            yield statements[start:number]
            start = number
            size = 0
        size += length
    if start < len(statements):
        yield statements[start:]
