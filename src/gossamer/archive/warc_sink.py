"""Stores pages in WARC files: the default sink, and the crawl's write-ahead log."""

from __future__ import annotations

from gossamer.archive.warc import REQUISITE, Identified, RefersTo, stored_block
from gossamer.archive.writer import ArchiveWriter
from gossamer.foundation import failpoints
from gossamer.model.exchanges import FetchedPage, Volume
from gossamer.model.records import FetchKind, Outcome, Result

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK = Outcome.OK
_PAGE = FetchKind.PAGE
_REQUISITE = FetchKind.REQUISITE


class WarcSink:
    """See `gossamer.ports.page_sink.PageSink`."""

    def __init__(self, writer: ArchiveWriter) -> None:
        self._writer = writer

    @property
    def volume(self) -> Volume:
        """What it has compressed so far."""
        return self._writer.volume

    def prepare(self, page: FetchedPage) -> None:
        """Compose the block that will be stored: its digest is that of the body, which parsing needs too."""
        exchange = page.exchange
        if exchange.outcome is _OK and exchange.response_head:
            page.prepared = stored_block(exchange)
            exchange.body_sha1 = page.prepared.payload_digest

    def write(self, page: FetchedPage, result: Result) -> None:
        """Append the records of an answer; content that is already stored becomes a revisit record."""
        exchange = page.exchange
        first = page.first_copy
        kind = page.task.kind
        refers = RefersTo(first.url, first.date, first.payload_digest) if first and first.payload_digest else None
        archived = self._writer.write(
            exchange,
            date=exchange.sent_at or exchange.finished_at,
            duplicate_of=refers,
            identified=Identified(
                result.content_type, result.charset, result.language, REQUISITE if kind is _REQUISITE else ""
            ),
            block=page.prepared,
            is_page=exchange.outcome is _OK and kind is _PAGE,
        )
        result.archived = archived.span
        result.archive_end = archived.end
        result.payload_digest = archived.payload_digest
        failpoints.reach("after_archive_write")

    def sync(self) -> None:
        """Make what was written durable; finish files that are full."""
        self._writer.sync()

    def close(self) -> None:
        """Finish every file."""
        self._writer.close()
