"""Where copies of finished pages go outside of the crawl folder: a database that others query.

A page sink receives an answer when it arrives, in the worker that fetched it. A page store receives finished pages,
with what the engine has decided about them, in batches and before the commit that makes them durable in the ledger. The
pages come from the archive, so a store that is away costs no memory, and whatever a dead process had not stored is
stored when its archive is recovered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from gossamer.model.records import UrlId


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


class StoredVisit(Struct, frozen=True, gc=False):
    """A visit that a page store lists."""

    name: str  # of URL id and visit, as `visit_name` makes it
    url: str
    content_hash: str
    is_copy: bool  # its body is stored with another page or visit


class StoredBody(Struct, frozen=True, gc=False):
    """A body that a page store lists."""

    name: str  # of its visit
    is_whole: bool


class PageInventory(PageStore, Protocol):
    """A page store that can be compared with a catalog. All methods raise StoreUnavailableError as `put` does."""

    def visits(self) -> Iterator[StoredVisit]:
        """Return all visits, sorted by name."""
        ...

    def bodies(self) -> Iterator[StoredBody]:
        """Return all bodies, sorted by name."""
        ...

    def first_visits(self, content_hashes: Sequence[str]) -> set[str]:
        """Return those of some content hashes that a visit with a body of its own has."""
        ...

    def remove_bodies(self, names: Sequence[str]) -> None:
        """Remove the bodies of some visits."""
        ...


def visit_name(url_id: UrlId, visit: int) -> str:
    """Return the name of a visit in every page store. Names are sorted as the URL ids in a ledger."""
    return f"{url_id.hex()}-{visit}"


def url_id_in(name: str) -> UrlId:
    """Return the URL id in the name of a visit; empty if it is no such name."""
    try:
        return bytes.fromhex(name.partition("-")[0])
    except ValueError:
        return b""
