"""The scope of a crawl, and how it grows: by seeds and what they are redirected to. Stored with the crawl's state."""

from __future__ import annotations

from gossamer.core.scope import Scope
from gossamer.core.url import host_of
from gossamer.records import Link
from gossamer.state import CrawlState


class ScopeRecord:
    """The scope, and the URLs that opened it."""

    def __init__(self, scope: Scope, state: CrawlState) -> None:
        self._scope = scope
        self._state = state

    def restore(self) -> None:
        """Open the scope as the crawl's state says."""
        for url in self._state.scope:
            self._scope.join(url, host_of(url))

    def join(self, link: Link) -> None:
        """Open the scope for a URL, if it is not within already."""
        if self._scope.join(link.url, link.host):
            self._state.scope.append(link.url)

    def block(self, names: frozenset[str]) -> None:
        """Leave hosts and domains out of the scope from now on."""
        self._scope.block(names)
