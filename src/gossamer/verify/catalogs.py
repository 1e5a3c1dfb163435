"""Do a catalog store and the ledger agree, and how is the store mended?

Three lists that are sorted by URL id are merged: the URLs of the ledger, the visits in the store, its dead letters.
Hosts are compared in lots. What the store must have follows from the ledger alone, so everything can be mended:

    ledger          store           what it means                               what `mend` does
    page            no such visit   LOST: the page has no row, or another one   stores it again
    no such visit   visit           ORPHAN: of a URL or a visit that the        removes it
                                    ledger does not know
    dead            no letter       LETTER_LOST, or with another outcome        stores it again
    not dead        letter          LETTER_ORPHAN                               removes it
    host            other counts    HOST_LOST: no row, or other counts          stores it again
    no host         host            HOST_ORPHAN                                 removes it

Earlier visits are only in the store: the ledger has the last one. The folder of a node has a part of the ledger only:
there, nothing is an orphan, and neither letters nor hosts are compared, which other nodes may own by now.
Memory: one entry per list, and a lot.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from enum import Enum
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from msgspec import Struct

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.registry import open_catalog
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.model.records import HostRecord, UrlId, UrlRecord, UrlState
from gossamer.ports import Catalog
from gossamer.ports.catalog_store import (
    CatalogChanges,
    CatalogInventory,
    CatalogVisit,
    CheckedCatalog,
    HostCounts,
    VisitKey,
)
from gossamer.reading.catalog_rows import CatalogRows, is_page
from gossamer.reading.folder import CrawlReader
from gossamer.reading.node_folders import node_in
from gossamer.reading.view import CrawlView
from gossamer.settings.model import Settings
from gossamer.telemetry.text import plural
from gossamer.verify.agreement import Agreement, OnBytes, ReportProblem

_LOT = 500


class RowFault(Enum):
    """What can be wrong; see the module."""

    LOST = "a page that the catalog does not have as the ledger does; --mend stores it again"
    ORPHAN = "a visit that the ledger does not know; --mend removes it"
    LETTER_LOST = "a dead letter that the catalog does not have as the ledger does; --mend stores it again"
    LETTER_ORPHAN = "no dead letter, according to the ledger; --mend removes it"
    HOST_LOST = "a host that the catalog does not have with the ledger's counts; --mend stores it again"
    HOST_ORPHAN = "a host that the ledger does not know; --mend removes it"


_REMOVED = frozenset({RowFault.ORPHAN, RowFault.LETTER_ORPHAN, RowFault.HOST_ORPHAN})


class RowFinding(Struct, frozen=True):
    """One row that does not agree."""

    fault: RowFault
    what: str  # a URL, or the name of a host
    url_id: UrlId = b""
    visit: int = 0
    row: UrlRecord | None = None
    host: HostRecord | None = None


def find(crawl: CrawlView, found: Agreement, _on_bytes: OnBytes) -> None:
    """Compare the catalogs of a crawl. See `gossamer.verify.agreement.Check`."""
    for url in crawl.settings.catalog:
        with closing(open_catalog(url)) as catalog:
            try:
                if catalog.is_there():
                    _row_agreement(crawl, catalog).check(found.add_problem)
                else:
                    found.add_problem(catalog.name, "its tables are gone; --mend creates and fills them")
            except (StoreUnavailableError, UsageError) as error:
                found.add_problem(catalog.name, f"its rows were not compared: {error}")


def create_catalogs(settings: Settings, folder: CrawlFolder) -> None:
    """Create what the catalogs of a crawl lack, as far as they can be reached."""
    for url in settings.catalog:
        with closing(open_catalog(url)) as catalog, suppress(UsageError):  # whoever uses it next says so
            catalog.check(folder.path.absolute().name)


def mend(crawl: CrawlReader) -> list[str]:
    """Create and mend the catalogs of a crawl. See `gossamer.verify.agreement.Check`."""
    create_catalogs(crawl.settings, crawl.folder)
    done: list[str] = []
    for url in crawl.settings.catalog:
        with closing(open_catalog(url)) as catalog, suppress(StoreUnavailableError):  # the check that follows says so
            done += _row_agreement(crawl, catalog).mend(time.time())
    return done


def _row_agreement(crawl: CrawlView, catalog: CheckedCatalog) -> RowAgreement:
    node = node_in(crawl.folder) if isinstance(crawl, CrawlReader) else ""
    rows = CatalogRows(crawl.ledger.look_up, node)
    return RowAgreement(catalog, crawl.ledger, rows, catalog.name, is_part=bool(node))


class RowAgreement:
    """The comparison of one catalog store with one ledger."""

    def __init__(
        self, store: CatalogInventory, ledger: Catalog, rows: CatalogRows, where: str, *, is_part: bool = False
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._rows = rows
        self._where = where
        self._is_part = is_part  # of the ledger

    def check(self, report: ReportProblem) -> None:
        """Report what does not agree."""
        for found in self._findings():
            report(self._where, f"{found.what}: {found.fault.value}")

    def mend(self, now: float) -> list[str]:
        """Store what is missing and remove what is too much; return what was done."""
        done: Counter[bool] = Counter()
        findings = self._findings()
        while lot := list(islice(findings, _LOT)):
            self._store.put(self._changes([found for found in lot if found.fault not in _REMOVED], now))
            gone = [found for found in lot if found.fault in _REMOVED]
            self._store.remove(
                [VisitKey(found.url_id, found.visit, found.what) for found in gone if found.fault is RowFault.ORPHAN],
                [found.url_id for found in gone if found.fault is RowFault.LETTER_ORPHAN],
                [found.what for found in gone if found.fault is RowFault.HOST_ORPHAN],
            )
            done.update(found.fault in _REMOVED for found in lot)
        words = {False: "stored again from the ledger", True: "that the ledger does not know removed"}
        return [f"{self._where}: {plural(done[is_gone], 'row')} {words[is_gone]}" for is_gone in words if done[is_gone]]

    def _changes(self, lost: list[RowFinding], now: float) -> CatalogChanges:
        urls = [(found.fault, found.url_id, found.row) for found in lost if found.row is not None]
        return CatalogChanges(
            now,
            pages=[self._rows.page(url_id, row) for fault, url_id, row in urls if fault is RowFault.LOST],
            dead_letters=[
                self._rows.dead_letter(url_id, row) for fault, url_id, row in urls if fault is RowFault.LETTER_LOST
            ],
            hosts=[self._rows.host(found.host) for found in lost if found.host is not None],
        )

    # -- the comparison ---------------------------------------------------------------------------

    def _findings(self) -> Iterator[RowFinding]:
        lists: list[Iterator[tuple[UrlId, int, Any]]] = [
            ((url_id, 0, row) for url_id, row in self._ledger.urls()),
            ((visit.url_id, 1, visit) for visit in self._store.visits()),
        ]
        if not self._is_part:
            lists.append((url_id, 2, outcome) for url_id, outcome in self._store.dead_letters())
        for url_id, group in groupby(merge(*lists, key=itemgetter(0, 1)), key=itemgetter(0)):
            row = None
            visits = []
            letter = None
            for _, kind, item in group:
                if kind == 0:
                    row = item
                elif kind == 1:
                    visits.append(item)
                else:
                    letter = item
            yield from self._visit_faults(url_id, row, visits)
            if not self._is_part:
                yield from self._letter_faults(url_id, row, letter)
        if not self._is_part:
            yield from self._host_faults()

    def _visit_faults(self, url_id: UrlId, row: UrlRecord | None, visits: list[CatalogVisit]) -> Iterator[RowFinding]:
        last = 0 if row is None else row.visits
        if row is not None and is_page(row):
            page = self._rows.page(url_id, row)
            expected = CatalogVisit(
                url_id, page.visit, page.url, page.content_hash, page.archive_file, page.archive_offset
            )
            if expected not in visits:
                yield RowFinding(RowFault.LOST, row.url, url_id, row=row)
        if not self._is_part:
            for visit in visits:
                if visit.visit > last:
                    yield RowFinding(RowFault.ORPHAN, visit.url, url_id, visit.visit)

    def _letter_faults(self, url_id: UrlId, row: UrlRecord | None, letter: str | None) -> Iterator[RowFinding]:
        is_dead = row is not None and row.state is UrlState.DEAD
        if row is not None and is_dead and letter != row.outcome:
            yield RowFinding(RowFault.LETTER_LOST, row.url, url_id, row=row)
        elif letter is not None and not is_dead:
            yield RowFinding(RowFault.LETTER_ORPHAN, url_id.hex() if row is None else row.url, url_id)

    def _host_faults(self) -> Iterator[RowFinding]:
        hosts = iter(self._ledger.hosts())
        while lot := list(islice(hosts, _LOT)):
            known = self._store.hosts([host.name for host in lot])
            for host in lot:
                if known.get(host.name) != HostCounts(host.pages, host.fetches, host.errors):
                    yield RowFinding(RowFault.HOST_LOST, host.name, host=host)
        names = self._store.host_names()
        while some := list(islice(names, _LOT)):
            for name in some:
                if self._ledger.host(name) is None:
                    yield RowFinding(RowFault.HOST_ORPHAN, name)
