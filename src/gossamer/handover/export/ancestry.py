"""Which seed does a page descend from, and which redirects led to it?

The catalog names the parent of every URL: the page, sitemap or redirect by which it was first found. Parents are
followed upwards; the seeds of what was passed are remembered, so that most pages cost one look-up of a parent that is
known already. A sitemap that robots.txt lists has no parent: it belongs to the seed of its host, or of the first page
that was found there.
"""

from __future__ import annotations

from itertools import islice

from gossamer.core.url.forms import host_of, url_id
from gossamer.core.url.identity import host_id
from gossamer.model.records import OrderKind, Outcome, Source, UrlId, UrlRecord
from gossamer.reading.view import OpenCrawl

MAX_REMEMBERED = 50_000  # seeds of URLs, about 8 MB
MAX_REDIRECTS = 20  # more than a crawl follows in a row
_MAX_ROWS = 1000  # of a host, to find the first page
_SEED_SOURCES = (Source.SEED, Source.REDIRECT)  # a seed that a redirect spells otherwise is still one


class Ancestry:
    """The seeds and redirects of pages."""

    def __init__(self, crawl: OpenCrawl) -> None:
        self._crawl = crawl
        self._seeds: dict[UrlId, str] = {}

    def seed_of(self, key: UrlId, row: UrlRecord) -> str:
        """Return the URL of the seed that a page descends from; empty if it was found without one."""
        passed: dict[UrlId, None] = {}  # in order, and never twice
        at: UrlRecord | None = row
        seed = ""
        while at is not None and key not in passed:
            if key in self._seeds:
                seed = self._seeds[key]
                break
            passed[key] = None
            if _is_seed(at):
                seed = at.url
                break
            above = at.parent or self._first_at_host(at)
            key = above
            at = self._crawl.ledger.look_up(above) if above else None
        if len(self._seeds) + len(passed) > MAX_REMEMBERED:
            self._seeds.clear()
        if seed:  # otherwise a parent may not be committed yet
            self._seeds.update(dict.fromkeys(passed, seed))
        return seed

    def redirected_from(self, key: UrlId, row: UrlRecord) -> list[str]:
        """Return the URLs whose redirects led to a URL when it was found, in order."""
        chain: list[str] = []
        while row.source is Source.REDIRECT and row.parent and len(chain) < MAX_REDIRECTS:
            above = self._crawl.ledger.look_up(row.parent)
            # A redirect that only spells a URL otherwise leaves it with its parent, which is a page.
            if above is None or above.outcome != Outcome.REDIRECT or url_id(above.redirect_to) != key:
                break
            key = row.parent
            row = above
            chain.append(row.url)
        return chain[::-1]

    def _first_at_host(self, row: UrlRecord) -> UrlId:
        """Return the seed at the host of a sitemap, or else the page by which the host was found; empty if none."""
        if row.kind is not OrderKind.SITEMAP:
            return b""
        rows = islice(self._crawl.ledger.urls(host_id(host_of(row.url))), _MAX_ROWS)
        found = [
            (not _is_seed(other), other.seq, key)
            for key, other in rows
            if other.kind is OrderKind.PAGE and other.source not in (Source.SITEMAP, Source.PROBE, Source.NOTICE)
        ]
        return min(found)[2] if found else b""


def _is_seed(row: UrlRecord) -> bool:
    return row.source in _SEED_SOURCES and not row.parent and row.depth == 0 and row.kind is OrderKind.PAGE
