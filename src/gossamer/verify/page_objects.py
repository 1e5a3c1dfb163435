"""Do the pages in an S3 store with layout `page` agree with the catalog, and how are those uploaded that it lacks?

One request per page, several at a time; memory does not grow with the crawl. Compared are the URL and the size of the
decoded body: the bytes were compared with their checksum when they were stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from gossamer.backends.registry import object_store_in, open_objects
from gossamer.backends.s3.pages import MAX_URL_CHARS, S3Pages, page_key, quoted
from gossamer.model.errors import StoreUnavailableError
from gossamer.ports.object_store import ObjectStore
from gossamer.reading.archive_access import archive_files
from gossamer.reading.archived_pages import ArchivedPage, ArchivedPages, stored_page
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.settings.model import S3Layout
from gossamer.telemetry.text import agreeing
from gossamer.verify.agreement import Agreement, OnBytes

_AT_ONCE = 16
_BATCH = 500


def find(crawl: CrawlView, found: Agreement, _on_bytes: OnBytes) -> None:
    """Compare the pages with the catalog. See `gossamer.verify.agreement.Check`."""
    assert isinstance(crawl, CrawlReader)
    url = _url_of(crawl)
    if not url:
        return
    store = open_objects(url)
    try:
        for page, why in _wrong_pages(crawl, store, found):
            found.add_problem(store.url, f"{page.row.url}: {why}; --mend uploads it")
    except StoreUnavailableError as error:
        found.add_problem(store.url, f"its pages were not compared: {error}")


def mend(crawl: CrawlReader) -> list[str]:
    """Upload the pages that the store does not have. See `gossamer.verify.agreement.Check`."""
    url = _url_of(crawl)
    if not url:
        return []
    store = open_objects(url)
    settings = crawl.settings
    files = archive_files(crawl.folder.archive, settings.store)
    archived = ArchivedPages(files, settings.max_bytes, keeps_copies=True)
    pages = S3Pages(store)
    done = 0
    for page, _ in _wrong_pages(crawl, store, Agreement()):
        pages.put([archived.read(page)])
        done += 1
    pages.close()
    return [f"{store.url}: {agreeing(done, 'page', 'was', 'were')} uploaded again"] if done else []


def _url_of(crawl: CrawlReader) -> str:
    return object_store_in(crawl.settings.store) if crawl.settings.s3_layout is S3Layout.PAGE else ""


def _wrong_pages(crawl: CrawlReader, store: ObjectStore, found: Agreement) -> Iterator[tuple[ArchivedPage, str]]:
    """Yield the pages that are not in the store as the catalog has them, and why; count all of them in `found`."""
    rows = (stored_page(url_id, row, crawl.ledger) for url_id, row in crawl.ledger.urls())
    pages = (page for page in rows if page is not None)
    with ThreadPoolExecutor(_AT_ONCE, "compare") as threads:
        while batch := list(islice(pages, _BATCH)):
            found.objects += len(batch)
            for page, why in zip(batch, threads.map(lambda page: _fault(page, store), batch), strict=True):
                if why:
                    yield page, why


def _fault(page: ArchivedPage, store: ObjectStore) -> str:
    there = store.find(page_key(page.row.url))
    if there is None:
        return "is not there"
    if there.metadata.get("url") != quoted(page.row.url)[:MAX_URL_CHARS]:
        return "its object has another URL"
    return "" if there.metadata.get("size") == str(page.row.content_bytes) else "its object has another size"
