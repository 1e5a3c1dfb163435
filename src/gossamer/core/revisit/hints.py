"""How far is a site believed that says when its pages change?

Sitemaps, feeds, `Last-Modified`, `Cache-Control` and change notices all claim one of two things about a page since
the last visit: it has changed, or it has not. Every visit shows whether that was right, and four counts per host and
kind of hint are all that is stored: what was claimed, and what was found. They say how much more likely a claim is if
it is true than if it is false, and that ratio is all that a claim may change in what is believed anyway (Bayes). A
site that gives every page today's date has a ratio of one: its claims change nothing. One that was always right soon
decides alone. Nothing is believed in advance: the counts begin as if each case had been seen `START` times.

A claim becomes a wait by way of the time that would make a change as likely: a page of which a change is as probable
as after ten days counts as if its last visit was ten days ago.
"""

from __future__ import annotations

from enum import IntEnum
from math import expm1, log, log1p

from msgspec import Struct

from gossamer.core.revisit.interval import MAX_DAYS, MIN_DAYS
from gossamer.core.revisit.rate import Rate

START = 1.0
MAX_VISITS = 100.0  # beyond them older ones are forgotten
_SURE = 1e-9


class HintKind(IntEnum):
    """What makes claims; the values are stored."""

    SITEMAP = 0
    FEED = 1
    LAST_MODIFIED = 2
    CACHE_CONTROL = 3
    NOTICE = 4


class HintRecord(Struct, array_like=True, gc=False):
    """How often a kind of hint of a host was right."""

    changed_right: float = 0.0  # claimed as changed, and had changed
    changed_wrong: float = 0.0
    same_right: float = 0.0
    same_wrong: float = 0.0

    def record(self, claims_change: bool, has_changed: bool) -> None:
        if self.changed_right + self.changed_wrong + self.same_right + self.same_wrong >= MAX_VISITS:
            self.changed_right /= 2
            self.changed_wrong /= 2
            self.same_right /= 2
            self.same_wrong /= 2
        if claims_change:
            self.changed_right += has_changed
            self.changed_wrong += not has_changed
        else:
            self.same_right += not has_changed
            self.same_wrong += has_changed

    def ratio(self, claims_change: bool) -> float:
        """Return how many times as likely the claim is if it is true."""
        if_changed = self.changed_right + self.same_wrong + 2 * START
        if_same = self.same_right + self.changed_wrong + 2 * START
        if claims_change:
            return ((self.changed_right + START) / if_changed) / ((self.changed_wrong + START) / if_same)
        return ((self.same_right + START) / if_same) / ((self.same_wrong + START) / if_changed)

    @property
    def trust(self) -> float:
        """Return how probable it is that a claimed time of change is right, from 0 to 1: cautious at first."""
        right = self.changed_right + self.same_right
        wrong = self.changed_wrong + self.same_wrong
        return right / (right + 3 * wrong + 2 * START) * (1 - self._is_one_sided)

    @property
    def _is_one_sided(self) -> float:
        """Return the share by which the claim says nothing: it is always the same, or right by chance."""
        ratio = self.ratio(True)
        return 1.0 if ratio <= 1 else 1 / ratio


def chance_of_change(rate: Rate, elapsed_days: float, record: HintRecord, claims_change: bool) -> float:
    """Return the probability that the page has changed since its last visit, given a claim."""
    changed = -expm1(-rate.shape * log1p(elapsed_days / rate.days))
    changed = min(max(changed, _SURE), 1 - _SURE)
    ratio = record.ratio(claims_change)
    odds = changed / (1 - changed) * (ratio if claims_change else 1 / ratio)
    return min(odds / (1 + odds), 1 - _SURE)


def hinted_wait(
    rate: Rate,
    interval_days: float,
    elapsed_days: float,
    chance: float,
    *,
    shortest_days: float = MIN_DAYS,
    longest_days: float = MAX_DAYS,
) -> float:
    """Return the days from now until the next visit of a page that has changed with that chance.

    `interval_days` is what the page would wait from its last visit, `elapsed_days` how long ago that was. The
    shortest interval holds.
    """
    as_if_elapsed = rate.days * expm1(-log(1 - chance) / rate.shape) if chance < 1 - _SURE else interval_days
    shortest = max(shortest_days - elapsed_days, 0.0)
    longest = max(longest_days - elapsed_days, shortest)
    return min(max(interval_days - as_if_elapsed, shortest), longest)
