"""What follows if a page is gone? It is asked less and less, and leaves after a rule.

A missing page (404) may come back: a fault, a move, a holiday. One that is said to be gone (410) hardly does. A page
that answers again is a page again, with what was known of its rate. Seeds never leave: the operator wants them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from gossamer.core.revisit.interval import MAX_DAYS


class Absence(StrEnum):
    MISSING = "missing"  # 404
    GONE = "gone"  # 410


class GoneRule(Struct, frozen=True, gc=False):
    """The waits between requests for a page that is gone: the first one, each longer by a factor, and how many."""

    first_days: float
    factor: float
    requests: int  # after so many in a row without an answer the page leaves


GONE_RULES: Mapping[Absence, GoneRule] = {
    Absence.MISSING: GoneRule(first_days=1.0, factor=3.0, requests=5),  # 1, 3, 9, 27 days: it leaves after 40
    Absence.GONE: GoneRule(first_days=7.0, factor=4.0, requests=3),  # 7, 28 days: it leaves after 35
}


def gone_wait(absence: Absence, misses: int, *, is_seed: bool = False) -> float | None:
    """Return the days until a page is asked for again that was gone `misses` times in a row; None if it leaves."""
    rule = GONE_RULES[absence]
    if misses >= rule.requests:
        return MAX_DAYS if is_seed else None
    return min(rule.first_days * rule.factor ** (max(misses, 1) - 1), MAX_DAYS)
