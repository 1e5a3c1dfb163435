"""Compares the catalogs of a crawl with its ledger, and mends them: see `gossamer.verify.rows`.

A catalog that cannot be reached is a problem of its own; the rest of the crawl is checked all the same.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress

from gossamer.backends.local.folder import CrawlFolder
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.catalog_store import CatalogInventory
from gossamer.reading.catalog_rows import CatalogRows
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.reading.node_folders import node_in
from gossamer.runtime.stores.catalogs import open_catalog
from gossamer.settings.model import Settings
from gossamer.verify.agreement import Agreement
from gossamer.verify.rows import RowAgreement


def check_catalog_rows(crawl: CrawlReader | SharedReader, found: Agreement) -> None:
    """Add what does not agree to what was found."""
    for url in crawl.settings.catalog:
        with closing(open_catalog(url)) as catalog:
            try:
                if catalog.is_there():
                    _agreement(crawl, catalog, catalog.name).check(found.add_problem)
                else:
                    found.add_problem(catalog.name, "its tables are gone; --mend creates and fills them")
            except (StoreUnavailableError, UsageError) as error:
                found.add_problem(catalog.name, f"its rows were not compared: {error}")


def create_catalogs(settings: Settings, folder: CrawlFolder) -> None:
    """Create what the catalogs of a crawl lack, as far as they can be reached."""
    for url in settings.catalog:
        with closing(open_catalog(url)) as catalog, suppress(UsageError):  # whoever uses it next says so
            catalog.check(folder.path.absolute().name)


def mend_catalog_rows(crawl: CrawlReader) -> list[str]:
    """Mend the catalogs; return what was done. The caller owns the folder."""
    create_catalogs(crawl.settings, crawl.folder)
    done: list[str] = []
    for url in crawl.settings.catalog:
        with closing(open_catalog(url)) as catalog, suppress(StoreUnavailableError):  # the check that follows says so
            done += _agreement(crawl, catalog, catalog.name).mend(time.time())
    return done


def _agreement(crawl: CrawlReader | SharedReader, catalog: CatalogInventory, name: str) -> RowAgreement:
    node = node_in(crawl.folder) if isinstance(crawl, CrawlReader) else ""
    rows = CatalogRows(crawl.ledger.look_up, node)
    return RowAgreement(catalog, crawl.ledger, rows, name, is_part=bool(node))
