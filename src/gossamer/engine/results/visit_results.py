"""What follows from another visit of a known URL: its row, links, the next visit, an event.

A page that is the same keeps its row: only the time and the number of visits change, and it still refers to the stored
copy, so that every reader goes on seeing a page. A visit without an answer changes nothing but its next time. The
counts of pages, copies and dead letters follow the rows. What pages show about traps is not counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.frontier.effects import Denied, Effects
from gossamer.core.ledger.catalog import finished_record, times_of
from gossamer.core.revisit.page import Visit, VisitFound
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.admission import NOTHING_OFFERED
from gossamer.engine.admission.link_following import LinkFollowing
from gossamer.engine.event_emitter import EventEmitter, VisitNote
from gossamer.engine.results.copies import Copies
from gossamer.engine.results.requisites import RequisiteQueue
from gossamer.engine.revisit.revisiting import Revisits, is_source
from gossamer.model.records import (
    ChangeKind,
    Completed,
    FetchKind,
    FetchTask,
    HostRecord,
    Known,
    Outcome,
    QueuedUrl,
    Result,
    UrlRecord,
    UrlState,
)
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger

_OK = Outcome.OK
_NOT_MODIFIED = Outcome.NOT_MODIFIED
_REDIRECT = Outcome.REDIRECT
_PAGE = FetchKind.PAGE
_ANSWERS = frozenset({Outcome.OTHER_SUCCESS, Outcome.LINKS_ONLY, Outcome.TYPE_REFUSED})


class VisitResults:
    """Records the results of requests for known URLs."""

    def __init__(
        self,
        ledger: Ledger,
        revisits: Revisits,
        *,
        copies: Copies,
        links: LinkFollowing,
        requisites: RequisiteQueue,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._ledger = ledger
        self._revisits = revisits
        self._copies = copies
        self._links = links
        self._requisites = requisites
        self._events = emitter
        self._state = state

    def record(self, task: FetchTask, url: QueuedUrl, result: Result, effects: Effects, now: float) -> Completed:
        before = self._ledger.look_up(url.id)
        if before is None or before.revisit is None:
            return Completed(task, result)  # it was removed meanwhile
        host = effects.hosts[0]
        is_soft_404 = effects.is_page and bool(host.soft_404) and host.soft_404 == result.text_hash
        found = found_again(before, result, is_soft_404=is_soft_404)
        if effects.is_page:
            self._uncount(before, url)
            if result.content_hash != before.content_hash:
                result = self._copies.marked(url, result)
        elif effects.is_lost_page:
            self._uncount(before, url)
            self._lose_page(host, effects)
        is_copy = bool(result.duplicate_of or result.near_duplicate_of)
        row = self._row(url, result, effects, before, found)
        if is_soft_404:
            row.is_soft_404 = True
        if effects.is_page:
            self._count_page(url, row, result, effects)
        self._state.totals.dead += (row.state is UrlState.DEAD) - (before.state is UrlState.DEAD)
        offered = NOTHING_OFFERED
        if found is not VisitFound.FAILED and not is_soft_404 and _leads_on(url, result):
            offered = self._links.follow(url, result, is_copy, now)
        new = len(offered.new)
        if self._requisites.is_on and effects.is_page:  # the page may need more by now; what it has is not asked again
            self._requisites.follow_page(url, result, now)
        if found in (VisitFound.CHANGED, VisitFound.SAME) and is_source(row):
            found = VisitFound.CHANGED if new else VisitFound.SAME  # what counts is whether it names anything new
        self._state.totals.count_visit(found.value, is_not_modified=result.outcome is _NOT_MODIFIED)
        visit = Visit(now, found, brought_links=bool(new), host_rank=host.rank)
        self._revisits.record(url, row, visit, result, now)
        self._ledger.amend(url.id, row)
        change = self._change(url, row, found, is_lost=effects.is_lost_page)
        if change is not None:
            self._ledger.record_change(url.id, change)
        due_at = row.revisit.due_at if row.revisit is not None else 0
        self._events.page(task, url, result, new, now, visit=VisitNote(found.word, due_at - now if due_at else 0.0))
        if is_copy:
            self._copies.emit(url, result, now)
        return Completed(task, result, offered.is_final)

    def record_denied(self, denied: Denied, now: float) -> None:
        """Record that robots.txt forbids a known URL by now: its copy stays, and it is tried again later."""
        url = denied.url
        self._without_request(url, VisitFound.MISSING, now)
        self._state.totals.robots_disallowed += 1
        self._events.denied(denied, now)

    def postpone(self, url: QueuedUrl, now: float) -> None:
        """Record that the robots.txt of a known URL cannot be reached."""
        self._without_request(url, VisitFound.FAILED, now)

    def _without_request(self, url: QueuedUrl, found: VisitFound, now: float) -> None:
        row = self._ledger.look_up(url.id)
        if row is not None and row.revisit is not None:
            self._revisits.record(url, row, Visit(now, found), Result(0, Outcome.ROBOTS_DENIED), now)
            self._ledger.amend(url.id, row)

    def _row(self, url: QueuedUrl, result: Result, effects: Effects, before: UrlRecord, found: VisitFound) -> UrlRecord:
        if found is VisitFound.FAILED:
            return replace(before)
        is_same = result.outcome is _NOT_MODIFIED or (
            effects.is_page and result.content_hash == before.content_hash and url.known is Known.PAGE
        )
        if is_same:
            row = replace(before, fetched_at=result.finished_at, visits=before.visits + 1, times=times_of(result))
            if result.outcome is not _NOT_MODIFIED:  # that answer need not have them
                row.etag = result.etag
                row.last_modified = result.last_modified
            return row
        row = finished_record(url, effects.state or UrlState.DONE, result, before)
        row.not_before = 0.0
        row.lastmod = before.lastmod
        row.revisit = before.revisit
        return row

    def _uncount(self, before: UrlRecord, url: QueuedUrl) -> None:
        if url.known is not Known.PAGE:
            return
        totals = self._state.totals
        totals.uncount_page(before.content_type, before.content_bytes, before.words)
        totals.duplicates -= bool(before.duplicate_of)
        totals.near_duplicates -= bool(before.near_duplicate_of and not before.duplicate_of)

    def _count_page(self, url: QueuedUrl, row: UrlRecord, result: Result, effects: Effects) -> None:
        totals = self._state.totals
        totals.count_page(result)
        if row.duplicate_of and not result.duplicate_of:  # it is the same, and so is what it repeats
            totals.duplicates += 1
        elif row.near_duplicate_of and not (result.duplicate_of or result.near_duplicate_of):
            totals.near_duplicates += 1
        if url.known is not Known.PAGE:
            totals.visits_gained += 1
            totals.unique_hosts += effects.hosts[0].pages == 1
            totals.unique_domains += effects.domain_pages == 1

    def _lose_page(self, host: HostRecord, effects: Effects) -> None:
        totals = self._state.totals
        totals.visits_gained -= 1
        totals.unique_hosts -= host.pages == 0
        totals.unique_domains -= effects.domain_pages == 0

    @staticmethod
    def _change(url: QueuedUrl, row: UrlRecord, found: VisitFound, *, is_lost: bool) -> ChangeKind | None:
        """Return what a visit means to an indexer; None if it shows nothing about the page."""
        if url.kind is not _PAGE or found is VisitFound.FAILED:
            return None
        if is_lost or found in (VisitFound.MISSING, VisitFound.GONE):
            return ChangeKind.GONE
        if row.outcome != _OK.value:
            return None
        if found is VisitFound.SAME:
            return ChangeKind.UNCHANGED
        return ChangeKind.DUPLICATE if row.duplicate_of or row.near_duplicate_of else ChangeKind.UPSERT


def _leads_on(url: QueuedUrl, result: Result) -> bool:
    """Return whether an answer leads to other URLs; a redirect to another spelling of itself does not."""
    return result.outcome is not _REDIRECT or link_to(result.redirect_to).id != url.id


def found_again(before: UrlRecord, result: Result, *, is_soft_404: bool) -> VisitFound:
    outcome = result.outcome
    if outcome is _NOT_MODIFIED:
        return VisitFound.SAME
    if outcome is Outcome.CLIENT_ERROR or is_soft_404:
        return VisitFound.GONE if result.status == 410 else VisitFound.MISSING
    if outcome is _REDIRECT:
        return VisitFound.SAME if result.redirect_to == before.redirect_to else VisitFound.CHANGED
    if outcome is not _OK and outcome not in _ANSWERS:
        return VisitFound.FAILED
    if before.outcome not in (_OK.value, _NOT_MODIFIED.value, *_ANSWERS):
        return VisitFound.CHANGED
    is_same_content = result.content_hash == before.content_hash
    if is_same_content and (result.content_hash or not result.sketch):  # sitemaps have a sketch only
        return VisitFound.SAME
    stored = before.revisit.sketch if before.revisit is not None else b""
    if not stored or not result.sketch:
        return VisitFound.CHANGED  # only the contents are known
    from gossamer.core.revisit.text_change import has_changed

    return VisitFound.CHANGED if has_changed(stored, result.sketch) else VisitFound.SAME
