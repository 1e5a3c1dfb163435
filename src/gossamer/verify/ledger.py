"""Do queue, hosts, due index and catalog of a ledger agree with each other?

The catalog is sorted by host, so one pass reads each host once: its rows are counted, its
queue is read with them, and both are compared with the host's own counts. Memory: the counts
of one host and a thousand queue entries. The due index is sorted by time: its entries and those that follow from the
rows are compared by their number and a sum of hashes. Costs: 4 µs per row if half of them are queued.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from msgspec import Struct, field
from xxhash import xxh3_64_intdigest

from gossamer.core.ledger.tables import DUE, DUE_HOSTS
from gossamer.core.url.forms import host_of
from gossamer.model.errors import CorruptFolderError
from gossamer.model.records import FetchKind, HostId, Outcome, UrlId, UrlRecord, UrlState
from gossamer.ports import Catalog
from gossamer.telemetry.text import agreeing, plural
from gossamer.verify.agreement import ReportProblem

_BATCH = 1000
_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


class DueSum(Struct):
    """How many URLs are due when: equal for two lists with the same URLs and times, in whichever order."""

    urls: int = 0
    hashes: int = 0

    def add(self, url_id: UrlId, at: int) -> None:
        """Add a URL."""
        self.urls += 1
        self.hashes = self.hashes + xxh3_64_intdigest(url_id + at.to_bytes(8)) & 0xFFFFFFFFFFFFFFFF


class CatalogCounts(Struct):
    """What the pass over the catalog has counted."""

    rows: int = 0
    queued: int = 0
    hosts: int = 0
    archived_rows: int = 0
    revisits: int = 0  # visits beyond the first, of all URLs
    pages: int = 0
    due: DueSum = field(default_factory=DueSum)
    due_hosts: int = 0  # hosts with URLs that are fetched again


class _HostCount(Struct):
    rows: int = 0
    queued: int = 0
    requisites: int = 0  # of what is queued
    pages: int = 0
    due: int = 0
    is_revisited: bool = False


def check_catalog(ledger: Catalog, report: ReportProblem, *, is_running: bool) -> CatalogCounts:
    """Count the catalog, and report what does not agree. While a crawl runs: count only."""
    counts = CatalogCounts()
    for host_id, group in groupby(ledger.urls(), key=lambda entry: entry[0][:8]):
        first_url, count = _count_rows(group, counts)
        if not is_running:
            _check_host(ledger, host_id, host_of(first_url), count, report)
    if not is_running:
        _check_totals(ledger, counts, report)
        _check_due(ledger, counts, report)
    return counts


def _count_rows(rows: Iterable[tuple[UrlId, UrlRecord]], counts: CatalogCounts) -> tuple[str, _HostCount]:
    count = _HostCount()
    first_url = ""
    for url_id, row in rows:
        first_url = first_url or row.url
        count.rows += 1
        if row.archived is not None:
            counts.archived_rows += 1
        if row.state is UrlState.QUEUED:
            count.queued += 1
            count.requisites += row.kind is FetchKind.REQUISITE
        elif row.kind is FetchKind.PAGE and row.outcome in _PAGES:
            count.pages += 1
        if row.revisit is not None and row.revisit.due_at and row.state is not UrlState.QUEUED:
            count.due += 1
            counts.due.add(url_id, row.revisit.due_at)
        if row.visits > 1:
            counts.revisits += row.visits - 1
            count.is_revisited = True
    counts.rows += count.rows
    counts.queued += count.queued
    counts.pages += count.pages
    counts.due_hosts += count.due > 0
    counts.hosts += 1
    return first_url, count


def _check_host(ledger: Catalog, host_id: HostId, name: str, count: _HostCount, report: ReportProblem) -> None:
    host = ledger.host(name)
    if host is None:
        report(name, f"{plural(count.rows, 'URL')} in the catalog, but the host is unknown")
        return
    if host.queued != count.queued:
        report(name, f"{agreeing(count.queued, 'URL')} queued, but the host counts {host.queued}")
    if host.requisites != count.requisites:
        report(name, f"{agreeing(count.requisites, 'requisite')} queued, but the host counts {host.requisites}")
    # The row of a page that failed on a later visit is no longer a page row: then the host may count more pages.
    if host.pages < count.pages or (host.pages != count.pages and not count.is_revisited):
        report(name, f"{plural(count.pages, 'page')} in the catalog, but the host counts {host.pages}")
    entries = _check_queue(ledger, host_id, name, report)
    if entries != count.queued:
        report(
            name, f"{agreeing(count.queued, 'URL')} queued according to the catalog, {entries} according to the queue"
        )


def _check_queue(ledger: Catalog, host_id: HostId, name: str, report: ReportProblem) -> int:
    """Return how many entries a host's queue has; report those whose URL is not queued."""
    entries = 0
    after = None
    try:
        while batch := ledger.read_queue(host_id, after, _BATCH):
            for url in batch:
                entries += 1
                row = ledger.look_up(url.id)
                if row is None or row.state is not UrlState.QUEUED:
                    report(name, f"{url.url} is in the queue, but not queued according to the catalog")
            last = batch[-1].position
            if len(batch) < _BATCH or last == after:
                break
            after = last
    except CorruptFolderError as error:
        report(name, str(error))
    return entries


def _check_due(ledger: Catalog, counts: CatalogCounts, report: ReportProblem) -> None:
    """Compare the due index with the rows: a URL that is not in it would never be fetched again."""
    found = DueSum()
    for due in ledger.records(DUE):
        row = ledger.look_up(due.id)
        if row is not None and row.state is not UrlState.QUEUED:  # an entry of one that is queued has no meaning
            found.add(due.id, due.at)
    if found != counts.due:
        is_same = found.urls == counts.due.urls
        entries = "the same number, at other times" if is_same else f"{found.urls:,} of them"
        report("due index", f"{agreeing(counts.due.urls, 'URL')} to be fetched again by the catalog, it has {entries}")
    hosts = sum(1 for _ in ledger.records(DUE_HOSTS))
    if hosts < counts.due_hosts:
        report("due index", f"{agreeing(counts.due_hosts, 'host')} to be asked again by the catalog, it has {hosts}")


def _check_totals(ledger: Catalog, counts: CatalogCounts, report: ReportProblem) -> None:
    """Compare the hosts with domains and catalog; a host without rows must have no counts."""
    queued = pages = 0
    for host in ledger.hosts():
        queued += host.queued
        pages += host.pages
    if queued != counts.queued:
        report("hosts", f"count {queued} queued URLs, the catalog {counts.queued}")
    domain_pages = sum(domain.pages for domain in ledger.domains())
    if domain_pages != pages:
        report("domains", f"count {plural(domain_pages, 'page')}, the hosts {pages}")
