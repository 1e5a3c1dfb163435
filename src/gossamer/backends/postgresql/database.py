"""The schema of a crawl: `gossamer_NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from psycopg import sql

from gossamer.backends.postgresql.connections import Connection, Connections
from gossamer.core.ledger.readable_rows import READABLE
from gossamer.core.ledger.rows import SHARDED

OTHERS = tuple(table for table in SHARDED if table not in READABLE)


class Database(Connections):
    """A database with the schema of a crawl."""

    def __init__(self, parameters: Mapping[str, Any], name: str) -> None:
        super().__init__(parameters, f"gossamer_{name}", f"ledger {name}")
        self.name = name

    def create(self) -> None:
        """Create the tables of the crawl, unless they are there."""
        with self.transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [self.schema])
            if self.exists(connection):
                return
            schema = sql.Identifier(self.schema)
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            connection.execute(sql.SQL(files(__package__).joinpath("schema.sql").read_text()))
            for table in OTHERS:
                create = "CREATE TABLE {} (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 90)"
                connection.execute(sql.SQL(create).format(sql.Identifier(table)))

    def exists(self, connection: Connection) -> bool:
        """Return whether the tables of the crawl are there."""
        return self.has_table(connection, "crawl")
