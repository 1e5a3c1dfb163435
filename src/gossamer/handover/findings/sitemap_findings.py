"""Do the sitemaps that a crawl has read agree with what it found?

Sitemaps are read in the archive, pages in the catalog; entries wait on disk, so that memory does not grow with either.
A feed that serves as a sitemap counts as one. A date contradicts if it is none, if it lies ahead, or if it is more than
a day away from the `Last-Modified` of the page; a server that states the time of the request says nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from enum import StrEnum
from types import TracebackType

from msgspec import Struct

from gossamer.core.content.written_dates import written_time
from gossamer.core.ledger.tables import HELD, held_key
from gossamer.core.links.scope import Scope
from gossamer.core.traps.shapes import shape_trap
from gossamer.core.url.forms import host_of, links_from
from gossamer.core.url.identity import host_id
from gossamer.handover.export.page_heads import is_html_page
from gossamer.handover.export.stored import PAGE_OUTCOMES, ExportedPages
from gossamer.handover.findings.link_table import SeenIds, enough_room
from gossamer.handover.findings.page_findings import is_noindex
from gossamer.model.records import ANSWERED, FetchKind, Outcome, UrlId, UrlRecord, UrlState
from gossamer.model.state import HoldRule
from gossamer.parse.feeds.sitemap import parse_sitemap
from gossamer.reading.view import CrawlView
from gossamer.reading.why.fates import BROKEN, QUEUED, Fate, Fates
from gossamer.reading.why.source import joined_scope

MAX_SITEMAP_BYTES = 50_000_000  # as much as a crawl reads
_DAY_S = 86_400.0
_AT_REQUEST_S = 60.0  # a page that changed less than a minute before it was fetched: made for the request
_AHEAD_S = 2 * _DAY_S  # clocks and zones differ
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE listed (id BLOB PRIMARY KEY, url TEXT, sitemap TEXT, lastmod TEXT);
BEGIN;
"""


class SitemapFault(StrEnum):
    """How a sitemap and the crawl differ, the worst first."""

    UNREADABLE = "unreadable"  # a sitemap that could not be fetched, or not as a whole
    BROKEN = "broken"
    REDIRECT = "redirect"
    DISALLOWED = "disallowed"
    NOINDEX = "noindex"
    LASTMOD = "lastmod"
    NOT_FETCHED = "not_fetched"
    NOT_LISTED = "not_listed"  # a page of a host that has sitemaps, in none of them


# What the owner of a site should correct. The others may be due to the limits of the crawl, or intended.
BAD = frozenset(SitemapFault) - {SitemapFault.NOT_FETCHED, SitemapFault.NOT_LISTED}


class SitemapFinding(Struct, frozen=True):
    """One difference."""

    finding: SitemapFault
    url: str
    outcome: str = ""
    status: int = 0
    reason: str = ""
    sitemap: str = ""  # that lists it; the first, if there are several
    lastmod: str = ""  # as in the sitemap
    last_modified: str = ""  # as the server said
    chain: list[str] = []  # of redirects


class SitemapCounts(Struct):
    """What was compared."""

    sitemaps: int = 0
    listed: int = 0  # different URLs
    pages: int = 0  # that could be listed: HTML without noindex, of hosts with sitemaps


class Sitemaps:
    """The entries of the sitemaps of a crawl, on disk. Use with `with`."""

    def __init__(self, crawl: CrawlView) -> None:
        self._crawl = crawl
        self.counts = SitemapCounts()

    def __enter__(self) -> Sitemaps:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(_TABLES)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def findings(self) -> Iterator[SitemapFinding]:
        """Yield all differences: sitemaps that are not readable, listed URLs, then pages that are not listed."""
        yield from self._unreadable()
        yield from self._read()
        judge = _Judge(self._crawl)
        with SeenIds() as hosts:
            for key, url, sitemap, lastmod in self._listed():
                hosts.put(host_id(host_of(url)))
                yield from judge.judge(key, SitemapFinding(SitemapFault.BROKEN, url, sitemap=sitemap, lastmod=lastmod))
            yield from self._not_listed(hosts)

    def _unreadable(self) -> Iterator[SitemapFinding]:
        for _, row in self._crawl.ledger.urls():
            if row.kind is not FetchKind.SITEMAP:
                continue
            if row.state is UrlState.DEAD or row.outcome == Outcome.ROBOTS_DENIED:
                yield SitemapFinding(SitemapFault.UNREADABLE, row.url, row.outcome, row.status, row.error)

    def _read(self) -> Iterator[SitemapFinding]:
        """Read the stored sitemaps; yield those that could not be read as a whole."""
        pages = ExportedPages(self._crawl, max_bytes=MAX_SITEMAP_BYTES)
        for page in pages.in_archive_order(_is_sitemap):
            found = parse_sitemap(pages.exchange(page).content)
            self.counts.sitemaps += 1
            if not found.is_complete:
                row = page.row
                yield SitemapFinding(SitemapFault.UNREADABLE, row.url, row.outcome, row.status, found.error)
            for entry in found.urls:
                for link in links_from(page.row.url, [entry.loc]):
                    with enough_room():
                        values = (link.id, link.url, page.row.url, entry.lastmod)
                        self._db.execute("INSERT OR IGNORE INTO listed VALUES (?, ?, ?, ?)", values)

    def _listed(self) -> Iterator[tuple[UrlId, str, str, str]]:
        with enough_room():
            for row in self._db.execute("SELECT id, url, sitemap, lastmod FROM listed ORDER BY rowid"):
                self.counts.listed += 1
                yield row

    def _not_listed(self, hosts: SeenIds) -> Iterator[SitemapFinding]:
        for key, row in self._crawl.ledger.urls():
            if not is_html_page(row) or is_noindex(row) or host_id(host_of(row.url)) not in hosts:
                continue
            self.counts.pages += 1
            if self._db.execute("SELECT 1 FROM listed WHERE id = ?", (key,)).fetchone() is None:
                copy = "a copy of another page" if row.duplicate_of else ""
                yield SitemapFinding(SitemapFault.NOT_LISTED, row.url, row.outcome, row.status, copy)


