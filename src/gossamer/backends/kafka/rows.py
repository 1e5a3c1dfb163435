"""Rows of shards in Cassandra: how they are written, with timestamps that fence old owners, and read in slices.

Hosts, domains and robots.txt can be read with `cqlsh`: their records are JSON objects. Others are as in every store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from cassandra import ReadFailure

from gossamer.backends.kafka.database import Fields, Keyspace, Statement, int_bytes, long_bytes
from gossamer.backends.kafka.layout import Layout
from gossamer.core.ledger.readable_rows import READABLE, readable, stored
from gossamer.core.ledger.rows import SHARDED
from gossamer.model.errors import LedgerUnavailableError
from gossamer.ports import Row

PLAIN = tuple(table for table in SHARDED if table not in READABLE)
# Most rows of these are removed soon, and what is left of them is dropped after a day: longer than a server is away.
_SHORT_LIVED = frozenset({"queue", "swapped_out", "held", "backlog"})


def schema_of_plain_tables() -> Iterator[str]:
    """Yield the statements that create the tables that are alike."""
    for table in PLAIN:
        text = (
            f"CREATE TABLE IF NOT EXISTS {table} "
            "(crawl text, part int, key blob, value blob, PRIMARY KEY ((crawl, part), key))"
        )
        options = "gc_grace_seconds = 86400 AND compaction = {'class': 'LeveledCompactionStrategy'}"
        yield f"{text} WITH {options}" if table in _SHORT_LIVED else text


def _columns(table: str) -> Sequence[str]:
    if table not in READABLE:
        return ("value",)
    return ("name", "record", "body") if table == "robots" else ("name", "record")


def _insert(table: str) -> str:
    columns = ("crawl", "part", "key", *_columns(table))
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) USING TIMESTAMP ?"


_INSERT = {table: _insert(table) for table in SHARDED}
_REMOVE = {
    table: f"DELETE FROM {table} USING TIMESTAMP ? WHERE crawl = ? AND part = ? AND key = ?" for table in SHARDED
}
_READ = {
    table: f"SELECT key, {', '.join(_columns(table))} FROM {table} "
    "WHERE crawl = ? AND part = ? AND key >= ? AND key < ?"
    for table in SHARDED
}


class ShardRows:
    """The rows of a crawl."""

    def __init__(self, database: Keyspace) -> None:
        self._database = database
        self._crawl = database.name

    def statements(
        self, changed: Mapping[int, Sequence[Row]], stamp_of: Callable[[int], int], layout: Layout
    ) -> Iterator[tuple[int, Statement]]:
        """Yield what stores and removes rows, with the part of each statement."""
        crawl = self._crawl.encode()
        ids = {table: self._database.prepare(_INSERT[table]).query_id for table in SHARDED}
        removing = {table: self._database.prepare(_REMOVE[table]).query_id for table in SHARDED}
        for shard, some in changed.items():
            stamp = long_bytes(stamp_of(shard))
            for table, key, value in some:
                part = layout.part_of(table, key)
                if value is None:
                    yield part, (True, removing[table], [stamp, crawl, int_bytes(part), key])
                elif table in READABLE:
                    name, record, body = readable(table, value)
                    values = [name.encode(), record.encode(), body][: len(_columns(table))]
                    yield part, (True, ids[table], [crawl, int_bytes(part), key, *values, stamp])
                else:
                    yield part, (True, ids[table], [crawl, int_bytes(part), key, value, stamp])

    def read(self, shards: Collection[int], tables: Sequence[str], layout: Layout) -> Iterator[list[Row]]:
        """Yield the rows of shards in slices, table by table."""
        yield from self._read(shards, [table for table in tables if table not in _SHORT_LIVED], layout)
        for table in _SHORT_LIVED.intersection(tables):
            try:
                yield from self._read(shards, [table], layout)
            except LedgerUnavailableError as error:
                # Cassandra refuses to pass over too many removed rows in one request. Some may come twice now.
                if not isinstance(error.__cause__, ReadFailure) or len(shards) == 1:
                    raise
                for shard in shards:
                    yield from self._read([shard], [table], layout)

    def _read(self, shards: Collection[int], tables: Sequence[str], layout: Layout) -> Iterator[list[Row]]:
        requests = [
            (table, (_READ[table], (self._crawl, *each))) for table in tables for each in layout.slices(table, shards)
        ]
        found = self._database.read_ahead([request for _, request in requests])
        for (table, _), pages in zip(requests, found, strict=True):
            for some in pages:
                if some:
                    yield [_row_of(table, each) for each in some]

    def look_up(self, keys: Sequence[bytes], layout: Layout) -> dict[bytes, bytes]:
        """Return rows of URLs that are known."""
        parts: dict[int, list[bytes]] = {}
        for key in keys:
            parts.setdefault(layout.part_of("urls", key), []).append(key)
        text = "SELECT key, value FROM urls WHERE crawl = ? AND part = ? AND key IN ?"
        found = self._database.read_many((text, (self._crawl, part, some)) for part, some in parts.items())
        return {key: value for some in found for key, value in some}


def _row_of(table: str, found: Fields) -> Row:
    if table not in READABLE:
        return Row(table, found[0], found[1])
    return Row(table, found[0], stored(table, found[2], found[3] if table == "robots" else b""))
