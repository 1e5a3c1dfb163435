"""A catalog of what a crawl has fetched, as tables in a schema: `postgresql://host:port/database[/SCHEMA]`.

A call of `put` is one transaction with one statement per table, whatever its size. A row that is there is replaced,
except by an earlier commit of another node (`committed_at`): so a call can be repeated as often as necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, LiteralString, TypeVar

from msgspec import Struct
from psycopg import sql

from gossamer.backends.clients.errors import AT_THE_START, WHILE_IT_RUNS
from gossamer.backends.postgresql.address import parameters_of, shown
from gossamer.backends.postgresql.connections import Bytes, Connection, Connections
from gossamer.foundation import failpoints
from gossamer.model.errors import LedgerUnavailableError, UsageError
from gossamer.model.records import UrlId
from gossamer.ports.catalog_store import (
    FORMAT,
    CatalogChanges,
    CatalogHost,
    CatalogPage,
    CatalogVisit,
    Column,
    DeadLetter,
    HostCounts,
    Kind,
    VisitKey,
    columns_of,
)
from gossamer.settings.stores import DEFAULT_SCHEMA

_TABLES = ("pages", "dead_letters", "hosts")
_EXPECTED = "expected postgresql://host:port/database or postgresql://host:port/database/SCHEMA"
_PAGE_OF_ROWS = 1000
_Row = TypeVar("_Row", bound=Struct)
_Done = TypeVar("_Done")
_TYPES: Mapping[Kind, LiteralString] = {
    Kind.TEXT: "text",
    Kind.BYTES: "bytea",
    Kind.NUMBER: "integer",
    Kind.COUNT: "bigint",
    Kind.REAL: "double precision",
    Kind.FLAG: "boolean",
    Kind.TIME: "timestamptz",
}


class PostgresCatalog:
    """See `gossamer.ports.catalog_store.CatalogInventory`."""

    def __init__(self, url: str) -> None:
        parameters, schema = parameters_of(url, "the URL of a catalog", _EXPECTED)
        self.name = shown(url)
        self._database = Connections(parameters, schema or DEFAULT_SCHEMA, f"catalog {self.name}")

    # -- at the start -----------------------------------------------------------------------------

    def is_there(self) -> bool:
        """Return whether the tables are there; raise UsageError if that cannot be found out."""
        with AT_THE_START, self._database.transaction(is_readonly=True) as connection:
            return self._has_tables(connection)

    def check(self, crawl: str) -> None:
        """Create the tables for a crawl, unless they are there; raise UsageError if they cannot be used."""
        with AT_THE_START:
            self._database.check_server()
            with self._database.transaction() as connection:
                self._check_encoding(connection)
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._database.schema])
                if not self._has_tables(connection):
                    self._create(connection, crawl)
                elif connection.execute("SELECT crawl FROM catalog").fetchone() == ("",):  # created by init-cluster
                    connection.execute("UPDATE catalog SET crawl = %s", [crawl])
                self._check_rights(connection)

    def check_empty(self) -> None:
        """Raise UsageError if there are rows: those of another crawl would be replaced."""
        with AT_THE_START, self._database.transaction(is_readonly=True) as connection:
            for table in _TABLES:
                query = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(table))
                if connection.execute(query).fetchone() is not None:
                    raise UsageError(
                        f"{self._database.label}: its schema {self._database.schema} has the catalog of another crawl, "
                        "which a new one would replace; name another schema, as postgresql://host:port/database/SCHEMA"
                    )

    def _check_encoding(self, connection: Connection) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise UsageError(f"{self._database.label}: the database has the encoding {encoding}; expected UTF8")

    def _has_tables(self, connection: Connection) -> bool:
        if self._database.has_table(connection, "catalog"):
            # By its full name: without rights to the schema, the search path does not lead there.
            name = sql.Identifier(self._database.schema, "catalog")
            found = connection.execute(sql.SQL("SELECT format FROM {}").format(name)).fetchone()
            if found != (FORMAT,):
                raise UsageError(
                    f"{self._database.label}: has a catalog of format {found[0] if found else 'unknown'}, this version "
                    f"writes format {FORMAT}; name another schema, as postgresql://host:port/database/SCHEMA"
                )
            return True
        for table in _TABLES:
            if self._database.has_table(connection, table):
                raise UsageError(
                    f"{self._database.label}: its schema {self._database.schema} has a table {table} that is not a "
                    "catalog's; name another schema, as postgresql://host:port/database/SCHEMA"
                )
        return False

    def _create(self, connection: Connection, crawl: str) -> None:
        schema = self._database.schema
        # Not IF NOT EXISTS, which needs the right to create one even if it is there.
        known = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone()
        if known is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        rows: dict[str, type[Struct]] = {"pages": CatalogPage, "dead_letters": DeadLetter, "hosts": CatalogHost}
        columns = {table: _declarations(row) for table, row in rows.items()}
        connection.execute(sql.SQL(files(__package__).joinpath("catalog.sql").read_text("utf-8")).format(**columns))
        connection.execute("INSERT INTO catalog (format, crawl) VALUES (%s, %s)", [FORMAT, crawl])

    def _check_rights(self, connection: Connection) -> None:
        """Do what a crawl does, without effect."""
        for table in _TABLES:
            name = sql.Identifier(table)
            connection.execute(sql.SQL("INSERT INTO {} SELECT * FROM {} WHERE false").format(name, name))
            connection.execute(sql.SQL("UPDATE {} SET node = node WHERE false").format(name))
            connection.execute(sql.SQL("DELETE FROM {} WHERE false").format(name))

    # -- rows -------------------------------------------------------------------------------------

    def put(self, changes: CatalogChanges) -> None:
        """Store rows in one transaction; if that fails, try once more."""
        self._repeated(lambda connection: _put(connection, changes))

    def remove(self, visits: Sequence[VisitKey], dead_letters: Sequence[UrlId], hosts: Sequence[str]) -> None:
        self._repeated(lambda connection: _remove(connection, visits, dead_letters, hosts))

    def visits(self) -> Iterator[CatalogVisit]:
        query = """
            SELECT url_id, visit, url, content_hash, archive_file, archive_offset FROM pages
            WHERE (url_id, visit) > (%s, %s) ORDER BY url_id, visit LIMIT %s
        """
        return (CatalogVisit(*row) for row in self._all(query, (b"", 0)))

    def dead_letters(self) -> Iterator[tuple[UrlId, str]]:
        query = "SELECT url_id, outcome FROM dead_letters WHERE url_id > %s ORDER BY url_id LIMIT %s"
        return ((row[0], row[1]) for row in self._all(query, (b"",)))

    def hosts(self, names: Sequence[str]) -> dict[str, HostCounts]:
        query = "SELECT name, pages, fetches, errors FROM hosts WHERE name = ANY(%s)"
        found = self._repeated(lambda connection: connection.execute(query, [list(names)]).fetchall())
        return {row[0]: HostCounts(*row[1:]) for row in found}

    def host_names(self) -> Iterator[str]:
        query = 'SELECT name FROM hosts WHERE name COLLATE "C" > %s ORDER BY name COLLATE "C" LIMIT %s'
        return (row[0] for row in self._all(query, ("",)))

    def _all(self, query: str, after: tuple[object, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, in parts: each begins after the key with which the one before ended."""
        keys = len(after)
        while True:
            part = self._repeated(partial(_fetched, query=query, after=after))
            yield from part
            if len(part) < _PAGE_OF_ROWS:
                return
            after = part[-1][:keys]

    def close(self) -> None:
        self._database.close()

    def _repeated(self, act: Callable[[Connection], _Done]) -> _Done:
        """Do something in a transaction; if the server cannot be used, try once more: connections may be stale."""
        try:
            with self._database.transaction() as connection:
                return act(connection)
        except (LedgerUnavailableError, UsageError):
            with WHILE_IT_RUNS, self._database.transaction() as connection:
                return act(connection)


