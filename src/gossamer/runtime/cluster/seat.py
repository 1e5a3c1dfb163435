"""How a node gets its seat in a cluster: the crawl's record, a lease, and a time line on the engine's clock."""

from __future__ import annotations

import time
from secrets import token_hex

from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.model.state import CrawlRecord, Terms
from gossamer.ports.shared_ledger import Membership, NodeId, SharedLedger
from gossamer.runtime.session.clock import TimeLine, lease_clock

LEASE_S = 10.0


class Seat(Struct, frozen=True):
    """One incarnation of a node, as it joined."""

    shared: SharedLedger
    node: NodeId
    record: CrawlRecord
    membership: Membership
    asked_at: float  # on the lease clock
    time_line: TimeLine
    label: str = ""  # its labels, separated by commas
    folder: str = ""  # of the node, as an absolute path
    crawl: str = ""  # its name in the ledger


def check_terms(record: CrawlRecord, own: Terms) -> None:
    """Raise if the crawl is incomplete, or if this program would put hosts into other shards than its nodes do."""
    if record.migration is not None:
        raise UsageError("a migration to this crawl is not finished; run 'gossamer migrate FROM URL' again")
    for name in Terms.__struct_fields__:
        theirs = getattr(record.terms, name)
        ours = getattr(own, name)
        if theirs != ours:
            what = name.replace("_", " ")
            raise UsageError(f"the crawl has {what} {theirs}, this program {ours}: use one version on all nodes")


def join(
    shared: SharedLedger,
    record: CrawlRecord,
    name: str,
    *,
    label: str = "",
    folder: str = "",
    crawl: str = "",
    lease_s: float = LEASE_S,
) -> Seat:
    """Join a crawl under a name; the incarnation is new."""
    node = NodeId(name, token_hex(6))
    asked_at = lease_clock()
    monotonic = time.monotonic()
    membership = shared.join(node, label, lease_s)
    time_line = TimeLine(membership.now, monotonic)
    return Seat(shared, node, record, membership, asked_at, time_line, label, folder, crawl)
