"""Revisit policies for `changing`: uniform, proportional and optimal with the true rates; the crawl's own without."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from math import exp, floor, log, sqrt
from random import Random

from msgspec.structs import replace

from gossamer.core.revisit.classes import RULES, ClassRule, PageClass
from gossamer.core.revisit.gone import Absence, gone_wait
from gossamer.core.revisit.interval import MAX_DAYS, MIN_DAYS
from gossamer.core.revisit.page import DAY_S, PageState, Visit, VisitFound, after_visit, first_state
from gossamer.core.revisit.price import Census, Pricer, cell_of
from gossamer.core.revisit.priors import Pool, prior_of
from gossamer.core.revisit.rate import Rate
from gossamer.core.revisit.schedule import Schedule
from tests.support.sites.changing import ChangingWeb

_WIDTH = 0.01  # of a group of pages with nearly the same rate, in its logarithm
_ADJUST_HOURS = 3
_POPULAR_RANK = 0.95
_MIDDLE_RANK = 0.5


class FixedIntervals:
    """Visits every page at its own interval, from the beginning."""

    def __init__(self, intervals: array[float], seed: int) -> None:
        self._intervals = intervals
        self._draw = Random(seed)
        self._misses: Counter[int] = Counter()

    def first_wait(self, page: int, now: float) -> float:
        """See `Policy`."""
        return max(self._intervals[page] * self._draw.random(), MIN_DAYS)

    def visited(self, page: int, now: float, found: VisitFound, brought_links: bool) -> float | None:
        """See `Policy`."""
        if found is VisitFound.MISSING:
            self._misses[page] += 1
            return gone_wait(Absence.MISSING, self._misses[page])
        return self._intervals[page]

    def adjust(self, now: float, late: int) -> None:
        """See `Policy`: nothing is adjusted."""


def uniform(web: ChangingWeb, per_day: float, seed: int) -> FixedIntervals:
    """Visit all pages equally often."""
    interval = min(max(_present(web) / per_day, MIN_DAYS), MAX_DAYS)
    return FixedIntervals(array("d", [interval]) * web.mix.pages, seed)


def proportional(web: ChangingWeb, per_day: float, seed: int) -> FixedIntervals:
    """Visit a page the more often the more often it changes, as most crawlers do."""
    return _spending(web, per_day, seed, lambda rate, _, price: price / rate)


def optimal(
    web: ChangingWeb, per_day: float, seed: int, rules: Mapping[PageClass, ClassRule] = RULES
) -> FixedIntervals:
    """Visit every page as often as makes its marginal gain the same, with its true rate and class."""

    def interval(rate: float, page_class: PageClass, price: float) -> float:
        rule = rules[page_class]
        if rule.by_delay:
            days = sqrt(2 * price / rule.weight / rate)
        else:
            days = _known_rate_interval(rate, price / rule.weight)
        return min(max(days, rule.shortest_days), rule.longest_days)

    return _spending(web, per_day, seed, interval)


def _known_rate_interval(rate: float, price: float) -> float:
    """Return the interval t at which 1 - exp(-x)(1 + x) = price x rate, with x = rate t: by bisection."""
    low, high = rate * MIN_DAYS, rate * MAX_DAYS
    for _ in range(30):
        middle = sqrt(low * high)
        if 1 - exp(-middle) * (1 + middle) < price * rate:
            low = middle
        else:
            high = middle
    return high / rate


def _spending(
    web: ChangingWeb, per_day: float, seed: int, interval: Callable[[float, PageClass, float], float]
) -> FixedIntervals:
    """Return the intervals for the price at which all visits together are what is allowed per day."""
    groups: Counter[tuple[int, int]] = Counter()
    for rate, page_class, appears in zip(web.per_day, web.classes, web.appears, strict=True):
        groups[(floor(log(rate) / _WIDTH), page_class)] += appears == 0

    def bounded(group: tuple[int, int], price: float) -> float:
        return min(max(interval(exp((group[0] + 0.5) * _WIDTH), PageClass(group[1]), price), MIN_DAYS), MAX_DAYS)

    low, high = 1e-7, 1e6
    for _ in range(40):
        price = sqrt(low * high)
        if sum(count / bounded(group, price) for group, count in groups.items()) > per_day:
            low = price
        else:
            high = price
    found = {group: bounded(group, high) for group in groups}
    keys = ((floor(log(rate) / _WIDTH), each) for rate, each in zip(web.per_day, web.classes, strict=True))
    return FixedIntervals(array("d", [found[key] for key in keys]), seed)


def _present(web: ChangingWeb) -> int:
    return sum(appears == 0 for appears in web.appears)


class OwnPolicy:
    """What the crawl does: rates, classes and the price are found while it runs."""

    def __init__(self, web: ChangingWeb, per_day: float, seed: int, schedule: Schedule | None = None) -> None:
        self._web = web
        self._per_day = per_day
        self._draw = Random(seed)
        self.schedule = schedule or Schedule()
        self.census = Census()
        self._pricer = Pricer(self.schedule.classes)
        self._pools = [Pool() for _ in web.popular]
        self._crawl = Pool()
        self._states: list[PageState | None] = [None] * web.mix.pages
        self._hours = self._fetched = 0
        # At the beginning all pages are known, as after a first crawl.
        known = PageState(self._crawl.prior(), 0.0)
        self.census.add(cell_of(known.page_class, known.rate), _present(web))
        self.price = self._pricer.adjust(self.census, per_day, 0.0, 0, 0)

    def first_wait(self, page: int, now: float) -> float:
        """See `Policy`."""
        state = first_state(Visit(now * DAY_S, VisitFound.CHANGED), self._prior(page))
        if now > 0:
            self.census.add(cell_of(state.page_class, state.rate))
        state = replace(state, interval_days=self.schedule.interval(state, self.price))
        self._states[page] = state
        return self.schedule.first_wait(state, self._draw.random())

    def visited(self, page: int, now: float, found: VisitFound, brought_links: bool) -> float | None:
        """See `Policy`."""
        self._fetched += 1
        before = self._states[page]
        assert before is not None
        host = self._web.host(page)
        rank = _POPULAR_RANK if self._web.popular[host] else _MIDDLE_RANK
        visit = Visit(now * DAY_S, found, brought_links, host_rank=rank)
        state = after_visit(before, visit, before.rate if before.is_learned else self._prior(page))
        if found is VisitFound.MISSING:
            if before.misses == 0:
                self.census.add(cell_of(before.page_class, before.rate), -1)
        else:
            self.census.move(cell_of(before.page_class, before.rate), cell_of(state.page_class, state.rate))
            elapsed = now - before.visited_at / DAY_S
            self._pools[host].add(state.rate, elapsed)
            self._crawl.add(state.rate, elapsed)
            state = replace(state, interval_days=self.schedule.interval(state, self.price))
        self._states[page] = state
        return self.schedule.wait(state, found, self._draw.random())

    def adjust(self, now: float, late: int) -> None:
        """See `Policy`."""
        self._hours += 1
        if self._hours % _ADJUST_HOURS == 0:
            self.price = self._pricer.adjust(self.census, self._per_day, _ADJUST_HOURS / 24, self._fetched, late)
            self._fetched = 0

    def state(self, page: int) -> PageState | None:
        """Return what is known of a page."""
        return self._states[page]

    def _prior(self, page: int) -> Rate:
        return prior_of(None, self._pools[self._web.host(page)], self._crawl)
