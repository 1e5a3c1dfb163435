"""Taking and releasing shards: what an owner loads when it begins, and forgets when it ends.

On one machine all shards are taken at the start (`take(None)`), and none is released. `take` reads the
shard's rows: hosts with work are loaded into memory or swapped out, and what decisions depend on (quarantines,
calendar counts, suspicions, reserves of the first pass, the number of the next arrival) is restored.
`release` is the reverse; the shard's tasks must have been given back, and its rows are committed by the
caller. Links to a shard that is not owned wait in the outbox and are offered again when it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from gossamer.core.cluster.regions import Regions
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.links.intake import Intake
from gossamer.engine.admission.admission import Admission
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.records import HostRecord
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.engine.cluster.rehoming import CountryOf, Rehoming
    from gossamer.ports import FrontierStore


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
        memories: Sequence[ShardMemory],
    ) -> None:
        self._ledger = ledger
        self._frontier = frontier
        self._intake = intake
        self._hosts = hosts
        self._admission = admission
        self._memories = memories
        self.rehoming: Rehoming | None = None  # if a rule for regions names a country

    def learn_countries(self, regions: Regions, country_of: CountryOf, state: CrawlState) -> None:
        """Have the countries of addresses decide where domains belong. Call before any shard is taken."""
        from gossamer.engine.cluster.rehoming import Rehoming

        message_to = self._admission.message_to
        self.rehoming = Rehoming(regions, country_of, self._frontier, self._ledger, message_to=message_to, state=state)
        self._admission.rehoming = self.rehoming
        self._hosts.belongs_elsewhere = self.rehoming.is_elsewhere
        self._admission.homes = regions.homes

    def take(
        self, shard: int | None, state: CrawlState, now: float, change_rows: Callable[[], None] | None = None
    ) -> None:
        """Become the owner of a shard, or of all of them (None); its rows can be changed before they are used."""
        if shard is not None:
            self._ledger.take_shard(shard)
        if change_rows is not None:
            change_rows()
        if shard is not None and self.rehoming is not None:
            self.rehoming.move_out(shard)
        self._intake.next_seq = max(self._intake.next_seq, self._ledger.next_seq())
        for memory in self._memories:
            memory.load(shard)
        turned_back_s = max(0.0, state.saved_at - now)  # the clock was set back: waits must not grow by that
        waiting = (host for host in self._ledger.hosts(shard) if host.queued)
        for host in sorted(waiting, key=lambda host: (host.first_seen_at, host.name)):  # not by id: that is by chance
            host.next_at -= turned_back_s
            host.parked_until -= turned_back_s
            self._load_host(host, now)
        self._hosts.update_swapped_out()
        if shard is not None:
            self._admission.own(shard, now)

    def _load_host(self, host: HostRecord, now: float) -> None:
        self._frontier.counts.load(host)
        for memory in self._memories:
            memory.load_host(host)
        self._admission.load_host(host)
        if not host.swapped_out_until and self._frontier.has_room():
            self._hosts.load(host, now)
        elif not host.swapped_out_until:
            self._hosts.spill(host, now)

    def queued_in(self, shard: int) -> int:
        """Return how many URLs of a shard are queued. One pass over its hosts."""
        return sum(host.queued for host in self._ledger.hosts(shard))

    def save(self) -> None:
        """Add what is remembered of shards to the ledger's pending changes."""
        for memory in self._memories:
            memory.save()

    def release(self, shards: Collection[int], now: float) -> None:
        """Give up shards. None of their tasks may be out."""
        self.save()
        self._admission.disown(shards)
        self._frontier.release(shards, now)
        self._intake.release(shards)
        for memory in self._memories:
            memory.forget(shards)
        for shard in shards:
            for host in self._ledger.hosts(shard):
                self._frontier.counts.unload(host)
            self._ledger.release_shard(shard)
            if self.rehoming is not None:
                self.rehoming.forget(shard)
        self._hosts.update_swapped_out()
