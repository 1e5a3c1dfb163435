"""Connections to PostgreSQL, transactions, and its errors as ours, in one line."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, TypeAlias

import psycopg
from msgspec.structs import replace
from psycopg import errors, sql
from psycopg.adapt import Dumper
from psycopg.pq import Format

from gossamer.backends.clients.errors import DriverErrors, Rule, Said, one_line
from gossamer.foundation.expressions import expression
from gossamer.model.errors import GossamerError, LedgerUnavailableError, UsageError

MAX_IDLE = 8
MIN_VERSION = 130_000
_length = struct.Struct(">i").pack
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
_REFUSAL = "{label}: {text}; give a user, a password and a database in which the user may create a schema"
_NO_STATE = (None,)  # the server has not answered
_RULES = (
    Rule(
        UsageError,
        _REFUSAL,
        (
            errors.InsufficientPrivilege,
            errors.InvalidPassword,
            errors.InvalidAuthorizationSpecification,
            errors.InvalidCatalogName,
        ),
    ),
    Rule(
        UsageError,
        _REFUSAL,
        codes=_NO_STATE,
        pattern=expression(
            "authentication failed|no password supplied|no pg_hba.conf entry|does not exist|is not permitted to log in"
        ),
    ),
    Rule(
        UsageError,
        "{label}: {text}; expected options of libpq, as ?sslmode=require",
        (psycopg.ProgrammingError,),
        codes=_NO_STATE,
    ),
    Rule(
        LedgerUnavailableError,
        "{label}: PostgreSQL is full: {text}; give it more room",
        (errors.DiskFull, errors.OutOfMemory),
    ),
    Rule(
        LedgerUnavailableError,
        "{label}: PostgreSQL cannot be used now: {text}",
        (psycopg.OperationalError, errors.ReadOnlySqlTransaction),
    ),
    Rule(GossamerError, "{label}: {text}"),
)


def _said(error: BaseException) -> Said:
    return replace(one_line(error), code=getattr(error, "sqlstate", None))


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
        self._errors = DriverErrors((psycopg.Error,), _RULES, _said, label=label)
        self._parameters = parameters
        self._idle: list[Connection] = []
        self._lock = Lock()

    @contextmanager
    def transaction(self, *, is_readonly: bool = False) -> Iterator[Connection]:
        """Yield a connection; what is done with it is made wholly or not at all."""
        with self._errors:
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

    def close(self) -> None:
        with self._lock:
            idle = self._idle
            self._idle = []
        for connection in idle:
            connection.close()
