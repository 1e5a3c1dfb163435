"""What pages need to be shown: which of it is queued, and what follows when it was fetched?

Requisites (`core/links/requisite`) have a way of their own into the queue, past the rules that are made for pages:
scope, depth, extensions, traps, quarantines, the first pass, spam and the limit of links per page do not concern them.
What does: hosts and patterns that the operator excluded, the limit per page, the limits on new hosts (per domain, and
per address of the page that names them). From there on they are orders like others: robots.txt, pace, retries and
redirects are the same. Nothing leads on from one but what a stylesheet names, and its redirect.

Each is fetched once per crawl. What is stored as a page already is not fetched again, and a queued requisite that
becomes a page meanwhile is done with it. Without the option nothing here is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.catalog import finished_record, queued_from
from gossamer.core.links.intake import Intake, Refused
from gossamer.core.links.requisite import (
    queued_requisite,
    redirected,
    requisite_id,
    requisite_to,
    room_for_each,
    room_of,
)
from gossamer.engine.admission.admission import Admission
from gossamer.engine.cluster.link_messages import RequisiteMessage, requisite_message, requisite_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.figures import Totals
from gossamer.model.records import Link, Order, Outcome, QueuedUrl, Result, UrlId, UrlRecord, UrlState
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger

MEMO_URLS = 100_000  # that were offered lately: most pages of a site need the same
AS_PAGE = "stored as a page"
_OK = Outcome.OK
_REDIRECT = Outcome.REDIRECT


class RequisiteQueue:
    """The way of requisites into the queue, and what follows from their results."""

    def __init__(
        self,
        rules: CrawlRules,
        frontier: Frontier,
        intake: Intake,
        ledger: Ledger,
        *,
        admission: Admission,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._limit = rules.max_requisites
        self._frontier = frontier
        self._intake = intake
        self._ledger = ledger
        self._admission = admission
        self._events = emitter
        self._state = state
        self._memo: set[UrlId] = set()

    @property
    def is_on(self) -> bool:
        """Whether requisites are fetched."""
        return self._limit > 0

    @property
    def _totals(self) -> Totals:
        return self._state.totals

    # -- what pages and stylesheets name ----------------------------------------------------------

    def follow_page(self, url: QueuedUrl, result: Result, now: float) -> None:
        """Queue what a page needs; what waits to be fetched as a requisite and is this page is done with it."""
        if result.archived is not None:
            self._settle(url, result, now)
        self._follow(url, result, self._limit, now)

    def _follow(self, url: QueuedUrl, result: Result, room: int, now: float) -> int:
        named = result.requisites
        if named is None:
            return 0
        links = named.links[:room]
        sheets = min(named.stylesheets, len(links))
        each = room_for_each(room, len(links), sheets)
        if named.found > len(links):
            self._totals.requisites_cut += named.found - len(links)
            self._events.requisites_cut(url, named.found - len(links), now)
        next_seq = self._intake.next_arrival
        return self.offer(
            [
                queued_requisite(link, url, each if place < sheets else 0, next_seq(), now)
                for place, link in enumerate(links)
                if link.id not in self._memo
            ],
            url.url,
            now,
        )

    def offer(self, urls: Sequence[QueuedUrl], found_on: str, now: float) -> int:
        """Queue requisites that are new; return how many."""
        own: list[QueuedUrl] = []
        for url in urls:
            self._remember(url.id)
            rule = self._intake.scope.requisite_refusal(url.url, url.host)
            if rule is not None:
                self._refuse(url, rule, now)
            elif self._admission.owns(_link(url)):
                if not self._is_stored_as_page(url):
                    own.append(url)
            else:
                self._admission.letter_to(url.url).requisites.append(requisite_message(url))
        for url, rule in self._admission.refused_strangers(own, found_on):
            own.remove(url)
            self._refuse(url, rule, now)
        return len(self._admission.admit_requisites(own, now)) if own else 0

    def receive(self, messages: Iterable[RequisiteMessage], now: float) -> None:
        """Queue requisites of pages of other nodes."""
        for message in messages:
            self.offer([requisite_of(message, self._intake.next_arrival(), now)], "", now)

    def _remember(self, key: UrlId) -> None:
        if len(self._memo) >= MEMO_URLS:
            self._memo.clear()
        self._memo.add(key)

    def _refuse(self, url: QueuedUrl, rule: str, now: float) -> None:
        self._totals.requisites_refused += 1
        detail = self._intake.scope.explain(rule, url.url)
        self._events.requisite_refused(Refused(_link(url), rule, detail), url.parent, now)

    # -- pages that are requisites ----------------------------------------------------------------

    def _is_stored_as_page(self, url: QueuedUrl) -> bool:
        row = self._ledger.look_up(requisite_id(url.id))
        return row is not None and row.archived is not None

    def _settle(self, url: QueuedUrl, result: Result, now: float) -> None:
        """Finish a requisite that was fetched as a page before its turn came."""
        key = requisite_id(url.id)
        row = self._ledger.look_up(key)
        if row is None or row.state is not UrlState.QUEUED:
            return
        queued = queued_from(key, url.host, row)
        if self._frontier.forget(url.host, [queued], now):
            self._ledger.finish(queued, _as_page(row, result))
            self._totals.count_requisite(0)
            record = self._frontier.record_of(url.host)
            if record is not None:
                self._ledger.put_host(record)

    # -- results ----------------------------------------------------------------------------------

    def record(self, order: Order, url: QueuedUrl, result: Result, state: UrlState | None, now: float) -> None:
        """Record the end of a request for a requisite that is not tried again."""
        self._ledger.finish(url, finished_record(url, state or UrlState.DONE, result, None))
        new = 0
        if result.outcome is _REDIRECT:
            new = self._follow_redirect(url, result.redirect_to, now)
        elif result.outcome is _OK:
            self._totals.count_requisite(result.content_bytes)
            new = self._follow(url, result, room_of(url), now)
        else:
            self._totals.requisites_failed += 1
        self._events.page(order, url, result, new, now)

    def _follow_redirect(self, url: QueuedUrl, target: str, now: float) -> int:
        link = requisite_to(target)
        queued = redirected(link, url, self._intake.next_arrival(), now)
        if link.id == url.id:  # only the spelling differs
            self._admission.requeue(queued, now)
            return 1
        return self.offer([queued], "", now)


def _link(url: QueuedUrl) -> Link:
    return Link(url.url, url.id, url.host)


def _as_page(row: UrlRecord, result: Result) -> UrlRecord:
    """Return the row of a requisite that is stored as a page: only the page's row refers to the record."""
    row.state = UrlState.DONE
    row.outcome = _OK.value
    row.error = AS_PAGE
    row.status = result.status
    row.content_type = result.content_type
    row.fetched_at = result.finished_at
    return row
