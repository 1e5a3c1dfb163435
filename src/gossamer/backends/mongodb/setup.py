"""Creates the indexes of a catalog; a database of MongoDB is there when something is in it."""

from __future__ import annotations

from contextlib import closing

from gossamer.backends.mongodb.catalog import MongoCatalog
from gossamer.ports.setup import SetupOptions


def init(url: str, _options: SetupOptions) -> list[str]:
    """See `gossamer.ports.setup.Setup`."""
    with closing(MongoCatalog(url)) as catalog:
        was_there = catalog.is_there()
        catalog.check("")
    return [f"collections of the catalog {catalog.name}: {'were there' if was_there else 'created'}"]
