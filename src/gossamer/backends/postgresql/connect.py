"""From a ledger URL to a connected ledger: `postgresql://[user:password@]host:port/database/NAME[?sslmode=…]`.

Several servers may be named, separated by commas: the one that takes writes is used. What the URL leaves out comes from
where every client of PostgreSQL looks for it: PGUSER, PGPASSWORD, `~/.pgpass`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from gossamer.backends.postgresql.database import Database
from gossamer.backends.postgresql.shared_ledger import PostgresSharedLedger
from gossamer.errors import UsageError
from gossamer.ports.shared_ledger import SharedLedger

_NAME = re.compile(r"[A-Za-z0-9._-]{1,50}")  # a schema's name has at most 63 bytes
_EXPECTED = "expected postgresql://host:port/database/NAME"
_DEFAULTS: Mapping[str, str | int] = {
    "application_name": "gossamer",
    "connect_timeout": 5,
    "target_session_attrs": "read-write",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
    "options": "-c idle_in_transaction_session_timeout=60s -c lock_timeout=20s -c jit=off",
}


def address_of(url: str) -> tuple[dict[str, str | int], str]:
    """Return the parameters of a connection, and the name of the crawl."""
    shown = re.sub(r"//[^/@]*@", "//", url)
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    login, at, hosts = place.rpartition("@")
    path, _, query = path.partition("?")
    database, _, name = path.strip("/").partition("/")
    try:
        parts = [urlsplit(f"{scheme}://{login}{at}{host}") for host in hosts.split(",")]
        ports = ",".join(str(part.port or 5432) for part in parts)
    except ValueError as error:
        raise UsageError(f"{shown}: {error}; {_EXPECTED}") from None
    names = [part.hostname or "" for part in parts]
    if scheme != "postgresql" or not all(names) or not database:
        raise UsageError(f"{shown}: not a ledger URL; {_EXPECTED}")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{shown}: the name of a crawl has up to 50 letters, digits and ._-; {_EXPECTED}")
    parameters = {**_DEFAULTS, "host": ",".join(names), "port": ports, "dbname": unquote(database)}
    parameters |= {key: unquote(value) for key, value in (
        ("user", parts[0].username or ""), ("password", parts[0].password or "")
    ) if value}  # fmt: skip
    return {**parameters, **dict(parse_qsl(query))}, name


def connect(url: str, warn: Callable[[str], None]) -> SharedLedger:
    """Return the ledger behind a URL; raises `EngineUnavailableError` if no server can be reached."""
    parameters, name = address_of(url)
    database = Database(parameters, name)
    if caveat := database.check_server():
        warn(caveat)
    return PostgresSharedLedger(database)
