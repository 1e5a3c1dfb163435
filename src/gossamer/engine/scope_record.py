"""The scope of a crawl, extended by seeds and the targets of their redirects. Stored with the crawl's state."""

from __future__ import annotations

from gossamer.core.scope import Scope
from gossamer.core.url import host_of
from gossamer.records import Link
from gossamer.state import CrawlState


class ScopeRecord:
    """The scope, and the URLs that extended it."""

    def __init__(self, scope: Scope, state: CrawlState) -> None:
        self._scope = scope
        self._state = state

    def restore(self) -> None:
        """Restore the scope from the crawl's state."""
        for url in self._state.scope:
            self._scope.join(url, host_of(url))

    def join(self, link: Link) -> None:
        """Extend the scope by a URL, if it is not in scope already."""
        if self._scope.join(link.url, link.host):
            self._state.scope.append(link.url)

    def block(self, names: frozenset[str]) -> None:
        """Exclude hosts and domains from the scope from now on."""
        self._scope.block(names)
