"""What the owner of a site may want to correct, for the report: broken links, redirects, titles.

From rows of the catalog, in the pass that the report makes anyway: the archive is not read. In fixed memory: of each
kind the first rows are stored, of redirects so many are followed, and of titles so many are compared; the report says
how many. `gossamer links`, `gossamer pages` and `gossamer sitemap` list all of them. Costs: 9 µs per HTML page
(0.12 s of CPU for 14,040 pages).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.model.records import FetchKind, Outcome, Source, UrlId, UrlRecord, UrlState
from gossamer.reading.why.fates import BROKEN, Fates
from gossamer.report.record import BrokenUrl, FindingFigures, RedirectChain, SharedText

if TYPE_CHECKING:
    from gossamer.ports import Catalog

SHOWN = 20
MAX_FOLLOWED = 2_000  # redirects: three look-ups each
MAX_TITLES = 50_000  # different ones, about 10 MB
_MAX_SHARED = 1_000  # titles of several pages, whose examples are stored
_EXAMPLES = 3
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PAGE = FetchKind.PAGE  # constants: see `report/catalog`
_QUEUED = UrlState.QUEUED
_PROBE = Source.PROBE
_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


class _Redirect(Struct, gc=False):
    url: str
    parent: UrlId


class _Shared(Struct):
    text: str
    pages: int
    examples: list[str]


class Findings:
    """The running figures of the pass over all URLs."""

    def __init__(self) -> None:
        self._broken = self._redirect_count = self._html_pages = self._missing = self._shared_pages = 0
        self._broken_rows: list[UrlRecord] = []
        self._redirects: list[_Redirect] = []
        self._untitled: list[str] = []
        self._first_with: dict[int, str] = {}  # by host and title: the first page
        self._shared: dict[int, _Shared] = {}

    def add(self, row: UrlRecord) -> None:
        """Add one row."""
        if row.kind is not _PAGE or row.state is _QUEUED or row.source is _PROBE:
            return
        if row.outcome in _PAGES:
            if row.content_type in _HTML:
                self._add_page(row)
        elif row.outcome == Outcome.REDIRECT:
            self._redirect_count += 1
            if len(self._redirects) < MAX_FOLLOWED:
                self._redirects.append(_Redirect(row.url, row.parent))
        elif row.outcome in BROKEN and row.outcome != Outcome.TOO_MANY_REDIRECTS:  # the end of a long chain
            self._broken += 1
            if len(self._broken_rows) < SHOWN:
                self._broken_rows.append(row)

    def _add_page(self, row: UrlRecord) -> None:
        self._html_pages += 1
        title = row.title.strip()
        if not title:
            self._missing += 1
            if len(self._untitled) < SHOWN:
                self._untitled.append(row.url)
            return
        key = hash((row.url.split("/", 3)[2], " ".join(title.casefold().split())))
        first = self._first_with.get(key)
        if first is not None:
            self._add_shared(key, title, first, row.url)
        elif len(self._first_with) < MAX_TITLES:
            self._first_with[key] = row.url

    def _add_shared(self, key: int, title: str, first: str, url: str) -> None:
        self._shared_pages += 1
        known = self._shared.get(key)
        if known is not None:
            known.pages += 1
            if len(known.examples) < _EXAMPLES:
                known.examples.append(url)
            return
        self._shared_pages += 1  # the first page, too
        if len(self._shared) < _MAX_SHARED:
            self._shared[key] = _Shared(title, 2, [first, url])

    def figures(self, ledger: Catalog) -> FindingFigures:
        """Return what was found; redirects and referrers are looked up."""
        chains = [_chain(redirect, ledger) for redirect in self._redirects]
        worst = sorted(chains, key=lambda one: (not one.is_loop, one.outcome not in BROKEN, -len(one.chain)))
        shared = sorted(self._shared.values(), key=lambda one: (-one.pages, one.text))
        return FindingFigures(
            broken=self._broken,
            broken_examples=[
                BrokenUrl(row.url, row.outcome, row.status, _url_of(row.parent, ledger)) for row in self._broken_rows
            ],
            redirects=self._redirect_count,
            redirects_followed=len(chains),
            loops=sum(one.is_loop for one in chains),
            broken_ends=sum(one.outcome in BROKEN and not one.is_loop for one in chains),
            chains=worst[:SHOWN],
            html_pages=self._html_pages,
            missing_titles=self._missing,
            missing_title_examples=self._untitled,
            titles_compared=len(self._first_with),
            shared_titles=self._shared_pages,
            shared_title_examples=[SharedText(one.text, one.pages, one.examples) for one in shared[:SHOWN]],
        )


def _chain(redirect: _Redirect, ledger: Catalog) -> RedirectChain:
    fate = Fates(ledger).of(ledger.url_id(redirect.url))
    found_on = _url_of(redirect.parent, ledger)
    return RedirectChain(redirect.url, list(fate.chain), fate.outcome, fate.status, fate.is_loop, found_on)


def _url_of(key: UrlId, ledger: Catalog) -> str:
    row = ledger.look_up(key) if key else None
    return row.url if row is not None else ""
