"""From the URL of a database to the parameters of a connection: `postgresql://[user:password@]host:port,…/database/…`.

Several servers may be named, separated by commas: the one that takes writes is used. What the URL leaves out comes from
where every client of PostgreSQL looks for it: PGUSER, PGPASSWORD, `~/.pgpass`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from gossamer.model.errors import UsageError

Parameters: TypeAlias = dict[str, str | int]
_DEFAULTS: Mapping[str, str | int] = {
    "application_name": "gossamer",
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "target_session_attrs": "read-write",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
    "options": "-c idle_in_transaction_session_timeout=60s -c lock_timeout=20s -c jit=off",
}


def shown(url: str) -> str:
    """Return a URL for people: without user, password and options."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


def parameters_of(url: str, what: str, expected: str) -> tuple[Parameters, str]:
    """Return the parameters of a connection, and what follows the database in the path."""
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    login, at, hosts = place.rpartition("@")
    path, _, query = path.partition("?")
    database, _, name = path.strip("/").partition("/")
    try:
        parts = [urlsplit(f"{scheme}://{login}{at}{host}") for host in hosts.split(",")]
        ports = ",".join(str(part.port or 5432) for part in parts)
    except ValueError as error:
        raise UsageError(f"{shown(url)}: {error}; {expected}") from None
    names = [part.hostname or "" for part in parts]
    if scheme != "postgresql" or not all(names) or not database:
        raise UsageError(f"{shown(url)}: not {what}; {expected}")
    parameters = {**_DEFAULTS, "host": ",".join(names), "port": ports, "dbname": unquote(database)}
    login_parts = (("user", parts[0].username or ""), ("password", parts[0].password or ""))
    parameters |= {key: unquote(value) for key, value in login_parts if value}
    return {**parameters, **dict(parse_qsl(query))}, name