class _Judge:
    """What is wrong with an entry of a sitemap, by the catalog."""

    def __init__(self, crawl: CrawlView) -> None:
        self._crawl = crawl
        self._fates = Fates(crawl.ledger)
        self._scope: Scope = joined_scope(crawl)

    def judge(self, key: UrlId, entry: SitemapFinding) -> Iterator[SitemapFinding]:
        row = self._crawl.ledger.look_up(key)
        fate = self._fates.of(key)
        kind = _kind_of(row, fate)
        if kind is not None:
            reason = self._why_not_fetched(key, entry.url, fate) if kind is SitemapFault.NOT_FETCHED else fate.error
            yield _found(entry, kind, fate, reason)
        if row is not None and row.kind is FetchKind.PAGE and entry.lastmod:
            reason = lastmod_fault(entry.lastmod, row.last_modified, row.fetched_at or self._crawl.now)
            if reason:
                yield _found(entry, SitemapFault.LASTMOD, fate, reason, row.last_modified)

    def _why_not_fetched(self, key: UrlId, url: str, fate: Fate) -> str:
        if fate.outcome:
            return fate.error or {QUEUED: "still queued"}.get(fate.outcome, "")
        for hold in HoldRule:
            if self._crawl.ledger.record(HELD, held_key(key, hold)) is not None:
                return f"held back: {hold.value}"
        rule = self._scope.refusal(url, host_of(url)) or shape_trap(url)
        if rule is None:
            return "never queued; 'gossamer why' may say more"
        detail = self._scope.explain(rule, url)
        return f"{rule} {detail}".rstrip()


def _is_sitemap(row: UrlRecord) -> bool:
    return row.kind is FetchKind.SITEMAP and row.outcome in PAGE_OUTCOMES


def _kind_of(row: UrlRecord | None, fate: Fate) -> SitemapFault | None:
    """Return what is wrong with a URL that a sitemap lists; None if it is a page."""
    if fate.outcome in BROKEN:
        return SitemapFault.BROKEN
    if fate.chain:
        return SitemapFault.REDIRECT
    if fate.outcome == Outcome.ROBOTS_DENIED:
        return SitemapFault.DISALLOWED
    if row is None or fate.outcome not in ANSWERED:
        return SitemapFault.NOT_FETCHED
    return SitemapFault.NOINDEX if is_noindex(row) else None


def _found(
    entry: SitemapFinding, kind: SitemapFault, fate: Fate, reason: str, last_modified: str = ""
) -> SitemapFinding:
    return SitemapFinding(
        kind,
        entry.url,
        fate.outcome,
        fate.status,
        reason,
        entry.sitemap,
        entry.lastmod,
        last_modified,
        list(fate.chain),
    )


def lastmod_fault(lastmod: str, last_modified: str, fetched_at: float) -> str:
    """Return how the date of an entry contradicts itself or the page; empty if it does not."""
    claimed = written_time(lastmod, 0.0)
    if not claimed:
        return "not a date"
    if claimed > fetched_at + _AHEAD_S:
        return "in the future"
    known = written_time(last_modified, fetched_at) if last_modified else 0.0
    if not known or fetched_at - known < _AT_REQUEST_S:
        return ""
    if known > claimed + 2 * _DAY_S:  # a date without a time of day means any time of that day, in any zone
        return "the page has changed since, by its Last-Modified"
    return "the page has not changed then, by its Last-Modified" if known < claimed - _DAY_S else ""
