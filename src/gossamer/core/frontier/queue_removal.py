"""How queued URLs of a host in memory are dropped without a request; and how a host is blocked from requests.

Counts follow; the driver moves the rows (`KillQueue`, or what `forget` returns).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import KillQueue
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.workbench import HostSlot, HostState
from gossamer.core.links.requisite import count_requisites
from gossamer.model.records import Outcome, QueuedUrl, UrlId

_BUSY = HostState.BUSY
_BLOCKED = HostState.BLOCKED


class QueueRemoval:
    """Drops queued URLs of hosts in memory."""

    def __init__(self, table: HostTable, counts: Counts) -> None:
        self._table = table
        self._counts = counts

    def kill_queue(self, host: HostSlot, outcome: Outcome, error: str) -> None:
        """Drop all that is queued at a host, for good: it has no address."""
        requisites = host.record.requisites
        self._counts.enqueue(host.record, -host.record.queued)
        self._counts.enqueue_requisites(host.record, -requisites)
        host.record.is_dead = True
        host.head.clear()
        host.deferred.clear()
        host.visits.clear()
        host.out.clear()
        host.robots_requests.clear()
        self._table.stop_reading(host)
        host.origins = {origin: rules for origin, rules in host.origins.items() if not rules.is_pending}
        self._table.commands.append(KillQueue(host.record, outcome, error, requisites))

    def block(self, host_name: str, is_blocked: bool, now: float) -> None:
        """Block a host from further requests, or unblock it; requests that are out may end."""
        host = self._table.hosts.get(host_name)
        if host is not None and host.record.is_blocked is not is_blocked:
            host.record.is_blocked = is_blocked
            self._reschedule_if_free(host, now)

    def forget(self, host_name: str, urls: Sequence[QueuedUrl], now: float) -> list[QueuedUrl]:
        """Drop queued URLs of a host; return those that could be dropped, which are not in flight."""
        host = self._table.hosts.get(host_name)
        if host is None:
            return []
        deferred = {entry[2] for entry in host.deferred}
        gone: set[UrlId] = {url.id for url in urls if url.id not in host.out or url.id in deferred}
        host.head = [entry for entry in host.head if entry[2] not in gone]
        host.deferred = [entry for entry in host.deferred if entry[2] not in gone]
        heapify(host.head)
        heapify(host.deferred)
        host.out -= gone & deferred
        if not host.deferred:
            host.reread_skipped()
        dropped = [url for url in urls if url.id in gone]
        self._counts.enqueue(host.record, -len(gone))
        if host.record.requisites:
            self._counts.enqueue_requisites(host.record, -count_requisites(dropped))
        self._reschedule_if_free(host, now)
        return dropped

    def _reschedule_if_free(self, host: HostSlot, now: float) -> None:
        """Reschedule a host unless something in progress will do it."""
        if host.state is not _BUSY and host.state is not _BLOCKED:
            self._table.reschedule(host, now)
