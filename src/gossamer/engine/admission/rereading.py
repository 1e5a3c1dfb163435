"""Which stored pages have links that were not followed, because a limit of an earlier run left them out?

Two limits do that, and both can be raised: the depth (a page at the limit is not even searched for links), of the
crawl or of a seed that has its own, and a first pass that stopped at its target and now continues. Nothing is stored
for such links, since most crawls never need them and a page at the limit would have to be parsed for it: when the
limit is raised, the pages are read from the archive again. Which ones follows from the catalog: those of certain
depths that were fetched before the limit was raised. The work is done in slices beside the crawl
(`runtime/recovery/rereader`); how far it got is part of the crawl's state, and is committed with the links that were
offered. In the same way all pages are read again for what they need to be shown, if an earlier run did not fetch that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.admission import Admission
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.results import Results
from gossamer.model.events import EventName
from gossamer.model.figures import MAX_DEPTH
from gossamer.model.records import FetchKind, Outcome, Result, Source, UrlId, UrlRecord, UrlState
from gossamer.model.state import CrawlState, Reread, SeedRecord

if TYPE_CHECKING:
    from gossamer.core.links.first_pass import FirstPass
    from gossamer.ports import Ledger

_WITH_LINKS = frozenset(
    {Outcome.OK.value, Outcome.OTHER_SUCCESS.value, Outcome.NOT_MODIFIED.value, Outcome.LINKS_ONLY.value}
)
_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


class Rereading:
    """The pages whose links are to be followed after all."""

    def __init__(
        self,
        ledger: Ledger,
        limits: FrontierLimits,
        state: CrawlState,
        *,
        admission: Admission,
        results: Results,
        emitter: EventEmitter,
    ) -> None:
        self._ledger = ledger
        self._limits = limits
        self._state = state
        self._admission = admission
        self._links = results.links
        self._robots = results.robots
        self._requisites = results.requisites
        self._events = emitter

    @property
    def is_pending(self) -> bool:
        """Whether there are pages to read again."""
        return self._state.reread is not None

    @property
    def finds_requisites(self) -> bool:
        """Whether there are pages to read again for what they need: page limits do not end that."""
        return self._state.reread is not None and self._state.reread.requisites

    @property
    def cursor(self) -> UrlId:
        """The last page that was read again."""
        return self._state.reread.after if self._state.reread is not None else b""

    def begin(self, first_pass: FirstPass | None, now: float, *, continues: bool) -> None:
        """Compare the limits with those of the last run; decide what must be read again. Call after `restore`."""
        state = self._state
        max_depth = self._limits.max_depth
        from_depth = state.max_depth if 0 <= state.max_depth < max_depth else max_depth
        state.max_depth = max_depth
        seeds: dict[int, int] = {}
        if state.has_dropped_links and continues:
            state.has_dropped_links = False
            from_depth = 0
            seeds = dict.fromkeys(self._limits.seed_depths, 0)
            self._offer_sitemaps(now)
        elif first_pass is not None and not continues:
            state.has_dropped_links = True
        is_new = self._requisites.is_on and not state.fetches_requisites and state.totals.pages > 0
        state.fetches_requisites = self._requisites.is_on
        if from_depth < max_depth or seeds or is_new:
            self._start(from_depth, seeds, now, requisites=is_new)

    def raise_depth(self, seed: SeedRecord, depth: int, now: float) -> None:
        """Have the pages of a seed read again whose links are within its depth only now. Call after `begin`."""
        max_depth = self._limits.max_depth
        pending = self._state.reread
        # Without a depth of its own it had the crawl's, which may have been raised for this run.
        before = seed.depth if seed.depth >= 0 else min(max_depth, pending.from_depth if pending else max_depth)
        if before < depth:
            self._start(max_depth, {seed.number: before}, now)

    def _start(self, from_depth: int, seeds: Mapping[int, int], now: float, *, requisites: bool = False) -> None:
        """Begin to read again, including what an earlier run had not read."""
        state = self._state
        earlier = self._state.reread
        merged = dict(earlier.seeds) if earlier is not None else {}
        for seed, depth in seeds.items():
            merged[seed] = min(depth, merged.get(seed, depth))
        from_depth = min(from_depth, earlier.from_depth) if earlier is not None else from_depth
        requisites |= earlier is not None and earlier.requisites
        state.reread = Reread(from_depth, now, seeds=merged, requisites=requisites)

    def _offer_sitemaps(self, now: float) -> None:
        for host in self._ledger.hosts():
            for robots in self._ledger.robots(host_id(host.name)):
                self._robots.recall(robots, now)

    def pages(self, after: UrlId) -> Iterator[tuple[UrlId, UrlRecord]]:
        """Yield the committed rows of the pages to read again, after a URL, in order. May run in a thread."""
        reread = self._state.reread
        if reread is None:
            return
        for url_id, row in self._ledger.urls(after=after):
            is_known = row.state is UrlState.DONE and row.outcome in _WITH_LINKS and row.fetched_at < reread.before
            if not is_known or row.source is Source.PROBE or row.kind is FetchKind.REQUISITE:
                continue
            if self._has_new_links(row, reread) or (reread.requisites and is_stored_page(row)):
                yield url_id, row

    def _has_new_links(self, row: UrlRecord, reread: Reread) -> bool:
        """Return whether the links of a page are within the depth only now."""
        first = reread.from_depth
        limit = self._limits.max_depth
        if row.seed in self._limits.seed_depths:
            limit = self._limits.seed_depths[row.seed]
            first = reread.seeds.get(row.seed, limit)
        return first <= row.depth < limit

    def follow(self, url_id: UrlId, row: UrlRecord, result: Result | None, now: float) -> None:
        """Offer the links of a page; without a stored answer (None) the page is fetched again."""
        reread = self._state.reread
        if reread is None:
            return
        url = queued_from(url_id, host_of(row.url), row)
        reread.after = url_id
        reread.pages += 1
        has_new_links = self._has_new_links(row, reread)
        if has_new_links and row.links_found:
            self._state.totals.count_cut(MAX_DEPTH, -row.links_found)
        if result is None:
            if has_new_links:
                self._admission.requeue(url, now)
            return
        if reread.requisites and is_stored_page(row):
            self._requisites.follow_page(url, result, now)
        if not has_new_links:
            return
        host = self._ledger.host(url.host)
        if host is None or not host.soft_404 or host.soft_404 != result.text_hash:
            is_copy = bool(row.duplicate_of or row.near_duplicate_of)
            reread.new_links += len(self._links.follow(url, result, is_copy, now).new)

    def finish(self, now: float) -> None:
        """Record that all pages were read."""
        reread = self._state.reread
        self._state.reread = None
        if reread is not None:
            self._events.emit(
                EventName.LINKS_READ_AGAIN,
                now,
                reason=_which(reread),
                links=reread.pages,
                new_links=reread.new_links,
            )


def is_stored_page(row: UrlRecord) -> bool:
    """Return whether a row is of a page whose bytes are in the archive."""
    return row.kind is FetchKind.PAGE and row.outcome in _PAGES and row.archived is not None


def _which(reread: Reread) -> str:
    """Return for people which pages were read."""
    if reread.requisites:
        return "all pages, for what they need to be shown"
    return f"pages of depth {min([reread.from_depth, *reread.seeds.values()])} and more"
