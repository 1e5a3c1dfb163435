"""What follows when a request has ended: counts and pace of its host, and what becomes of its URL."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Effects
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.outstanding import Again, OutstandingTask
from gossamer.core.frontier.workbench import HostSlot
from gossamer.core.politeness import pace
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S, UNREACHED, wait_before_retry
from gossamer.core.robots.requests import first_wait_s
from gossamer.core.url.forms import origin_of
from gossamer.model.figures import is_error
from gossamer.model.records import ANSWERED, FetchKind, HostRecord, Known, Outcome, QueuedUrl, Result, UrlState

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK = Outcome.OK
_WORKER_LOST = Outcome.WORKER_LOST
_PAGE = FetchKind.PAGE
_REQUISITE = FetchKind.REQUISITE
_DONE = UrlState.DONE
_KNOWN_PAGE = Known.PAGE
_STILL_A_PAGE = frozenset({Outcome.OK, Outcome.NOT_MODIFIED})


def is_lost(result: Result) -> bool:
    """Return whether an answer shows that a known page is none any more: gone, moved, or of another kind."""
    outcome = result.outcome
    return outcome is Outcome.CLIENT_ERROR or (outcome in ANSWERED and outcome not in _STILL_A_PAGE)


def has_answered(record: HostRecord) -> bool:
    """Return whether a host has ever answered a request; of a host of an earlier version, by its latency."""
    return record.has_answered or record.latency_s > 0


def count_fetch(
    out: OutstandingTask, result: Result, now: float, *, again: Again = Again.NO, lacks_https: bool = False
) -> None:
    """Count a fetch at its host. That a bare domain `lacks_https` is no failure."""
    record = out.host.record
    record.has_answered |= result.status > 0
    if result.outcome is not _WORKER_LOST:  # a task that was returned to the queue has not ended
        record.fetches += 1
        record.errors += not lacks_https and is_error(result.outcome, is_robots=out.robots is not None)
    record.last_fetch_at = now
    if result.status >= 500:
        pace.count_server_error(record, now)
    record.bytes += result.wire_bytes
    if result.first_byte_at > result.sent_at > 0:
        pace.record_latency(record, result.first_byte_at - result.sent_at)
    if not again and not lacks_https:
        has_failed_before = result.outcome is not _OK and _has_failed_before(out, result)
        pace.record_result(record, result, now, has_failed_before=has_failed_before)


def _has_failed_before(out: OutstandingTask, result: Result) -> bool:
    """Return whether a failure is one more of a URL, so that it says nothing new of the host.

    That is so if the URL is tried again, or has failed already since the last success; but not if the host could not
    even be reached. The failures of a row are remembered until they park the host: from then on each of them counts.
    """
    if out.url is None or result.outcome in UNREACHED:
        return False
    host = out.host
    if not host.record.failures_in_a_row:
        host.failing = ()
    if out.url.attempt or out.url.id in host.failing:
        return True
    if len(host.failing) < pace.FAILURES_BEFORE_PARKING:
        host.failing = (*host.failing, out.url.id)
    return False


def set_pace(out: OutstandingTask, asked_at: float) -> None:
    """Start a host's delay after a request whose arrival is known now."""
    record = out.host.record
    delay_s = record.delay_s = out.host.delay_s()
    if out.next_at_held and out.next_at_held == record.next_at:
        # Nothing was sent since: the assumed maximum transit no longer counts.
        record.next_at = out.next_at_before
    if delay_s:
        record.next_at = max(record.next_at, asked_at + delay_s)


class PageEnd:
    """Decides what becomes of a URL whose request has ended."""

    def __init__(self, table: HostTable, limits: FrontierLimits, counts: Counts) -> None:
        self._table = table
        self._limits = limits
        self._counts = counts

    def apply(
        self, host: HostSlot, url: QueuedUrl, result: Result, effects: Effects, now: float, *, again: Again = Again.NO
    ) -> None:
        """Record the end of a page's request at its host, which may be made again; `effects` gets what follows."""
        if url.known:
            self._end_visit(host, url, result, effects, again=again)
            return
        if url.kind is not _REQUISITE:
            self._counts.end_page(host)
        host.out.discard(url.id)
        effects.url = url
        effects.retry = self._again(host, url, again, now) if again else self._retry(host, url, result, now)
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

    def _end_visit(self, host: HostSlot, url: QueuedUrl, result: Result, effects: Effects, *, again: Again) -> None:
        """Record the end of another visit. It is not retried: the next one follows soon if there was no answer."""
        host.out.discard(url.id)
        effects.url = url
        outcome = result.outcome
        if outcome is _WORKER_LOST or again:
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

    @staticmethod
    def _again(host: HostSlot, url: QueuedUrl, again: Again, now: float) -> QueuedUrl:
        """Put a URL back into its host's queue; without the limit of a lent connection it is not the first attempt."""
        attempt = max(1, url.attempt) if again is Again.WITH_TIME else url.attempt
        queued = replace(url, attempt=attempt, not_before=now)
        if host.is_within(queued):
            host.push(queued)
        return queued

    def _retry(self, host: HostSlot, url: QueuedUrl, result: Result, now: float) -> QueuedUrl | None:
        """Put a URL back into its host's queue if it is tried again; return it as it is queued now."""
        if result.outcome is _OK or result.outcome in ANSWERED:  # an enum's member is hashed by a call
            return None
        if result.outcome is _WORKER_LOST:
            if host.is_within(url):
                host.push(url)
            return url
        wait_s = wait_before_retry(
            result.outcome, url.attempt + 1, first_wait_s(host, self._limits), self._limits.retries
        )
        if wait_s is None:
            return None
        not_before = now + max(wait_s, min(result.retry_after_s, MAX_RETRY_AFTER_S))
        retry = replace(url, attempt=url.attempt + 1, not_before=not_before)
        host.defer(retry)
        return retry
