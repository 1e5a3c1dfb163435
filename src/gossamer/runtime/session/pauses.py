"""Who has paused a crawl, and for how long. The time of a run does not pass while the operator has paused it."""

from __future__ import annotations

OPERATOR = "operator"


class Pauses:
    """The pauses of one run. It is paused until everybody who paused it has resumed it."""

    def __init__(self) -> None:
        self._by: set[str] = set()
        self._begun_at = 0.0  # when the first of them paused it
        self._since = 0.0  # when the operator paused it
        self._before_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._by)

    @property
    def by(self) -> str:
        """Who has paused it: the operator, if also others have."""
        return OPERATOR if OPERATOR in self._by else ", ".join(sorted(self._by))

    def begin(self, by: str, now: float) -> None:
        """Pause the crawl for somebody."""
        if not self._by:
            self._begun_at = now
        if by == OPERATOR and by not in self._by:
            self._since = now
        self._by.add(by)

    def end(self, by: str, now: float) -> None:
        """Withdraw somebody's pause."""
        if by == OPERATOR and by in self._by:
            self._before_s += now - self._since
        self._by.discard(by)

    def lasting_s(self, now: float) -> float:
        """Return for how long the crawl has been paused; 0 if it is not."""
        return now - self._begun_at if self._by else 0.0

    def operator_s(self, now: float) -> float:
        """Return how long the operator has paused the crawl in all."""
        return self._before_s + (now - self._since if OPERATOR in self._by else 0.0)
