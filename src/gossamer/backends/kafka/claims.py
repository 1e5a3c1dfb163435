"""How much of a budget each node may use up, on Cassandra: one row per budget, changed if nobody else did meanwhile."""

from __future__ import annotations

import random
import time

import msgspec
from msgspec import Struct

from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.leases import Leases
from gossamer.model.errors import LedgerUnavailableError
from gossamer.ports.shared_ledger import NodeId

TRIES = 50
PAUSE_S = 0.03
_encode = msgspec.msgpack.Encoder().encode


class _Claims(Struct, array_like=True):
    used: int = 0  # by nodes that have ended
    live: dict[str, int] = {}  # by "incarnation name"


_claims = msgspec.msgpack.Decoder(_Claims).decode


class Claims:
    """See the module."""

    def __init__(self, database: Keyspace, leases: Leases) -> None:
        self._database = database
        self._leases = leases

    def claim(self, node: NodeId, budget: str, limit: int, amount: int) -> int:
        """Claim this much in all; return how much the node has now. Never less than it has used up."""
        lease = self._leases.require(node)
        used = lease.pages if budget == "pages" else lease.domains
        if budget == "pages" and amount < lease.claimed:
            # First what counts, so that no commit uses what is free for others already.
            self._leases.set_claim(node, max(amount, used))
        me = f"{node.incarnation} {node.name}"
        for attempt in range(TRIES):
            version, claims = self._read(budget)
            self._count_dead(claims, budget, me)
            spoken_for = claims.used + sum(some for other, some in claims.live.items() if other != me)
            claimed = max(min(amount, limit - spoken_for), used)
            claims.live[me] = claimed
            if self._write(budget, version, claims):
                if budget == "pages":
                    self._leases.set_claim(node, claimed)
                return claimed
            time.sleep(random.uniform(0, PAUSE_S * min(attempt + 1, 10)))
        raise LedgerUnavailableError(f"ledger {self._database.name}: the budget is claimed all the time; again later")

    def _read(self, budget: str) -> tuple[int, _Claims]:
        text = "SELECT version, body FROM claims WHERE crawl = ? AND budget = ?"
        found = self._database.read_last(text, self._database.name, budget)
        return (found[0][0], _claims(found[0][1])) if found else (0, _Claims())

    def _count_dead(self, claims: _Claims, budget: str, me: str) -> None:
        """Add up what nodes have used that are not alive any more; the rest of their claims is free."""
        copies = self._leases.copies()
        now = self._leases.about_now()
        for other in [each for each in claims.live if each != me]:
            incarnation, _, name = other.partition(" ")
            node = NodeId(name, incarnation)
            copy = copies.get(node)
            if (copy is None or not copy.is_live(now)) and self._leases.bury(node):
                lease = self._leases.read(node)
                used = 0 if lease is None else lease.pages if budget == "pages" else lease.domains
                claims.used += used
                del claims.live[other]

    def _write(self, budget: str, version: int, claims: _Claims) -> bool:
        values = (self._database.name, budget)
        if not version:
            text = "INSERT INTO claims (crawl, budget, version, body) VALUES (?, ?, 1, ?) IF NOT EXISTS"
            return self._database.change(text, *values, _encode(claims))
        text = "UPDATE claims SET version = ?, body = ? WHERE crawl = ? AND budget = ? IF version = ?"
        return self._database.change(text, version + 1, _encode(claims), *values, version)
