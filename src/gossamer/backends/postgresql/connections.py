"""Connections to PostgreSQL, transactions, and its errors as ours, in one line."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, TypeAlias

import psycopg
from psycopg import errors, sql
from psycopg.adapt import Dumper
from psycopg.pq import Format

from gossamer.model.errors import EngineUnavailableError, GossamerError, UsageError

MAX_IDLE = 8
MIN_VERSION = 130_000
_length = struct.Struct(">i").pack
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
_REFUSED = (
    errors.InsufficientPrivilege,
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
)
_REFUSED_TEXTS = (
    *("authentication failed", "no password supplied", "no pg_hba.conf entry", "does not exist"),
    "is not permitted to log in",
)
_FULL = (errors.DiskFull, errors.OutOfMemory)
_HINT = "give a user, a password and a database in which the user may create a schema"


class Bytes(list[bytes]):
    """A parameter of the type bytea[]."""


class _BytesDumper(Dumper):
    """Encodes such a parameter: the client's own encoding of lists takes four times as long."""

    format = Format.BINARY
    oid = 1001  # bytea[]

    def dump(self, obj: Bytes) -> bytes:
        """Return the array: one dimension, no NULL, the type of its elements (bytea), their number, the first index."""
        parts = [struct.pack(">5i", 1, 0, 17, len(obj), 1)] if obj else [struct.pack(">3i", 0, 0, 17)]
        for each in obj:
            parts += (_length(len(each)), each)
        return b"".join(parts)


class Connections:
    """Connections to one schema of a database. Thread-safe: each call has a connection of its own."""

    def __init__(self, parameters: Mapping[str, Any], schema: str, label: str) -> None:
        self.schema = schema
        self.label = label  # how messages begin
        self._parameters = parameters
        self._idle: list[Connection] = []
        self._lock = Lock()

    @contextmanager
    def transaction(self, *, is_readonly: bool = False) -> Iterator[Connection]:
        """Yield a connection; what is done with it is made wholly or not at all."""
        with self._errors_as_ours():
            connection = self._connected()
            try:
                if is_readonly:
                    connection.execute("SET TRANSACTION READ ONLY")
                yield connection
                connection.commit()
            except BaseException:
                with suppress(psycopg.Error):
                    connection.rollback()
                self._give_back(connection)
                raise
            self._give_back(connection)

    def _connected(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection: Connection = psycopg.connect(**self._parameters)
        connection.adapters.register_dumper(Bytes, _BytesDumper)
        # Only once per connection: a name that is quoted like this is the same in every session.
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.schema)))
        connection.commit()
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not connection.closed and not connection.broken and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def check_server(self) -> str:
        """Raise if the server is too old; return what the operator should know, or an empty string."""
        with self.transaction() as connection:
            if connection.info.server_version < MIN_VERSION:
                version = connection.info.server_version // 10_000
                raise UsageError(f"{self.label}: PostgreSQL {version} is too old; expected 13 or newer")
            unsafe = [
                setting for setting in ("fsync", "full_page_writes", "synchronous_commit")
                if connection.execute("SELECT current_setting(%s)", [setting]).fetchone() == ("off",)
            ]  # fmt: skip
        settings = " and ".join(unsafe)
        return f"{self.label}: {settings} off: the last commits are lost if the server ends" if unsafe else ""

    def has_table(self, connection: Connection, table: str) -> bool:
        """Return whether there is a table in the schema."""
        query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
        return connection.execute(query, [self.schema, table]).fetchone() is not None

    @contextmanager
    def _errors_as_ours(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: psycopg.Error) -> GossamerError:
        text = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, _REFUSED) or (error.sqlstate is None and any(each in text for each in _REFUSED_TEXTS)):
            return UsageError(f"{self.label}: {text}; {_HINT}")
        if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
            return UsageError(f"{self.label}: {text}; expected options of libpq, as ?sslmode=require")
        if isinstance(error, _FULL):
            return EngineUnavailableError(f"{self.label}: PostgreSQL is full: {text}; give it more room")
        if isinstance(error, psycopg.OperationalError | errors.ReadOnlySqlTransaction):
            return EngineUnavailableError(f"{self.label}: PostgreSQL cannot be used now: {text}")
        return GossamerError(f"{self.label}: {text}")

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            idle = self._idle
            self._idle = []
        for connection in idle:
            connection.close()