def _fetched(connection: Connection, query: str, after: tuple[object, ...]) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode(), [*after, _PAGE_OF_ROWS]).fetchall()


def _put(connection: Connection, changes: CatalogChanges) -> None:
    at = changes.committed_at
    _upsert(connection, _PAGES, changes.pages, at)
    failpoints.reach("in_catalog")
    if changes.not_dead:
        gone = "DELETE FROM dead_letters WHERE url_id = ANY(%b) AND (node = '' OR committed_at <= to_timestamp(%b))"
        connection.execute(gone, [Bytes(changes.not_dead), at])
    _upsert(connection, _DEAD_LETTERS, changes.dead_letters, at)
    _upsert(connection, _HOSTS, changes.hosts, at)


def _remove(
    connection: Connection, visits: Sequence[VisitKey], dead_letters: Sequence[UrlId], hosts: Sequence[str]
) -> None:
    ids = [key.url_id for key in visits]
    numbers = [key.visit for key in visits]
    gone = "DELETE FROM pages WHERE (url_id, visit) IN (SELECT * FROM unnest(%b::bytea[], %b::integer[]))"
    connection.execute(gone, [ids, numbers])
    connection.execute("DELETE FROM dead_letters WHERE url_id = ANY(%b::bytea[])", [list(dead_letters)])
    connection.execute("DELETE FROM hosts WHERE name = ANY(%b::text[])", [list(hosts)])


