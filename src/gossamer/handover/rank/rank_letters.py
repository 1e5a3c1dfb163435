"""Ranks on their way to the nodes of a crawl on many machines: letters to the owners of the domains' shards.

They are in the inboxes when the call returns, and stay there until an owner has stored the ranks in its shard. What
is sent at once is bounded, since a node applies all that it finds in its inboxes in one turn of its event loop.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable

from gossamer.core.url.identity import domain_id, shard_of
from gossamer.engine.cluster.link_messages import Letter, encode_letter
from gossamer.model.figures import Totals
from gossamer.model.state import DomainRank, NodeStatus
from gossamer.ports.shared_ledger import OBSERVER, Commit, NodeId, SharedLedger

LEASE_S = 20.0
DOMAINS_PER_COMMIT = 5000  # 20 ms to apply
COMMIT_EVERY_S = 0.4  # nodes read their inboxes every 0.3 s


def send_ranks(shared: SharedLedger, ranks: Iterable[DomainRank], pause: Callable[[float], None] = time.sleep) -> int:
    """Send ranks, in the order of the domains' ids; return how many."""
    node = NodeId(f"ranks-{secrets.token_hex(4)}", secrets.token_hex(4))
    shared.join(node, OBSERVER, LEASE_S)
    letters: dict[int, Letter] = {}
    sent = commits = waiting = 0
    for rank in ranks:
        shard = shard_of(domain_id(rank.domain))
        if waiting >= DOMAINS_PER_COMMIT and shard not in letters:
            commits += 1
            _commit(shared, node, commits, letters)
            letters = {}
            waiting = 0
            pause(COMMIT_EVERY_S)
            shared.renew(node, NodeStatus(commit=commits))
        letters.setdefault(shard, Letter()).ranks.append(rank)
        sent = sent + 1
        waiting = waiting + 1
    if letters:
        _commit(shared, node, commits + 1, letters)
    shared.leave(node)
    return sent


def _commit(shared: SharedLedger, node: NodeId, number: int, letters: dict[int, Letter]) -> None:
    links = {shard: encode_letter(letter) for shard, letter in letters.items()}
    shared.commit(node, Commit(number, Totals(), links=links))
