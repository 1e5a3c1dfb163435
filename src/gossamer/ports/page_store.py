"""Where copies of finished pages go outside of the crawl folder: a database that others query.

A page sink receives an answer when it arrives, in the worker that fetched it. A page store receives finished pages,
with what the engine has decided about them, in batches and before the commit that makes them durable in the ledger. The
pages come from the archive, so a store that is away costs no memory, and whatever a dead process had not stored is
stored when its archive is recovered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from gossamer.records import UrlId


class PageCopy(Struct, frozen=True):
    """A visit of a page, as a page store has it."""

    url_id: UrlId
    visit: int  # from 1
    url: str
    host: str
    domain: str  # registrable
    title: str
    content_hash: str  # SHA-256 of the decoded body, hexadecimal
    status: int
    crawled_at: float
    depth: int
    size: int  # of the decoded body, in bytes
    links: int
    content_type: str
    worker: int
    node: str  # empty if the crawl runs on one machine
    duplicate_of: UrlId  # the first page with this content; empty if this is the first
    content: bytes | None  # the decoded body; None if it is stored with another page or visit


class PageStore(Protocol):
    """Stores pages. Thread-safe."""

    def put(self, pages: Sequence[PageCopy]) -> None:
        """Store pages; on return the store has acknowledged all of them.

        A page is identified by URL id and visit: storing it again changes nothing, and one that was fetched earlier
        never replaces one that was fetched later. No page is visible before its content is.

        Raises StoreUnavailableError if the store cannot be reached or refuses to write. Some of the pages may be
        stored then; the call may be repeated.
        """
        ...

    def close(self) -> None:
        """Release the connection."""
        ...
