"""What follows for a host and its queue when the request for a page has ended: done, dead, or tried again."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Effects
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import HostSlot
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S, wait_before_retry
from gossamer.core.robots.requests import first_wait_s
from gossamer.core.url.forms import origin_of
from gossamer.model.records import ANSWERED, Known, OrderKind, Outcome, QueuedUrl, Result, UrlState

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK = Outcome.OK
_WORKER_LOST = Outcome.WORKER_LOST
_PAGE = OrderKind.PAGE
_REQUISITE = OrderKind.REQUISITE
_DONE = UrlState.DONE
_KNOWN_PAGE = Known.PAGE
_STILL_A_PAGE = frozenset({Outcome.OK, Outcome.NOT_MODIFIED})


def is_lost(result: Result) -> bool:
    """Return whether an answer shows that a known page is none any more: gone, moved, or of another kind."""
    outcome = result.outcome
    return outcome is Outcome.CLIENT_ERROR or (outcome in ANSWERED and outcome not in _STILL_A_PAGE)


class PageEnd:
    """Decides what becomes of a URL whose request has ended."""

    def __init__(self, table: HostTable, limits: FrontierLimits, counts: Counts) -> None:
        self._table = table
        self._limits = limits
        self._counts = counts

    def apply(self, host: HostSlot, url: QueuedUrl, result: Result, effects: Effects, now: float) -> None:
        """Record the end of a page's request at its host; what follows is added to `effects`."""
        if url.known:
            self._end_visit(host, url, result, effects)
            return
        if url.kind is not _REQUISITE:
            self._counts.end_page(host)
        host.out.discard(url.id)
        effects.url = url
        effects.retry = self._retry(host, url, result, now)
        if effects.retry is not None:
            effects.state = UrlState.QUEUED
            self._table.reopen(host.domain, now)
            return
        self._counts.enqueue(host.record, -1)
        if url.kind is _REQUISITE:
            self._counts.enqueue_requisites(host.record, -1)
        effects.state = _DONE if result.outcome is _OK or result.outcome in ANSWERED else UrlState.DEAD
        effects.is_page = result.outcome is _OK and url.kind is _PAGE
        if effects.is_page:
            self._counts.add_page(host)
            effects.domain_pages = host.domain.pages
            self._add_usage(host, url, effects)
        if not effects.is_page or (self._table.is_crowded() and not host.domain.pages_in_flight):
            self._table.reopen(host.domain, now)

    @staticmethod
    def _add_usage(host: HostSlot, url: QueuedUrl, effects: Effects) -> None:
        if host.states_usage:
            robots = host.origins.get(origin_of(url.url))
            effects.usage = robots.rules.usage if robots is not None and robots.rules is not None else []

    def _end_visit(self, host: HostSlot, url: QueuedUrl, result: Result, effects: Effects) -> None:
        """Record the end of another visit. It is not retried: the next one follows soon if there was no answer."""
        host.out.discard(url.id)
        effects.url = url
        outcome = result.outcome
        if outcome is _WORKER_LOST:
            host.push(url)
            effects.retry = url
            effects.state = UrlState.QUEUED
            return
        has_answered = outcome is _OK or outcome in ANSWERED
        effects.state = _DONE if has_answered else UrlState.DEAD
        effects.is_page = outcome is _OK and url.kind is _PAGE
        if effects.is_page and url.known is not _KNOWN_PAGE:
            self._counts.change_pages(host, 1)
        elif url.known is _KNOWN_PAGE and is_lost(result):
            self._counts.change_pages(host, -1)
            effects.is_lost_page = True
        effects.domain_pages = host.domain.pages
        if effects.is_page:
            self._add_usage(host, url, effects)

    def _retry(self, host: HostSlot, url: QueuedUrl, result: Result, now: float) -> QueuedUrl | None:
        """Put a URL back into its host's queue if it is tried again; return it as it is queued now."""
        if result.outcome is _OK or result.outcome in ANSWERED:  # an enum's member is hashed by a call
            return None
        if result.outcome is _WORKER_LOST:
            if host.is_within(url):
                host.push(url)
            return url
        wait_s = wait_before_retry(result.outcome, url.attempt + 1, first_wait_s(host, self._limits))
        if wait_s is None:
            return None
        not_before = now + max(wait_s, min(result.retry_after_s, MAX_RETRY_AFTER_S))
        retry = replace(url, attempt=url.attempt + 1, not_before=not_before)
        host.defer(retry)
        return retry
