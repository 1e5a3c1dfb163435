"""What to expect of a page before it was visited often: what its host's other pages do, and else what all pages do.

A `Pool` averages what is believed of pages: the mean and the spread of the logarithm of their rates. (Averages of the
rates themselves would be those of the few fastest pages.) A page counts by the time since its last visit, so that
pages which are visited often do not count more. A host's pool begins as `PARENT_VISITS` visits' worth of its parent,
the pool of the whole crawl, which begins as `DEFAULT`. Four numbers per host. Pools of nodes or shards are added up
with `merge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, sqrt

from msgspec import Struct

from gossamer.core.revisit.classes import PageClass
from gossamer.core.revisit.rate import Rate

DEFAULT = Rate(0.5, 8.0)  # wide: half of the pages change less than every five weeks, a tenth about weekly or faster
CLASS_PRIORS: Mapping[PageClass, Rate] = {
    PageClass.NEWS: Rate(1.0, 1 / 3),  # three changes per day
    PageClass.POPULAR: Rate(0.5, 4.0),
    PageClass.STATIC: DEFAULT,
    PageClass.RARE: Rate(0.5, 120.0),
}
PARENT_VISITS = 6.0
MAX_VISITS = 2000.0  # beyond them older ones are forgotten
MIN_PRIOR_SHAPE = 0.3
MAX_PRIOR_SHAPE = 3.0


class Pool(Struct, array_like=True, gc=False):
    """What is known of the rates of a group of pages."""

    visits: float = 0.0
    weight: float = 0.0
    log_sum: float = 0.0
    square_sum: float = 0.0

    def add(self, rate: Rate, elapsed_days: float) -> None:
        """Record what is believed of a page after a visit."""
        if self.visits >= MAX_VISITS:
            self._forget(0.5)
        mean_log = log_mean(rate)
        self.visits += 1
        self.weight += elapsed_days
        self.log_sum += elapsed_days * mean_log
        self.square_sum += elapsed_days * (mean_log * mean_log + log_variance(rate.shape))

    def merge(self, other: Pool) -> None:
        self.visits += other.visits
        self.weight += other.weight
        self.log_sum += other.log_sum
        self.square_sum += other.square_sum

    def negative(self) -> Pool:
        """Return what takes this pool out of another one by `merge`."""
        return Pool(-self.visits, -self.weight, -self.log_sum, -self.square_sum)

    def prior(self, parent: Rate = DEFAULT) -> Rate:
        """Return what to expect of a page of the group, the more like the parent the less is known."""
        if self.weight <= 0:
            return parent
        share = self.visits / (self.visits + PARENT_VISITS)
        parent_log = log_mean(parent)
        mean_log = share * self.log_sum / self.weight + (1 - share) * parent_log
        square = share * self.square_sum / self.weight + (1 - share) * (parent_log**2 + log_variance(parent.shape))
        return by_logarithm(mean_log, square - mean_log * mean_log)

    def _forget(self, share: float) -> None:
        self.visits *= share
        self.weight *= share
        self.log_sum *= share
        self.square_sum *= share


def prior_of(set_class: PageClass | None, host: Pool, crawl: Pool) -> Rate:
    """Return what to expect of a page; `set_class` is the class that the operator has set for it, if any.

    A set class says more about a page than the other pages of its host do.
    """
    return host.prior(crawl.prior()) if set_class is None else CLASS_PRIORS[set_class]


def by_logarithm(mean_log: float, variance: float) -> Rate:
    """Return the gamma distribution whose logarithm has this mean and variance, within the limits for priors."""
    shape = min(max(_shape_of(variance), MIN_PRIOR_SHAPE), MAX_PRIOR_SHAPE)
    return Rate(shape, exp(_digamma(shape) - mean_log))


def hinted(prior: Rate, per_day: float, trust: float) -> Rate:
    """Return a prior that also uses a frequency that the site itself gives, as far as it is trusted.

    At most one change's worth: what is seen outweighs it after a few visits.
    """
    trust = min(max(trust, 0.0), 1.0)
    if trust == 0 or per_day <= 0:
        return prior
    mean_log = (1 - trust) * log_mean(prior) + trust * log(per_day)
    return by_logarithm(mean_log, log_variance(prior.shape))


def log_mean(rate: Rate) -> float:
    """Return the mean of the logarithm of a rate."""
    return _digamma(rate.shape) - log(rate.days)


def log_variance(shape: float) -> float:
    """Return the variance of the logarithm of a rate: the trigamma function, within 1.5 %."""
    return 1 / (shape * shape) + 1 / (shape + 0.6)


def _digamma(shape: float) -> float:
    """Return the digamma function, within 0.002: asymptotic beyond 2, and two steps of the recurrence."""
    middle = shape + 1.5
    return log(middle) + 1 / (24 * middle * middle) - 1 / (shape + 1) - 1 / shape


def _shape_of(variance: float) -> float:
    """Return the shape at which the logarithm has that variance: four steps of Newton's method, from below."""
    variance = max(variance, 0.2)
    shape = 1 / sqrt(variance)
    for _ in range(4):
        slope = -2 / shape**3 - 1 / (shape + 0.6) ** 2
        shape = max(shape - (log_variance(shape) - variance) / slope, shape / 4)
    return shape
