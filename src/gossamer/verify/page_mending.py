"""Compares the page store of a crawl folder with its catalog, and mends it: see `gossamer.verify.pages`.

A store that cannot be reached is a problem of its own; the rest of the folder is checked all the same.
"""

from __future__ import annotations

from contextlib import closing

from gossamer.model.errors import StoreUnavailableError
from gossamer.ports.page_store import PageInventory
from gossamer.reading.archive_access import archive_files
from gossamer.reading.archived_pages import ArchivedPages
from gossamer.reading.folder import CrawlReader
from gossamer.reading.node_folders import NODE_FILE
from gossamer.runtime.stores.sinks import open_page_store, page_store_in
from gossamer.settings.stores import masked_store
from gossamer.verify.agreement import Agreement
from gossamer.verify.pages import PageAgreement


def check_pages(crawl: CrawlReader, found: Agreement) -> None:
    """Add what does not agree to what was found."""
    store = page_store_in(crawl.settings.store)
    if not store:
        return
    with closing(open_page_store(store, is_patient=True)) as inventory:
        try:
            found.notes += _agreement(crawl, inventory, store).check(found.add_problem)
        except StoreUnavailableError as error:
            found.add_problem(masked_store(store), f"its pages were not compared: {error}")


def mend_pages(crawl: CrawlReader) -> list[str]:
    """Mend the page store; return what was done. The caller owns the folder."""
    store = page_store_in(crawl.settings.store)
    if not store:
        return []
    pages = ArchivedPages(archive_files(crawl.folder.archive, crawl.settings.store), crawl.settings.max_bytes)
    with closing(open_page_store(store, is_patient=True)) as inventory:
        try:
            return _agreement(crawl, inventory, store).mend(pages)
        except StoreUnavailableError:
            return []  # the check that follows says so


def _agreement(crawl: CrawlReader, inventory: PageInventory, store: str) -> PageAgreement:
    is_node = (crawl.folder.state / NODE_FILE).is_file()
    return PageAgreement(inventory, crawl.ledger, masked_store(store).partition("?")[0], is_node=is_node)
