"""Which pages matter more? Four classes, found from what pages do, or set by patterns.

| class | found from | judged by |
|---|---|---|
| `news` | changes more than once per day, and the changes bring links to new pages | delay until a change is seen |
| `popular` | its host has a high rank | freshness, with a high weight |
| `static` | everything else | freshness |
| `rare` | changes less than every three months | freshness, with a low weight |

A page that changes all the time without bringing anything (a clock, a random quote, an endless generator) is not news
however fast it is: it would get every fetch that there is. To stay in a class less is required than to enter it, so
that pages near a limit do not change their class with every visit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import sqrt

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.revisit.interval import MAX_DAYS, MIN_DAYS, delay_interval, freshness_interval
from gossamer.core.revisit.rate import Rate
from gossamer.core.url.patterns import first_match

NEWS_PER_DAY = 1.0
RARE_PER_DAY = 1 / 90
POPULAR_RANK = 0.9
MAX_LINKS = 15
_STAY = 2.0  # the factor by which a page may be beyond a limit and stay


class PageClass(IntEnum):
    STATIC = 0
    NEWS = 1
    POPULAR = 2
    RARE = 3


CLASS_NAMES: Mapping[str, PageClass] = {member.name.lower(): member for member in PageClass}


class ClassRule(Struct, frozen=True, gc=False):
    """What a page of a class is worth, and how often it may be visited."""

    weight: float = 1.0
    by_delay: bool = False
    shortest_days: float = MIN_DAYS
    longest_days: float = MAX_DAYS
    plain_days: float = 7.0  # the first interval of the plain rule

    def interval(self, rate: Rate, price: float) -> float:
        """Return the days until the next visit, for a price of a fetch in days of freshness."""
        chosen = delay_interval if self.by_delay else freshness_interval
        return chosen(rate, price / self.weight, self.shortest_days, self.longest_days)


RULES: Mapping[PageClass, ClassRule] = {
    PageClass.NEWS: ClassRule(weight=40.0, by_delay=True, longest_days=1.0, plain_days=MIN_DAYS),
    PageClass.POPULAR: ClassRule(weight=4.0, plain_days=1.0),
    PageClass.STATIC: ClassRule(weight=1.0, plain_days=7.0),
    PageClass.RARE: ClassRule(weight=0.5, plain_days=MAX_DAYS),
}


# A feed is a source of URLs: it is judged by delay like news, but may be fetched every few minutes.
FEED_RULE = ClassRule(weight=40.0, by_delay=True, shortest_days=5 / 1440, longest_days=1.0, plain_days=MIN_DAYS)


def rules_within(shortest_days: float, longest_days: float) -> dict[PageClass, ClassRule]:
    """Return the rules with bounds that the operator has set; news keep their own, if these are within them."""
    return {each: _within(rule, shortest_days, longest_days) for each, rule in RULES.items()}


def feed_rule_within(shortest_days: float, longest_days: float) -> ClassRule:
    """Return the rule for feeds; they may be fetched more often than pages."""
    return _within(FEED_RULE, min(FEED_RULE.shortest_days, shortest_days), longest_days)


def _within(rule: ClassRule, shortest_days: float, longest_days: float) -> ClassRule:
    longest = min(rule.longest_days, longest_days) if rule.longest_days < MAX_DAYS else longest_days
    longest = max(longest, shortest_days)
    plain = min(max(rule.plain_days, shortest_days), longest)
    return replace(rule, shortest_days=shortest_days, longest_days=longest, plain_days=plain)


def class_of(current: PageClass, rate: Rate, streak: int, links: int, host_rank: float) -> PageClass:
    """Return the class of a page by its behaviour.

    `streak` counts its changes in a row; `links` counts its changes that brought links, less those that did not;
    `host_rank` is from 0 to 1.
    """
    per_day = rate.mean
    # What could well be news is visited as news: the short intervals soon show what it is. A page that has changed at
    # every visit, and brought links, could be of any rate.
    possible = per_day * (1 + 2 / sqrt(rate.shape))
    if current is PageClass.NEWS:
        is_news = links > 0 and possible >= NEWS_PER_DAY / _STAY
    else:
        is_news = links > 1 and (possible >= NEWS_PER_DAY or streak > 1)
    if is_news:
        return PageClass.NEWS
    if host_rank >= POPULAR_RANK:
        return PageClass.POPULAR
    if per_day <= (RARE_PER_DAY * _STAY if current is PageClass.RARE else RARE_PER_DAY):
        return PageClass.RARE
    return PageClass.STATIC


def counted_links(links: int, brought_links: bool) -> int:
    """Return the count after a change that brought links to new pages, or brought none."""
    return min(links + 1, MAX_LINKS) if brought_links else max(links - 1, 0)


class ClassPatterns(Struct, frozen=True):
    """Classes that the operator has set: for each class patterns of URLs, the first that matches wins."""

    patterns: Sequence[tuple[PageClass, str]] = ()

    def class_of(self, url: str) -> PageClass | None:
        if not self.patterns:
            return None
        found = first_match([pattern for _, pattern in self.patterns], url)
        return next((each for each, pattern in self.patterns if pattern == found), None) if found else None
