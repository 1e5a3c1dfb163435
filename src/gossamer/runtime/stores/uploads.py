"""What the hub needs of a store on other machines that gets the pages from the crawl folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class PageUploads(Protocol):
    """Pages on their way from the crawl folder to a store. Methods that wait for the store run in threads."""

    def begin(self) -> None:
        """Learn what earlier runs have left. Called when the ledger is open and recovered."""
        ...

    def upload(self, ends: Mapping[str, int]) -> None:
        """Return when the store has everything up to these lengths of archive files, and every page in the spool.

        Raises StoreUnavailableError if that cannot be done now; it may be called again with the same lengths.
        """
        ...

    def commit(self, ends: Mapping[str, int]) -> None:
        """Record that the ledger refers to what was uploaded last. In the event loop."""
        ...

    def tidy(self) -> bool:
        """Do one piece of work that commits do not wait for; return whether there was one.

        Raises StoreUnavailableError if it cannot be done now.
        """
        ...

    def spool_bytes(self) -> int:
        """Return how many bytes of the folder wait for the store."""
        ...
