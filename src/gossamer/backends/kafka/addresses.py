"""Addresses that several nodes contact, on Cassandra: a row each, changed if nobody else did meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from gossamer.backends.kafka.database import Database
from gossamer.backends.kafka.record import Record
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.politeness.address_pool import SharedAddress, is_new
from gossamer.ports.shared_ledger import NodeId

_READ = "SELECT version, body FROM addresses WHERE crawl = ? AND address = ?"
_CREATE = "INSERT INTO addresses (crawl, address, version, body) VALUES (?, ?, 1, ?) IF NOT EXISTS USING TTL 86400"
_CHANGE = "UPDATE addresses USING TTL 86400 SET version = ?, body = ? WHERE crawl = ? AND address = ? IF version = ?"
_encode = msgspec.msgpack.Encoder().encode
_address = msgspec.msgpack.Decoder(SharedAddress).decode


class Addresses:
    """See the module."""

    def __init__(self, database: Database, record: Record) -> None:
        self._database = database
        self._record = record
        self._first: int | None = None  # generation of the server when the crawl started; 0: it has others beside it
        self._crawl = database.name

    def reserve(
        self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk], now: float
    ) -> dict[str, AddressGrant]:
        """Return what a node gets; nothing at an address that others ask for at the same time: it asks again soon."""
        me = f"{node.name}/{node.incarnation}"
        may_be_old = is_new(rules, self._since_start_s(now))
        names = list(asks)
        found = self._database.read_many((_READ, (self._crawl, name)) for name in names)
        grants: dict[str, AddressGrant] = {}
        changes: list[tuple[str, tuple[object, ...]]] = []
        for name, rows in zip(names, found, strict=True):
            version, address = (rows[0][0], _address(rows[0][1])) if rows else (0, SharedAddress())
            grants[name] = address.grant(me, rules, asks[name], now, is_new=may_be_old)
            body = _encode(address)
            if version:
                changes.append((_CHANGE, (version + 1, body, self._crawl, name, version)))
            else:
                changes.append((_CREATE, (self._crawl, name, body)))
        made = self._database.read_many(changes)
        return {
            name: grants[name] if rows[0][0] else AddressGrant(min(grants[name].permits, asks[name].in_use), 0.0)
            for name, rows in zip(names, made, strict=True)
        }

    def _since_start_s(self, now: float) -> float:
        """Return how long ago the server was restarted. One of several loses nothing: the others have copies."""
        if self._first is None:
            self._first = 0 if self._database.replication() > 1 else self._record.first_generation()
        generation = self._record.generation() if self._first else 0
        return math.inf if generation == self._first else now - generation
