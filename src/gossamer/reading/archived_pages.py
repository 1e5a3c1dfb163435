"""The pages of the catalog, read back from the archive for a page store.

A page's record is inflated, its body decoded and hashed, each of which lets other threads run. Thread-safe.
"""

from __future__ import annotations

import hashlib

from msgspec import Struct

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.reader import ArchivedRecord, exchange_of
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.fetch.body import decode
from gossamer.model.errors import CorruptFolderError
from gossamer.model.records import ArchiveSpan, FetchKind, Outcome, UrlId, UrlRecord, UrlState
from gossamer.ports import Ledger
from gossamer.ports.page_store import PageCopy


class ArchivedPage(Struct, frozen=True):
    """A page of the catalog whose record is in the archive."""

    url_id: UrlId
    row: UrlRecord
    archived: ArchiveSpan
    first: ArchiveSpan | None = None  # the record with the body, if it may be another one


def stored_page(url_id: UrlId, row: UrlRecord | None, ledger: Ledger) -> ArchivedPage | None:
    """Return the page that a row describes; None if its last visit brought none."""
    if row is None or row.archived is None or row.kind is not FetchKind.PAGE or row.state is not UrlState.DONE:
        return None
    if row.outcome != Outcome.OK.value:
        return None
    first = None
    if row.content_hash and (row.duplicate_of or row.visits > 1):
        known = ledger.first_with_content(row.content_hash)
        first = None if known is None else known.archived
    return ArchivedPage(url_id, row, row.archived, first)


class ArchivedPages:
    """Reads pages from the archive of one machine."""

    def __init__(self, files: ArchiveFiles, max_bytes: int, node: str = "", *, keeps_copies: bool = False) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self._node = node
        self._keeps_copies = keeps_copies

    def read(self, page: ArchivedPage) -> PageCopy:
        """Return a page with its body, unless that is stored with another page or an earlier visit.

        If copies are kept, every page has its body.
        """
        row = page.row
        record = self._record(page.archived)
        has_body = record.type == "response"
        content = self._content(record if has_body or page.first is None else self._record(page.first))
        is_copy = bool(row.duplicate_of) or not has_body
        host = host_of(row.url)
        return PageCopy(
            url_id=page.url_id,
            visit=row.visits,
            url=row.url,
            host=host,
            domain=registrable_domain(host),
            title=row.title,
            content_hash=hashlib.sha256(content).hexdigest(),
            status=row.status,
            crawled_at=row.fetched_at,
            depth=row.depth,
            size=row.content_bytes,
            links=row.links_found,
            content_type=row.content_type,
            worker=row.worker,
            node=self._node,
            duplicate_of=(row.duplicate_of or page.url_id) if is_copy else b"",
            content=None if is_copy and not self._keeps_copies else content,
        )

    def _content(self, record: ArchivedRecord) -> bytes:
        exchange = exchange_of(record)
        return decode(exchange.body, exchange.header("content-encoding"), self._max_bytes).content

    def _record(self, span: ArchiveSpan) -> ArchivedRecord:
        record = self._files.read(span)
        if record is None:
            raise CorruptFolderError(f"{span.file}: no record at {span.offset}, where the catalog has a page")
        return record
