"""The state of a crawl, a shard and a host that survives a restart, beside their rows in the catalog.

Typed records instead of named values: they list what a decision can depend on, and a typo is an error.
"""

from __future__ import annotations

from msgspec import Struct, field

from gossamer.figures import Figures, Totals
from gossamer.records import TextHash, UrlId


class CrawlState(Struct):
    """The state of the whole crawl: one record, written with every commit."""

    totals: Totals = field(default_factory=Totals)
    saved_at: float = 0.0  # on the time line of the run that wrote it: shows whether the clock was set back since
    is_running: bool = False  # still true when the ledger is opened: the previous run was killed
    scope: list[str] = []  # URLs that define the scope: seeds, and the targets of their redirects
    opened_addresses: list[str] = []  # private addresses that a seed named, which links may lead to
    figures: Figures | None = None  # of the last run that ended


class ShardState(Struct, array_like=True):
    """The state of one shard, for its next owner.

    Both numbers are Lamport clocks: an owner continues from the greatest number of any of its shards, so
    numbers grow within a shard regardless of the owner, and on one machine they are the order of arrival.
    """

    next_seq: int = 1  # of the next URL that is admitted
    last_change: int = 0  # number of the shard's last entry in the change feed


class HostEvidence(Struct, array_like=True):
    """What was learned about a host's URLs: the basis of decisions about traps."""

    host: str
    dated_urls: int = 0  # admitted with a date in the path or query: the calendar budget
    is_probed: bool = False  # a page that cannot exist was requested
    repeated_texts: dict[TextHash, int] = {}  # pages per text, from the second page on


class Submitters(Struct, array_like=True):
    """The domains elsewhere whose robots.txt lists a sitemap: it may contain their URLs."""

    sitemap: UrlId
    domains: tuple[str, ...] = ()
