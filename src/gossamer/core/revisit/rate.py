"""How often does a page change? A belief in two numbers, from visits at irregular times.

Changes are taken as a Poisson process with an unknown rate. What is believed of the rate is a gamma distribution:
`shape` (about how many changes were seen) and `days` (about how long the page was watched); its mean is shape / days.
A visit tells only whether there was a change since the last one:

- unchanged after t days: the likelihood is exp(-rate t), and the belief is exactly gamma again, with t more days;
- changed: the likelihood is 1 - exp(-rate t). The belief is then a difference of two gamma distributions, and
  the gamma with the same mean and variance replaces it. So a change after a long wait adds little: it would have been
  seen at almost any rate. Counting changes instead (changes / days) is wrong by any factor for pages that change faster
  than they are visited.

If it is known *when* the page changed, the likelihood is rate exp(-rate age), and the belief is exactly gamma again.

Pages change their habits, so what is believed never weighs more than `MAX_SHAPE` changes or `MAX_DAYS` days: beyond
them both numbers are scaled down together. Everything costs about a microsecond.
"""

from __future__ import annotations

from math import exp, expm1, log1p

from msgspec import Struct

MAX_SHAPE = 40.0
MAX_DAYS = 400.0
MIN_SHAPE = 0.05
MIN_DAYS = 1e-4  # 9 seconds
_MIN_ELAPSED_DAYS = 1 / 86_400


class Rate(Struct, frozen=True, gc=False):
    """What is believed of the changes per day of a page: a gamma distribution."""

    shape: float
    days: float

    @property
    def mean(self) -> float:
        """Return the expected changes per day."""
        return self.shape / self.days

    def same_after(self, elapsed_days: float) -> float:
        """Return the probability that the page has not changed in that time."""
        return exp(-self.shape * log1p(elapsed_days / self.days))


def unchanged(rate: Rate, elapsed_days: float) -> Rate:
    """Return what is believed after a visit that found no change."""
    return _limited(rate.shape, rate.days + max(elapsed_days, 0.0))


def changed(rate: Rate, elapsed_days: float) -> Rate:
    """Return what is believed after a visit that found a change somewhen in the time before it."""
    shape = rate.shape
    days = rate.days
    # With r = days / (days + t): mean = shape/days (1-r^(shape+1))/(1-r^shape), that of squares alike. expm1: small t.
    grown = log1p(max(elapsed_days, _MIN_ELAPSED_DAYS) / days)
    base = expm1(-shape * grown)
    mean = shape / days * expm1(-(shape + 1) * grown) / base
    second = shape * (shape + 1) / (days * days) * expm1(-(shape + 2) * grown) / base
    return _matched(mean, second)


def changed_at(rate: Rate, elapsed_days: float, age_days: float, trust: float) -> Rate:
    """Return what is believed after a visit that found a change which is said to be `age_days` old.

    `trust` is the probability that the age is right; what is believed is the mixture of both cases.
    """
    age = min(max(age_days, 0.0), max(elapsed_days, 0.0))
    return _mixture(_limited(rate.shape + 1, rate.days + age), changed(rate, elapsed_days), trust)


def first_seen(rate: Rate, age_days: float, trust: float) -> Rate:
    """Return what is believed of a page after its first visit, if its last change is said to be `age_days` old."""
    return _mixture(_limited(rate.shape + 1, rate.days + max(age_days, 0.0)), rate, trust)


def _mixture(one: Rate, other: Rate, share: float) -> Rate:
    if share <= 0:
        return other
    if share >= 1:
        return one
    rest = 1 - share
    mean = share * one.mean + rest * other.mean
    second = share * one.shape * (one.shape + 1) / one.days**2 + rest * other.shape * (other.shape + 1) / other.days**2
    return _matched(mean, second)


def _matched(mean: float, second: float) -> Rate:
    """Return the gamma distribution with this mean and this mean of squares."""
    variance = max(second - mean * mean, mean * mean / MAX_SHAPE / 4)
    return _limited(mean * mean / variance, mean / variance)


def _limited(shape: float, days: float) -> Rate:
    scale = min(1.0, MAX_SHAPE / shape, MAX_DAYS / days)
    return Rate(max(shape * scale, MIN_SHAPE), max(days * scale, MIN_DAYS))
