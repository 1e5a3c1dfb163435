"""Taking and releasing shards: what an owner loads when it begins, and forgets when it ends.

On one machine all shards are taken at the start (`take(None)`), and none is released. `take` reads the
shard's rows: hosts with work are loaded into memory or swapped out, and what decisions depend on (quarantines,
calendar counts, suspicions, reserves of the first pass, the number of the next arrival) is restored.
`release` is the reverse; the shard's orders must have been given back, and its rows are committed by the
caller. Links to a shard that is not owned wait in the outbox and are offered again when it is taken.
"""

from __future__ import annotations

from gossamer.core.frontier import Frontier
from gossamer.core.intake import Intake
from gossamer.engine.admission import Admission
from gossamer.engine.evidence import Evidence
from gossamer.engine.first_pass import FirstPassProgress
from gossamer.engine.host_directory import HostDirectory
from gossamer.engine.link_backlog import LinkBacklog
from gossamer.ports import FrontierStore
from gossamer.records import HostRecord
from gossamer.state import CrawlState


class Shards:
    """The shards that this crawl owns: all of them, except those that were released."""

    def __init__(
        self,
        ledger: FrontierStore,
        frontier: Frontier,
        intake: Intake,
        *,
        hosts: HostDirectory,
        admission: Admission,
        evidence: Evidence,
        first_pass: FirstPassProgress,
        backlog: LinkBacklog,
    ) -> None:
        self._ledger = ledger
        self._frontier = frontier
        self._intake = intake
        self._hosts = hosts
        self._admission = admission
        self._evidence = evidence
        self._first_pass = first_pass
        self._backlog = backlog

    def take(self, shard: int | None, state: CrawlState, now: float) -> None:
        """Become the owner of a shard, or of all of them (None)."""
        if shard is not None:
            self._ledger.take_shard(shard)
        self._intake.next_seq = max(self._intake.next_seq, self._ledger.next_seq())
        self._evidence.load(shard)
        self._first_pass.load(shard)
        self._admission.holding.load(shard)
        self._backlog.load(shard)
        turned_back_s = max(0.0, state.saved_at - now)  # the clock was set back: waits must not grow by that
        waiting = (host for host in self._ledger.hosts(shard) if host.queued)
        for host in sorted(waiting, key=lambda host: host.first_seen_at):
            host.next_at -= turned_back_s
            host.parked_until -= turned_back_s
            self._load_host(host, now)
        self._hosts.update_swapped_out()
        if shard is not None:
            self._admission.own(shard, now)

    def _load_host(self, host: HostRecord, now: float) -> None:
        self._frontier.counts.load(host)
        self._evidence.watch_size(host)
        self._first_pass.load_host(host)
        self._admission.load_host(host)
        if not host.swapped_out_until and self._frontier.has_room():
            self._hosts.load(host, now)
        elif not host.swapped_out_until:
            self._hosts.spill(host, now)

    def release(self, shard: int, now: float) -> None:
        """Give up a shard. None of its orders may be out."""
        self._evidence.save()
        self._first_pass.save()
        self._admission.holding.save()
        self._admission.disown(shard)
        self._frontier.release(shard, now)
        for host in self._ledger.hosts(shard):
            self._frontier.counts.unload(host)
        self._intake.release(shard)
        self._evidence.release(shard)
        self._admission.holding.forget(shard)
        self._backlog.forget(shard)
        self._ledger.release_shard(shard)
        self._hosts.update_swapped_out()
