"""How queued URLs leave the queue unfetched: forbidden, evicted, opted out, in quarantine, or without a host.

Each has a row in the catalog with the reason. One method changes queue, catalog and counts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier.effects import Denied, KillQueue
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.catalog import record_of
from gossamer.core.links.requisite import count_requisites, is_requisite
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.model.records import HostRecord, Outcome, QueuedUrl, UrlState
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

_BATCH = 1000


class Removal:
    """Removes URLs from the queue without fetching them."""

    def __init__(
        self,
        frontier: Frontier,
        ledger: FrontierStore,
        *,
        hosts: HostDirectory,
        scope: ScopeRecord,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._hosts = hosts
        self._scope = scope
        self._events = emitter
        self._state = state

    def kill(
        self, host: str, urls: Sequence[QueuedUrl], outcome: Outcome, now: float, error: str = ""
    ) -> list[QueuedUrl]:
        """Move queued URLs of a host to the dead letters, except those in flight; return them."""
        gone, record = self._take_out(host, urls, now)
        for url in gone:
            row = record_of(url)
            row.state = UrlState.DEAD
            row.outcome = outcome.value
            row.error = error
            row.fetched_at = now
            self._ledger.finish(url, row)
        requisites = count_requisites(gone)
        self._state.totals.dead += len(gone) - requisites
        self._state.totals.requisites_failed += requisites
        if record is not None:
            self._ledger.put_host(record)
        return gone

    def _take_out(self, host: str, urls: Sequence[QueuedUrl], now: float) -> tuple[list[QueuedUrl], HostRecord | None]:
        """Take queued URLs of a host out of the frontier, except those in flight; return them, and the host."""
        if self._frontier.has_host(host):
            return self._frontier.forget(host, urls, now), self._frontier.record_of(host)
        record = self._ledger.host(host)
        if record is not None:
            self._frontier.counts.enqueue(record, -len(urls))
            self._frontier.counts.enqueue_requisites(record, -count_requisites(urls))
        return list(urls), record

    def withdraw(self, host: str, urls: Sequence[QueuedUrl], now: float) -> list[QueuedUrl]:
        """Take queued URLs of a host out of the queue as if they had never been found; return them."""
        gone, record = self._take_out(host, urls, now)
        for url in gone:
            self._ledger.finish(url, None)
        self._state.totals.urls_seen -= len(gone)
        if record is not None:
            self._ledger.put_host(record)
        return gone

    def kill_queue(self, command: KillQueue, now: float) -> int:
        """Move all that is queued at a host without address to the dead letters; return how many pages."""
        record = command.host
        outcome = command.outcome
        error = command.error
        killed = self._ledger.kill_queue(host_id(record.name), outcome.value, error, now)
        self._state.totals.dead += killed - command.requisites
        self._state.totals.requisites_failed += command.requisites
        self._ledger.put_host(record)
        self._events.host_dead(record.name, outcome, error, killed, now)
        return killed - command.requisites

    def _kill_last(self, host: str, count: int, outcome: Outcome, now: float) -> int:
        last = self._ledger.last(host_id(host), count)
        return len(self.kill(host, last, outcome, now)) if last else 0

    # -- robots.txt -------------------------------------------------------------------------------

    def record_denied(self, denied: Denied, now: float) -> None:
        """Finish a URL that robots.txt forbids: it is done, since the answer is known."""
        url = denied.url
        row = record_of(url)
        row.state = UrlState.DONE
        row.outcome = Outcome.ROBOTS_DENIED.value
        row.fetched_at = now
        row.error = f"line {denied.decision.line_number}: {denied.decision.line}"
        self._ledger.finish(url, row)
        host = self._frontier.record_of(url.host)
        if host is not None:
            self._ledger.put_host(host)
        if is_requisite(url):
            self._state.totals.requisites_denied += 1
        else:
            self._state.totals.robots_disallowed += 1
        self._events.denied(denied, now)

    def record_overridden(self, denied: Denied, now: float) -> None:
        """Record that a URL is fetched although robots.txt forbids it: its host is the operator's own."""
        self._state.totals.robots_overridden += 1
        self._events.overridden(denied, now)

    # -- opting out -------------------------------------------------------------------------------

    def opt_out(self, names: frozenset[str], now: float) -> None:
        """Exclude these hosts and domains from now on, and no others; what is queued there goes to the dead letters."""
        for name in sorted(names ^ self._hosts.opted_out):
            self._events.opted_out(name, name not in names, now)
        self._hosts.set_opted_out(names)
        self._scope.block(names)
        for record in list(self._ledger.hosts()):
            is_blocked = self._hosts.has_opted_out(record)
            if not is_blocked and self._hosts.is_leaving(record):
                continue
            if record.is_blocked is not is_blocked or (is_blocked and record.queued):
                self._block(self._frontier.record_of(record.name) or record, is_blocked, now)

    def _block(self, record: HostRecord, is_blocked: bool, now: float) -> None:
        if self._frontier.has_host(record.name):
            self._frontier.block(record.name, is_blocked, now)
        else:
            record.is_blocked = is_blocked
        self._ledger.put_host(record)
        gone = 1
        while is_blocked and gone:
            gone = self._kill_last(record.name, _BATCH, Outcome.OPTED_OUT, now)
