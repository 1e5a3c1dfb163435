"""What a crawl, a shard and a host must remember over a restart, beside their rows in the catalog.

Typed records instead of named values: a reader sees what a decision can depend on, and a typo is an error.
"""

from __future__ import annotations

from msgspec import Struct, field

from gossamer.figures import Figures, Totals
from gossamer.records import TextHash, UrlId


class CrawlState(Struct):
    """The state of the whole crawl: one record, written with every commit."""

    totals: Totals = field(default_factory=Totals)
    saved_at: float = 0.0  # on the time line of the run that wrote it: tells whether the clock was set back since
    is_running: bool = False  # still true when the ledger is opened: the run before was killed
    scope: list[str] = []  # URLs that opened the scope: seeds, and what they were redirected to
    opened_addresses: list[str] = []  # private addresses that a seed named, and that links may lead to
    figures: Figures | None = None  # of the last run that came to its end


class ShardState(Struct, array_like=True):
    """The state of one shard: what its next owner goes on with.

    Both numbers are Lamport clocks: an owner numbers on from the greatest that any of its shards has, so
    numbers grow within a shard whoever owns it, and on one machine they are the order of arrival.
    """

    next_seq: int = 1  # of the next URL that is admitted
    last_change: int = 0  # number of the shard's last entry in the change feed


class HostEvidence(Struct, array_like=True):
    """What was learned about a host's URLs, and what decisions about traps rest on."""

    host: str
    dated_urls: int = 0  # admitted with a date in the path or query: the calendar budget
    is_probed: bool = False  # a page that cannot exist was asked for
    repeated_texts: dict[TextHash, int] = {}  # pages per text, from the second page on


class Submitters(Struct, array_like=True):
    """The domains elsewhere whose robots.txt lists a sitemap: it may speak for them."""

    sitemap: UrlId
    domains: tuple[str, ...] = ()
