"""What follows from an answer to a request for a page or a sitemap: its row, copies, evidence, links, an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.frontier.effects import Effects
from gossamer.core.ledger.catalog import change_of, finished_record
from gossamer.engine.admission.admission import NOTHING_OFFERED
from gossamer.engine.admission.link_following import LinkFollowing
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.copies import Copies
from gossamer.engine.results.evidence import NOTHING, Evidence
from gossamer.engine.results.requisites import RequisiteQueue
from gossamer.engine.results.spam_watch import SpamWatch
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.engine.rules import CrawlRules
from gossamer.model.records import Completed, FetchKind, FetchTask, Outcome, QueuedUrl, Result, UrlState

if TYPE_CHECKING:
    from gossamer.ports import QueueStore

MAX_USAGE_CHARS = 1000
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_WORKER_LOST = Outcome.WORKER_LOST
_PAGE = FetchKind.PAGE
_DONE = UrlState.DONE


class PageResults:
    def __init__(
        self,
        rules: CrawlRules,
        ledger: QueueStore,
        *,
        copies: Copies,
        links: LinkFollowing,
        evidence: Evidence,
        revisits: Revisits,
        spam: SpamWatch,
        requisites: RequisiteQueue,
        emitter: EventEmitter,
    ) -> None:
        self._rules = rules
        self._ledger = ledger
        self._copies = copies
        self._links = links
        self._evidence = evidence
        self._revisits = revisits
        self._spam = spam
        self._requisites = requisites if requisites.is_on else None
        self._events = emitter

    def record(self, task: FetchTask, url: QueuedUrl, result: Result, effects: Effects, now: float) -> Completed:
        """Record the end of a request for a page that is not tried again."""
        is_page = effects.is_page
        host = effects.hosts[0]
        if is_page:
            result = self._copies.marked(url, result)
        is_copy = bool(result.duplicate_of or result.near_duplicate_of)
        before = self._ledger.look_up(url.id) if url.etag or url.last_modified or self._rules.cooldown_s else None
        if effects.usage:
            stated = [*effects.usage, result.usage] if result.usage else effects.usage
            result = replace(result, usage="; ".join(stated)[:MAX_USAGE_CHARS])
        if is_page:
            result = self._spam.record_page(url, result, host, now, before)
        shown = self._evidence.record_page(url, result, host, now) if is_page else NOTHING
        row = finished_record(url, effects.state or _DONE, result, before)
        if shown.is_soft_404:
            row.is_soft_404 = True
        if self._revisits.is_on:
            self._revisits.begin(url, row, result, host, now)
        self._ledger.finish(url, row)
        if url.kind is _PAGE:
            change = change_of(url, result, before, is_soft_404=shown.is_soft_404)
            if change is not None:
                self._ledger.record_change(url.id, change)
        offered = NOTHING_OFFERED if shown.is_soft_404 else self._links.follow(url, result, is_copy, now)
        new = len(offered.new)
        self._evidence.record_novelty(url, result, host, new, now)
        if self._requisites is not None and is_page:
            self._requisites.follow_page(url, result, now)
        if shown.probe is not None:
            self._links.probe(url, shown.probe, now)
        self._events.page(task, url, result, new, now)
        if is_copy:
            self._copies.emit(url, result, now)
        return Completed(task, result, offered.is_final)

    def record_retry(self, task: FetchTask, url: QueuedUrl, result: Result, retry: QueuedUrl, now: float) -> None:
        """Record a request that failed and is tried again."""
        if result.outcome is not _WORKER_LOST and not url.known:
            self._ledger.requeue(retry)
        self._events.retry(task, url, result, retry.not_before - now, now)
