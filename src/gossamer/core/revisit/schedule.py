"""When is this page visited next? The rules of the other modules, put together.

Waits are spread by the page's id, by a tenth around the interval, and for the first one over the whole of it: pages
that were found in the same hour are not due in the same hour for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from xxhash import xxh3_64_intdigest

from gossamer.core.revisit.classes import FEED_RULE, RULES, ClassPatterns, ClassRule, PageClass
from gossamer.core.revisit.gone import gone_wait
from gossamer.core.revisit.interval import MAX_DAYS
from gossamer.core.revisit.page import PageState, VisitFound, absence_of
from gossamer.core.revisit.plain_rule import plain_interval

SPREAD = 0.1
FAILED_DAYS = 0.25  # after a visit without an answer, beyond the retries of the fetch itself


class RevisitRule(StrEnum):
    ADAPTIVE = "adaptive"
    STEPS = "steps"


class Schedule(Struct, frozen=True):
    rule: RevisitRule = RevisitRule.ADAPTIVE
    classes: Mapping[PageClass, ClassRule] = field(default_factory=lambda: RULES)
    feeds: ClassRule = FEED_RULE  # for feeds and sitemaps
    first_days: float = MAX_DAYS  # the first interval is not longer

    def rule_for(self, state: PageState, *, is_feed: bool = False) -> ClassRule:
        return self.feeds if is_feed else self.classes[state.page_class]

    def interval(self, state: PageState, price: float | None, *, is_feed: bool = False) -> float:
        """Return the days between visits of a page; without a price the plain rule counts."""
        rule = self.rule_for(state, is_feed=is_feed)
        if self.rule is RevisitRule.STEPS or price is None:
            return plain_interval(rule, state.interval_days, state.streak)
        return rule.interval(state.rate, price)

    def wait(self, state: PageState, found: VisitFound, chance: float, *, is_feed: bool = False) -> float | None:
        """Return the days until the next visit, `chance` being from 0 to 1; None if the page leaves.

        `state.interval_days` is the interval that was chosen after this visit.
        """
        rule = self.rule_for(state, is_feed=is_feed)
        absence = absence_of(found)
        if absence is not None:
            days = gone_wait(absence, state.misses, is_seed=state.is_seed)
            return None if days is None else min(days, max(rule.longest_days, rule.shortest_days))
        days = state.interval_days * (1 - SPREAD + 2 * SPREAD * chance)
        if found is VisitFound.FAILED:
            days = min(days, FAILED_DAYS)
        return min(max(days, rule.shortest_days), rule.longest_days)

    def first_wait(self, state: PageState, chance: float, *, is_feed: bool = False) -> float:
        """Return the days until the second visit: anywhere within the interval."""
        rule = self.rule_for(state, is_feed=is_feed)
        days = min(state.interval_days, self.first_days) * chance
        return min(max(days, rule.shortest_days), rule.longest_days)


class RevisitRules(Struct, frozen=True):
    schedule: Schedule = Schedule()
    patterns: ClassPatterns = ClassPatterns()
    fetches_per_day: float = 0.0  # of known pages; 0: a share of them
    known_share: float = 0.5  # of all fetches, as long as there are new pages, too


def chance_of(url_id: bytes, visited_at: float) -> float:
    """Return a number from 0 to 1 that is decided by the page and the time, to spread waits."""
    return (xxh3_64_intdigest(url_id, int(visited_at)) >> 11) / (1 << 53)
