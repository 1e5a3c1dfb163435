"""Where the documents of a crawl go as messages: a topic whose readers have a copy of all pages.

The last message of a key is what counts: a document, or nothing if the page is gone. So a message that is sent twice
changes nothing, and a topic may drop what a later message replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct


class FeedMessage(Struct, frozen=True):
    """What a topic gets about a page."""

    url: str  # the key
    value: bytes | None  # the document as JSON; None: the page is gone
    shortened: Callable[[], bytes] | None = None  # makes the document again without its longest parts


class DocumentTopic(Protocol):
    """Takes messages. Used by one thread at a time."""

    name: str  # for messages, without a password

    def check(self) -> None:
        """Raise UsageError if nothing can be sent: no broker, no such topic, no rights."""
        ...

    def send(self, messages: Sequence[FeedMessage]) -> list[str]:
        """Send messages, of those with one key only the last; return when the brokers have confirmed all of them.

        Returns the URLs whose documents were too large and were sent shortened. Raises StoreUnavailableError if not all
        were confirmed: some may have been sent. The call may be repeated.
        """
        ...

    def close(self) -> None:
        """Release the connections."""
        ...
