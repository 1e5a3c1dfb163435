"""Catalogs on real servers, seen alike: where they are, and what is in them.

Rows are dictionaries by column, as `ports/catalog_store` names them; times are seconds since 1970, and what a store has
no value for is None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias

import psycopg
from cassandra.cluster import Session
from cassandra.query import dict_factory
from psycopg import sql
from psycopg.rows import dict_row
from pymongo.database import Database

from gossamer.backends.registry import open_catalog
from gossamer.ports.catalog_store import CheckedCatalog
from tests.servers import engines
from tests.servers.cassandra import CassandraServer, shared_cassandra
from tests.servers.mongodb import MongoServer
from tests.servers.mongodb import running as running_mongodb
from tests.servers.postgresql import PostgresServer, running_postgres

Row: TypeAlias = dict[str, Any]
_names = count()
_ZERO_IS_NONE = ("parked_until", "archive_offset", "status")


class CatalogPlace(Protocol):
    """Room for one catalog on a server."""

    name: str
    another: str  # what a message says if the place cannot be used

    @property
    def port(self) -> int:
        """The port of the server."""
        ...

    def url(self, port: int = 0) -> str:
        """Return the URL of the catalog, by way of another port."""
        ...

    def rows(self, table: str) -> list[Row]:
        """Return the rows of pages, dead_letters or hosts."""
        ...

    def commits_of(self, node: str) -> int:
        """Return how many commits with pages a node has stored, also while it stores more."""
        ...

    def set_format(self, number: int) -> None:
        """Let the catalog have another format."""
        ...

    def delete(self, table: str, row: Row) -> None:
        """Remove a row of pages, dead_letters or hosts."""
        ...

    def change(self, table: str, row: Row, column: str, value: object) -> None:
        """Change a row of pages, dead_letters or hosts."""
        ...

    def add_stranger(self) -> None:
        """Create a table with the name of one of the catalog's."""
        ...

    def drop(self) -> None:
        """Remove all that a catalog has."""
        ...


def opened(place: CatalogPlace) -> CheckedCatalog:
    """Return a catalog that is ready for a crawl."""
    catalog = open_catalog(place.url())
    catalog.check("crawl")
    return catalog


def _plain(row: Mapping[str, Any]) -> Row:
    """Return a row with times as numbers."""
    return {
        column: value.replace(tzinfo=value.tzinfo or UTC).timestamp() if isinstance(value, datetime) else value
        for column, value in row.items()
    }


class PostgresPlace:
    """A schema."""

    another = "name another schema"

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server = server
        self.name = name

    @property
    def port(self) -> int:
        return self.server.port

    def url(self, port: int = 0) -> str:
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/postgres/{self.name}"

    def query(self, text: str, values: Mapping[str, object] | None = None) -> list[Row]:
        with psycopg.connect(**self.server.parameters, row_factory=dict_row) as connection:  # type: ignore[arg-type]
            connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.name)))
            done = connection.execute(text.encode(), values)
            return done.fetchall() if done.description else []

    def rows(self, table: str) -> list[Row]:
        return [_plain(row) for row in self.query(f"SELECT * FROM {table}")]

    def commits_of(self, node: str) -> int:
        return len(self.query("SELECT DISTINCT committed_at FROM pages WHERE node = %(node)s", {"node": node}))

    def set_format(self, number: int) -> None:
        self.query("UPDATE catalog SET format = %(number)s", {"number": number})

    def delete(self, table: str, row: Row) -> None:
        self.query(f"DELETE FROM {table} WHERE {self._key(table)}", row)

    def change(self, table: str, row: Row, column: str, value: object) -> None:
        self.query(f"UPDATE {table} SET {column} = %(new)s WHERE {self._key(table)}", {**row, "new": value})

    def _key(self, table: str) -> str:
        keys = {"pages": ("url_id", "visit"), "dead_letters": ("url_id",), "hosts": ("name",)}[table]
        return " AND ".join(f"{key} = %({key})s" for key in keys)

    def add_stranger(self) -> None:
        with self.server.connection() as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.name)))
        self.query("CREATE TABLE pages (number integer)")

    def drop(self) -> None:
        with self.server.connection() as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self.name)))


