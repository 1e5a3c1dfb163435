"""Is the budget of pages of a host or its domain used up, and which rule set it?"""

from __future__ import annotations

from typing import Protocol

from gossamer.core.frontier.limits import scaled_budget
from gossamer.core.ledger.tables import RANKS
from gossamer.core.url.identity import domain_id, shard_of
from gossamer.model.records import HostRecord
from gossamer.ports import Catalog
from gossamer.settings.model import Settings
from gossamer.telemetry.text import count


def rank_of(ledger: Catalog, host: HostRecord) -> float:
    """Return the rank of a host's domain: its own record has an earlier one until it is loaded again."""
    stored = ledger.record(RANKS, domain_id(host.domain))
    return host.rank if stored is None or stored.domain != host.domain else stored.rank


class BudgetSource(Protocol):
    """What budgets are read from."""

    @property
    def ledger(self) -> Catalog:
        """What is known about hosts and domains."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the crawl."""
        ...


def used_up_budgets(crawl: BudgetSource, host: HostRecord) -> list[str]:
    """Return which budgets of a host are used up, each with its number and rule."""
    settings = crawl.settings
    found = []
    per_host = settings.max_pages_per_host
    per_domain = settings.max_pages_per_domain
    if per_host is not None and host.pages >= per_host:
        found.append(_text("host", host.pages, per_host, f"--max-pages-per-host {per_host}"))
    if per_domain is None:
        return found
    budget = per_domain
    rule = f"--max-pages-per-domain {per_domain}"
    if settings.domain_budget_by_rank:
        rank = rank_of(crawl.ledger, host)
        budget = scaled_budget(per_domain, rank)
        rule += f", times {budget / per_domain:.2f} by --domain-budget-by-rank for its rank {rank:.2f}"
    domains = crawl.ledger.domains(shard_of(domain_id(host.domain)))
    pages = next((domain.pages for domain in domains if domain.name == host.domain), 0)
    if pages >= budget:
        found.append(_text("domain", pages, budget, rule))
    return found


def _text(what: str, pages: int, budget: int, rule: str) -> str:
    return f"a higher budget of its {what}: {count(pages)} of {count(budget)} pages were fetched ({rule})"
