"""How important is a domain, by its links or by the operator's word?

A record per domain in its shard, so that every owner of the shard knows it: also of a domain of which no host is known
yet. A rank that the operator gave (a row in a list of domains) counts for all hosts of its domain, and computed
ranks never replace it. A host has its rank in its own record, too, from which lanes and classes are chosen: it is
copied there when a host is loaded into memory, and when it changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.tables import RANKS
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import domain_id
from gossamer.model.state import CrawlState, DomainRank

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore


class DomainRanks:
    def __init__(
        self, frontier: Frontier, ledger: FrontierStore, given: Mapping[str, float], state: CrawlState
    ) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._state = state
        self._given = given  # by host

    def find(self, domain: str) -> DomainRank | None:
        found = self._ledger.record(RANKS, domain_id(domain))
        return found if found is not None and found.domain == domain else None  # else another with an equal hash

    def of(self, domain: str, otherwise: float) -> float:
        found = self.find(domain)
        return otherwise if found is None else found.rank

    def given_to(self, host: str) -> DomainRank | None:
        """Return the rank that the operator gave to the domain of a host, by this host."""
        given = self._given.get(host)
        return None if given is None else DomainRank(registrable_domain(host), given=given)

    def record_given(self, host: str, now: float) -> None:
        """Record the rank that the operator gave to a new host, if any; of several for one domain the best counts."""
        rank = self.given_to(host)
        if rank is not None:
            self.learn([rank], now)

    def learn(self, ranks: Iterable[DomainRank], now: float, computed_at: str = "") -> list[str]:
        """Store ranks; return the domains whose rank has changed. See `HostDirectory.learn_ranks`."""
        self._state.ranked_at = computed_at or self._state.ranked_at
        changed: list[str] = []
        for rank in ranks:
            known = self.find(rank.domain) or DomainRank(rank.domain)
            computed = rank.computed if rank.computed >= 0 else known.computed
            wanted = DomainRank(rank.domain, computed, max(known.given, rank.given))
            if wanted != known:
                changed.append(rank.domain)
                self._ledger.put_record(RANKS, wanted)
                for host in self._frontier.set_rank(rank.domain, wanted.rank, now):
                    self._ledger.put_host(host)
        return changed
