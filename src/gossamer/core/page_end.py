"""What follows for a host and its queue when the request for a page has ended: done, dead, or tried again."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.core.counts import Counts
from gossamer.core.frontier_io import Effects
from gossamer.core.host_table import HostTable
from gossamer.core.limits import FrontierLimits
from gossamer.core.retry import MAX_RETRY_AFTER_S, wait_before_retry
from gossamer.core.robots_requests import first_wait_s
from gossamer.core.url import origin_of
from gossamer.core.workbench import HostSlot
from gossamer.records import ANSWERED, OrderKind, Outcome, QueuedUrl, Result, UrlState

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK, _WORKER_LOST = Outcome.OK, Outcome.WORKER_LOST
_PAGE, _DONE = OrderKind.PAGE, UrlState.DONE


class PageEnd:
    """Decides what becomes of a URL whose request has ended."""

    def __init__(self, table: HostTable, limits: FrontierLimits, counts: Counts) -> None:
        self._table = table
        self._limits = limits
        self._counts = counts

    def apply(self, host: HostSlot, url: QueuedUrl, result: Result, effects: Effects, now: float) -> None:
        """Record the end of a page's request at its host; what follows is added to `effects`."""
        self._counts.end_page(host)
        host.out.discard(url.id)
        effects.url = url
        effects.retry = self._retry(host, url, result, now)
        if effects.retry is not None:
            effects.state = UrlState.QUEUED
            self._table.reopen(host.domain, now)
            return
        self._counts.enqueue(host.record, -1)
        effects.state = _DONE if result.outcome is _OK or result.outcome in ANSWERED else UrlState.DEAD
        effects.is_page = result.outcome is _OK and url.kind is _PAGE
        if effects.is_page:
            self._counts.add_page(host)
            effects.domain_pages = host.domain.pages
            if host.states_usage:
                robots = host.origins.get(origin_of(url.url))
                effects.usage = robots.rules.usage if robots is not None and robots.rules is not None else []
        if not effects.is_page or (self._table.is_crowded() and not host.domain.pages_in_flight):
            self._table.reopen(host.domain, now)

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
