"""An order in which the shortest URLs of a host come first."""

from __future__ import annotations


class ShortFirst:
    """See `gossamer.plugins.OrderPolicy`."""

    def score(self, url: str, depth: int) -> float:
        """Return 100 for a very short URL, and half a point less per character."""
        return 100 - len(url) / 2
