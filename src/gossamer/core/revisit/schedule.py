"""When is this page visited next? The rules of the other modules, put together.

Waits are spread by the page's id, by a tenth around the interval, and for the first one over the whole of it: pages
that were found in the same hour are not due in the same hour for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from xxhash import xxh3_64_intdigest

from gossamer.core.revisit.classes import RULES, ClassRule, PageClass
from gossamer.core.revisit.gone import gone_wait
from gossamer.core.revisit.page import Found, PageState, absence_of
from gossamer.core.revisit.plain_rule import plain_interval

SPREAD = 0.1
FAILED_DAYS = 0.25  # after a visit without an answer, beyond the retries of the fetch itself


class RevisitRule(StrEnum):
    """How intervals are chosen."""

    ADAPTIVE = "adaptive"
    PLAIN = "plain"


class Schedule(Struct, frozen=True):
    """The rules by which waits are chosen."""

    rule: RevisitRule = RevisitRule.ADAPTIVE
    classes: Mapping[PageClass, ClassRule] = field(default_factory=lambda: RULES)

    def interval(self, state: PageState, price: float | None) -> float:
        """Return the days between visits of a page; without a price the plain rule counts."""
        rule = self.classes[state.page_class]
        if self.rule is RevisitRule.PLAIN or price is None:
            return plain_interval(rule, state.interval_days, state.streak)
        return rule.interval(state.rate, price)

    def wait(self, state: PageState, found: Found, chance: float) -> float | None:
        """Return the days until the next visit, `chance` being from 0 to 1; None if the page leaves.

        `state.interval_days` is the interval that was chosen after this visit.
        """
        absence = absence_of(found)
        if absence is not None:
            return gone_wait(absence, state.misses, is_seed=state.is_seed)
        rule = self.classes[state.page_class]
        days = state.interval_days * (1 - SPREAD + 2 * SPREAD * chance)
        if found is Found.FAILED:
            days = min(days, FAILED_DAYS)
        return min(max(days, rule.shortest_days), rule.longest_days)

    def first_wait(self, state: PageState, chance: float) -> float:
        """Return the days until the second visit: anywhere within the interval."""
        rule = self.classes[state.page_class]
        return min(max(state.interval_days * chance, rule.shortest_days), rule.longest_days)


def chance_of(url_id: bytes, visited_at: float) -> float:
    """Return a number from 0 to 1 that is decided by the page and the time, to spread waits."""
    return (xxh3_64_intdigest(url_id, int(visited_at)) >> 11) / (1 << 53)
