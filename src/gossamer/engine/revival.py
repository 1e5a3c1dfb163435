"""How dead letters return to the queue."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.core.catalog import queued_from
from gossamer.core.counts import Counts
from gossamer.core.url import host_of
from gossamer.engine.holding import Holding
from gossamer.engine.host_directory import HostDirectory
from gossamer.figures import Totals
from gossamer.ports import Ledger
from gossamer.records import HostRecord, Outcome, UrlRecord, UrlState


class Revival:
    """Queues dead letters again, before a run."""

    def __init__(self, ledger: Ledger, hosts: HostDirectory, holding: Holding) -> None:
        self._ledger = ledger
        self._hosts = hosts
        self._holding = holding

    def retry(self, is_wanted: Callable[[UrlRecord], bool], totals: Totals, now: float) -> int:
        """Queue dead letters again, as if they had never failed; return how many."""
        revived: dict[str, HostRecord] = {}
        count = quarantined = evicted = 0
        for url_id, row in self._ledger.urls():
            if row.state is not UrlState.DEAD or not is_wanted(row):
                continue
            name = host_of(row.url)
            host = revived.get(name) or self._hosts.record(name, now)
            revived[name] = host
            quarantined += row.outcome == Outcome.QUARANTINED
            evicted += row.outcome == Outcome.EVICTED
            row.attempt, row.not_before, row.hops = 0, 0.0, 0
            self._ledger.requeue(queued_from(url_id, name, row), row)
            Counts.enqueue_stored(host, 1)
            count += 1
        self._holding.count_quarantined(-quarantined)
        totals.evicted -= evicted
        for host in revived.values():
            host.is_dead, host.failures_in_a_row, host.robots_tries = False, 0, 0
            host.parked_until, host.park_reason, host.backoff = 0.0, "", 0
            self._ledger.put_host(host)
            self._hosts.lift_bans(host.name)
        return count
