"""The stored copy of a page, read back from the archive: a 304 says that the page is still the same."""

from __future__ import annotations

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.reader import exchange_of
from gossamer.fetch.body import decode
from gossamer.model.errors import StoreUnavailableError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import ContentRecord


class StoredCopies:
    def __init__(self, files: ArchiveFiles, max_bytes: int) -> None:
        self._files = files
        self._max_bytes = max_bytes

    def __call__(self, copy: ContentRecord) -> Exchange | None:
        """Return the answer that has a content, decoded; None if it cannot be read."""
        try:
            record = self._files.read(copy.archived) if copy.archived is not None else None
        except StoreUnavailableError:
            return None
        if record is None or record.type != "response" or record.payload_digest != copy.payload_digest:
            return None
        return decoded_exchange(exchange_of(record), self._max_bytes)


def decoded_exchange(exchange: Exchange, max_bytes: int) -> Exchange:
    """Decode the body of an archived exchange."""
    decoded = decode(exchange.body, exchange.header("content-encoding"), max_bytes)
    exchange.content = decoded.content
    exchange.is_decoded = decoded.is_decoded
    return exchange