class CassandraPlace:
    """A keyspace."""

    another = "name another keyspace"
    _KEYS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
        "pages": {"pages_by_id": ("url_id", "visit"), "pages_by_host": ("host", "bucket", "url_id", "visit")},
        "dead_letters": {
            "dead_letters": ("host", "bucket", "url_id"),
            "dead_letter_ids": ("host_id", "bucket", "url_id"),
        },
        "hosts": {"hosts": ("name",)},
    }

    def __init__(self, server: CassandraServer, name: str) -> None:
        self.server = server
        self.name = name
        with self.session() as session:
            session.execute(
                f"CREATE KEYSPACE IF NOT EXISTS {name} "
                "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            )

    @property
    def port(self) -> int:
        return self.server.ports[0]

    def url(self, port: int = 0) -> str:
        return f"cassandra://127.0.0.1:{port or self.port}/{self.name}"

    @contextmanager
    def session(self) -> Iterator[Session]:
        with self.server.cluster() as cluster:
            session = cluster.connect()
            session.row_factory = dict_factory
            session.default_timeout = 30
            yield session

    def query(self, text: str, values: tuple[object, ...] = ()) -> list[Row]:
        with self.session() as session:
            session.set_keyspace(self.name)
            return [_plain(row) for row in session.execute(text, values or None)]

    def rows(self, table: str) -> list[Row]:
        rows = self.query(f"SELECT * FROM {'pages_by_id' if table == 'pages' else table}")
        if table == "pages":
            by_host = self.query("SELECT * FROM pages_by_host")
            for row in by_host:
                del row["bucket"]
            assert sorted(by_host, key=_visit_of) == sorted(rows, key=_visit_of), "the two tables agree"
        if table == "dead_letters":
            ids = self.query("SELECT url_id, outcome FROM dead_letter_ids")
            letters = [{"url_id": row["url_id"], "outcome": row["outcome"]} for row in rows]
            assert sorted(ids, key=_id_of) == sorted(letters, key=_id_of), "the two tables agree"
        return [{column: _or_none(column, value) for column, value in row.items()} for row in rows]

    def commits_of(self, node: str) -> int:
        rows = self.query("SELECT node, committed_at FROM pages_by_host")
        return len({row["committed_at"] for row in rows if row["node"] == node})

    def set_format(self, number: int) -> None:
        self.query("UPDATE catalog SET format = %s WHERE one = 'catalog'", (number,))

    def delete(self, table: str, row: Row) -> None:
        for name, keys in self._KEYS[table].items():
            where = " AND ".join(f"{key} = %s" for key in keys)
            self.query(f"DELETE FROM {name} WHERE {where}", self._values(row, keys))

    def change(self, table: str, row: Row, column: str, value: object) -> None:
        for name, keys in self._KEYS[table].items():
            where = " AND ".join(f"{key} = %s" for key in keys)
            self.query(f"UPDATE {name} SET {column} = %s WHERE {where}", (value, *self._values(row, keys)))

    def _values(self, row: Row, keys: tuple[str, ...]) -> tuple[object, ...]:
        url_id: bytes = row.get("url_id", b"")
        known = {**row, "bucket": int.from_bytes(url_id[8:10], "big") % 16, "host_id": url_id[:8]}
        return tuple(known[key] for key in keys)

    def add_stranger(self) -> None:
        self.query("CREATE TABLE hosts (number int PRIMARY KEY)")

    def drop(self) -> None:
        with self.session() as session:
            query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
            for row in session.execute(query, (self.name,)):
                session.execute(f"DROP TABLE {self.name}.{row['table_name']}")


def _id_of(row: Row) -> bytes:
    found: bytes = row["url_id"]
    return found


def _visit_of(row: Row) -> tuple[bytes, int]:
    return row["url_id"], row["visit"]


def _or_none(column: str, value: object) -> object:
    """Return what stands for an empty value."""
    is_nothing = value == b"" or (column in _ZERO_IS_NONE and value == 0)
    return None if is_nothing or (column in {"archive_file", "found_on"} and value == "") else value


class MongoPlace:
    """A database."""

    another = "name another database"

    def __init__(self, server: MongoServer, name: str) -> None:
        self.server = server
        self.name = name

    @property
    def port(self) -> int:
        return self.server.port

    def url(self, port: int = 0) -> str:
        return self.server.url(self.name, port or self.port)

    @contextmanager
    def database(self) -> Iterator[Database[Row]]:
        with self.server.client() as client:
            yield client[self.name]

    def rows(self, table: str) -> list[Row]:
        with self.database() as database:
            return [_of_mongo(table, row) for row in database[table].find()]

    def commits_of(self, node: str) -> int:
        return len({row["committed_at"] for row in self.rows("pages") if row["node"] == node})

    def set_format(self, number: int) -> None:
        with self.database() as database:
            database["catalog"].update_one({"_id": "catalog"}, {"$set": {"format": number}})

    def delete(self, table: str, row: Row) -> None:
        with self.database() as database:
            assert database[table].delete_one({"_id": row["_id"]}).deleted_count == 1

    def change(self, table: str, row: Row, column: str, value: object) -> None:
        with self.database() as database:
            assert database[table].update_one({"_id": row["_id"]}, {"$set": {column: value}}).matched_count == 1

    def add_stranger(self) -> None:
        with self.database() as database:
            database["pages"].insert_one({"number": 1})

    def drop(self) -> None:
        with self.server.client() as client:
            client.drop_database(self.name)


def _of_mongo(table: str, row: Row) -> Row:
    ids = {"dead_letters": "url_id", "hosts": "name", "pages": ""}
    found = _plain(row)
    found[ids[table]] = row["_id"]
    for column in ("url_id", "duplicate_of", "near_duplicate_of"):
        if found.get(column):
            found[column] = bytes.fromhex(found[column])
    return found


KINDS = [engines.param(kind) for kind in ("postgresql", "cassandra", "mongodb")]


@contextmanager
def places_of(kind: str) -> Iterator[Callable[[], CatalogPlace]]:
    """Yield what makes room for catalogs of a kind, on one server."""
    if kind == "cassandra":
        cassandra = shared_cassandra()
        yield lambda: CassandraPlace(cassandra, f"catalog_{os.getpid()}_{next(_names)}")
        return
    if kind == "mongodb":
        with TemporaryDirectory(prefix="gossamer-mongodb-") as folder, running_mongodb(Path(folder)) as mongodb:
            yield lambda: MongoPlace(mongodb, f"catalog{next(_names)}")
        return
    with running_postgres() as postgres:
        yield lambda: PostgresPlace(postgres, f"catalog{next(_names)}")
