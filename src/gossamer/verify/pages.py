"""Do a page store and the catalog agree, and how is the store mended?

Three sorted lists are merged by name: the pages of the catalog, the visits in the store, the bodies in the store.

    catalog   visit   body    what it means                                        what `mend` does
    yes       yes     yes     as it must be (a copy: without a body)
    yes       no              LOST: the page is not stored                         stores it again from the archive
    yes       yes     no      LOST: the page has no body, or a part of one         stores it again from the archive
    no        yes     no      BODY_LOST: the same, of a visit that is not the last nothing: it is named
    no        no      yes     ORPHAN: a body without a page                        removes it
    no        yes     yes     an earlier visit, or UNKNOWN: this ledger does not know the page

A copy has its body if a visit with the same content hash has one of its own; otherwise it is COPY_LOST. Other nodes of
a cluster use the same store: in the folder of a node a body without a page is left alone, since its page may be on its
way. Memory: one entry per list, and what `mend` does at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from enum import Enum
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from msgspec import Struct

from gossamer.backends.registry import open_page_store, page_store_in
from gossamer.model.errors import CorruptFolderError, StoreUnavailableError
from gossamer.ports import Ledger
from gossamer.ports.page_store import PageInventory, StoredBody, StoredVisit, url_id_in, visit_name
from gossamer.reading.archive_access import archive_files
from gossamer.reading.archived_pages import ArchivedPage, ArchivedPages, stored_page
from gossamer.reading.folder import CrawlReader
from gossamer.reading.node_folders import NODE_FILE
from gossamer.reading.view import CrawlView
from gossamer.settings.stores import masked_store
from gossamer.telemetry.text import count, plural
from gossamer.verify.agreement import Agreement, OnBytes, ReportProblem

_BATCH = 50
_HASHES = 500  # of copies, in one query
_MENDED = 10_000  # at a time


class Fault(Enum):
    """What can be wrong; see the module."""

    LOST = "not stored, or without its whole body; --mend stores it again if it is in the archive"
    BODY_LOST = "a visit that is not the last has lost its body"
    COPY_LOST = "a copy of another page, but no page has its content"
    ORPHAN = "a body without a page; --mend removes it"
    UNKNOWN = "not known to this ledger"


class Finding(Struct, frozen=True):
    """One thing that does not agree."""

    fault: Fault
    name: str  # of the visit
    url: str = ""
    page: ArchivedPage | None = None


def find(crawl: CrawlView, found: Agreement, _on_bytes: OnBytes) -> None:
    """Compare the page store of a folder. See `gossamer.verify.agreement.Check`."""
    assert isinstance(crawl, CrawlReader)
    store = page_store_in(crawl.settings.store)
    if not store:
        return
    with closing(open_page_store(store, is_patient=True)) as inventory:
        try:
            found.notes += _agreement(crawl, inventory, store).check(found.add_problem)
        except StoreUnavailableError as error:
            found.add_problem(masked_store(store), f"its pages were not compared: {error}")


def mend(crawl: CrawlReader) -> list[str]:
    """Mend the page store of a folder. See `gossamer.verify.agreement.Check`."""
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


class PageAgreement:
    """The comparison of one page store with one ledger."""

    def __init__(self, store: PageInventory, ledger: Ledger, where: str, *, is_node: bool = False) -> None:
        self._store = store
        self._ledger = ledger
        self._where = where
        self._ignored = {Fault.ORPHAN, Fault.UNKNOWN} if is_node else {Fault.UNKNOWN}

    def check(self, report: ReportProblem) -> list[str]:
        """Report what does not agree; return notes."""
        ignored: dict[Fault, int] = {}
        for found in self._findings():
            if found.fault in self._ignored:
                ignored[found.fault] = ignored.get(found.fault, 0) + 1
            else:
                report(self._where, f"{found.url or found.name}: {found.fault.value}")
        notes = []
        if Fault.UNKNOWN in ignored:
            notes.append(f"{self._where}: {plural(ignored[Fault.UNKNOWN], 'page')} that this ledger does not know")
        if Fault.ORPHAN in ignored:
            notes.append(
                f"{self._where}: bodies without a page, perhaps of other nodes: {count(ignored[Fault.ORPHAN])}"
            )
        return notes

    def mend(self, pages: ArchivedPages) -> list[str]:
        """Store lost pages again and remove bodies without a page; return what was done."""
        stored = removed = 0
        hopeless: set[str] = set()  # what the archive does not have
        while True:
            mended = (found for found in self._findings() if self._can_mend(found) and found.name not in hopeless)
            batch = list(islice(mended, _MENDED))
            lost = [found for found in batch if found.fault is Fault.LOST]
            kept = self._store_again(pages, lost)
            hopeless.update(found.name for found in lost if found.name not in kept)
            stored += len(kept)
            orphans = [found.name for found in batch if found.fault is Fault.ORPHAN]
            if orphans:
                self._store.remove_bodies(orphans)
            removed += len(orphans)
            if len(batch) < _MENDED:
                break
        done = [f"{self._where}: {plural(stored, 'page')} stored again from the archive"] if stored else []
        return [*done, f"{self._where}: bodies without a page removed: {count(removed)}"] if removed else done

    def _can_mend(self, found: Finding) -> bool:
        return found.fault in (Fault.LOST, Fault.ORPHAN) and found.fault not in self._ignored

    def _store_again(self, pages: ArchivedPages, lost: Sequence[Finding]) -> set[str]:
        """Store pages that the archive has; return their names."""
        names: set[str] = set()
        for batch in _batches(lost, _BATCH):
            copies = []
            for found in batch:
                assert found.page is not None
                try:
                    copies.append(pages.read(found.page))
                except CorruptFolderError:
                    continue  # the check that follows names it
                names.add(found.name)
            self._store.put(copies)
        return names

    # -- the comparison ---------------------------------------------------------------------------

    def _findings(self) -> Iterator[Finding]:
        copies: dict[str, Finding] = {}  # by content hash, if no page with that content is known yet
        lists: list[Iterator[tuple[str, int, Any]]] = [
            _keyed(0, self._catalog(), lambda page: visit_name(page.url_id, page.row.visits)),
            _keyed(1, self._store.visits(), lambda visit: visit.name),
            _keyed(2, self._store.bodies(), lambda body: body.name),
        ]
        for name, group in groupby(merge(*lists, key=itemgetter(0, 1)), key=itemgetter(0)):
            found = {kind: item for _, kind, item in group}
            visit = found.get(1)
            fault = self._fault(name, found.get(0), visit, found.get(2))
            if fault is not None:
                page = found.get(0)
                yield Finding(fault, name, page.row.url if page else visit.url if visit else "", page)
            if visit is not None and visit.is_copy:
                copies[visit.content_hash] = Finding(Fault.COPY_LOST, name, visit.url)
            if len(copies) >= _HASHES:
                yield from self._without_first(copies)
                copies.clear()
        yield from self._without_first(copies)

    def _without_first(self, copies: dict[str, Finding]) -> Iterable[Finding]:
        known = self._store.first_visits(list(copies)) if copies else set()
        return [finding for content_hash, finding in copies.items() if content_hash not in known]

    def _catalog(self) -> Iterator[ArchivedPage]:
        for url_id, row in self._ledger.urls():
            page = stored_page(url_id, row, self._ledger)
            if page is not None:
                yield page

    def _fault(
        self, name: str, page: ArchivedPage | None, visit: StoredVisit | None, body: StoredBody | None
    ) -> Fault | None:
        if visit is None:
            return Fault.ORPHAN if page is None else Fault.LOST
        if not visit.is_copy and (body is None or not body.is_whole):
            return Fault.BODY_LOST if page is None else Fault.LOST
        if page is None and self._ledger.look_up(url_id_in(name)) is None:
            return Fault.UNKNOWN
        return None


def _keyed(kind: int, items: Iterator[Any], name: Callable[[Any], str]) -> Iterator[tuple[str, int, Any]]:
    return ((name(item), kind, item) for item in items)


def _batches(items: Sequence[Finding], size: int) -> Iterator[Sequence[Finding]]:
    return (items[at : at + size] for at in range(0, len(items), size))
