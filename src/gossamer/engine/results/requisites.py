"""What pages need to be shown: which of it is queued, and what follows when it was fetched?

Requisites (`core/links/requisite`) have a way of their own into the queue, past the rules that are made for pages:
scope, depth, extensions, traps, quarantines, the first pass, spam and the limit of links per page do not apply to them.
What applies: hosts and patterns that the operator excluded, the limit per page, the limits on new hosts (per domain,
and per address of the page that names them). From there on they are tasks like others: robots.txt, pace, retries and
redirects are the same. Nothing leads on from one but what a stylesheet names, and its redirect.

Each is fetched once per crawl. What is stored as a page already is not fetched again, and a queued requisite that
becomes a page meanwhile is done with it. Without the option nothing here is called.

What a page of another domain names is requested without credentials, and the default excludes apply to it. If the host
gives nothing away without them, a page of its own would find its requisites fetched in vain: at hosts that requests
identify themselves to, what was foreign is fetched once more as soon as a page of the same domain names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.catalog import finished_record, queued_from
from gossamer.core.links.intake import Intake, Refused
from gossamer.core.links.requisite import (
    is_foreign,
    is_foreign_to,
    queued_requisite,
    redirected,
    requisite_id,
    requisite_to,
    room_for_each,
    room_of,
)
from gossamer.core.url.forms import origin_of
from gossamer.core.url.host_patterns import names_host
from gossamer.engine.admission.admission import Admission
from gossamer.engine.cluster.link_messages import RequisiteMessage, requisite_message, requisite_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.figures import Totals
from gossamer.model.records import FetchTask, Link, Outcome, QueuedUrl, Result, UrlId, UrlRecord, UrlState
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger

MEMO_URLS = 100_000  # that were offered lately: most pages of a site need the same
AS_PAGE = "stored as a page"
_OK = Outcome.OK
_REDIRECT = Outcome.REDIRECT
_BY_CREDENTIALS = (_OK, _REDIRECT, Outcome.CLIENT_ERROR)  # may be another one with them


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
        self._identified = rules.identified
        self._frontier = frontier
        self._intake = intake
        self._ledger = ledger
        self._admission = admission
        self._events = emitter
        self._state = state
        self._memo: set[UrlId] = set()  # a foreign one under the id that it has as a page
        self._named_again: dict[
            UrlId, QueuedUrl
        ] = {}  # queued as foreign, and named by a page of their own domain since

    @property
    def is_on(self) -> bool:
        return self._limit > 0

    @property
    def _totals(self) -> Totals:
        return self._state.totals

    # -- what pages and stylesheets name ----------------------------------------------------------

    def follow_page(self, url: QueuedUrl, result: Result, now: float) -> None:
        """Queue what a page needs; what waits to be fetched as a requisite and is this page is done with it."""
        if result.archived is not None:
            self._finish_queued(url, result, now)
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
                queued_requisite(link, url, each if index < sheets else 0, next_seq(), now)
                for index, link in enumerate(links)
                if _memo_key(link.id, is_foreign_to(link, url)) not in self._memo
            ],
            url.url,
            now,
        )

    def offer(self, urls: Sequence[QueuedUrl], found_on: str, now: float) -> int:
        """Queue requisites that are new; return how many."""
        own: list[QueuedUrl] = []
        for url in urls:
            self._remember(_memo_key(url.id, is_foreign(url)))
            rule = self._intake.scope.requisite_refusal(url.url, url.host, is_foreign=is_foreign(url))
            if rule is not None:
                self._refuse(url, rule, now)
            elif self._admission.owns(_link(url)):
                if not self._is_stored_as_page(url):
                    own.append(url)
            else:
                self._admission.message_to(url.url).requisites.append(requisite_message(url))
        for url, rule in self._admission.refused_strangers(own, found_on):
            own.remove(url)
            self._refuse(url, rule, now)
        if not own:
            return 0
        new = {url.id for url in self._admission.admit_requisites(own, now)}
        again = [url for url in own if url.id not in new and self._fetch_again(url, now)] if self._identified else ()
        return len(new) + len(again)

    def _fetch_again(self, url: QueuedUrl, now: float) -> bool:
        """Queue with credentials what was requested without, if that can have made a difference; return whether."""
        authority = origin_of(url.url).partition("://")[2]
        if is_foreign(url) or not any(names_host(each, url.host, authority) for each in self._identified):
            return False
        row = self._ledger.look_up(url.id)
        if row is None or not is_foreign(row):
            return False
        if row.state is UrlState.QUEUED:
            if len(self._named_again) < MEMO_URLS:
                self._named_again[url.id] = url
            return False
        if row.outcome not in _BY_CREDENTIALS:
            return False
        if row.outcome != _REDIRECT:
            self._totals.uncount_requisite(row.content_bytes, was_stored=row.outcome == _OK)
        self._admission.requeue(url, now)
        return True

    def receive(self, messages: Iterable[RequisiteMessage], now: float) -> None:
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

    def _finish_queued(self, url: QueuedUrl, result: Result, now: float) -> None:
        """Finish a requisite that was fetched as a page before its turn came."""
        key = requisite_id(url.id)
        row = self._ledger.look_up(key)
        if row is None or row.state is not UrlState.QUEUED:
            return
        queued = queued_from(key, url.host, row)
        if self._frontier.forget(url.host, [queued], now):
            self._ledger.finish(queued, _as_page(row, result))
            self._named_again.pop(key, None)
            self._totals.count_requisite(0)
            record = self._frontier.record_of(url.host)
            if record is not None:
                self._ledger.put_host(record)

    # -- results ----------------------------------------------------------------------------------

    def record(self, task: FetchTask, url: QueuedUrl, result: Result, state: UrlState | None, now: float) -> None:
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
        again = self._named_again.pop(url.id, None)
        if again is not None and is_foreign(url):
            new += self._fetch_again(again, now)
        self._events.page(task, url, result, new, now)

    def _follow_redirect(self, url: QueuedUrl, target: str, now: float) -> int:
        link = requisite_to(target)
        queued = redirected(link, url, self._intake.next_arrival(), now)
        if link.id == url.id:  # only the spelling differs
            self._admission.requeue(queued, now)
            return 1
        return self.offer([queued], "", now)


def _link(url: QueuedUrl) -> Link:
    return Link(url.url, url.id, url.host)


def _memo_key(key: UrlId, foreign: bool) -> UrlId:
    return requisite_id(key) if foreign else key


def _as_page(row: UrlRecord, result: Result) -> UrlRecord:
    """Return the row of a requisite that is stored as a page: only the page's row refers to the record."""
    row.state = UrlState.DONE
    row.outcome = _OK.value
    row.error = AS_PAGE
    row.status = result.status
    row.content_type = result.content_type
    row.fetched_at = result.finished_at
    return row
