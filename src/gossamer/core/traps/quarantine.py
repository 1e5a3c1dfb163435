"""What is decided about a pattern of a host's URLs, or about a host because of spam: a row of the ledger."""

from __future__ import annotations

from msgspec import Struct

SPAM_PATTERN = ":spam"  # no pattern of URLs: all links to a host most of whose pages are spam
BUDGET = 1000  # pages of a host's patterns that were suspected or held
ENOUGH = 24  # weight of the evidence from which on the links of a pattern are held


class Quarantine(Struct, array_like=True):
    """A pattern of URLs that is suspected, held or released: by the operator, and no longer watched."""

    host: str
    pattern: str
    since: float
    fetched: int  # pages that were judged
    new: int  # of them, those that said something new
    samples: list[str]
    held: int = 0  # URLs that are held back now
    is_released: bool = False
    reason: str = ""
    demotes_only: bool = False  # the host is demoted, and its links are not held
    weight: int = ENOUGH  # of the evidence; rows of earlier versions have none
    pages: int = 0  # of the pattern, fetched since it is watched
    found: int = 0  # links that were held back and not known before, samples included
    samples_taken: int = 0  # of `found`, those that were queued
    misses: int = 0  # windows without evidence in a row
    growth: float = 0.0  # new URLs of the pattern per page, in the last window
    first_growth: float = 0.0  # in the first one

    @property
    def name(self) -> str:
        """The name that the operator reads and writes."""
        return self.host + self.pattern

    @property
    def rule(self) -> str:
        """The rule that holds its links, see `state.HoldRule`."""
        return "spam" if self.pattern == SPAM_PATTERN else "quarantine"

    @property
    def is_in_force(self) -> bool:
        """Whether its links are treated in another way: not if it was cleared, and is only remembered."""
        return self.weight > 0

    @property
    def is_held(self) -> bool:
        """Whether its links are held back; if it is only suspected or demoted, they are not."""
        return self.weight >= ENOUGH and not self.is_released and not self.demotes_only
