"""The scope of a crawl, extended by seeds and the targets of their redirects. Stored with the crawl's state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gossamer.core.links.scope import Scope
from gossamer.core.url.forms import host_of
from gossamer.engine.admission.seed_rules import SeedRules
from gossamer.model.records import Link
from gossamer.model.state import CrawlState


class ScopeRecord:
    def __init__(self, scope: Scope, seeds: SeedRules, state: CrawlState) -> None:
        self._scope = scope
        self._seeds = seeds
        self._state = state

    def restore(self) -> None:
        for url in self._state.scope:
            self._scope.join(url, host_of(url))

    def adopt(self, urls: Iterable[str]) -> None:
        """Extend the scope by URLs that extended it elsewhere."""
        for url in urls:
            if self._scope.join(url, host_of(url)):
                self._state.scope.append(url)

    def join(self, link: Link, seed: int) -> None:
        """Extend the scope by a URL, if it is not in scope already: that of its seed, or else the crawl's."""
        if seed and self._seeds.join(seed, link):
            return
        if self._scope.join(link.url, link.host):
            self._state.scope.append(link.url)

    def by_seed(self, links: Sequence[Link], origin: str) -> list[tuple[int, list[Link]]]:
        """Return links that are found without a page by the seed that they belong to."""
        return self._seeds.by_seed(links, origin)

    def block(self, names: frozenset[str]) -> None:
        """Exclude hosts and domains from the scope from now on."""
        self._scope.block(names)
