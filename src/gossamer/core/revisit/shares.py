"""Is the next fetch for a new page or for a known one? A budget in two shares, of which none is wasted.

Credit grows with every fetch by the share and is spent by a fetch of that kind; if there is nothing of a kind, the
other one gets its turn, and no credit is saved up beyond `MAX_CREDIT` fetches, so that a long pause is not followed
by a rush.
"""

from __future__ import annotations

MAX_CREDIT = 100.0


class FetchShares:
    """Divides fetches between new pages and known ones."""

    def __init__(self, known_share: float) -> None:
        if not 0 <= known_share <= 1:
            raise ValueError(f"share of known pages: expected a number from 0 to 1, got {known_share}")
        self._known_share = known_share
        self._credit = 0.0  # of the known pages; the new ones' is its opposite

    @property
    def is_known_turn(self) -> bool:
        return self._known_share > 0 and self._credit + self._known_share >= 0.5

    def count(self, *, is_known: bool) -> None:
        """Count a fetch, whosever turn it was."""
        self._credit = min(max(self._credit + self._known_share - is_known, -MAX_CREDIT), MAX_CREDIT)
