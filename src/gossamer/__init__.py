"""Gossamer: a polite, crash-proof web crawler.

async with gossamer.crawl("https://example.org/", contact="you@example.org") as pages:
    async for page in pages:
        print(page.url, page.title)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.api import (
        Crawling,
        CrawlOptions,
        Event,
        Failure,
        FoundLink,
        GossamerError,
        Headers,
        IncompleteCrawlWarning,
        Outlink,
        Page,
        SeedsFailedError,
        UsageError,
        crawl,
    )

__version__ = "0.2.0"
__all__ = [
    "CrawlOptions",
    "Crawling",
    "Event",
    "Failure",
    "FoundLink",
    "GossamerError",
    "Headers",
    "IncompleteCrawlWarning",
    "Outlink",
    "Page",
    "SeedsFailedError",
    "UsageError",
    "__version__",
    "crawl",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - depends on the name
    """Import the public names on first use: `gossamer --help` needs none of them."""
    if name in __all__:
        return getattr(import_module("gossamer.api"), name)
    raise AttributeError(f"module 'gossamer' has no attribute {name!r}")
