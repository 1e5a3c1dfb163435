"""How long does the queue of each host take, according to the ledger? For forecasts, `hosts` and the report.

A URL takes as many requests as URLs of this crawl took so far, with their retries, and as many of them are pages. What
is queued beyond the budget of its host or domain is not fetched. The delay is the one in force, with Crawl-delay and
back-off, or that of the settings if it is longer; if answers take longer than that, they bound the host. The ledger
has no times of single retries: only a crawl that runs knows how long its last URLs wait for theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.core.frontier.limits import scaled_budget
from gossamer.core.politeness.pace import Pace
from gossamer.model.figures import Totals
from gossamer.model.records import DomainRecord, HostRecord
from gossamer.settings.model import Settings
from gossamer.settings.rules import pace_of
from gossamer.telemetry.forecast import ForecastLimits, HostLeft, limits_of, queue_time


class PageBudgets:
    """How many URLs the budgets of hosts and domains still allow, in one pass over hosts."""

    def __init__(self, settings: Settings, domains: Iterable[DomainRecord], pages_per_url: float = 1.0) -> None:
        self._per_host = settings.max_pages_per_host
        self._per_domain = settings.max_pages_per_domain
        self._is_by_rank = settings.domain_budget_by_rank
        self._pages_per_url = pages_per_url
        # Pages of domains, with those to be expected of the hosts that were asked for before.
        self._used = {domain.name: float(domain.pages) for domain in domains} if self._per_domain is not None else {}

    def take(self, host: HostRecord) -> float:
        """Return how many of a host's queued URLs are to be expected to be fetched.

        Not rounded: so the sum over the hosts of a domain is the same in whatever order they come.
        """
        urls = float(host.queued)
        if self._per_host is not None:
            urls = min(urls, max(0, self._per_host - host.pages) / self._pages_per_url)
        if self._per_domain is not None:
            budget = scaled_budget(self._per_domain, host.rank) if self._is_by_rank else self._per_domain
            used = self._used.get(host.domain, 0.0)
            urls = min(urls, max(0.0, budget - used) / self._pages_per_url)
            self._used[host.domain] = used + urls * self._pages_per_url
        return max(urls, min(host.queued, host.requisites))  # to which no budget applies


class Outlook:
    """What is to be expected of hosts, one after the other."""

    def __init__(
        self,
        now: float,
        pace: Pace | None = None,
        limits: ForecastLimits | None = None,
        budgets: PageBudgets | None = None,
    ) -> None:
        self._now = now
        self._pace = pace or Pace(0.0, 1)
        self.limits = limits or ForecastLimits()
        self._budgets = budgets

    def of(self, host: HostRecord) -> HostLeft:
        """Return how long the queue of a host takes. A budget that it shares goes to the hosts that come first."""
        urls = host.queued if self._budgets is None else self._budgets.take(host)
        # The delay is that of the last request: a pace that was made slower since counts, too.
        pace = self._pace
        by_latency_s = host.latency_s / max(1, pace.connections(host.name))
        usual_s = host.delay_s / (1 << host.backoff)  # each success takes back one step of back-off
        interval_s = max(usual_s, pace.floor_s(host.name, None), by_latency_s)
        return queue_time(host, self._now, interval_s, self.limits, urls)


def outlook_of(
    settings: Settings, totals: Totals, domains: Iterable[DomainRecord], now: float, max_pages: int | None = None
) -> Outlook:
    """Return the outlook of a crawl; `max_pages` may be the limit that all nodes share."""
    pages_left = None if max_pages is None or totals.pages >= max_pages else max_pages - totals.pages
    limits = limits_of(totals, pages_left=pages_left)
    has_budgets = settings.max_pages_per_host is not None or settings.max_pages_per_domain is not None
    budgets = PageBudgets(settings, domains, limits.pages_per_url) if has_budgets else None
    return Outlook(now, pace_of(settings), limits, budgets)
