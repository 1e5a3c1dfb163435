"""Statements to Cassandra in the tables of a ledger; its errors as ours."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    RequestExecutionException,
    Unauthorized,
)
from cassandra.cluster import Cluster, NoHostAvailable, ResultSet, Session
from cassandra.query import BatchStatement, BatchType, tuple_factory

from gossamer.backends.clients.cassandra import DRIVER_ERRORS, MIN_VERSION, CassandraSession, causes_of
from gossamer.backends.clients.errors import DriverErrors, Rule, Said
from gossamer.backends.kafka.address import CrawlAddress
from gossamer.foundation.expressions import expression
from gossamer.model.errors import GossamerError, LedgerUnavailableError, UsageError

Fields: TypeAlias = tuple[Any, ...]
Statement: TypeAlias = tuple[bool, bytes, list[bytes]]  # of a batch: prepared, its id, values as they are sent
IN_FLIGHT = 96  # requests at once
BATCHES_IN_FLIGHT = 16
READ_AHEAD = 8
MAX_BATCH_BYTES = 64 << 10
MAX_BATCH_ROWS = 500
int_bytes = struct.Struct(">i").pack
long_bytes = struct.Struct(">q").pack
_MAKE = "make it: gossamer init-cluster '{url}'"
_ERRORS = (
    Rule(
        UsageError,
        f"{{label}}: Cassandra has no keyspace {{keyspace}}, or the user may not use it; {_MAKE}",
        pattern=expression("using keyspace"),
    ),
    Rule(
        UsageError,
        "{label}: Cassandra refuses the user: {text}; give one who may read and write",
        (AuthenticationFailed, Unauthorized),
    ),
    Rule(
        UsageError,
        f"{{label}}: {{text}}; {_MAKE}",
        (InvalidRequest,),
        pattern=expression("does not exist|unconfigured table"),
    ),
    Rule(
        LedgerUnavailableError,
        "{label}: Cassandra at {servers} cannot be used now: {text}",
        (NoHostAvailable, OperationTimedOut, RequestExecutionException, OSError),
    ),
    Rule(GossamerError, "{label}: {text}"),
)


class Batch(BatchStatement):  # type: ignore[misc]
    """Statements to one partition, whose values are bytes already: nothing is bound, which is most of the work."""

    def __init__(self, routing_key: Sequence[bytes], statements: Sequence[Statement], kind: BatchType) -> None:
        super().__init__(kind)
        self.routing_key = list(routing_key)
        self._statements_and_parameters.extend(statements)


class Keyspace(CassandraSession):
    """The tables of a keyspace; without them if it is bare: it may not be there yet."""

    def __init__(self, place: CrawlAddress, *, is_bare: bool = False) -> None:
        self.name = place.name
        self.label = f"ledger {place.name}"
        self._is_bare = is_bare
        values = {"label": self.label, "keyspace": place.keyspace, "url": place.shown, "servers": place.cassandra.text}
        super().__init__(
            place.cassandra,
            place.keyspace,
            DriverErrors(DRIVER_ERRORS, _ERRORS, _said, **values),
            tls=place.cassandra_tls,
            serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
            row_factory=tuple_factory,
        )

    def _connected(self, cluster: Cluster) -> Session:
        return cluster.connect(None if self._is_bare else self.keyspace)

    def replication(self) -> int:
        """Return how many copies there are of every row."""
        with self.errors:
            strategy = self.session().cluster.metadata.keyspaces[self.keyspace.lower()].replication_strategy
            factors = strategy.export_for_schema()
        return sum(int(each) for each in re.findall(r"'[^']+': '([0-9]+)'", factors))

    # -- statements -------------------------------------------------------------------------------

    def read(self, text: str, *values: object) -> list[Fields]:
        """Return what a statement finds."""
        with self.errors:
            return list(self.session().execute(self.prepare(text), values))

    def read_last(self, text: str, *values: object) -> list[Fields]:
        """The same, of what is changed under conditions: the last change is seen."""
        with self.errors:
            return list(self.session().execute(self.prepare(text, is_serial=True), values))

    def read_many(self, requests: Iterable[tuple[str, Sequence[object]]]) -> list[list[Fields]]:
        """Return what several statements find, asked at the same time."""
        with self.errors:
            statements = ((self.prepare(text), values) for text, values in requests)
            return [list(each) for each in self.run_together(statements, IN_FLIGHT)]

    def read_slices(self, text: str, *values: object) -> Iterator[list[Fields]]:
        """Yield what a statement finds, page by page."""
        with self.errors:
            yield from _pages(self.session().execute(self.prepare(text), values))

    def read_ahead(self, requests: Sequence[tuple[str, Sequence[object]]]) -> Iterator[Iterator[list[Fields]]]:
        """Yield the pages that each statement finds; the next statements are under way meanwhile."""
        with self.errors:
            statements = ((self.prepare(text), values) for text, values in requests)
            for found in self.run_together(statements, READ_AHEAD):
                yield _pages(found)

    def write(self, text: str, *values: object) -> None:
        """Make a statement."""
        with self.errors:
            self.session().execute(self.prepare(text), values)

    def change(self, text: str, *values: object) -> bool:
        """Make a statement that has a condition; return whether it was so."""
        with self.errors:
            return bool(self.session().execute(self.prepare(text), values).was_applied)

    def change_together(self, routing_key: Sequence[bytes], statements: Sequence[Statement]) -> bool:
        """Make statements with conditions in one partition: all of them or none."""
        with self.errors:
            return bool(self.session().execute(Batch(routing_key, statements, BatchType.UNLOGGED)).was_applied)

    def change_many(self, batches: Sequence[tuple[Sequence[bytes], Sequence[Statement]]]) -> list[bool]:
        """Make several such batches at the same time."""
        with self.errors:
            made = ((Batch(key, some, BatchType.UNLOGGED), None) for key, some in batches)
            return [bool(each.was_applied) for each in self.run_together(made, BATCHES_IN_FLIGHT)]

    def write_batches(self, batches: Iterable[tuple[Sequence[bytes], Sequence[Statement]]]) -> None:
        """Make statements, each group of which is for one partition."""
        with self.errors:
            made = (
                (Batch(key, some, BatchType.UNLOGGED), None) for key, all_of in batches for some in _divided(all_of)
            )
            for _ in self.run_together(made, BATCHES_IN_FLIGHT):
                pass

    def statement(self, text: str, *values: bytes) -> Statement:
        """Return a statement for a batch; its values are as they are sent."""
        return True, self.prepare(text).query_id, list(values)


def _said(error: BaseException) -> Said:
    causes = causes_of(error)
    return Said(" ".join(str(causes[0]).split()).rstrip("."), causes)


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
