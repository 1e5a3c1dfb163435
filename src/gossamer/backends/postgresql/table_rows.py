"""Rows of shards in PostgreSQL: written in one statement per table, read in slices.

Hosts, domains and robots.txt can be read with `psql`: their records are JSON objects. Others are as in every store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg import sql

from gossamer.backends.postgresql.connections import Bytes, Connection
from gossamer.core.ledger import rows
from gossamer.core.ledger.readable_rows import READABLE, readable, stored
from gossamer.core.url.identity import key_ranges
from gossamer.ports import Row

ROWS_AT_ONCE = 10_000
_TYPES = {"key": "bytea", "name": "text", "record": "json", "body": "bytea", "value": "bytea"}


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
    keys = Bytes(row.key for row in added)
    values = Bytes(row.value or b"" for row in added)
    if table not in READABLE:
        return [keys, values]
    found = [readable(table, value) for value in values]
    columns: list[list[Any]] = [keys, [name for name, _, _ in found], [record for _, record, _ in found]]
    return [*columns, Bytes(body for _, _, body in found)] if table == "robots" else columns


def read_rows(connection: Connection, shards: Collection[int], table: str) -> Iterator[list[Row]]:
    """Yield the rows of shards in slices."""
    ranges = list(key_ranges(shards))
    with connection.cursor(name="rows") as cursor:
        bounds = [Bytes(first for first, _ in ranges), Bytes(after for _, after in ranges)]
        cursor.execute(_READ[table], bounds, binary=True)
        while found := cursor.fetchmany(ROWS_AT_ONCE):
            yield [_row_of(table, each) for each in found]


def _row_of(table: str, found: Sequence[Any]) -> Row:
    if table not in READABLE:
        return Row(table, *found)
    return Row(table, found[0], stored(table, found[2], found[3] if table == "robots" else b""))
