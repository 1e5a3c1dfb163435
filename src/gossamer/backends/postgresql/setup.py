"""Creates the schema of a crawl, and that of a catalog."""

from __future__ import annotations

from contextlib import closing

from gossamer.backends.postgresql.address import shown
from gossamer.backends.postgresql.catalog import PostgresCatalog
from gossamer.backends.postgresql.connect import address_of
from gossamer.backends.postgresql.database import Database
from gossamer.ports.setup import SetupOptions


def init(url: str, _options: SetupOptions) -> list[str]:
    """Create the schema of a crawl on many machines. See `gossamer.ports.setup.Setup`."""
    with closing(Database(*address_of(url))) as database:
        caveat = database.check_server()
        with database.transaction(is_readonly=True) as connection:
            version = connection.info.server_version // 10_000
            was_there = database.exists(connection)
        database.create()
    lines = [
        f"PostgreSQL {version} at {shown(url)}",
        f"schema {database.schema} of the ledger: {'was there' if was_there else 'created'}",
    ]
    return [*lines, caveat] if caveat else lines


def init_catalog(url: str, _options: SetupOptions) -> list[str]:
    """Create the schema of a catalog; the crawl that uses it gives it its name."""
    with closing(PostgresCatalog(url)) as catalog:
        was_there = catalog.is_there()
        catalog.check("")
    return [f"tables of the catalog {catalog.name}: {'were there' if was_there else 'created'}"]
