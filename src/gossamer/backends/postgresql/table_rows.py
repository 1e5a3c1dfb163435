"""Rows of shards in PostgreSQL: written in one statement per table, read in slices.

Hosts, domains and robots.txt can be read with `psql`: their records are JSON objects. Others are as in every store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import astuple, fields, replace
from psycopg import sql

from gossamer.backends.postgresql.connections import Bytes, Connection
from gossamer.backends.postgresql.database import READABLE
from gossamer.core import rows
from gossamer.core.identity import shard_range
from gossamer.ports import Row
from gossamer.records import DomainRecord, HostRecord, RobotsRecord

ROWS_AT_ONCE = 10_000
T = TypeVar("T", bound=Struct)
_AFTER_ALL = b"\xff" * 33  # longer than every key
_TYPES = {"key": "bytea", "name": "text", "record": "json", "body": "bytea", "value": "bytea"}
_to_json = msgspec.json.Encoder().encode


class _Json(Generic[T]):
    """Records as JSON objects: with the names of their fields, which rows of a store leave out."""

    def __init__(self, record: type[T]) -> None:
        self._record = record
        parts: list[tuple[str, type] | tuple[str, type, Any]] = []
        for each in fields(record):
            if each.required:
                parts.append((each.name, each.type))
            elif each.default_factory is not NODEFAULT:
                parts.append((each.name, each.type, msgspec.field(default_factory=each.default_factory)))
            else:
                parts.append((each.name, each.type, each.default))
        self._named = msgspec.defstruct(record.__name__, parts)
        self._decode = msgspec.json.Decoder(self._named).decode

    def encode(self, record: T) -> str:
        """Return a record as text."""
        return _to_json(self._named(*astuple(record))).decode()

    def decode(self, text: bytes) -> T:
        """Return the record of a text."""
        return self._record(*astuple(self._decode(text)))


_hosts, _domains, _robots = _Json(HostRecord), _Json(DomainRecord), _Json(RobotsRecord)


def _columns_of(table: str) -> tuple[str, ...]:
    if table not in READABLE:
        return "key", "value"
    return ("key", "name", "record", "body") if table == "robots" else ("key", "name", "record")


def _joined(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _upsert(table: str) -> sql.Composed:
    columns = _columns_of(table)
    changed = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(each)) for each in columns[1:]]
    text = "INSERT INTO {} ({}) SELECT * FROM unnest({}) ON CONFLICT (key) DO UPDATE SET {}"
    return sql.SQL(text).format(
        sql.Identifier(table),
        _joined([sql.Identifier(each) for each in columns]),
        _joined([sql.SQL("%b::{}[]").format(sql.SQL(_TYPES[each])) for each in columns]),
        _joined(changed),
    )


def _read(table: str) -> sql.Composed:
    columns = [
        sql.SQL("{}::text").format(sql.Identifier(each)) if each == "record" else sql.Identifier(each)
        for each in _columns_of(table)
    ]
    text = (
        "SELECT {} FROM unnest(%b::bytea[], %b::bytea[]) AS range(first, after) "
        "JOIN {} ON key >= range.first AND key < range.after"
    )
    return sql.SQL(text).format(_joined(columns), sql.Identifier(table))


_UPSERT = {table: _upsert(table) for table in rows.SHARDED}
_READ = {table: _read(table) for table in rows.SHARDED}
_REMOVE = {table: sql.SQL("DELETE FROM {} WHERE key = ANY(%b)").format(sql.Identifier(table)) for table in rows.SHARDED}


def write_rows(connection: Connection, changed: Mapping[int, Sequence[Row]]) -> None:
    """Store and remove rows."""
    tables: dict[str, list[Row]] = {}
    for some in changed.values():
        for table, its_rows in groupby(some, itemgetter(0)):
            tables.setdefault(table, []).extend(its_rows)
    for table, all_rows in tables.items():
        added = [row for row in all_rows if row.value is not None]
        removed = [row.key for row in all_rows if row.value is None]
        if added:
            connection.execute(_UPSERT[table], _by_column(table, added))
        if removed:
            connection.execute(_REMOVE[table], [Bytes(removed)])


def _by_column(table: str, added: Sequence[Row]) -> list[list[Any]]:
    keys, values = Bytes(row.key for row in added), Bytes(row.value or b"" for row in added)
    match table:
        case "hosts":
            hosts = [rows.decode_host(value) for value in values]
            return [keys, [host.name for host in hosts], [_hosts.encode(host) for host in hosts]]
        case "domains":
            domains = [rows.decode_domain(value) for value in values]
            return [keys, [domain.name for domain in domains], [_domains.encode(domain) for domain in domains]]
        case "robots":
            found = [rows.decode_robots(value) for value in values]
            texts = [_robots.encode(replace(record, body=b"")) for record in found]
            return [keys, [record.origin for record in found], texts, Bytes(record.body for record in found)]
        case _:
            return [keys, values]


def read_rows(connection: Connection, shards: Collection[int], table: str) -> Iterator[list[Row]]:
    """Yield the rows of shards in slices."""
    ranges = list(_ranges(shards))
    with connection.cursor(name="rows") as cursor:
        bounds = [Bytes(first for first, _ in ranges), Bytes(after for _, after in ranges)]
        cursor.execute(_READ[table], bounds, binary=True)
        while found := cursor.fetchmany(ROWS_AT_ONCE):
            yield [_row_of(table, each) for each in found]


def _ranges(shards: Collection[int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key ranges of shards; adjacent ones are one range."""
    for _, group in groupby(enumerate(sorted(shards)), lambda each: each[1] - each[0]):
        some = [shard for _, shard in group]
        yield shard_range(some[0])[0], shard_range(some[-1])[1] or _AFTER_ALL


def _row_of(table: str, found: Sequence[Any]) -> Row:
    match table:
        case "hosts":
            return Row(table, found[0], rows.encode(_hosts.decode(found[2])))
        case "domains":
            return Row(table, found[0], rows.encode(_domains.decode(found[2])))
        case "robots":
            return Row(table, found[0], rows.encode_robots(replace(_robots.decode(found[2]), body=found[3])))
        case _:
            return Row(table, *found)
