"""Which page was the first with this content, and which has nearly this text? "First known here"."""

from __future__ import annotations

from typing import Protocol

from gossamer.model.records import ContentRecord, Similar, UrlId


class Contents(Protocol):
    """The first page per content."""

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page that had this content."""
        ...

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Store the first page with this content; return the one that is already known and stays, or None."""
        ...


class Signatures(Protocol):
    """The signatures of pages that repeat no other."""

    def use_signatures(self, edition: str) -> None:
        """Compare pages by signatures of this edition from now on; those of another edition are never compared.

        Called before the two below. If the edition is the same as before, stored signatures are used.
        """
        ...

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page with the most similar signature, the first of equals; None if none is near."""
        ...

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        """Store the signature of a page that repeats no other."""
        ...
