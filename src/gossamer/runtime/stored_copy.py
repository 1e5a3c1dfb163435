"""The stored copy of a page, read back from the archive: a 304 says that the page is still the same."""

from __future__ import annotations

from pathlib import Path

from gossamer.archive.reader import exchange_of, read_record
from gossamer.fetch.body import decode
from gossamer.records import ContentRecord, Exchange


class StoredCopies:
    """Reads pages from an archive folder."""

    def __init__(self, archive: Path, max_bytes: int) -> None:
        self._archive = archive
        self._max_bytes = max_bytes

    def __call__(self, copy: ContentRecord) -> Exchange | None:
        """Return the answer that has a content, decoded; None if it cannot be read."""
        span = copy.archived
        if span is None:
            return None
        closed = self._archive / span.file
        for path in (closed, closed.with_name(span.file + ".open"), closed):  # it may be renamed at any time
            try:
                record = read_record(path, span.offset)
            except FileNotFoundError:
                continue
            if record is None or record.type != "response" or record.payload_digest != copy.payload_digest:
                return None
            return decoded_exchange(exchange_of(record), self._max_bytes)
        return None


def decoded_exchange(exchange: Exchange, max_bytes: int) -> Exchange:
    """Decode the body of an archived exchange."""
    decoded = decode(exchange.body, exchange.header("content-encoding"), max_bytes)
    exchange.content, exchange.is_decoded = decoded.content, decoded.is_decoded
    return exchange
