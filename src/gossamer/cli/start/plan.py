"""`gossamer plan SEED…`: what would a crawl take? With a few requests to its seed hosts, or with --offline none.

Pace and sitemap of each seed host, the time for `--max-pages`, disk and memory.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

import msgspec

from gossamer.assembly.engine import budget_of
from gossamer.cli.contact import with_contact
from gossamer.cli.look.robots import MAX_HOPS, robots_result
from gossamer.cli.one import OneFetch
from gossamer.cli.options import describe, given, given_seeds, group_of
from gossamer.cli.start import crawl
from gossamer.core.dedup.scheme import NearDup
from gossamer.core.links.scope import Reach
from gossamer.core.robots.answers import rules_from
from gossamer.core.robots.rules import RobotsRules, parse_robots
from gossamer.core.url.forms import canonical, origin_of, path_of
from gossamer.model.errors import UsageError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome
from gossamer.parse.feeds.sitemap import parse_sitemap
from gossamer.settings.identity import robots_token_of
from gossamer.settings.load import settings_for_new
from gossamer.settings.model import Group, RobotsUnreachable, Settings, SitemapUse
from gossamer.settings.rules import pace_of
from gossamer.settings.seeds import Seed
from gossamer.telemetry.planning import CrawlPlan, HostPlan, PlanLimits, plan_of

MAX_ASKED = 100  # hosts
AT_ONCE = 16
_HOST_SCOPES = (Reach.PAGE, Reach.PREFIX, Reach.HOST)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb: those of a crawl, so that its command line can be used as it is."""
    describe(
        parser,
        "SEED… [--offline] [options of crawl]",
        [
            "gossamer plan example.org --contact you@example.org -n 500",
            "gossamer plan seeds.txt --scope host --offline --json",
        ],
    )
    crawl.add_crawl_options(parser)
    output = group_of(parser, Group.OUTPUT)
    output.add_argument("--offline", action="store_true", help="make no requests")
    output.add_argument("--all-hosts", action="store_true", help=f"ask every seed host, not only the first {MAX_ASKED}")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: no seed host can be crawled."""
    seeds = given_seeds(arguments)
    if not seeds:
        raise UsageError("no seeds; expected: gossamer plan https://example.org/")
    settings = settings_for_new(given(arguments), has_domain_list=arguments.domain_seeds_csv is not None)
    by_host: dict[str, Seed] = {}
    for seed in seeds:
        by_host.setdefault(seed.link.host, seed)
    asks_all = arguments.offline or arguments.all_hosts  # offline, that costs nothing
    number = len(by_host) if asks_all else MAX_ASKED
    if not arguments.offline:
        settings = with_contact(settings, seeds)
    survey = Survey(settings, is_offline=arguments.offline)
    hosts = asyncio.run(survey.ask_all(list(by_host.values())[:number]))
    hosts += [survey.unasked(name) for name in [*by_host][number:]]
    plan = plan_of(hosts, _limits(settings), requests=survey.requests)
    print(msgspec.json.encode(plan).decode() if arguments.json else plan.render())
    return _status(plan)


def _status(plan: CrawlPlan) -> int:
    return 0 if plan.hosts_not_asked or any(host.is_crawled for host in plan.hosts) else 1


def _limits(settings: Settings) -> PlanLimits:
    budget = budget_of(settings)
    return PlanLimits(
        max_pages=settings.max_pages,
        max_time_s=settings.max_time,
        max_pages_per_host=settings.max_pages_per_host,
        max_pages_per_domain=settings.max_pages_per_domain,
        workers=settings.workers or 1,
        connections=budget.connections,
        memory_ceiling_bytes=budget.whole,
        has_near_duplicates=settings.near_dup is not NearDup.OFF,
        is_host_scope=settings.scope in _HOST_SCOPES,
        domain_delay_s=settings.domain_politeness_ms / 1000,
    )


class Survey:
    """Asks the hosts of seeds for their robots.txt and first sitemap, at the pace of a crawl."""

    def __init__(self, settings: Settings, *, is_offline: bool) -> None:
        self._settings = settings
        self._is_offline = is_offline
        self._pace = pace_of(settings)
        self._token = robots_token_of(settings)
        self.requests = 0

    async def ask_all(self, seeds: Sequence[Seed]) -> list[HostPlan]:
        """Return what is known about each host, some of them at a time."""
        turn = asyncio.Semaphore(AT_ONCE)

        async def ask(seed: Seed) -> HostPlan:
            async with turn:
                return await self._ask(seed)

        return list(await asyncio.gather(*map(ask, seeds)))

    def unasked(self, name: str) -> HostPlan:
        """Return what is known of a host without a request."""
        delay_s = self._pace.floor_s(name, None)
        return HostPlan(name=name, is_asked=False, delay_s=delay_s, connections=max(1, self._pace.connections(name)))

    async def _ask(self, seed: Seed) -> HostPlan:
        name = seed.link.host
        plan = self.unasked(name)
        plan.is_asked = True
        if self._is_offline:
            plan.robots = "not asked (--offline)"
            return plan
        one = OneFetch(self._settings, seed)
        url, rules = await self._robots(one, seed, plan)
        is_own = seed.link.host in self._settings.own_host
        if rules is None and is_own:
            plan.robots += ", which does not matter (--own-host)"
            return plan
        if rules is None and self._settings.robots_unreachable is RobotsUnreachable.ALLOW:
            plan.robots += ", as if there were none (--robots-unreachable allow)"
            return plan
        if rules is None:
            plan.is_crawled = False
            plan.problem = f"robots.txt cannot be reached ({plan.robots}): nothing would be fetched"
            return plan
        plan.crawl_delay_s = rules.crawl_delay_s
        plan.delay_s = self._pace.floor_s(name, rules.crawl_delay_s)
        decision = rules.decide(path_of(seed.link.url))
        if not decision.is_allowed and not is_own:
            plan.is_crawled = False
            plan.problem = f"robots.txt forbids the seed, in line {decision.line_number}: {decision.line}"
        elif self._settings.sitemaps is not SitemapUse.OFF:
            await self._sitemap(one, url, rules, plan)
        return plan

    async def _robots(self, one: OneFetch, seed: Seed, plan: HostPlan) -> tuple[str, RobotsRules | None]:
        """Return the URL of robots.txt and its rules; None if nothing may be fetched."""
        url = origin_of(seed.link.url) + "/robots.txt"
        exchange = await self._fetch(one, url)
        if seed.is_guess and not exchange.status:
            url = "http:" + url.removeprefix("https:")
            exchange = await self._fetch(one, url)
        result = robots_result(url, exchange)
        at = url
        for _ in range(MAX_HOPS):
            if result.outcome is not Outcome.REDIRECT:
                break
            await asyncio.sleep(plan.delay_s)  # the pace of a crawl
            at = canonical(result.redirect_to) or at
            exchange = await self._fetch(one, at)
            result = robots_result(at, exchange)
        plan.robots = str(exchange.status) if exchange.status else f"{exchange.outcome} {exchange.error}".strip()
        return url, rules_from(result, lambda text: parse_robots(text, self._token))

    async def _sitemap(self, one: OneFetch, robots_url: str, rules: RobotsRules, plan: HostPlan) -> None:
        """Read the first sitemap that may be fetched: of other origins the robots.txt is not known."""
        plan.sitemaps = len(rules.sitemaps)
        own = (url for url in map(canonical, rules.sitemaps) if url and origin_of(url) == origin_of(robots_url))
        first = next((url for url in own if rules.decide(path_of(url)).is_allowed), None)
        if first is None:
            return
        await asyncio.sleep(plan.delay_s)
        exchange = await self._fetch(one, first)
        if exchange.outcome is Outcome.OK:
            contents = parse_sitemap(exchange.content)
            plan.sitemap_urls = len(contents.urls)
            plan.sitemap_files = len(contents.sitemaps)

    async def _fetch(self, one: OneFetch, url: str) -> Exchange:
        exchange = await one.fetch(url)
        self.requests += exchange.requests_sent
        return exchange
