from __future__ import annotations

from itertools import pairwise
from math import exp

import pytest

from gossamer.core.revisit.interval import (
    MAX_DAYS,
    MIN_DAYS,
    delay_interval,
    fresh_share,
    freshness_interval,
    gain,
)
from gossamer.core.revisit.rate import Rate

RATES = [Rate(0.05, 300.0), Rate(0.6, 12.0), Rate(1.0, 3.0), Rate(1.0000001, 3.0), Rate(5.0, 40.0), Rate(40.0, 20.0)]


@pytest.mark.parametrize("rate", RATES)
def test_freshness_is_the_mean_chance_that_nothing_has_changed(rate: Rate) -> None:
    steps = 20_000
    mean = sum(rate.same_after((step + 0.5) / steps * 9.0) for step in range(steps)) / steps
    assert fresh_share(rate, 9.0) == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("rate", RATES)
def test_the_gain_is_what_one_visit_more_per_day_adds(rate: Rate) -> None:
    often, seldom = 1 / 4.9999, 1 / 5.0001
    added = (fresh_share(rate, 1 / often) - fresh_share(rate, 1 / seldom)) / (often - seldom)
    assert gain(rate, 5.0) == pytest.approx(added, rel=1e-3)


@pytest.mark.parametrize("rate", RATES)
def test_an_interval_is_where_the_gain_is_the_price(rate: Rate) -> None:
    for price in (1e-6, 1e-4, 0.01, 0.1, 0.5, 2.0, 20.0):
        interval = freshness_interval(rate, price)
        if MIN_DAYS < interval < MAX_DAYS:
            assert gain(rate, interval) == pytest.approx(price, rel=0.02)
        else:
            assert (gain(rate, interval) >= price) == (interval == MIN_DAYS)


@pytest.mark.parametrize("rate", RATES)
def test_the_higher_the_price_the_longer_the_interval(rate: Rate) -> None:
    intervals = [freshness_interval(rate, 1e-5 * 1.5**step) for step in range(40)]
    assert all(one <= other * 1.005 for one, other in pairwise(intervals))


def test_equal_gains_are_the_best_that_a_budget_can_buy() -> None:
    pages = [Rate(4000.0, 4000.0 / per_day) for per_day in (0.02, 0.2, 1.0)]  # known almost exactly
    intervals = [freshness_interval(rate, 0.8) for rate in pages]
    visits = [1 / interval for interval in intervals]
    best = sum(fresh_share(rate, interval) for rate, interval in zip(pages, intervals, strict=True))
    for source in range(3):
        for target in range(3):
            moved = list(visits)
            moved[source] -= 0.003
            moved[target] += 0.003
            if source != target and min(moved) > 1 / MAX_DAYS:
                assert sum(fresh_share(rate, 1 / each) for rate, each in zip(pages, moved, strict=True)) < best


def test_with_a_known_rate_it_is_the_optimum_of_the_literature() -> None:
    per_day, price = 0.5, 0.7
    interval = freshness_interval(Rate(1e6, 1e6 / per_day), price)
    changes = per_day * interval
    assert (1 - exp(-changes) * (1 + changes)) / per_day == pytest.approx(price, rel=0.01)


def test_a_page_that_changes_too_fast_gets_nothing_more() -> None:
    fast = [freshness_interval(Rate(30.0, 30.0 / per_day), 0.5) for per_day in (0.3, 1.0, 1.8, 3.0, 30.0)]
    assert fast[0] > fast[1] < fast[2] < MAX_DAYS
    assert fast[3:] == [MAX_DAYS, MAX_DAYS]


def test_what_is_only_supposed_to_be_too_fast_is_looked_at_again() -> None:
    assert freshness_interval(Rate(0.9, 0.3), 0.5) < freshness_interval(Rate(30.0, 10.0), 0.5)


def test_by_delay_a_faster_page_is_always_visited_more_often() -> None:
    intervals = [delay_interval(Rate(30.0, 30.0 / per_day), 0.05) for per_day in (0.3, 1.0, 3.0, 10.0)]
    assert intervals == sorted(intervals, reverse=True)
    assert delay_interval(Rate(10.0, 10.0), 0.02) == pytest.approx(0.2)
    assert delay_interval(Rate(10.0, 0.001), 0.02) == MIN_DAYS
