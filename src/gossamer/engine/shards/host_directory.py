"""Which hosts are in memory, and what does the ledger have about the others?

A host is in the frontier, swapped out to the ledger until a time, or idle there. Every change to a host's
record adds it to the ledger's pending changes at once. After every swap the frontier gets the ledger's
count of swapped-out hosts: only the ledger counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.robots.answers import is_ban, stored_state
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import domain_id, host_id, shard_of
from gossamer.engine.shards.domain_ranks import DomainRanks
from gossamer.model.records import DomainRecord, FetchKind, HostId, HostRecord, Outcome, QueuedUrl
from gossamer.model.state import DomainRank

if TYPE_CHECKING:
    from gossamer.ports import HostStore

# How much of a turn's work (see `crawl.MAX_TURN_WORK`) it is at most to read a slice of robots.txt, and to load a host.
MAX_SLICE_WORK = 128_000  # 10 ms, the last one 20 ms
LOAD_WORK = 2_560  # 0.1 to 0.6 ms
_LEDGER_STEP_S = 1e-6  # times of swapped-out hosts are stored in microseconds


class HostDirectory:
    """The hosts of a crawl, between ledger and frontier."""

    def __init__(self, frontier: Frontier, ledger: HostStore, ranks: DomainRanks) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self.ranks = ranks
        self._opted_out: frozenset[str] = frozenset()
        # Whether a domain belongs to another node, by the country of its address.
        self.belongs_elsewhere: Callable[[str], bool] | None = None
        self.introduced: frozenset[str] = frozenset()  # new hosts that a page of another domain names

    @property
    def opted_out(self) -> frozenset[str]:
        return self._opted_out

    def set_opted_out(self, names: frozenset[str]) -> None:
        self._opted_out = names

    def has_opted_out(self, record: HostRecord) -> bool:
        return record.name in self._opted_out or record.domain in self._opted_out

    def is_leaving(self, record: HostRecord) -> bool:
        """Return whether a host waits to be moved to the node that its domain belongs to: see `Rehoming`."""
        return self.belongs_elsewhere is not None and self.belongs_elsewhere(record.domain)

    def knows(self, name: str) -> bool:
        return self._ledger.host(name) is not None

    def identify(self, name: str, taken: Mapping[HostId, str]) -> HostId:
        """Return the id of a new host, which no other host has, and none of these new ones."""
        return self._ledger.identify(name, taken)

    def record(self, name: str, now: float) -> HostRecord:
        """Return the ledger's record of a host, or a new one."""
        record = self._ledger.host(name)
        if record is None:
            self._ledger.identify(name)
            record = HostRecord(name, registrable_domain(name), first_seen_at=now)
            self.ranks.record_given(name, now)
            self._ledger.put_host(record)
            domain = self._ledger.domain(record.domain) or DomainRecord(record.domain)
            domain.hosts += 1
            if name in self.introduced:
                record.is_introduced = True
                domain.introduced += 1
            self._ledger.put_domain(domain)
        return record

    def learn_ranks(self, ranks: Iterable[DomainRank], now: float, computed_at: str = "") -> int:
        """Store ranks and act on them; return how many have changed. A caller passes some thousands at a time.

        With the last ones the caller says when all of them were computed.
        """
        changed = self.ranks.learn(ranks, now, computed_at)
        if self._frontier.limits.scales_domain_budget and self._frontier.view.has_dropped_exhausted:
            self._reopen(changed, now)
        return len(changed)

    def _reopen(self, domains: Iterable[str], now: float) -> None:
        """Have hosts loaded again that left memory since the budget of their domain, which has changed, was used up."""
        shards: dict[int, set[str]] = {}
        for domain in domains:
            shards.setdefault(shard_of(domain_id(domain)), set()).add(domain)
        for shard, names in shards.items():
            for host in [host for host in self._ledger.hosts(shard) if host.queued and host.domain in names]:
                if not host.swapped_out_until and not self._frontier.has_host(host.name):
                    self.spill(host, now)

    def load(self, record: HostRecord, now: float) -> None:
        """Load a host into memory, with its domain and its robots.txt."""
        limits = self._frontier.limits
        read = self._frontier.robots_cache.read
        is_allowed = limits.is_unreachable_robots_allowed or record.name in limits.own_hosts
        origins = {
            robots.origin: stored_state(robots, read, record.delay_s, is_unreachable_allowed=is_allowed)
            for robots in self._ledger.robots(host_id(record.name))
            if robots.expires_at > now or robots.outcome == Outcome.OK.value
        }
        domain = self._ledger.domain(record.domain) or DomainRecord(record.domain)
        record.is_blocked = self.has_opted_out(record) or self.is_leaving(record)
        record.rank = self.ranks.of(record.domain, record.rank)
        self._frontier.load_host(record, domain, origins, now)
        self._ledger.put_host(record)  # with adjusted times

    def restore_rules(self, host: str, origin: str, now: float) -> int:
        """Read a slice of rules that were shed to save memory; return how much of a turn's work that is."""
        texts = (each.body for each in self._ledger.robots(host_id(host)) if each.origin == origin)
        body = next(texts, None)
        self._frontier.restore_rules(host, origin, body, now)
        return min(len(body or b""), MAX_SLICE_WORK)

    def lift_bans(self, host: str, outcome: Outcome | None = None) -> None:
        """Have robots.txt of a host's banned origins requested again, of all of them or of those with an outcome."""
        for robots in self._ledger.robots(host_id(host)):
            if is_ban(robots) and (outcome is None or robots.outcome == outcome):
                robots.expires_at = 0.0
                self._ledger.put_robots(robots)

    def bring_in(self, host: str, now: float) -> None:
        """Load a host into memory if there is room and it is not swapped out."""
        record = self.record(host, now)
        if not record.swapped_out_until and self._frontier.has_room():
            self.load(record, now)

    def swap_out(self, record: HostRecord, until: float) -> None:
        if record.swapped_out_until or self._frontier.has_host(record.name):
            return
        record.swapped_out_until = until
        self._ledger.put_host(record)
        self._ledger.swap_out(record.name, until)
        self.update_swapped_out()

    def spill(self, record: HostRecord, now: float) -> None:
        """Swap a host out for which there is no room; it is due at once, whatever rounding does to the time."""
        self.swap_out(record, now - _LEDGER_STEP_S)

    def swap_in(self, count: int, now: float) -> int:
        """Load swapped-out hosts that are due; return how much of a turn's work that is."""
        names = self._ledger.swap_in_due(now, count)
        for name in names:
            # A host that another's robots.txt redirected to is already in memory.
            record = self._frontier.record_of(name) or self.record(name, now)
            record.swapped_out_until = 0.0
            self._ledger.put_host(record)
            self.load(record, now)
        self.update_swapped_out()
        return len(names) * LOAD_WORK

    def update_swapped_out(self) -> None:
        """Pass the ledger's count of swapped-out hosts to the frontier, and when the first is due."""
        self._frontier.set_swapped_out(*self._ledger.swapped_out())

    def count_swapped_out(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Count URLs that were queued at hosts that stay out of memory."""
        for url in urls:
            record = self.record(url.host, now)
            self._frontier.counts.enqueue(record)
            if url.kind is FetchKind.REQUISITE:
                self._frontier.counts.enqueue_requisites(record, 1)
            self._ledger.put_host(record)
            self.spill(record, now)
