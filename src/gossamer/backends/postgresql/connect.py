"""From a ledger URL to a connected ledger: `postgresql://[user:password@]host:port/database/NAME[?sslmode=…]`."""

from __future__ import annotations

import re
from collections.abc import Callable

from gossamer.backends.postgresql.address import Parameters, parameters_of, shown
from gossamer.backends.postgresql.database import Database
from gossamer.backends.postgresql.shared_ledger import PostgresSharedLedger
from gossamer.model.errors import UsageError
from gossamer.ports.shared_ledger import SharedLedger

_NAME = re.compile(r"[A-Za-z0-9._-]{1,50}")  # a schema's name has at most 63 bytes
_EXPECTED = "expected postgresql://host:port/database/NAME"


def address_of(url: str) -> tuple[Parameters, str]:
    """Return the parameters of a connection, and the name of the crawl."""
    parameters, name = parameters_of(url, "a ledger URL", _EXPECTED)
    if not _NAME.fullmatch(name):
        raise UsageError(f"{shown(url)}: the name of a crawl has up to 50 letters, digits and ._-; {_EXPECTED}")
    return parameters, name


def connect(url: str, warn: Callable[[str], None]) -> SharedLedger:
    """Return the ledger behind a URL; raises `LedgerUnavailableError` if no server can be reached."""
    parameters, name = address_of(url)
    database = Database(parameters, name)
    if caveat := database.check_server():
        warn(caveat)
    return PostgresSharedLedger(database)
