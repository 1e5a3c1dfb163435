"""A catalog of what a crawl has fetched, as tables in a keyspace: `cassandra://host:port,…/keyspace`.

A page is a row in two tables, by its id and by its host; so is a dead letter. Cassandra changes one partition at a
time: a call of `put` that fails has stored some of its rows, and is repeated. Everything that a call stores is there
when it returns. Which write wins: `gossamer.backends.cassandra.writing`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from tempfile import TemporaryFile
from typing import IO, Any, TypeAlias

import msgspec

from gossamer.backends.cassandra import writing
from gossamer.backends.cassandra.connect import MissingTableError, Ring, shown
from gossamer.backends.cassandra.letters import KnownLetters, LetterPlace
from gossamer.backends.cassandra.writing import Shape, Table, bucket_of, host_part
from gossamer.backends.clients.errors import AT_THE_START, WHILE_IT_RUNS
from gossamer.core.url.forms import host_of
from gossamer.foundation import failpoints
from gossamer.model.errors import UsageError
from gossamer.model.records import UrlId
from gossamer.ports.catalog_store import (
    FORMAT,
    CatalogChanges,
    CatalogHost,
    CatalogPage,
    CatalogVisit,
    DeadLetter,
    HostCounts,
    VisitKey,
)

# Sorts more rows than fit into memory: Cassandra lists a table in an order of its own.
#
# Lots of rows are sorted and written to a temporary file, and then merged. Memory: one lot.

LOT = 100_000
Row: TypeAlias = tuple[Any, ...]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Any, ...]).decode


def sorted_rows(rows: Iterable[Row], lot: int = LOT) -> Iterator[Row]:
    """Yield rows of texts, bytes and numbers in their order."""
    remaining = iter(rows)
    first = sorted(islice(remaining, lot))
    if len(first) < lot:
        yield from first
        return
    files = [_written(first)]
    del first
    while some := sorted(islice(remaining, lot)):
        files.append(_written(some))
    try:
        yield from merge(*(_read(file) for file in files))
    finally:
        for file in files:
            file.close()


def _written(rows: Iterable[Row]) -> IO[bytes]:
    file = TemporaryFile()  # noqa: SIM115 - closed by `sorted_rows`
    for row in rows:
        encoded = _encode(row)
        file.write(len(encoded).to_bytes(4, "big") + encoded)
    return file


def _read(file: IO[bytes]) -> Iterator[Row]:
    file.seek(0)
    while head := file.read(4):
        yield _decode(file.read(int.from_bytes(head, "big")))


TABLES = tuple(table.name for table in writing.TABLES)
_OTHER_KEYSPACE = "name another keyspace, as cassandra://host:port/KEYSPACE"
_TRIES = 20  # while others create the tables
_RETRY_S = 0.5
# `clock` is of a crawl on one machine: the last write timestamp, in microseconds.
_CREATE = """
    CREATE TABLE IF NOT EXISTS $keyspace.catalog
    (one text PRIMARY KEY, format int, crawl text, buckets int, created_at timestamp, clock bigint)
"""
_FIRST_ROW = """
    INSERT INTO $keyspace.catalog (one, format, crawl, buckets, created_at)
    VALUES ('catalog', %s, %s, %s, toTimestamp(now())) IF NOT EXISTS
