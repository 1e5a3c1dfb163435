"""Numbers that bound the frontier.

There is one object per frontier, shared by all its parts, so that a change (`Frontier.change_limits`)
reaches each of them: no part copies a number.
"""

from __future__ import annotations

import math

from msgspec import Struct

from gossamer.core.politeness.retry import DEFAULT_RETRIES

BUDGET_SPREAD = 4.0  # a domain of rank 1 has this many times the budget, one of rank 0 this part of it


def scaled_budget(pages: int, rank: float) -> int:
    """Return the budget of a domain with a rank, if an average one has `pages`: a third more per tenth."""
    return max(1, round(pages * math.pow(BUDGET_SPREAD, 2 * rank - 1)))


class FrontierLimits(Struct):
    """Numbers that bound the frontier. None, and 0 for connections and delays: no limit."""

    connections: int = 256
    max_pages: int | None = None
    max_pages_per_host: int | None = None
    max_pages_per_domain: int | None = None
    scales_domain_budget: bool = False  # by the rank of the domain
    address_connections: int = 20
    domain_connections: int = 0
    domain_share: float = 0.75  # of all connections, and of those at a shared address: see `gates`. 1: no limit
    max_hosts_per_address: int = 1000  # contacted at once; further ones wait: see `address_crowds`. 0: no limit
    address_delay_s: float = 0.0
    domain_delay_s: float = 0.0
    retry_wait_s: float = 2.0
    retries: int = DEFAULT_RETRIES  # of a URL after a failed request; of a time-out, one at most
    max_depth: int = 10
    max_hosts_in_memory: int = 50_000
    max_urls_in_memory: int = 400_000
    max_idle_hosts: int = 10_000  # that have nothing to do, in memory for what is found next
    max_rules_bytes: int = 64 << 20  # of large robots.txt files, as they are in memory
    is_unreachable_robots_allowed: bool = False
    own_hosts: frozenset[str] = frozenset()  # of the operator, who need not obey their robots.txt
    seed_depths: dict[int, int] = {}  # instead of `max_depth`, by the number of a seed that has its own
    demoted_hosts: set[str] = set()  # that come after all others
    # Derived, as fields: read several times per page, and a property takes three times as long.
    has_budgets: bool = False  # whether hosts or domains have a budget of pages
    has_gate_delay: bool = False  # whether requests to one address or domain must keep a distance
    share_of_free: float = 3.0  # how many times what is free a domain may have

    def __post_init__(self) -> None:
        self.derive()

    def domain_budget(self, rank: float) -> int | None:
        """Return how many pages of a domain with a rank may be fetched; None: any number."""
        pages = self.max_pages_per_domain
        return scaled_budget(pages, rank) if self.scales_domain_budget and pages is not None else pages

    def budget_range(self) -> tuple[int, int] | None:
        """Return the budgets of the least and of the most important domain; None if ranks do not matter."""
        pages = self.max_pages_per_domain
        return (scaled_budget(pages, 0.0), scaled_budget(pages, 1.0)) if self.scales_domain_budget and pages else None

    def derive(self) -> None:
        """Bring the derived fields up to date after a change."""
        self.has_budgets = self.max_pages_per_host is not None or self.max_pages_per_domain is not None
        self.has_gate_delay = bool(self.address_delay_s or self.domain_delay_s)
        self.share_of_free = self.domain_share / (1 - self.domain_share) if self.domain_share < 1 else math.inf
