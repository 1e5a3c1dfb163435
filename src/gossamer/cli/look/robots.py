"""`gossamer robots URL`: may it be fetched, and which line of robots.txt decides?"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from gossamer.cli.contact import with_contact
from gossamer.cli.credentials import report_credentials
from gossamer.cli.one import OneFetch, one_settings, settings_of
from gossamer.core.robots.answers import rules_from
from gossamer.core.robots.rules import RobotsRules, parse_robots, product_token
from gossamer.core.url.forms import canonical, origin_of, path_of
from gossamer.model.errors import UsageError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.workers.answers import WorkerRules, read_answer
from gossamer.settings.identity import robots_token_of
from gossamer.settings.seeds import Seed, seed_from

MAX_HOPS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--file", type=Path, metavar="FILE", help="use this robots.txt instead of fetching it")
    parser.add_argument(
        "--agent", metavar="TOKEN", help="decide for this product token, as Bot2 or Bot2/1.0 (that of the User-Agent)"
    )
    one_settings(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 0: allowed; 1: not allowed."""
    seed = seed_from(arguments.url, "robots")
    report_credentials([seed])
    agent = _agent(arguments)
    if arguments.file:
        try:
            body = arguments.file.read_bytes()
        except OSError as error:
            raise UsageError(f"{arguments.file}: cannot be read: {error.strerror}") from error
        return _print_decision(seed.link.url, parse_robots(body, agent), f"from {arguments.file}")
    return asyncio.run(_ask(seed, agent, arguments))


def _agent(arguments: argparse.Namespace) -> str:
    """Return the product token to decide for."""
    if arguments.agent is None:
        return robots_token_of(settings_of(arguments))
    token = product_token(arguments.agent)
    if not token:
        raise UsageError(f"--agent {arguments.agent!r}: not the name of a robot; expected Bot or Bot/1.0")
    return token


async def _ask(seed: Seed, agent: str, arguments: argparse.Namespace) -> int:
    one = OneFetch(with_contact(settings_of(arguments), [seed]), seed)
    origin = origin_of(seed.link.url)
    url = origin + "/robots.txt"
    for _ in range(MAX_HOPS + 1):
        exchange = await one.fetch(url)
        result = robots_result(url, exchange)
        print(f"{url}: {_answer(exchange)}")
        if result.outcome is not Outcome.REDIRECT:
            break
        url = canonical(result.redirect_to) or url
    rules = rules_from(result, lambda text: parse_robots(text, agent))
    if rules is None:
        print(f"{seed.link.url}: not allowed: robots.txt cannot be reached, so nothing of {origin} may be fetched now")
        return 1
    return _print_decision(seed.link.url, rules, "")


def robots_result(url: str, exchange: Exchange) -> Result:
    """Return what an answer to a request for robots.txt means."""
    task = FetchTask(0, FetchKind.ROBOTS, url, b"", "", (), 0, 0, 0, 0.0)
    return read_answer(task, exchange, WorkerRules())


def _answer(exchange: Exchange) -> str:
    if not exchange.status:
        return f"{exchange.outcome} {exchange.error}".strip()
    answer = f"{exchange.status}, {len(exchange.content)} bytes"
    # Of an answer that broke off, the status alone would look like success.
    return f"{answer}, then {exchange.outcome}: {exchange.error}" if exchange.error else answer


def _print_decision(url: str, rules: RobotsRules, source: str) -> int:
    decision = rules.decide(path_of(url))
    verdict = "allowed" if decision.is_allowed else "not allowed"
    because = f"line {decision.line_number}: {decision.line}" if decision.line_number else "no rule matches this path"
    print(f"{url}: {verdict}: {because} {source}".rstrip())
    if rules.rules_beyond:
        print(f"rules beyond those that are matched: {rules.rules_beyond}; what they disallow is forbidden as a prefix")
    if rules.crawl_delay_s is not None:
        print(f"crawl-delay: {rules.crawl_delay_s:g} s")
    for sitemap in rules.sitemaps:
        print(f"sitemap: {sitemap}")
    for line in rules.usage:
        print(line)
    return 0 if decision.is_allowed else 1
