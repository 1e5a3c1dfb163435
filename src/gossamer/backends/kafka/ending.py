"""When is a crawl over, on Kafka and Cassandra?

All shards have live owners, all of these have nothing to do by their last commits, and all links that were ever sent
are done with: each owner has read the partitions of its shards to their ends. The fences of the nodes are read twice,
and the ends of the partitions in between. If nothing has changed, there was a moment at which all of it was true at
once; and then nothing can change any more, except by the operator, who changes the record.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gossamer.backends.kafka.layout import Layout
from gossamer.backends.kafka.leases import Lease, Leases
from gossamer.backends.kafka.owners import Owners
from gossamer.backends.kafka.record import Record
from gossamer.backends.kafka.topic import Topic
from gossamer.core.cluster.ending import why_over
from gossamer.core.url.identity import SHARD_COUNT
from gossamer.model.state import CrawlRecord
from gossamer.ports.shared_ledger import NodeId


class Ending:
    """See the module."""

    def __init__(self, record: Record, leases: Leases, owners: Owners, topic: Topic) -> None:
        self._record = record
        self._leases = leases
        self._owners = owners
        self._topic = topic

    def try_end(self, layout: Layout) -> str:
        """End the crawl if nothing is left to do; return why it is over, or an empty string."""
        stored = self._record.read()
        assert stored is not None
        record = stored.record
        if record.ended:
            return record.ended
        copies = self._leases.copies()
        domains = 0
        pages = 0
        live: dict[NodeId, Lease] = {}
        for node in copies:
            lease = self._leases.read(node)
            if lease is None:
                continue
            domains = domains + lease.domains
            pages = pages + lease.pages
            if not lease.is_over and not self._leases.bury(node):
                live[node] = lease
        if not all(_is_idle(lease, record.version, domains) for lease in live.values()):
            return ""
        reasons = {lease.idle for lease in live.values()}
        why = why_over(reasons, pages, record.budgets.get("pages"))
        if not why or not self._is_all_read(live, layout):
            return ""
        if any(self._leases.read(node) != lease for node, lease in live.items()):
            return ""
        return why if self._end(record, why) else ""

    def _is_all_read(self, live: Mapping[NodeId, Lease], layout: Layout) -> bool:
        """Return whether all shards have live owners, who are done with all links to them."""
        owners = {shard: owner.node for shard, owner in self._owners.read().items() if owner.node in live}
        if len(owners) < SHARD_COUNT:
            return False
        ends = self._topic.ends(range(layout.partitions))
        done = {node: lease.done_offsets for node, lease in live.items()}
        ranges = {(node, layout.range_of(shard)) for shard, node in owners.items()}
        return all(done[node].get(number, 0) >= ends[number] for node, number in ranges)

    def _end(self, record: CrawlRecord, why: str) -> bool:
        return self._record.change(replace(record, ended=why, version=record.version + 1))


def _is_idle(lease: Lease, version: int, domains: int) -> bool:
    is_current = lease.idle_commit == lease.commit and lease.idle_version == version
    return bool(lease.idle) and is_current and lease.idle_domains in (None, domains)