"""
_ANY_ROW = (
    "SELECT url_id FROM $keyspace.pages_by_id LIMIT 1",
    "SELECT url_id FROM $keyspace.dead_letters LIMIT 1",
    "SELECT name FROM $keyspace.hosts LIMIT 1",
)
# What a crawl does, without effect: the deletions are older than any row.
_REHEARSAL = (
    "SELECT url_id FROM $keyspace.pages_by_id WHERE url_id = 0x00",
    "SELECT url_id FROM $keyspace.dead_letter_ids WHERE host_id = 0x00 AND bucket = 0",
    "DELETE FROM $keyspace.pages_by_id USING TIMESTAMP 1 WHERE url_id = 0x00",
    "DELETE FROM $keyspace.pages_by_host USING TIMESTAMP 1 WHERE host = '' AND bucket = 0",
    "DELETE FROM $keyspace.dead_letters USING TIMESTAMP 1 WHERE host = '' AND bucket = 0",
    "DELETE FROM $keyspace.dead_letter_ids USING TIMESTAMP 1 WHERE host_id = 0x00 AND bucket = 0",
    "DELETE FROM $keyspace.hosts USING TIMESTAMP 1 WHERE name = '-'",
)
_ALL_VISITS = (
    "SELECT url_id, visit, url, content_hash, archive_file, archive_offset FROM $keyspace.pages_by_id",
    "SELECT url_id, visit, url, content_hash, archive_file, archive_offset FROM $keyspace.pages_by_host",
)
_ALL_LETTERS = (
    "SELECT url_id, outcome FROM $keyspace.dead_letter_ids",
    "SELECT url_id, outcome FROM $keyspace.dead_letters",
)


class CassandraCatalog:
    """See `gossamer.ports.catalog_store.CatalogInventory`."""

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        self.ring = Ring(url, f"catalog {self.name}")
        self._shape: Shape | None = None
        self._known_letters: KnownLetters | None = None
        self._clock: int | None = None  # the last write timestamp of a crawl on one machine

    # -- at the start -----------------------------------------------------------------------------

    def is_there(self) -> bool:
        """Return whether the tables are there; raise UsageError if that cannot be found out."""
        with AT_THE_START:
            return self._found(self.ring.tables())

    def check(self, crawl: str) -> None:
        """Create the tables for a crawl, unless they are there; raise UsageError if they cannot be used."""
        with AT_THE_START:
            self.ring.check_server()
            for tries_left in reversed(range(_TRIES)):
                try:
                    self.create(crawl, writing.DEFAULT_BUCKETS)
                    self.check_rights()
                    return
                except MissingTableError:  # another node is creating them, too
                    if not tries_left:
                        raise
                    time.sleep(_RETRY_S)

    def create(self, crawl: str, buckets: int) -> bool:
        """Create the tables, unless they are there; return whether it did. An empty name can be set later."""
        is_new = not self._found(self.ring.tables())
        if is_new:
            for statement in (_CREATE, *(table.create for table in writing.TABLES)):
                self.ring.execute(statement)
            self.ring.execute(_FIRST_ROW, (FORMAT, crawl, buckets))
        elif crawl:
            self.ring.execute("UPDATE $keyspace.catalog SET crawl = %s WHERE one = 'catalog' IF crawl = ''", (crawl,))
        return is_new

    def check_rights(self) -> None:
        """Raise UsageError if the user may not do what a crawl does."""
        for statement in _REHEARSAL:
            self.ring.execute(statement)

    def buckets(self) -> int:
        """Return into how many buckets the rows of a host are divided."""
        return self._shape_of_rows().buckets

    def check_empty(self) -> None:
        """Raise UsageError if there are rows: those of another crawl would be replaced."""
        with AT_THE_START:
            for query in _ANY_ROW:
                if self.ring.execute(query):
                    raise UsageError(
                        f"{self.ring.label}: its keyspace has the catalog of another crawl, which a new one would "
                        f"replace; {_OTHER_KEYSPACE}"
                    )

    def _found(self, tables: set[str]) -> bool:
        if "catalog" not in tables:
            for table in TABLES:
                if table in tables:
                    raise UsageError(
                        f"{self.ring.label}: its keyspace has a table {table} that is not a catalog's; "
                        f"{_OTHER_KEYSPACE}"
                    )
            return False
        found = self.ring.execute("SELECT format FROM $keyspace.catalog WHERE one = 'catalog'")
        if found and found[0].format != FORMAT:
            raise UsageError(
                f"{self.ring.label}: has a catalog of format {found[0].format}, this version writes format {FORMAT}; "
                f"{_OTHER_KEYSPACE}"
            )
        return bool(found) and tables.issuperset(TABLES)  # else whoever created them was interrupted

    # -- rows -------------------------------------------------------------------------------------

    def put(self, changes: CatalogChanges) -> None:
        """Store rows; if that fails, connect anew and try once more."""
        with WHILE_IT_RUNS:
            self.ring.repeated(lambda: self._put(changes))

    def _put(self, changes: CatalogChanges) -> None:
        stamp = _Stamp(self, changes.committed_at)
        self._insert(writing.PAGES_BY_ID, changes.pages, stamp)
        failpoints.reach("in_catalog")
        self._insert(writing.PAGES_BY_HOST, changes.pages, stamp)
        self._forget_letters(changes.not_dead, stamp)
        self._put_letters(changes.dead_letters, stamp)
        self._insert(writing.HOSTS, changes.hosts, stamp)

    def _insert(
        self, table: Table, rows: Sequence[CatalogPage] | Sequence[DeadLetter] | Sequence[CatalogHost], stamp: _Stamp
    ) -> None:
        if not rows:
            return
        if rows[0].node:
            self._letters().is_shared = True
        shape = self._shape_of_rows()
        values = [[*writing.values_of(table, row, shape, stamp.committed_at), stamp.of(row.node)] for row in rows]
        self.ring.run_all(writing.batches(self.ring, table.insert, table, values))

    def _letters(self) -> KnownLetters:
        if self._known_letters is None:
            self._known_letters = KnownLetters(self.ring, self._shape_of_rows().buckets)
        return self._known_letters

    def _put_letters(self, letters: Sequence[DeadLetter], stamp: _Stamp) -> None:
        if not letters:
            return
        self._letters().add(LetterPlace(letter.url_id, letter.host, letter.node) for letter in letters)
        # In this order: a letter that can be seen can be found by its id, and removed.
        self._insert(writing.DEAD_LETTER_IDS, letters, stamp)
        self._insert(writing.DEAD_LETTERS, letters, stamp)

    def _forget_letters(self, ids: Sequence[UrlId], stamp: _Stamp) -> None:
        """Remove those of some URLs that are dead letters.

        They are looked for first: each deletion, also of what is not there, stays as a tombstone for days.
        """
        if ids:
            self._delete_letters(
                [(found.url_id, found.host, stamp.of(found.node)) for found in self._letters().among(ids)]
            )

    def _delete_letters(self, letters: Sequence[tuple[UrlId, str, int]]) -> None:
        """Remove letters by id, host and write timestamp; the ids last, by which the rest is found."""
        buckets = self._shape_of_rows().buckets
        self._delete(
            "DELETE FROM $keyspace.dead_letters USING TIMESTAMP ? WHERE host = ? AND bucket = ? AND url_id = ?",
            [(at, host, bucket_of(url_id, buckets), url_id) for url_id, host, at in letters],
        )
        self._delete(
            "DELETE FROM $keyspace.dead_letter_ids USING TIMESTAMP ? WHERE host_id = ? AND bucket = ? AND url_id = ?",
            [(at, host_part(url_id), bucket_of(url_id, buckets), url_id) for url_id, _, at in letters],
        )
        self._letters().remove(url_id for url_id, _, _ in letters)

    def _delete(self, query: str, keys: Sequence[tuple[object, ...]]) -> None:
        if keys:
            statement = self.ring.prepare(query)
            self.ring.run_all([(statement, key) for key in keys])

    def remove(self, visits: Sequence[VisitKey], dead_letters: Sequence[UrlId], hosts: Sequence[str]) -> None:
        with WHILE_IT_RUNS:
            self.ring.repeated(lambda: self._remove(visits, dead_letters, hosts))

    def _remove(self, visits: Sequence[VisitKey], dead_letters: Sequence[UrlId], hosts: Sequence[str]) -> None:
        at = self.next_stamp(time.time())
        buckets = self._shape_of_rows().buckets
        self._delete(
            "DELETE FROM $keyspace.pages_by_id USING TIMESTAMP ? WHERE url_id = ? AND visit = ?",
            [(at, key.url_id, key.visit) for key in visits],
        )
        self._delete(
            "DELETE FROM $keyspace.pages_by_host USING TIMESTAMP ? "
            "WHERE host = ? AND bucket = ? AND url_id = ? AND visit = ?",
            [(at, host_of(key.url), bucket_of(key.url_id, buckets), key.url_id, key.visit) for key in visits],
        )
        self._delete_letters([(found.url_id, found.host, at) for found in self._letters().among(dead_letters)])
        self._delete("DELETE FROM $keyspace.hosts USING TIMESTAMP ? WHERE name = ?", [(at, name) for name in hosts])

    def next_stamp(self, committed_at: float) -> int:
        """Return a write timestamp that is later than all before, and store it, for the next run."""
        if self._clock is None:
            found = self.ring.run("SELECT clock FROM $keyspace.catalog WHERE one = ?", ("catalog",))
            self._clock = (found[0].clock if found else None) or 0
        at = max(_microseconds(committed_at), self._clock + 1)
        query = "UPDATE $keyspace.catalog USING TIMESTAMP ? SET clock = ? WHERE one = ?"
        self.ring.run(query, (at, at, "catalog"))
        self._clock = at
        return at

    def _shape_of_rows(self) -> Shape:
        if self._shape is None:
            found = self.ring.run("SELECT crawl, buckets FROM $keyspace.catalog WHERE one = ?", ("catalog",))
            if not found:
                raise UsageError(f"{self.ring.label}: its tables are gone")
            self._shape = Shape(found[0].crawl, found[0].buckets)
        return self._shape

    # -- lists ------------------------------------------------------------------------------------

    def visits(self) -> Iterator[CatalogVisit]:
        """Return all visits, sorted by URL id and number. One that is in one of the two tables only has no hash."""
        for both in self._in_both(_ALL_VISITS, keys=2):
            url_id, visit, url, content_hash, file, offset = both[0]
            is_whole = len(both) == 2 and both[0] == both[1]
            place = (file, offset) if file else (None, None)
            yield CatalogVisit(url_id, visit, url, content_hash if is_whole else "", *place)

    def dead_letters(self) -> Iterator[tuple[UrlId, str]]:
        """Return all dead letters with their outcomes, sorted by URL id. Outcomes that disagree are empty."""
        for both in self._in_both(_ALL_LETTERS, keys=1):
            yield both[0][0], both[0][1] if len(both) == 2 and both[0] == both[1] else ""

    def _in_both(self, queries: Sequence[str], keys: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of two tables that have the same key, together."""
        with WHILE_IT_RUNS:
            lists = [sorted_rows(tuple(row) for row in self.ring.scan(query)) for query in queries]
            for _, group in groupby(merge(*lists, key=itemgetter(slice(keys))), key=itemgetter(slice(keys))):
                yield list(group)

    def hosts(self, names: Sequence[str]) -> dict[str, HostCounts]:
        with WHILE_IT_RUNS:
            found = self.ring.repeated(lambda: self._hosts(names))
        return {row.name: HostCounts(row.pages, row.fetches, row.errors) for row in found}

    def _hosts(self, names: Sequence[str]) -> list[Any]:
        query = self.ring.prepare("SELECT name, pages, fetches, errors FROM $keyspace.hosts WHERE name = ?")
        return self.ring.run_all([(query, (name,)) for name in names])

    def host_names(self) -> Iterator[str]:
        with WHILE_IT_RUNS:
            rows = self.ring.scan("SELECT name FROM $keyspace.hosts")
            yield from (row[0] for row in sorted_rows(tuple(row) for row in rows))

    def close(self) -> None:
        self.ring.close()


class _Stamp:
    """The write timestamps of one call."""

    def __init__(self, catalog: CassandraCatalog, committed_at: float) -> None:
        self._catalog = catalog
        self.committed_at = committed_at
        self._own: int | None = None

    def of(self, node: str) -> int:
        """Return the timestamp of a row that a node writes; empty: a crawl on one machine."""
        if node:
            return _microseconds(self.committed_at)
        if self._own is None:
            self._own = self._catalog.next_stamp(self.committed_at)
        return self._own


def _microseconds(at: float) -> int:
    return round(1_000_000 * at)
