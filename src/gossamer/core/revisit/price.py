"""Which price of a fetch spends the budget, no more and no less?

The `Census` counts pages by class and by what is believed of their rates, in cells: a page moves between cells with
each visit, so that the counts are right at every moment, for O(1) per visit and some 50 KB in all. The fetches per
day that a price leads to are a sum over the cells, a few thousand at most, however many pages there are. That sum
falls with the price, so the price is found by a few steps from the last one. Censuses of shards and nodes are added
up: all nodes of a crawl then have the same price, as it must be.

What the census does not know (pages that are gone, retries, coarse cells, and that pages which were visited just now
are not due for a while) shows in what was fetched and in what is late. The `Pricer` corrects the budget by it, slowly:
by a tenth of the relative error per day, and by a factor of at most `MAX_CORRECTION`. It must not react much to pages
that are late: a high price sends all pages that are visited then away for 30 days, and weeks later nothing is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, floor, log

from gossamer.core.revisit.classes import RULES, ClassRule, PageClass
from gossamer.core.revisit.interval import fresh_share
from gossamer.core.revisit.rate import Rate

DRAIN_DAYS = 10.0  # in which pages that are late are to be fetched
MIN_SHARE = 0.75  # of the budget, however many are late
MEMORY_DAYS = 1.0
MAX_CORRECTION = 1.5
_GAIN = 0.1  # of the relative error, per day: what a price leads to shows only after the intervals it has led to
MIN_PRICE = 1e-7  # days of freshness per fetch
MAX_PRICE = 1e4
START_PRICE = 1.0
_WIDTH = 0.3  # of a cell, in the logarithm of shape and days
_MAX_STEPS = 24
_ENOUGH = 0.002  # of the budget

Cell = tuple[PageClass, int, int]


def cell_of(page_class: PageClass, rate: Rate) -> Cell:
    return page_class, floor(log(rate.shape) / _WIDTH), floor(log(rate.days) / _WIDTH)


class Census:
    """How many pages there are of each class, by what is believed of their rates."""

    def __init__(self, counts: Iterable[tuple[Cell, int]] = ()) -> None:
        self._counts: dict[Cell, int] = {}
        self.pages = 0
        for cell, count in counts:
            self.add(cell, count)

    def add(self, cell: Cell, count: int = 1) -> None:
        """Count pages that are new in a cell; a negative count removes them."""
        left = self._counts.get(cell, 0) + count
        self.pages += count
        if left > 0:
            self._counts[cell] = left
        else:  # below zero only if a page was removed that was never counted
            self.pages -= left
            self._counts.pop(cell, None)

    def move(self, old: Cell, new: Cell) -> None:
        if old != new:
            self.add(old, -1)
            self.add(new)

    def merge(self, other: Census) -> None:
        """Add the pages of another shard or node."""
        for cell, count in other.cells():
            self.add(cell, count)

    def by_class(self) -> dict[PageClass, int]:
        pages: dict[PageClass, int] = {}
        for cell, count in self._counts.items():
            pages[cell[0]] = pages.get(cell[0], 0) + count
        return pages

    def cells(self) -> list[tuple[Cell, int]]:
        """Return all cells with their pages, to be stored."""
        return list(self._counts.items())

    def fetches_per_day(self, price: float, rules: Mapping[PageClass, ClassRule] = RULES) -> float:
        return sum(count / rules[cell[0]].interval(_middle(cell), price) for cell, count in self._counts.items())

    def chance_of_change(self, price: float, rules: Mapping[PageClass, ClassRule] = RULES) -> float:
        """Return how probable a change was at a visit that finds one, on average.

        It is low if pages are visited much more often than they change. Pages that hardly ever change count for little.
        """
        changes = squares = 0.0
        for cell, count in self._counts.items():
            rate = _middle(cell)
            interval = rules[cell[0]].interval(rate, price)
            chance = 1 - rate.same_after(interval)
            changes += count * chance / interval
            squares += count * chance * chance / interval
        return squares / changes if changes else 0.0

    def freshness(self, price: float, rules: Mapping[PageClass, ClassRule] = RULES) -> dict[PageClass, float]:
        fresh: dict[PageClass, float] = {}
        pages: dict[PageClass, int] = {}
        for cell, count in self._counts.items():
            rate = _middle(cell)
            page_class = cell[0]
            share = fresh_share(rate, rules[page_class].interval(rate, price))
            fresh[page_class] = fresh.get(page_class, 0.0) + count * share
            pages[page_class] = pages.get(page_class, 0) + count
        return {page_class: fresh[page_class] / count for page_class, count in pages.items()}


class Pricer:
    """Adapts the price while the crawl runs: to the census, and to what was really fetched."""

    def __init__(self, rules: Mapping[PageClass, ClassRule] = RULES, price: float = START_PRICE) -> None:
        self._rules = rules
        self.price = price
        self._correction = 1.0
        self._per_day = 0.0  # fetched, the mean of about the last day
        self._days = 0.0

    def adjust(self, census: Census, budget_per_day: float, elapsed_days: float, fetched: float, late: int) -> float:
        """Return the price from now on, after some time in which so many known pages were fetched.

        `late` pages are due and not fetched. The budget may differ from call to call.
        """
        if elapsed_days > 0 < budget_per_day:
            self._days += elapsed_days
            memory = max(MEMORY_DAYS, elapsed_days) if self._days > MEMORY_DAYS else self._days
            self._per_day += (fetched / elapsed_days - self._per_day) * min(elapsed_days / memory, 1.0)
            error = 1 - (self._per_day + late / DRAIN_DAYS) / budget_per_day
            grown = self._correction * exp(_GAIN * max(error, -1.0) * min(elapsed_days, 1.0))
            self._correction = min(max(grown, 1 / MAX_CORRECTION), MAX_CORRECTION)
        wanted = max(budget_per_day * self._correction - late / DRAIN_DAYS, MIN_SHARE * budget_per_day)
        self.price = price_for(census, wanted, self.price, self._rules)
        return self.price


def price_for(
    census: Census,
    fetches_per_day: float,
    last: float = START_PRICE,
    rules: Mapping[PageClass, ClassRule] = RULES,
) -> float:
    """Return the price that leads to so many fetches per day; `last` is where the search begins."""
    low = log(MIN_PRICE)
    high = log(MAX_PRICE)
    if not census.pages or fetches_per_day <= 0:
        return last
    at = min(max(log(last), low), high)
    for _ in range(_MAX_STEPS):
        spent = census.fetches_per_day(exp(at), rules)
        if abs(spent - fetches_per_day) <= _ENOUGH * fetches_per_day or high - low < 1e-4:
            break
        if spent > fetches_per_day:
            low = at
        else:
            high = at
        # For slow pages an interval grows with the root of the price: this step would be exact for them.
        after = at + 2 * log(spent / fetches_per_day)
        at = after if low < after < high else (low + high) / 2
    return exp(at)


def _middle(cell: Cell) -> Rate:
    return Rate(exp((cell[1] + 0.5) * _WIDTH), exp((cell[2] + 0.5) * _WIDTH))
