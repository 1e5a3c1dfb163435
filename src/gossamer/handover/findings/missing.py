"""What is not in a crawl, and why: URL, outcome, reason, referrer.

Rows of the catalog have what robots.txt forbids, dead letters (evicted and quarantined URLs among them) and what was
read but not stored; tables of the ledger have what is held back; events have links that a rule refused, and the pages
with links beyond the limit per page, which are read for them, as are pages at the depth limit. A refused URL is listed
once, and not if it was queued by another link. What is queued is listed only if it is asked for. Counts of rows agree
with the totals of the crawl. Memory does not grow with the crawl: ids of refused URLs wait on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.ledger.tables import BACKLOG, HELD, HELD_COUNTS, INTRODUCED, SEEDS, held_key
from gossamer.core.links.requisite import requisite_to
from gossamer.core.politeness.address_crowds import CROWDED
from gossamer.core.url.forms import canonical, host_of, links_from
from gossamer.engine.admission.introduced_links import links_of
from gossamer.engine.admission.link_backlog import LINK_BACKLOG
from gossamer.handover.export.stored import ExportedPages
from gossamer.handover.findings.link_table import SeenIds
from gossamer.model.events import REQUISITE, Event, EventName
from gossamer.model.figures import MAX_DEPTH, NOFOLLOW
from gossamer.model.records import ANSWERED, FetchKind, Link, Outcome, Truncation, UrlId, UrlRecord, UrlState
from gossamer.model.state import HoldRule
from gossamer.parse.dispatch import parse_exchange
from gossamer.parse.html.hrefs import max_examined
from gossamer.reading.requests.runs import Committed, read_all_runs
from gossamer.reading.view import CrawlView
from gossamer.reading.why.source import joined_scope
from gossamer.settings.identity import robots_token_of
from gossamer.settings.stores import has_archive

HELD_BACK = "held"
HELD_DROPPED = "held_dropped"  # links beyond what a host may have held back: their URLs are not stored
EXCLUDED = "excluded"
REQUISITE_REFUSED = "requisite_refused"  # what a page needs, not queued by a rule
REQUISITES_CUT = "requisites_cut"  # what a page needs beyond --max-requisites-per-page
TOO_DEEP = "too_deep"  # links of pages at --max-depth, read in the stored pages
NOFOLLOW_PAGE = "nofollow"  # links of a page that asks with nofollow not to follow them
TRUNCATED = "truncated"  # the rest of a page that was not received, or not kept
LINKS_CUT = "links_cut"  # links beyond --max-links-per-page: their URLs are read in the stored page
QUEUED = "queued"  # not fetched yet: listed only if it is asked for
MAX_PAGES_READ = 1000  # for links that are too deep, unless these are asked for
_NOT_STORED = frozenset({Outcome.LINKS_ONLY.value, Outcome.TYPE_REFUSED.value})
OUTCOMES = (
    *(outcome.value for outcome in Outcome if outcome not in ANSWERED),
    *sorted(_NOT_STORED),
    HELD_BACK,
    HELD_DROPPED,
    EXCLUDED,
    LINKS_CUT,
    TOO_DEEP,
    NOFOLLOW_PAGE,
    TRUNCATED,
    REQUISITE_REFUSED,
    REQUISITES_CUT,
    QUEUED,
)
_FROM_EVENTS = (EXCLUDED, LINKS_CUT, REQUISITE_REFUSED, REQUISITES_CUT)
_HOLD_RULES = frozenset(rule.value for rule in HoldRule)
_UNREAD = "the page cannot be read"
_TRUNCATED_BY = {Truncation.LENGTH.value: "max_bytes"}


class Missing(Struct, frozen=True, gc=False):
    """A URL that is not there; or some that are known by their number only."""

    url: str  # empty: `count` URLs that are not stored
    outcome: str
    status: int
    rule: str  # of what is held back or excluded: its name
    reason: str
    referrer: str  # the page, redirect or sitemap that it was found on, if that is known
    host: str
    count: int = 1
    kind: str = ""  # requisite: what a page needs to be shown


class MissingKind(NamedTuple):
    """What rows are counted by."""

    outcome: str
    status: int
    rule: str
    kind: str


class _Refusal(Struct, frozen=True, gc=False):
    """The part of an event that is needed."""

    url: str
    host: str
    reason: str
    rule: str = ""
    url_id: str = ""


_decode_refusal = msgspec.json.Decoder(_Refusal).decode


class MissingUrls:
    """What is not in a crawl that is open for reading. `refused_links` is known when all was read."""

    def __init__(self, crawl: CrawlView, outcomes: Collection[str] = (), hosts: Collection[str] = ()) -> None:
        self._crawl = crawl
        self._reads_all = TOO_DEEP in outcomes
        self._outcomes = frozenset(outcomes) or frozenset(OUTCOMES) - {QUEUED}
        self._hosts = frozenset(hosts)
        self._url_of = lru_cache(maxsize=10_000)(self._look_up_url)
        self.refused_links = 0  # events: a URL may be refused often

    def read(self) -> Iterator[Missing]:
        """Yield what is not there."""
        for found in self._all():
            if found.outcome in self._outcomes and (not self._hosts or found.host in self._hosts):
                yield found

    @property
    def reads_events(self) -> bool:
        """Whether what is asked for is in the events."""
        return not self._outcomes.isdisjoint(_FROM_EVENTS)

    def _all(self) -> Iterator[Missing]:
        for _, row in self._crawl.ledger.urls():
            if row.state is UrlState.QUEUED:
                if QUEUED in self._outcomes:
                    yield replace(self._of_row(row), outcome=QUEUED, status=0)
            elif _is_missing(row):
                yield self._of_row(row)
            elif row.state is UrlState.DONE:
                yield from self._left_out_of(row)
        with SeenIds() as refused:
            if TOO_DEEP in self._outcomes:
                yield from self._too_deep(refused)
            if self.reads_events:
                yield from self._from_events(refused)
        if HELD_BACK in self._outcomes:
            yield from self._held()
        if HELD_DROPPED in self._outcomes:
            for tally in self._crawl.ledger.records(HELD_COUNTS):
                if tally.dropped:
                    yield Missing(
                        "", HELD_DROPPED, 0, "", "more than a host may have held", "", tally.host, tally.dropped
                    )

    def _of_row(self, row: UrlRecord) -> Missing:
        reason = row.error or (row.content_type or "a type that is not stored" if row.outcome in _NOT_STORED else "")
        kind = REQUISITE if row.kind is FetchKind.REQUISITE else ""
        page = self._referrer(row.parent)
        return Missing(row.url, row.outcome, row.status, "", reason, page, host_of(row.url), kind=kind)

    def _left_out_of(self, row: UrlRecord) -> Iterator[Missing]:
        """Yield what of a page was not received, and the links that it asks not to follow."""
        host = host_of(row.url)
        if row.truncated:
            rule = _TRUNCATED_BY.get(row.truncated, row.truncated)
            why = "the rest of the page was not read"
            yield Missing(row.url, TRUNCATED, row.status, rule, why, self._referrer(row.parent), host)
        if row.nofollow_links and "nofollow" in row.directives:
            why = "the page asks not to follow its links"
            yield Missing("", NOFOLLOW_PAGE, 0, NOFOLLOW, why, row.url, host, row.nofollow_links)

    def _too_deep(self, refused: SeenIds) -> Iterator[Missing]:
        """Yield the links of pages at the depth limit that are still unknown, each once; if not read, their number."""
        depths = {seed.number: seed.depth for seed in self._crawl.ledger.records(SEEDS) if seed.depth >= 0}
        max_depth = self._crawl.settings.max_depth
        scope = joined_scope(self._crawl)
        pages = 0
        with SeenIds() as seen:
            for key, row in self._crawl.ledger.urls():
                is_read = row.state is UrlState.DONE and row.kind is not FetchKind.REQUISITE and row.links_found
                if not is_read or row.depth < depths.get(row.seed, max_depth):
                    continue
                host = host_of(row.url)
                if self._hosts and host not in self._hosts:
                    continue
                pages += 1
                found = self._links_of(key) if pages <= MAX_PAGES_READ or self._reads_all else None
                if found is None:
                    is_beyond = pages > MAX_PAGES_READ and not self._reads_all
                    why = f"known ones among them; --outcome {TOO_DEEP} reads the page" if is_beyond else _UNREAD
                    yield Missing("", TOO_DEEP, 0, MAX_DEPTH, why, row.url, host, row.links_found)
                    continue
                for link in found.values():
                    if link.id in seen or self._crawl.ledger.look_up(link.id) is not None or self._is_held(link.id):
                        continue
                    seen.put(link.id)
                    rule = scope.refusal(link.url, link.host)
                    if rule is not None:
                        refused.put(link.id)
                        detail = scope.explain(rule, link.url)
                        yield Missing(link.url, EXCLUDED, 0, rule, detail, row.url, link.host)
                    else:
                        why = "its page is at the depth limit"
                        yield Missing(link.url, TOO_DEEP, 0, MAX_DEPTH, why, row.url, link.host)

    def _held(self) -> Iterator[Missing]:
        ledger = self._crawl.ledger
        for held in ledger.records(HELD):
            yield self._waiting(held.url, held.rule.value, self._referrer(held.parent))
        for batch in ledger.records(BACKLOG):
            for link in batch.links:
                yield self._waiting(link.url, LINK_BACKLOG, batch.found_on)
        for introduced in ledger.records(INTRODUCED):
            for link in links_of(introduced):
                yield self._waiting(link.url, CROWDED, introduced.found_on)

    def _waiting(self, url: str, rule: str, referrer: str) -> Missing:
        return Missing(url, HELD_BACK, 0, rule, "", referrer, host_of(url))

    # -- events -----------------------------------------------------------------------------------

    def _from_events(self, seen: SeenIds) -> Iterator[Missing]:
        """Yield refused links as they come; pages with too many links are visited again, and the last visit counts."""
        refused: list[_Refusal] = []
        with SeenIds() as cut, SeenIds() as needed:
            for _, event in read_all_runs(
                self._crawl.folders.events,
                on_refusal=_into(refused),
                committed=Committed(self._crawl.state.event_ends),
            ):
                if event.event is EventName.LINKS_CAPPED:
                    cut.put(bytes.fromhex(event.parent), event.links)
                elif event.kind == REQUISITE or event.event is EventName.REQUISITES_CUT:
                    yield from self._of_requisite(event, needed)
                yield from self._excluded(refused, seen)
            yield from self._excluded(refused, seen)
            for parent, links in cut.items():
                yield from self._cut(parent, links, seen)

    def _of_requisite(self, event: Event, seen: SeenIds) -> Iterator[Missing]:
        """Yield what a page needs and a rule or the limit left out; each URL, and each page, once."""
        page = self._referrer(bytes.fromhex(event.parent)) if event.parent else ""
        if event.event is EventName.REQUISITES_CUT and (key := bytes.fromhex(event.parent)) not in seen:
            seen.put(key)
            why = "it needs more to be shown"
            yield Missing("", REQUISITES_CUT, 0, event.reason, why, page, event.host, event.links, REQUISITE)
        elif event.event is EventName.REQUISITE_REFUSED and (key := requisite_to(event.url).id) not in seen:
            seen.put(key)
            if self._crawl.ledger.look_up(key) is None:
                yield Missing(
                    event.url, REQUISITE_REFUSED, 0, event.reason, event.rule, page, event.host, kind=REQUISITE
                )

    def _cut(self, parent: UrlId, links: int, refused: SeenIds) -> Iterator[Missing]:
        """Yield the links of a page that were cut off and are still unknown; if it cannot be read, their number."""
        page = self._referrer(parent)
        rule = "max_links_per_page"
        found = self._links_of(parent) if page else None
        if found is None:
            yield Missing("", LINKS_CUT, 0, rule, _UNREAD, page, host_of(page) if page else "", links)
            return
        for link in found.values():
            if self._crawl.ledger.look_up(link.id) is None and link.id not in refused and not self._is_held(link.id):
                yield Missing(link.url, LINKS_CUT, 0, rule, "the page has more new links", page, link.host)

    def _links_of(self, key: UrlId) -> dict[UrlId, Link] | None:
        """Return the links of a stored page, as a crawl reads them; None if it cannot be read."""
        row = self._crawl.ledger.look_up(key)
        if row is None or not has_archive(self._crawl.settings.store):
            return None
        pages = ExportedPages(self._crawl)
        page = pages.at(key, row)
        if page is None:
            return None
        exchange = pages.exchange(page)
        if not exchange.is_decoded:
            return None
        settings = self._crawl.settings
        document = parse_exchange(
            exchange, want_text=False, want_pdf_links=settings.parse_pdf_links, token=robots_token_of(settings)
        )
        base = (canonical(document.base, row.url) if document.base else None) or row.url
        return {link.id: link for link in links_from(base, document.hrefs[: max_examined(base)])}

    def _is_held(self, key: UrlId) -> bool:
        return any(self._crawl.ledger.record(HELD, held_key(key, rule)) is not None for rule in HoldRule)

    def _excluded(self, refused: list[_Refusal], seen: SeenIds) -> Iterator[Missing]:
        for each in refused:
            if each.reason in _HOLD_RULES:  # stored as long as it is held: see `_held`
                continue
            self.refused_links += 1
            key = bytes.fromhex(each.url_id) if each.url_id else self._crawl.ledger.url_id(each.url)
            if key in seen:
                continue
            seen.put(key)
            if self._crawl.ledger.look_up(key) is None:
                url = each.url + "…" if each.url_id else each.url
                yield Missing(url, EXCLUDED, 0, each.reason, each.rule, "", each.host)
        refused.clear()

    def _referrer(self, key: UrlId) -> str:
        return self._url_of(key) if key else ""

    def _look_up_url(self, key: UrlId) -> str:
        row = self._crawl.ledger.look_up(key)
        return row.url if row is not None else ""


def _is_missing(row: UrlRecord) -> bool:
    if row.state is UrlState.DEAD:
        return True
    return row.state is UrlState.DONE and (row.outcome == Outcome.ROBOTS_DENIED or row.outcome in _NOT_STORED)


def _into(refused: list[_Refusal]) -> Callable[[bytes], None]:
    """Return a function that adds the event of a line, unless a kill has torn it."""

    def add(line: bytes) -> None:
        try:
            refused.append(_decode_refusal(line))
        except msgspec.DecodeError:
            return

    return add
