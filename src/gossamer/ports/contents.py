"""Which page was the first with this content, and which one says nearly this? "First known here"."""

from __future__ import annotations

from typing import Protocol

from gossamer.records import ContentRecord, Similar, UrlId


class Contents(Protocol):
    """The first page per content."""

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page that had this content."""
        ...

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Store the first page with this content; return the one that is known already and stays, or None."""
        ...


class Signatures(Protocol):
    """The signatures of pages that repeat no other."""

    def use_signatures(self, edition: str) -> None:
        """Compare pages by signatures of this edition from now on; those of any other are never compared.

        Comes before the two below. The same edition as before goes on with what was stored.
        """
        ...

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page whose signature is most like this one, of equals the first; None if none is near."""
        ...

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        """Store the signature of a page that repeats no other."""
        ...
