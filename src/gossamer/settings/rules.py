"""Which links does a crawl follow, and how fast does it ask each host? From its settings."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.core.frontier.priority import QueueOrder
from gossamer.core.links.scope import DEFAULT_EXCLUDES, SKIPPED_EXTENSIONS, Reach, Scope, extensions_of
from gossamer.core.politeness.pace import Pace, PaceRule
from gossamer.core.url.forms import canonical, host_of
from gossamer.model.errors import UsageError
from gossamer.settings.model import Settings
from gossamer.settings.plugins import parser_types
from gossamer.settings.repeatable import is_repeatable
from gossamer.settings.stores import has_archive

RANK_EVERY = 100_000  # pages


def accepted_types(settings: Settings) -> tuple[str, ...]:
    """Return the types that are stored besides the usual ones; `image/` stands for all images."""
    types = tuple(name.lower().removesuffix("*") for name in settings.accept)
    return types + parser_types(settings.plugin) if settings.plugin else types


def check_own_hosts(names: Iterable[str]) -> None:
    """Raise if a name is not that of one host: nobody owns all hosts of a pattern."""
    for name in names:
        url = canonical(f"http://{name}/") if name and not set("*?/@#") & set(name) else None
        if url is None or host_of(url) != name:
            hint = f"did you mean {host_of(url)!r}?" if url else "expected the name of one host, as www.example.org"
            raise UsageError(f"own-host = {name!r}: not a host of your own; {hint}")


def scope_of(settings: Settings) -> Scope:
    """Return the scope of a crawl, without its seeds."""
    return Scope(
        settings.scope or Reach.DOMAIN,
        includes=settings.include_pattern,
        excludes=(DEFAULT_EXCLUDES if settings.default_excludes else ()) + settings.exclude_pattern,
        blocked_hosts=settings.block_host,
        skipped_extensions=SKIPPED_EXTENSIONS - extensions_of(accepted_types(settings)),
    )


def rank_every_of(settings: Settings) -> int:
    """Return after how many pages domains are ranked again; 0: never."""
    if settings.rank_every is not None:
        return settings.rank_every
    # When ranks arrive depends on time: a crawl whose requests are the same in every run does without.
    uses_ranks = settings.order is QueueOrder.TIERS and not is_repeatable(settings)
    return RANK_EVERY if uses_ranks and has_archive(settings.store) else 0


def pace_of(settings: Settings) -> Pace:
    """Return the pace of every host."""
    rules = [PaceRule(rule.host, rule.delay, rule.connections) for rule in settings.pace]
    return Pace(settings.politeness_ms / 1000, settings.host_connections, rules)
