"""The catalogs that `--catalog` can name, by the scheme of their URL. One is added by a line here.

The module of a catalog is imported only if it is used: its client library is an extra of the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.ports import Ledger
from gossamer.ports.catalog_store import CatalogInventory
from gossamer.reading.catalog_rows import CatalogRows
from gossamer.runtime.stores.publishing import CatalogPublisher
from gossamer.settings.extras import pip_install
from gossamer.settings.stores import CASSANDRA, MONGODB, POSTGRESQL, complete_catalog, scheme_of


class CheckedCatalog(CatalogInventory, Protocol):
    """A catalog that can be checked and created."""

    name: str  # for messages, without a password

    def is_there(self) -> bool:
        """Return whether it was created; raise UsageError if that cannot be found out."""
        ...

    def check(self, crawl: str) -> None:
        """Create what a crawl needs, unless it is there; raise UsageError if it cannot be used."""
        ...

    def check_empty(self) -> None:
        """Raise UsageError if there are rows."""
        ...


class CatalogModule(Protocol):
    """What the module of a catalog provides."""

    def open_catalog(self, url: str) -> CheckedCatalog:
        """Return the catalog behind a URL. Nothing is sent before the first call."""
        ...


class _Client(Struct, frozen=True):
    """The module of a catalog, and the library that it needs."""

    module: str
    library: str
    extra: str


CATALOGS: Mapping[str, _Client] = {
    CASSANDRA: _Client("gossamer.backends.cassandra.catalog", "cassandra", "cassandra"),
    MONGODB: _Client("gossamer.backends.mongodb.catalog", "pymongo", "mongodb"),
    POSTGRESQL: _Client("gossamer.backends.postgresql.catalog", "psycopg", "postgresql"),
}


def open_catalog(url: str) -> CheckedCatalog:
    """Return the catalog behind a URL; raise UsageError if its client library is not installed."""
    client = CATALOGS[scheme_of(url)]
    if find_spec(client.library) is None:
        raise UsageError(f"{scheme_of(url)}:// needs the package {client.library}: {pip_install(client.extra)}")
    return cast(CatalogModule, import_module(client.module)).open_catalog(complete_catalog(url, os.environ))


def check_catalogs(urls: Sequence[str], crawl: str, *, is_new: bool, is_node: bool) -> None:
    """Raise UsageError if one of the catalogs cannot be used now. Before anything is started.

    The catalog of a new crawl must be empty: rows of another crawl would be replaced. That of a crawl which continues
    must be there, or else it would lack what was fetched before; nodes cannot know whether they are the first.
    """
    for url in urls:
        with closing(open_catalog(url)) as catalog:
            if not is_new and not is_node and not catalog.is_there():
                raise UsageError(
                    f"catalog {catalog.name}: its tables are gone; 'gossamer verify DIR --mend' creates and fills them"
                )
            catalog.check(crawl)
            if is_new:
                catalog.check_empty()


def open_catalogs(urls: Sequence[str], node: str, ledger: Ledger, now: Callable[[], float]) -> list[CatalogPublisher]:
    """Return what puts the rows of commits into the catalogs."""
    return [CatalogPublisher(open_catalog(url), CatalogRows(ledger.look_up, node), now) for url in urls]
