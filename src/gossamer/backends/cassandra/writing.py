"""From rows of a catalog to statements: their columns, their partitions, and their write timestamps.

Of two writes to a row Cassandra returns the one with the later timestamp, whichever arrives last. On many nodes the
timestamp is the time of the commit, so an earlier commit never replaces a later one. On one machine, whose clock may be
set back, it is at least one more than the last one (`Clock`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeAlias

from cassandra.query import BatchStatement, BatchType
from msgspec import Struct

from gossamer.backends.cassandra.connect import Ring
from gossamer.model.records import UrlId
from gossamer.ports.catalog_store import CatalogHost, CatalogPage, Column, DeadLetter, Kind, columns_of

DEFAULT_BUCKETS = 16
MAX_BUCKETS = 1024
_HOST_BYTES = 8  # of an id
_ROWS_PER_BATCH = 50
_TYPES = {
    Kind.TEXT: "text",
    Kind.BYTES: "blob",
    Kind.NUMBER: "int",
    Kind.COUNT: "bigint",
    Kind.REAL: "double",
    Kind.FLAG: "boolean",
    Kind.TIME: "timestamp",
}
# No column is null: a null is stored as a tombstone. What is not known is empty, 0, or 1970-01-01.
_EMPTY = {Kind.TEXT: "", Kind.BYTES: b"", Kind.NUMBER: 0, Kind.COUNT: 0}
Values: TypeAlias = list[object]
Statement: TypeAlias = tuple[Any, Sequence[object]]


def bucket_of(url_id: UrlId, buckets: int) -> int:
    """Return the bucket of a URL among those of its host: by the part of its id that is not the host's."""
    return int.from_bytes(url_id[_HOST_BYTES : _HOST_BYTES + 2], "big") % buckets


def host_part(url_id: UrlId) -> bytes:
    """Return the part of an id that is its host's."""
    return url_id[:_HOST_BYTES]


class Table(Struct, frozen=True):
    """A table, its columns in the order in which they are written, and how many begin the keys."""

    name: str
    columns: tuple[Column, ...]
    partition: int  # columns of the key of a partition
    key: int  # of the key of a row

    @property
    def create(self) -> str:
        """Return the statement that creates the table."""
        columns = [f"{column.name} {_TYPES[column.kind]}" for column in self.columns]
        names = [column.name for column in self.columns[: self.key]]
        key = ", ".join([f"({', '.join(names[: self.partition])})", *names[self.partition :]])
        return f"CREATE TABLE IF NOT EXISTS $keyspace.{self.name} ({', '.join(columns)}, PRIMARY KEY ({key}))"

    @property
    def insert(self) -> str:
        """Return the statement that inserts or replaces a row; its last parameter is the write timestamp."""
        marks = ", ".join("?" * len(self.columns))
        names = ", ".join(column.name for column in self.columns)
        return f"INSERT INTO $keyspace.{self.name} ({names}) VALUES ({marks}) USING TIMESTAMP ?"  # noqa: S608


_BUCKET = Column("bucket", Kind.NUMBER)  # divides the rows of a host, so that no partition grows without bound
_HOST_ID = Column("host_id", Kind.BYTES)  # the first eight bytes of the URL's id
_COMMITTED_AT = Column("committed_at", Kind.TIME)


def _columns(row: type[Struct], first: Sequence[str | Column], *more: Column) -> tuple[Column, ...]:
    """Return all columns of a row and more; some of them come first."""
    own = {column.name: column for column in (*columns_of(row), *more)}
    begin = [own.pop(column) if isinstance(column, str) else column for column in first]
    return (*begin, *own.values())


_PAGE = (Column("crawl", Kind.TEXT), _COMMITTED_AT)
PAGES_BY_ID = Table("pages_by_id", _columns(CatalogPage, ["url_id", "visit"], *_PAGE), 1, 2)
PAGES_BY_HOST = Table("pages_by_host", _columns(CatalogPage, ["host", _BUCKET, "url_id", "visit"], *_PAGE), 2, 4)
DEAD_LETTERS = Table("dead_letters", _columns(DeadLetter, ["host", _BUCKET, "url_id"], _COMMITTED_AT), 2, 3)
# Where a dead letter is, by the URL's id alone.
_LETTER_ID = tuple(column for column in columns_of(DeadLetter) if column.name in {"url_id", "host", "outcome", "node"})
DEAD_LETTER_IDS = Table("dead_letter_ids", (_HOST_ID, _BUCKET, *_LETTER_ID), 2, 3)
HOSTS = Table("hosts", _columns(CatalogHost, ["name"], _COMMITTED_AT), 1, 1)
TABLES = (PAGES_BY_ID, PAGES_BY_HOST, DEAD_LETTERS, DEAD_LETTER_IDS, HOSTS)


class Shape(Struct, frozen=True):
    """What all rows of a catalog have in common."""

    crawl: str
    buckets: int


def values_of(table: Table, row: CatalogPage | DeadLetter | CatalogHost, shape: Shape, committed_at: float) -> Values:
    """Return the columns of a row."""
    return [_value(column, row, shape, committed_at) for column in table.columns]


def _value(column: Column, row: CatalogPage | DeadLetter | CatalogHost, shape: Shape, committed_at: float) -> object:
    if column is _COMMITTED_AT:
        return milliseconds(committed_at)
    if column.name == "crawl":
        return shape.crawl
    if column is _BUCKET and not isinstance(row, CatalogHost):
        return bucket_of(row.url_id, shape.buckets)
    if column is _HOST_ID and not isinstance(row, CatalogHost):
        return host_part(row.url_id)
    value = getattr(row, column.name)
    if column.kind is Kind.TIME:
        return milliseconds(value or 0.0)
    return _EMPTY[column.kind] if value is None else value


def milliseconds(at: float) -> int:
    """Return a time as Cassandra stores it."""
    return round(1000 * at)


def batches(ring: Ring, query: str, table: Table, rows: Iterable[Values]) -> list[Statement]:
    """Return statements that write rows: one per partition, or several if it gets many rows."""
    by_partition: defaultdict[tuple[object, ...], list[Values]] = defaultdict(list)
    for row in rows:
        by_partition[tuple(row[: table.partition])].append(row)
    statement = ring.prepare(query)
    made: list[Statement] = []
    for group in by_partition.values():
        remaining = iter(group)
        while some := list(islice(remaining, _ROWS_PER_BATCH)):
            made.append((statement, some[0]) if len(some) == 1 else (_batch(statement, some), ()))
    return made


def _batch(statement: Any, rows: Iterable[Values]) -> BatchStatement:  # noqa: ANN401 - of the driver, without types
    # Unlogged: rows of one partition are one change for the server, stored wholly or not at all.
    batch = BatchStatement(BatchType.UNLOGGED)
    for row in rows:
        batch.add(statement, row)
    return batch
