"""Ranks that are sent to the nodes of a ledger: every domain to the shard that it belongs to, in bounded commits."""

from __future__ import annotations

from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.core.url.identity import SHARD_COUNT, domain_id, shard_of
from gossamer.engine.cluster.link_messages import decode_message
from gossamer.handover.rank.ranking import DOMAINS_PER_COMMIT, LEASE_S, send_ranks
from gossamer.model.state import CrawlRecord, DomainRank, Terms


def test_every_domain_is_sent_once_to_its_shard_and_nobody_is_left_behind() -> None:
    now = 0.0

    def clock() -> float:
        return now

    def pause(_: float) -> None:
        nonlocal now
        now += 0.7 * LEASE_S  # two of them are longer than a lease that is not renewed

    shared = MemorySharedLedger(clock)
    shared.start(CrawlRecord(Terms(1, "3", "rules"), b""))
    names = sorted((f"domain{number}.com" for number in range(2 * DOMAINS_PER_COMMIT + 500)), key=domain_id)
    ranks = [DomainRank(name, 0.25) for name in names]
    assert send_ranks(shared, iter(ranks), pause) == len(ranks)
    messages = [(shard, decode_message(links)) for shard, links in shared.messages(range(SHARD_COUNT))]
    assert [rank for _, message in messages for rank in message.ranks] == ranks
    assert all(shard_of(domain_id(rank.domain)) == shard for shard, message in messages for rank in message.ranks)
    assert not any(view.is_live for view in shared.nodes().values())
