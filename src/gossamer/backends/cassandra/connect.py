"""From a URL to a session with Cassandra: `cassandra://[user:password@]host:port,…/keyspace[?dc=NAME]`.

A session that has failed is dropped, and the next call makes another: whoever calls repeats what it did, once at
least. Used by one thread at a time; closed by any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from cassandra import AuthenticationFailed, InvalidRequest, RequestExecutionException, Unauthorized
from msgspec import Struct

from gossamer.backends.clients.cassandra import DRIVER_ERRORS, MIN_VERSION, CassandraSession, Servers, causes_of
from gossamer.backends.clients.errors import DriverErrors, Rule, Said
from gossamer.foundation.expressions import expression
from gossamer.model.errors import GossamerError, LedgerUnavailableError, UsageError

DEFAULT_PORT = 9042
_AT_ONCE = 64  # statements that are on their way
_ROWS_PER_ANSWER = 1000
EXPECTED = "expected cassandra://host:port,…/keyspace"
_Done = TypeVar("_Done")


class MissingTableError(GossamerError):
    """A table is not there, or not yet: another client may be creating it."""


_ERRORS = (
    Rule(
        UsageError,
        "{label}: the server refuses user or password ({text}); expected them in the URL, or the password in "
        "GOSSAMER_CASSANDRA_PASSWORD",
        (AuthenticationFailed,),
    ),
    Rule(
        UsageError,
        "{label}: {text}; expected a user with the rights SELECT and MODIFY in the keyspace {keyspace}, and CREATE if "
        "its tables are not there",
        (Unauthorized,),
    ),
    Rule(
        MissingTableError,
        "{label}: {text}",
        (InvalidRequest,),
        pattern=expression("table .*does not exist|unconfigured table"),
    ),
    Rule(GossamerError, "{label}: {text}", (InvalidRequest,)),
    Rule(LedgerUnavailableError, "{label}: Cassandra cannot be used now: {text}", (RequestExecutionException,)),
    Rule(LedgerUnavailableError, "{label}: no answer: {text}"),
)


class KeyspaceAddress(Struct, frozen=True):
    """What the URL of a keyspace says."""

    servers: Servers
    keyspace: str
    dc: str = ""  # the local data centre; empty: that of the first server that answers


def shown(url: str) -> str:
    """Return a URL for people: without user, password and options."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


def place_of(url: str) -> KeyspaceAddress:
    """Return what a URL says; raise UsageError if it says something else."""
    _, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    login, _, hosts = authority.rpartition("@")
    user, _, password = login.partition(":")
    keyspace, _, query = path.partition("?")
    options = dict(parse_qsl(query))
    unknown = sorted(options.keys() - {"dc"})
    if unknown:
        raise UsageError(f"{shown(url)}: unknown option {unknown[0]}; expected ?dc=NAME, the local data centre")
    try:
        points = tuple(_point(host) for host in hosts.split(","))
    except ValueError:
        raise UsageError(f"{shown(url)}: not a host with a port; {EXPECTED}") from None
    servers = Servers(points, unquote(user), unquote(password))
    return KeyspaceAddress(servers, keyspace.strip("/"), options.get("dc", ""))


def _point(host: str) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.strip("[]"), DEFAULT_PORT
    return name.strip("[]"), int(port)


class Ring(CassandraSession):
    """The servers behind a URL, and one keyspace of theirs."""

    def __init__(self, url: str, label: str) -> None:
        address = place_of(url)
        errors = DriverErrors(DRIVER_ERRORS, _ERRORS, _said, label=label, keyspace=address.keyspace)
        super().__init__(address.servers, address.keyspace, errors, dc=address.dc)
        self.label = label  # how messages begin

    def repeated(self, act: Callable[[], _Done]) -> _Done:
        """Do something; if the servers cannot be used, connect anew and try once more."""
        try:
            return act()
        except LedgerUnavailableError:
            self.close()
            return act()

    # -- what the servers have --------------------------------------------------------------------

    def check_server(self) -> str:
        """Return the version of the servers; raise UsageError if it is too old."""
        (row,) = self.execute("SELECT release_version FROM system.local")
        version = str(row.release_version)
        if int(version.partition(".")[0]) < MIN_VERSION:
            raise UsageError(f"{self.label}: Cassandra {version} is too old; expected {MIN_VERSION}.0 or newer")
        return version

    def has_keyspace(self) -> bool:
        query = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
        return bool(self.execute(query, (self.keyspace,)))

    def tables(self) -> set[str]:
        """Return the names of the tables in the keyspace; raise UsageError if there is no such keyspace."""
        if not self.has_keyspace():
            raise UsageError(
                f"{self.label}: there is no keyspace {self.keyspace}; create it with 'gossamer init-cluster "
                "URL --replication N', or with CREATE KEYSPACE"
            )
        query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
        return {row.table_name for row in self.execute(query, (self.keyspace,))}

    # -- statements -------------------------------------------------------------------------------

    def execute(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows of a statement that is sent once."""
        session = self.session()
        with self.errors:
            return list(session.execute(self.named(query), values or None))

    def run(self, query: str, values: Sequence[object]) -> list[Any]:
        """Return all rows of a prepared statement."""
        statement = self.prepare(query)
        session = self.session()
        with self.errors:
            return list(session.execute(statement, values))

    def run_all(self, statements: Sequence[tuple[Any, Sequence[object]]]) -> list[Any]:
        """Run statements at the same time; return all their rows. On return, all of them are done."""
        with self.errors:
            return [row for rows in self.run_together(statements, _AT_ONCE) for row in rows]

    def scan(self, query: str) -> Iterator[Any]:
        """Yield all rows of a table, in the order of the servers, in parts."""
        session = self.session()
        with self.errors:
            statement = session.prepare(self.named(query))
            statement.fetch_size = _ROWS_PER_ANSWER
            yield from session.execute(statement)


def _said(error: BaseException) -> Said:
    """Return what the first server says, without what the driver repeats."""
    cause = causes_of(error)[0]
    text = " ".join(str(cause).split())
    found = re.search(r'message="(.*?)"', text) or re.search(r"Last error: ([^\"']*)", text)
    return Said((found.group(1) if found else text)[:200] or type(cause).__name__, (cause,))
