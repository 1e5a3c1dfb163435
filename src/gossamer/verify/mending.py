"""What is done to stores, catalogs and ledgers that do not agree with a crawl: for `gossamer verify --mend`.

The page store of a crawl folder and its catalog are compared by `gossamer.verify.pages`. A store that cannot be
reached is a problem of its own; the rest of the folder is checked all the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import archive_key, parse_segment, read_label
from gossamer.archive.recovery import ASIDE_FOLDER
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.s3.pages import MAX_URL_CHARS, S3Pages, page_key, quoted
from gossamer.core.ledger.archive_names import archive_prefix
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.catalog_store import CatalogInventory
from gossamer.ports.object_store import ObjectStore
from gossamer.ports.page_store import PageInventory
from gossamer.reading.archive_access import archive_files, open_s3, s3_url
from gossamer.reading.archived_pages import ArchivedPages, StoredPage, stored_page
from gossamer.reading.catalog_rows import CatalogRows
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.reading.node_folders import NODE_FILE, node_in
from gossamer.runtime.stores.catalogs import open_catalog
from gossamer.runtime.stores.segment_uploads import SegmentUploads
from gossamer.runtime.stores.sinks import open_page_store, page_store_in
from gossamer.settings.model import S3Layout, Settings
from gossamer.settings.stores import masked_store
from gossamer.telemetry.text import agreeing, plural
from gossamer.verify.agreement import Agreement
from gossamer.verify.pages import PageAgreement
from gossamer.verify.rows import RowAgreement

# Rebuilds a ledger from the archive, if it was lost or damaged.
#
# All stored answers are read, oldest first, as if they arrived now: each page ends its order, and its links are offered
# by the rules of the crawl. So what was queued is queued again, with depth and parent. A URL that no earlier page leads
# to was a seed. What only the ledger had is gone: dead letters without an answer, pace and failures of hosts, budgets
# of calendars and quarantines; these are learned again. The old ledger is not deleted: it goes to `aside/`.


def set_state_aside(folder: CrawlFolder) -> Path | None:
    """Move the files of a ledger aside, except the lock; return where they are, or None if there were none."""
    files = [path for path in folder.state.iterdir() if path.name != "owner"]
    if not files:
        return None
    aside = folder.path / ASIDE_FOLDER / time.strftime("state-%Y%m%dT%H%M%SZ", time.gmtime())
    aside.mkdir(parents=True, exist_ok=True)
    for path in files:
        path.rename(aside / path.name)
    return aside


# Compares the pages of an S3 store with layout `page` with the catalog, and uploads those that it lacks.
#
# One request per page, several at a time; memory does not grow with the crawl. Compared are the URL and the size of the
# decoded body: the bytes were compared with their checksum when they were stored.

_AT_ONCE = 16
_BATCH = 500


def check_page_objects(crawl: CrawlReader, found: Agreement) -> None:
    """Add the pages that the store does not have to what was found."""
    url = _url_of(crawl)
    if not url:
        return
    store = open_s3(url)
    try:
        for page, why in _wrong_pages(crawl, store, found):
            found.add_problem(store.url, f"{page.row.url}: {why}; --mend uploads it")
    except StoreUnavailableError as error:
        found.add_problem(store.url, f"its pages were not compared: {error}")


def mend_page_objects(crawl: CrawlReader) -> list[str]:
    """Upload the pages that the store does not have; return what was done. The caller owns the folder."""
    url = _url_of(crawl)
    if not url:
        return []
    store = open_s3(url)
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
    return s3_url(crawl.settings.store) if crawl.settings.s3_layout is S3Layout.PAGE else ""


def _wrong_pages(crawl: CrawlReader, store: ObjectStore, found: Agreement) -> Iterator[tuple[StoredPage, str]]:
    """Yield the pages that are not in the store as the catalog has them, and why; count all of them in `found`."""
    rows = (stored_page(url_id, row, crawl.ledger) for url_id, row in crawl.ledger.urls())
    pages = (page for page in rows if page is not None)
    with ThreadPoolExecutor(_AT_ONCE, "compare") as threads:
        while batch := list(islice(pages, _BATCH)):
            found.objects += len(batch)
            for page, why in zip(batch, threads.map(lambda page: _fault(page, store), batch), strict=True):
                if why:
                    yield page, why


def _fault(page: StoredPage, store: ObjectStore) -> str:
    there = store.find(page_key(page.row.url))
    if there is None:
        return "is not there"
    if there.metadata.get("url") != quoted(page.row.url)[:MAX_URL_CHARS]:
        return "its object has another URL"
    return "" if there.metadata.get("size") == str(page.row.content_bytes) else "its object has another size"


# Puts an S3 store in order: uploads what is missing there, removes what dead processes have left.
#
# What is removed belongs to this crawl or node (its files carry its label) and counts for nothing: segments of files
# that are merged, segments of files that the ledger does not know, and parts of objects that were never composed.

_SEGMENTS = "segments/"
_CHUNK_BYTES = 8 << 20


def mend_objects(folder: CrawlFolder, store: ObjectStore, ends: Mapping[str, int]) -> list[str]:
    """Return what was done. The caller owns the folder."""
    label = read_label(folder.archive)
    if not label:
        return []
    done = _upload_missing(folder, store, label)
    own = f"{archive_prefix(label)}-"
    merged = ArchiveFiles(folder.archive).merged()
    useless = []
    for found in store.objects(_SEGMENTS + own):
        parsed = parse_segment(found.key)
        if parsed is not None and (parsed[0] in merged or not ends.get(parsed[0])):
            useless.append(found.key)
    store.remove(useless)
    if useless:
        done.append(f"{store.url}: {plural(len(useless), 'segment')} that no commit refers to removed")
    if aborted := store.abort_unfinished(archive_key(own)):
        done.append(f"{store.url}: {plural(aborted, 'upload')} that never finished removed")
    return done


def download_missing(folder: CrawlFolder, store: ObjectStore) -> int:
    """Fetch merged files back that are not here, to rebuild a ledger; return how many. The next run removes them."""
    missing = [
        merged
        for name, merged in ArchiveFiles(folder.archive).merged().items()
        if not (folder.archive / name).is_file()
    ]
    for merged in missing:
        unfinished = folder.archive / f".{merged.name}.tmp"
        with unfinished.open("wb") as file:
            for start in range(0, merged.size, _CHUNK_BYTES):
                file.write(store.read(archive_key(merged.name), start, min(merged.size, start + _CHUNK_BYTES)))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder.archive / merged.name)
    return len(missing)


def _upload_missing(folder: CrawlFolder, store: ObjectStore, label: str) -> list[str]:
    """Upload merged files again that the store does not have as they were stored, if they are still here."""
    uploads = SegmentUploads(
        lambda: store, folder.archive, folder.index, run="mend", label=label, stays_local=True, ends=dict
    )
    done = []
    for name, known in ArchiveFiles(folder.archive).merged().items():
        path = folder.archive / name
        if not path.is_file() or path.stat().st_size != known.size:
            continue
        found = store.find(archive_key(name))
        if found is None or found.size != known.size or found.tag != known.tag:
            uploads.merge(path)
            done.append(f"{name}: uploaded to {store.url} again")
    return done


# Compares the catalogs of a crawl with its ledger, and mends them: see `gossamer.verify.rows`.
#
# A catalog that cannot be reached is a problem of its own; the rest of the crawl is checked all the same.


def check_catalog_rows(crawl: CrawlReader | SharedReader, found: Agreement) -> None:
    """Add what does not agree to what was found."""
    for url in crawl.settings.catalog:
        with closing(open_catalog(url)) as catalog:
            try:
                if catalog.is_there():
                    _row_agreement(crawl, catalog, catalog.name).check(found.add_problem)
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
            done += _row_agreement(crawl, catalog, catalog.name).mend(time.time())
    return done


def _row_agreement(crawl: CrawlReader | SharedReader, catalog: CatalogInventory, name: str) -> RowAgreement:
    node = node_in(crawl.folder) if isinstance(crawl, CrawlReader) else ""
    rows = CatalogRows(crawl.ledger.look_up, node)
    return RowAgreement(catalog, crawl.ledger, rows, name, is_part=bool(node))


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
