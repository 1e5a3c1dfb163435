from __future__ import annotations

from math import exp, log
from random import Random
from statistics import fmean, variance

import pytest

from gossamer.core.revisit.classes import PageClass
from gossamer.core.revisit.priors import (
    DEFAULT,
    MAX_VISITS,
    Pool,
    by_logarithm,
    hinted,
    log_mean,
    log_variance,
    prior_of,
)
from gossamer.core.revisit.rate import Rate, changed, unchanged


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0, 3.0, 20.0])
def test_mean_and_variance_of_the_logarithm(shape: float) -> None:
    draw = Random(1)
    logs = [log(draw.gammavariate(shape, 1 / 7.0)) for _ in range(60_000)]
    assert log_mean(Rate(shape, 7.0)) == pytest.approx(fmean(logs), abs=0.15 if shape < 0.3 else 0.03)
    assert log_variance(shape) == pytest.approx(variance(logs), rel=0.05)


@pytest.mark.parametrize("shape", [0.4, 0.6, 1.0, 2.5])
def test_a_prior_is_found_from_its_logarithm(shape: float) -> None:
    rate = Rate(shape, 9.0)
    found = by_logarithm(log_mean(rate), log_variance(shape))
    assert found.shape == pytest.approx(shape, rel=0.01)
    assert found.days == pytest.approx(9.0, rel=0.02)


def test_an_empty_pool_expects_what_its_parent_does() -> None:
    assert Pool().prior(Rate(1.0, 5.0)) == Rate(1.0, 5.0)
    assert Pool().prior() == DEFAULT


def test_a_class_that_the_operator_has_set_says_more_than_the_host() -> None:
    still = Pool()
    for _ in range(500):
        still.add(Rate(5.0, 2000.0), 10.0)
    found = {each: prior_of(each, still, Pool()).mean for each in PageClass}
    assert found[PageClass.NEWS] > found[PageClass.POPULAR] > found[PageClass.STATIC] > found[PageClass.RARE]
    assert prior_of(None, still, Pool()).mean < 0.02 < found[PageClass.STATIC]
    assert prior_of(None, Pool(), still) == still.prior()


def test_pages_of_a_host_tell_what_to_expect_of_its_next_page() -> None:
    draw = Random(2)
    pool = Pool()
    for _ in range(300):
        rate = pool.prior()
        per_day = 0.5 * exp(draw.gauss(0, 0.3))
        for wait in (1.0, 2.0, 4.0):
            rate = changed(rate, wait) if draw.random() > exp(-per_day * wait) else unchanged(rate, wait)
            pool.add(rate, wait)
    assert 0.25 < exp(log_mean(pool.prior())) < 0.8  # the default: 0.02
    assert pool.prior().shape > DEFAULT.shape  # its pages are much alike


def test_pages_that_are_visited_often_do_not_count_more() -> None:
    fast, slow, pool = Rate(20.0, 2.0), Rate(20.0, 2000.0), Pool()
    for _ in range(240):
        pool.add(fast, 1 / 8)
    for _ in range(1):
        pool.add(slow, 30.0)
    assert log_mean(pool.prior()) == pytest.approx((log_mean(fast) + log_mean(slow)) / 2, abs=0.2)


def test_pools_of_two_shards_are_added_up() -> None:
    one, other, both = Pool(), Pool(), Pool()
    for number in range(50):
        rate = Rate(1.0 + number % 3, 10.0 + number)
        (one if number % 2 else other).add(rate, 1.0)
        both.add(rate, 1.0)
    one.merge(other)
    assert one.prior().days == pytest.approx(both.prior().days)


def test_what_is_long_ago_is_forgotten() -> None:
    pool = Pool()
    for rate in (Rate(5.0, 500.0), Rate(5.0, 5.0)):
        for _ in range(int(MAX_VISITS) * 4):
            pool.add(rate, 1.0)
    assert pool.visits <= MAX_VISITS
    assert log_mean(pool.prior()) == pytest.approx(log_mean(Rate(5.0, 5.0)), abs=0.5)


def test_a_frequency_that_the_site_gives_counts_as_far_as_it_is_trusted() -> None:
    assert hinted(DEFAULT, 1.0, 0.0) == DEFAULT
    assert hinted(DEFAULT, 0.0, 1.0) == DEFAULT
    half, full = hinted(DEFAULT, 1.0, 0.5), hinted(DEFAULT, 1.0, 1.0)
    assert DEFAULT.mean < half.mean < full.mean
    assert exp(log_mean(full)) == pytest.approx(1.0, rel=0.02)