def _declarations(row: type[Struct]) -> sql.Composed:
    kinds: dict[bool, LiteralString] = {True: "{} {}", False: "{} {} NOT NULL"}
    return _listed(
        sql.SQL(kinds[column.is_optional]).format(sql.Identifier(column.name), sql.SQL(_TYPES[column.kind]))
        for column in columns_of(row)
    )


class _Insert(Struct, frozen=True):
    """A statement that inserts or replaces rows, and the columns that it gets as arrays."""

    columns: tuple[Column, ...]
    statement: sql.Composed


_INSERT = """
    INSERT INTO {table} AS old ({names}, {constants}) SELECT {values}, {constant_values}
    FROM unnest({arrays}) AS new ({names}) ON CONFLICT ({key}) DO UPDATE SET {replaced}
    WHERE EXCLUDED.node = '' OR old.committed_at <= EXCLUDED.committed_at
"""
_COMMITTED_AT: Mapping[str, LiteralString] = {"committed_at": "to_timestamp(%b::double precision)"}


def _insert(table: str, row: type[Struct], key: Sequence[str], constants: Mapping[str, LiteralString]) -> _Insert:
    columns = columns_of(row)
    fields = [column.name for column in columns]
    values = [
        sql.SQL("to_timestamp(nullif({}, 0))" if column.kind is Kind.TIME else "{}").format(
            sql.Identifier("new", column.name)
        )
        for column in columns
    ]
    sent = [Kind.REAL if column.kind is Kind.TIME else column.kind for column in columns]
    arrays = [sql.SQL("%b::{}[]").format(sql.SQL(_TYPES[kind])) for kind in sent]
    replaced = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(field)) for field in (*fields, "committed_at")]
    statement = sql.SQL(_INSERT).format(
        table=sql.Identifier(table),
        names=_listed(map(sql.Identifier, fields)),
        constants=_listed(map(sql.Identifier, constants)),
        values=_listed(values),
        constant_values=_listed(map(sql.SQL, constants.values())),
        arrays=_listed(arrays),
        key=_listed(map(sql.Identifier, key)),
        replaced=_listed(replaced),
    )
    return _Insert(columns, statement)


def _listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


_PAGES = _insert("pages", CatalogPage, ["url_id", "visit"], {**_COMMITTED_AT, "crawl": "(SELECT crawl FROM catalog)"})
_DEAD_LETTERS = _insert("dead_letters", DeadLetter, ["url_id"], _COMMITTED_AT)
_HOSTS = _insert("hosts", CatalogHost, ["name"], _COMMITTED_AT)


def _upsert(connection: Connection, insert: _Insert, rows: Sequence[_Row], at: float) -> None:
    if rows:
        connection.execute(insert.statement, [at, *(_array(rows, column) for column in insert.columns)])


def _array(rows: Sequence[Struct], column: Column) -> list[object]:
    """Return one column of all rows. A text in PostgreSQL has no NUL."""
    values = [getattr(row, column.name) for row in rows]
    if column.kind is not Kind.TEXT:
        return values
    return [text.replace("\0", "\N{REPLACEMENT CHARACTER}") if text else text for text in values]
