from __future__ import annotations

from math import exp, inf
from random import Random
from statistics import median

import pytest

from gossamer.core.revisit.rate import MAX_DAYS, MAX_SHAPE, Rate, changed, changed_at, first_seen, unchanged

PRIOR = Rate(0.6, 12.0)


def exact(prior: Rate, visits: list[tuple[float, bool]]) -> tuple[float, float]:
    """Return mean and variance of the rate by summing over a fine grid, without any approximation."""
    total = first = second = 0.0
    for step in range(-16_000, 8_000):
        rate = exp(step / 1000)
        weight = rate**prior.shape * exp(-prior.days * rate)  # one power more: the grid is logarithmic
        for elapsed, has_changed in visits:
            weight *= 1 - exp(-rate * elapsed) if has_changed else exp(-rate * elapsed)
        total += weight
        first += weight * rate
        second += weight * rate * rate
    return first / total, second / total - (first / total) ** 2


def believed(visits: list[tuple[float, bool]], prior: Rate = PRIOR) -> Rate:
    rate = prior
    for elapsed, has_changed in visits:
        rate = changed(rate, elapsed) if has_changed else unchanged(rate, elapsed)
    return rate


@pytest.mark.parametrize("visit", [(0.01, True), (1.0, True), (30.0, True), (5.0, False)])
def test_after_one_visit_mean_and_variance_are_exact(visit: tuple[float, bool]) -> None:
    rate = believed([visit])
    mean, variance = exact(PRIOR, [visit])
    assert rate.mean == pytest.approx(mean, rel=1e-3)
    assert rate.shape / rate.days**2 == pytest.approx(variance, rel=1e-3)


def test_after_irregular_visits_the_mean_is_close_to_the_exact_one() -> None:
    draw = Random(1)
    for _ in range(20):
        true = exp(draw.uniform(-5, 2))
        waits = [draw.choice((0.1, 1.0, 3.0, 10.0)) for _ in range(8)]
        visits = [(wait, draw.random() > exp(-true * wait)) for wait in waits]
        assert believed(visits).mean == pytest.approx(exact(PRIOR, visits)[0], rel=0.1)


def test_the_estimate_is_right_for_pages_that_change_faster_than_they_are_visited() -> None:
    draw = Random(2)
    estimates = []
    for _ in range(200):
        visits = [(3.0, draw.random() > exp(-1.0 * 3.0)) for _ in range(30)]
        estimates.append(believed(visits, Rate(0.5, 1.0)).mean)
    assert 0.7 < median(estimates) < 1.3  # changes per day by counting: at most 1/3


def test_a_page_without_changes_is_believed_to_be_slower_with_every_visit() -> None:
    means = [believed([(7.0, False)] * count).mean for count in range(6)]
    assert means == sorted(means, reverse=True)
    assert means[5] < means[0] / 3


def test_a_known_time_of_change_says_more_than_that_there_was_one() -> None:
    late, early = changed_at(PRIOR, 30.0, 29.0, 1.0), changed_at(PRIOR, 30.0, 0.1, 1.0)
    assert (late.shape, late.days) == (PRIOR.shape + 1, PRIOR.days + 29.0)
    assert late.mean < changed(PRIOR, 30.0).mean < early.mean
    assert late.shape > changed(PRIOR, 30.0).shape  # it is surer, too


def test_a_time_that_is_not_trusted_says_nothing() -> None:
    assert changed_at(PRIOR, 30.0, 0.1, 0.0) == changed(PRIOR, 30.0)
    assert first_seen(PRIOR, 400.0, 0.0) == PRIOR
    half = changed_at(PRIOR, 30.0, 0.1, 0.5).mean
    assert half == pytest.approx((changed_at(PRIOR, 30.0, 0.1, 1.0).mean + changed(PRIOR, 30.0).mean) / 2)


def test_a_time_of_change_before_the_last_visit_counts_from_there() -> None:
    assert changed_at(PRIOR, 2.0, 500.0, 1.0).days == PRIOR.days + 2.0


def test_the_first_visit_of_an_old_page_makes_it_slow() -> None:
    assert first_seen(PRIOR, 300.0, 1.0).mean < PRIOR.mean < first_seen(PRIOR, 0.5, 1.0).mean


def test_a_page_that_changes_its_habits_is_followed() -> None:
    rate = believed([(1.0, False)] * 300)
    assert rate.mean < 0.01
    for _ in range(12):
        rate = changed(rate, 1.0)
    assert rate.mean > 0.02
    rate = believed([(1.0, True)] * 100)
    for _ in range(60):
        rate = unchanged(rate, 1.0)
    assert rate.mean < 0.7


@pytest.mark.parametrize("elapsed", [0.0, -1.0, 1e-9, 1e6, 3e9])
def test_odd_waits_leave_a_usable_belief(elapsed: float) -> None:
    for start in (Rate(0.05, 1e-4), Rate(0.05, MAX_DAYS), Rate(MAX_SHAPE, 1e-4), Rate(MAX_SHAPE, MAX_DAYS)):
        for rate in (changed(start, elapsed), unchanged(start, elapsed), changed_at(start, elapsed, 1.0, 0.5)):
            assert 0 < rate.shape <= MAX_SHAPE
            assert 0 < rate.days <= MAX_DAYS
            assert 0 < rate.mean < inf


def test_the_chance_that_nothing_has_changed_is_the_mean_over_all_rates() -> None:
    draw = Random(3)
    drawn = [exp(-draw.gammavariate(2.0, 1 / 5.0) * 3.0) for _ in range(100_000)]
    assert Rate(2.0, 5.0).same_after(3.0) == pytest.approx(sum(drawn) / len(drawn), abs=0.005)
