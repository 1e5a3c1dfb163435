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
from gossamer.ports.catalog_store import CatalogHost, CatalogPage, DeadLetter

DEFAULT_BUCKETS = 16
MAX_BUCKETS = 1024
_HOST_BYTES = 8  # of an id
_ROWS_PER_BATCH = 50
_TIMES = frozenset({"fetched_at", "at", "parked_until", "first_seen_at", "last_fetch_at"})
_EMPTY: dict[str, object] = {
    **dict.fromkeys(("duplicate_of", "near_duplicate_of"), b""),
    **dict.fromkeys(("archive_file", "found_on"), ""),
    **dict.fromkeys(("archive_offset", "status"), 0),
}
Values: TypeAlias = list[object]
Statement: TypeAlias = tuple[Any, Sequence[object]]


def bucket_of(url_id: UrlId, buckets: int) -> int:
    """Return the bucket of a URL among those of its host: by the part of its id that is not the host's."""
    return int.from_bytes(url_id[_HOST_BYTES : _HOST_BYTES + 2], "big") % buckets


def host_part(url_id: UrlId) -> bytes:
    """Return the part of an id that is its host's."""
    return url_id[:_HOST_BYTES]


class Table(Struct, frozen=True):
    """A table, its columns in the order in which they are written, and how many of them are its partition's key."""

    name: str
    columns: tuple[str, ...]
    partition: int

    @property
    def insert(self) -> str:
        """Return the statement that inserts or replaces a row; its last parameter is the write timestamp."""
        marks = ", ".join("?" * len(self.columns))
        return f"INSERT INTO $keyspace.{self.name} ({', '.join(self.columns)}) VALUES ({marks}) USING TIMESTAMP ?"  # noqa: S608


def _fields(row: type[Struct], *others: str) -> tuple[str, ...]:
    return tuple(field for field in row.__struct_fields__ if field not in others)


_PAGE = (*_fields(CatalogPage, "url_id", "visit", "host"), "crawl", "committed_at")
_LETTER = (*_fields(DeadLetter, "url_id", "host"), "committed_at")
PAGES_BY_ID = Table("pages_by_id", ("url_id", "visit", "host", *_PAGE), 1)
PAGES_BY_HOST = Table("pages_by_host", ("host", "bucket", "url_id", "visit", *_PAGE), 2)
DEAD_LETTERS = Table("dead_letters", ("host", "bucket", "url_id", *_LETTER), 2)
DEAD_LETTER_IDS = Table("dead_letter_ids", ("host_id", "bucket", "url_id", "host", "outcome", "node"), 2)
HOSTS = Table("hosts", (*_fields(CatalogHost), "committed_at"), 1)


class Shape(Struct, frozen=True):
    """What all rows of a catalog have in common."""

    crawl: str
    buckets: int


def values_of(table: Table, row: CatalogPage | DeadLetter | CatalogHost, shape: Shape, committed_at: float) -> Values:
    """Return the columns of a row."""
    return [_value(column, row, shape, committed_at) for column in table.columns]


def _value(column: str, row: CatalogPage | DeadLetter | CatalogHost, shape: Shape, committed_at: float) -> object:
    if column == "committed_at":
        return milliseconds(committed_at)
    if column == "crawl":
        return shape.crawl
    if column == "bucket" and not isinstance(row, CatalogHost):
        return bucket_of(row.url_id, shape.buckets)
    if column == "host_id" and not isinstance(row, CatalogHost):
        return host_part(row.url_id)
    value = getattr(row, column)
    if column in _TIMES:
        return milliseconds(value)
    return _EMPTY[column] if value is None else value


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
