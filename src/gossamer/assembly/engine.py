"""The engine of a crawl from its settings: scope, limits, pace and order, without anything that does I/O.

Every function maps settings to a part, as in `assembly`, which builds the rest of a run around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import Ordering, ordering
from gossamer.core.links.intake import Intake, IntakeRules, LinkHooks
from gossamer.core.url.host_patterns import normal_pattern
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.fetch.identity import Identity
from gossamer.runtime.watch import vitals
from gossamer.settings.budget import SHARE_OF_MACHINE, Budget
from gossamer.settings.identity import robots_token_of, user_agent_of
from gossamer.settings.model import AfterTarget, RobotsUnreachable, Settings, SitemapUse
from gossamer.settings.revisit import revisit_rules_of
from gossamer.settings.rules import pace_of, scope_of

if TYPE_CHECKING:
    from gossamer.ports import Ledger


def identity_of(settings: Settings) -> Identity:
    return Identity(user_agent_of(settings), settings.contact)


def budget_of(settings: Settings) -> Budget:
    """Return how the ceiling on memory is divided; by default it is a share of the machine's memory."""
    return Budget.of(
        settings.memory or int(SHARE_OF_MACHINE * vitals.machine_bytes()),
        workers=settings.workers or 1,
        connections=settings.connections,
        max_bytes=settings.max_bytes,
    )


def frontier_limits(settings: Settings, budget: Budget) -> FrontierLimits:
    return FrontierLimits(
        connections=budget.safe_connections,
        max_pages=settings.max_pages,
        max_pages_per_host=settings.max_pages_per_host,
        max_pages_per_domain=settings.max_pages_per_domain,
        scales_domain_budget=settings.domain_budget_by_rank,
        address_connections=settings.address_connections,
        domain_connections=settings.domain_connections,
        domain_share=settings.domain_share / 100,
        max_hosts_per_address=settings.max_hosts_per_address,
        address_delay_s=settings.address_politeness_ms / 1000,
        domain_delay_s=settings.domain_politeness_ms / 1000,
        retries=settings.retries,
        retry_wait_s=settings.retry_wait,
        max_depth=settings.max_depth,
        is_unreachable_robots_allowed=settings.robots_unreachable is RobotsUnreachable.ALLOW,
        own_hosts=frozenset(settings.own_host),
        max_hosts_in_memory=budget.hosts,
        max_urls_in_memory=budget.urls,
        max_idle_hosts=budget.idle_hosts,
        max_rules_bytes=budget.rules,
    )


def ordering_of(settings: Settings) -> Ordering:
    return ordering(settings.order, settings.random_seed)


def build_crawl(
    settings: Settings,
    budget: Budget,
    ledger: Ledger,
    emitter: EventEmitter,
    *,
    host_ranks: Mapping[str, float],
    hooks: LinkHooks | None = None,
    how: Ordering | None = None,
) -> Crawl:
    """Return the engine of a crawl; `host_ranks` are those of new hosts, from 0 to 1."""
    how = how or ordering_of(settings)
    limits = frontier_limits(settings, budget)
    token = robots_token_of(settings)
    target = settings.target_unique_domains
    intake_rules = IntakeRules(
        max_links_per_page=settings.max_links_per_page,
        remembers=not settings.cooldown_sec,
        memo_urls=budget.links,
        max_patterns=budget.patterns,
        trap_budget=settings.trap_budget,
    )
    first_pass = None
    if target is not None:
        from gossamer.core.links.first_pass import FirstPass

        first_pass = FirstPass(target)
    intake = Intake(scope_of(settings), how, limits, intake_rules, first_pass=first_pass, hooks=hooks)
    rules = CrawlRules(
        robots_token=token,
        follows_sitemaps=settings.sitemaps is not SitemapUse.OFF,
        reads_sitemaps_first=settings.sitemaps is SitemapUse.FIRST,
        follows_duplicates=settings.follow_duplicates,
        cooldown_s=settings.cooldown_sec,
        max_queued=settings.max_queued,
        max_oversize=settings.max_oversize,
        max_redirects=settings.max_redirects,
        continues_after_target=settings.after_target is AfterTarget.CONTINUE,
        max_hosts_per_domain=settings.max_hosts_per_domain,
        watches_traps=settings.traps,
        near_dup=settings.near_dup,
        revisits=revisit_rules_of(settings) if settings.revisit else None,
        spam=settings.spam,
        host_ranks=host_ranks,
        max_requisites=settings.max_requisites_per_page if settings.requisites else 0,
        identified=tuple(filter(None, (normal_pattern(rule.host) for rule in settings.request if rule.identifies))),
        insecure=tuple(filter(None, map(normal_pattern, settings.insecure))),
    )
    frontier = Frontier(limits, pace_of(settings), how, token)
    return Crawl(rules, frontier, intake, ledger, emitter)
