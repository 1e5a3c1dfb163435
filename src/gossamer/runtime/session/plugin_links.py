"""Plugins that decide about links: filters, and the order of a host's URLs.

The engine calls them, and must not be interrupted: an exception is reported as the failure of the crawl, which then
commits nothing more. So the answer whose links they were asked about is completed again by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from gossamer.core.frontier.priority import Ordering
from gossamer.core.links.intake import SCORE_STEPS, FoundLink, LinkHooks
from gossamer.model.errors import GossamerError, PluginError
from gossamer.model.records import UrlId
from gossamer.settings.plugins import load_plugin

if TYPE_CHECKING:
    from gossamer.plugins import LinkFilter, OrderPolicy

OnFailure: TypeAlias = Callable[[GossamerError], None]


def with_filters(hooks: LinkHooks | None, names: Sequence[str], on_failure: OnFailure) -> LinkHooks | None:
    """Return hooks that ask filters first."""
    if not names:
        return hooks
    filters: list[tuple[str, LinkFilter]] = [(name, load_plugin(name)) for name in names]
    hooks = hooks or LinkHooks()
    then = hooks.accept

    def accept(link: FoundLink) -> bool | bytes:
        for name, each in filters:
            try:
                is_accepted = each.accept(link)
            except Exception as error:  # the code of others may raise anything
                on_failure(PluginError.of(name, f"accept {link.url}", error))
                return False
            if not is_accepted:
                return False
        return True if then is None else then(link)

    return replace(hooks, accept=accept)


def with_policy(ordering: Ordering, names: Sequence[str], on_failure: OnFailure) -> Ordering:
    """Return an order in which a plugin ranks the URLs of a host."""
    if not names:
        return ordering
    name = names[0]
    policy = _policy(names[0])

    def priority(url: str, _id: UrlId, depth: int) -> int:
        try:
            score = float(policy.score(url, depth))
        except Exception as error:
            on_failure(PluginError.of(name, f"score {url}", error))
            return 0
        return round((100.0 - min(100.0, max(0.0, score))) * SCORE_STEPS)

    return replace(ordering, priority=priority)


def _policy(name: str) -> OrderPolicy:
    policy: OrderPolicy = load_plugin(name)
    return policy
