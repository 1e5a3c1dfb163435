"""Who takes part in a crawl on PostgreSQL, who owns which shard, who may use how much of a budget, and when it is over.

Whatever changes one of these locks the crawl's row first, and then nodes in the order of their names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.postgresql.connections import Bytes, Connection
from gossamer.backends.postgresql.database import Database
from gossamer.core.cluster.ending import why_over
from gossamer.core.cluster.record_additions import Additions, extended
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.politeness.address_pool import SharedAddress, is_new
from gossamer.core.url.identity import SHARD_COUNT
from gossamer.model.errors import LeaseLostError, NodeNameTakenError, UsageError
from gossamer.model.figures import Totals
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports.shared_ledger import (
    Member,
    Membership,
    NodeId,
    NodeView,
    Ownership,
)

FORMAT = 1  # of the tables
_to_json = msgspec.json.Encoder().encode
_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(CrawlRecord).decode
_status = msgspec.json.Decoder(NodeStatus).decode
_totals = msgspec.json.Decoder(Totals).decode
_address = msgspec.msgpack.Decoder(SharedAddress).decode


class LockedNode(Struct, frozen=True):
    """A node whose row is locked."""

    commit: int
    claims: dict[str, int]
    answer: bytes | None


class Leases:
    """The part of the shared ledger that decides about the whole crawl."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._name = database.name

    # -- the record -------------------------------------------------------------------------------

    def start(self, record: CrawlRecord) -> CrawlRecord:
        self._database.create()
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO crawl (format, version, body, pages) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [FORMAT, record.version, _encode(record), record.budgets.get("pages")],
            )
            stored = self._stored(connection)
            assert stored is not None
            return stored

    def record(self) -> CrawlRecord | None:
        with self._database.transaction() as connection:
            return self._stored(connection) if self._database.exists(connection) else None

    def record_version(self) -> int:
        with self._database.transaction() as connection:
            found = connection.execute("SELECT version FROM crawl").fetchone()
            return 0 if found is None else int(found[0])

    def _stored(self, connection: Connection) -> CrawlRecord | None:
        found = connection.execute("SELECT format, version, body, ended FROM crawl").fetchone()
        if found is None:
            return None
        stored_format, version, body, ended = found
        try:
            record = _record(body)
        except msgspec.MsgspecError:
            stored_format = -1
        if stored_format != FORMAT:
            raise UsageError(
                f"ledger {self._name}: this program cannot read the record of the crawl: another version of Gossamer "
                "started it; use that one"
            )
        return replace(record, version=version, ended=ended)

    def change_record(self, record: CrawlRecord) -> bool:
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE crawl SET version = %s, body = %s, pages = %s, ended = %s "
                "WHERE version = %s AND (ended = '' OR %s = '')",
                [record.version, _encode(record), record.budgets.get("pages"), record.ended, record.version - 1,
                 record.ended],
            )  # fmt: skip
            return changed.rowcount == 1

    def _extend_record(self, connection: Connection, added: Additions) -> None:
        """Add what extends the scope to the record, whose row is locked."""
        record = self._stored(connection)
        if record is not None and not record.ended:
            wanted = extended(record, added)
            connection.execute("UPDATE crawl SET version = %s, body = %s", [wanted.version, _encode(wanted)])

    # -- leases -----------------------------------------------------------------------------------

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        with self._database.transaction() as connection:
            self._lock_crawl(connection)
            live = connection.execute(
                "SELECT incarnation FROM nodes WHERE name = %s AND is_live(nodes)",
                [node.name],
            ).fetchall()
            if any(incarnation != node.incarnation for (incarnation,) in live):
                raise NodeNameTakenError(f"ledger {self._name}: a live node has the name {node.name}")
            if not live:  # else the answer to the first call was lost
                connection.execute(
                    "INSERT INTO nodes (name, incarnation, label, lease_s, lease_until) "
                    "VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s)) "
                    "ON CONFLICT (name, incarnation) DO UPDATE SET label = EXCLUDED.label, lease_s = EXCLUDED.lease_s, "
                    "lease_until = EXCLUDED.lease_until, is_over = false",
                    [node.name, node.incarnation, label, lease_s, lease_s],
                )
            return self._membership(connection, node)

    def _lock_crawl(self, connection: Connection) -> None:
        connection.execute("SELECT 1 FROM crawl FOR UPDATE")

    def _lock(self, connection: Connection, node: NodeId) -> LockedNode:
        """Lock the row of a node; raise if its lease has ended."""
        found = connection.execute(
            "SELECT commit, claims, answer, is_live(nodes) FROM nodes WHERE name = %s AND incarnation = %s FOR UPDATE",
            [node.name, node.incarnation],
        ).fetchone()
        if found is None or not found[3]:
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")
        return LockedNode(*found[:3])

    def _require_live(self, connection: Connection, node: NodeId) -> None:
        query = "SELECT is_live(nodes) FROM nodes WHERE name = %s AND incarnation = %s"
        found = connection.execute(query, [node.name, node.incarnation]).fetchone()
        if found is None or not found[0]:
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        with self._database.transaction() as connection:
            self._lock(connection, node)
            connection.execute(
                "UPDATE nodes SET lease_until = clock_timestamp() + make_interval(secs => lease_s), status = %s, "
                "idle = %s, idle_commit = %s, idle_version = %s, idle_domains = %s "
                "WHERE name = %s AND incarnation = %s",
                [_to_json(status).decode(), status.idle, status.commit, status.record_version, status.domains,
                 node.name, node.incarnation],
            )  # fmt: skip
            return self._membership(connection, node)

    def _membership(self, connection: Connection, node: NodeId) -> Membership:
        now, version, ended, budget = self._one(connection, "SELECT now_s(), version, ended, pages FROM crawl")
        lease_s, commit, claims = self._one(
            connection,
            "SELECT lease_s, commit, claims FROM nodes WHERE name = %s AND incarnation = %s",
            [node.name, node.incarnation],
        )
        live = connection.execute(
            "SELECT name, label, extract(epoch FROM lease_until)::double precision FROM nodes WHERE is_live(nodes) "
            "ORDER BY name"
        ).fetchall()
        (domains,) = self._one(connection, "SELECT coalesce(sum(domains), 0)::bigint FROM nodes")
        owned = connection.execute(
            "SELECT shard, epoch FROM owners WHERE name = %s AND incarnation = %s", [node.name, node.incarnation]
        )
        return Membership(
            now=now,
            lease_s=lease_s,
            members=tuple(Member(name, label) for name, label, _ in live),
            shards=dict(owned.fetchall()),
            commit=commit,
            claimed=None if budget is None else claims.get("pages", 0),
            record_version=version,
            domains=domains,
            first_end_s=min(until for _, _, until in live) - now,
            ended=ended,
        )

    def _one(self, connection: Connection, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        found = connection.execute(query, values).fetchone()
        assert found is not None
        return found

    def leave(self, node: NodeId) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE nodes SET is_over = true WHERE name = %s AND incarnation = %s", [node.name, node.incarnation]
            )

    def _meet_server(self, connection: Connection) -> None:
        """Record since when the server is another one than before: it may have lost what it was told last."""
        connection.execute(
            "UPDATE crawl SET server_start = pg_postmaster_start_time(), "
            "server_since = CASE WHEN server_start IS NULL THEN NULL ELSE clock_timestamp() END "
            "WHERE server_start IS DISTINCT FROM pg_postmaster_start_time()"
        )

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        if not shards:
            return {}
        with self._database.transaction() as connection:
            self._lock_crawl(connection)
            self._lock(connection, node)
            self._meet_server(connection)
            free = self._free(connection, shards)
            if not free:
                return {}
            (last,) = self._one(
                connection,
                "UPDATE crawl SET epoch = greatest(epoch, (now_s() * 1000000)::bigint) + %s RETURNING epoch",
                [len(free)],
            )
            taken = dict(zip(free, range(last - len(free) + 1, last + 1), strict=True))
            connection.execute(
                "INSERT INTO owners SELECT shard, %s, %s, epoch "
                "FROM unnest(%s::int[], %s::bigint[]) AS taken(shard, epoch) "
                "ON CONFLICT (shard) DO UPDATE "
                "SET name = EXCLUDED.name, incarnation = EXCLUDED.incarnation, epoch = EXCLUDED.epoch",
                [node.name, node.incarnation, list(taken), list(taken.values())],
            )
            connection.execute(
                "UPDATE nodes SET idle = '' WHERE name = %s AND incarnation = %s", [node.name, node.incarnation]
            )
            return taken

    def _free(self, connection: Connection, shards: Collection[int]) -> list[int]:
        """Return shards that no live node owns; the dead nodes that owned them are ended for good.

        A server that was restarted may have lost the last renewals: nodes that it knows have a lease from its start on.
        """
        owners = {
            shard: (name, incarnation)
            for shard, name, incarnation in connection.execute(
                "SELECT shard, name, incarnation FROM owners WHERE shard = ANY(%s)", [list(shards)]
            )
        }
        dead: set[tuple[str, str]] = set()
        for name, incarnation in sorted(set(owners.values())):
            ended = connection.execute(
                "UPDATE nodes SET is_over = true WHERE name = %s AND incarnation = %s "
                "AND NOT (is_live(nodes)) AND (is_over OR clock_timestamp() > make_interval(secs => lease_s) "
                "+ coalesce((SELECT server_since FROM crawl), '-infinity')) RETURNING 1",
                [name, incarnation],
            )
            if ended.fetchone() is not None:
                dead.add((name, incarnation))
        return [shard for shard in shards if shard not in owners or owners[shard] in dead]

    def release(self, node: NodeId, shards: Collection[int]) -> None:
        with self._database.transaction() as connection:
            self._lock_crawl(connection)
            self._lock(connection, node)
            connection.execute(
                "DELETE FROM owners WHERE name = %s AND incarnation = %s AND shard = ANY(%s)",
                [node.name, node.incarnation, list(shards)],
            )

    # -- the whole crawl --------------------------------------------------------------------------

    def claim(self, node: NodeId, budget: str, amount: int) -> int:
        with self._database.transaction() as connection:
            self._lock_crawl(connection)
            known = self._lock(connection, node)
            record = self._stored(connection)
            assert record is not None
            spoken_for, own = self._one(
                connection,
                "SELECT sum(greatest(CASE WHEN is_live(nodes) THEN coalesce((claims ->> %s)::bigint, 0) ELSE 0 END, "
                "CASE %s WHEN 'pages' THEN pages ELSE domains END))::bigint, "
                "max(CASE %s WHEN 'pages' THEN pages ELSE domains END) FILTER (WHERE name = %s AND incarnation = %s) "
                "FROM nodes",
                [budget, budget, budget, node.name, node.incarnation],
            )
            free = record.budgets[budget] - spoken_for + max(own, known.claims.get(budget, 0))
            claimed = max(min(amount, free), own)
            connection.execute(
                "UPDATE nodes SET claims = claims || jsonb_build_object(%s::text, %s::bigint) "
                "WHERE name = %s AND incarnation = %s",
                [budget, claimed, node.name, node.incarnation],
            )
            return int(claimed)

    def reserve(self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk]) -> dict[str, AddressGrant]:
        me = f"{node.name}/{node.incarnation}"
        with self._database.transaction() as connection:
            self._require_live(connection, node)
            self._meet_server(connection)
            names = sorted(asks)
            connection.execute(
                "INSERT INTO addresses SELECT address, %b FROM unnest(%b::text[]) AS asked(address) "
                "ON CONFLICT DO NOTHING",
                [_encode(SharedAddress()), names],
            )
            now, since_start_s = self._one(
                connection,
                "SELECT now_s(), CASE WHEN server_since IS NULL THEN 'Infinity' "
                "ELSE extract(epoch FROM clock_timestamp() - server_since) END::double precision FROM crawl",
            )
            found = connection.execute(
                "SELECT address, state FROM addresses WHERE address = ANY(%b) ORDER BY address FOR UPDATE",
                [names],
                binary=True,
            )
            known = {address: _address(state) for address, state in found}
            may_be_old = is_new(rules, since_start_s)
            grants = {name: known[name].grant(me, rules, ask, now, is_new=may_be_old) for name, ask in asks.items()}
            connection.execute(
                "UPDATE addresses SET state = changed.state "
                "FROM unnest(%b::text[], %b::bytea[]) AS changed(address, state) "
                "WHERE addresses.address = changed.address",
                [names, Bytes(_encode(known[name]) for name in names)],
            )
            return grants

    def try_end(self, node: NodeId) -> str:
        with self._database.transaction() as connection:
            self._lock_crawl(connection)
            record = self._stored(connection)
            assert record is not None
            # Locked, so that no commit is under way, and none begins.
            found = connection.execute(
                "SELECT idle, idle_commit = commit AND idle_version = %s, idle_domains, pages, domains, is_live(nodes) "
                "FROM nodes ORDER BY name, incarnation FOR UPDATE",
                [record.version],
            ).fetchall()
            self._require_live(connection, node)
            if record.ended:
                return record.ended
            why = self._end_of(connection, record, found)
            if why:
                connection.execute("UPDATE crawl SET ended = %s, version = version + 1", [why])
            return why

    def _end_of(self, connection: Connection, record: CrawlRecord, nodes: Sequence[tuple[Any, ...]]) -> str:
        """Return why the crawl is over, or an empty string."""
        live = [each for each in nodes if each[5]]
        page_count = sum(each[3] for each in nodes)
        domains = sum(each[4] for each in nodes)
        if not all(idle and is_current and known in (None, domains) for idle, is_current, known, *_ in live):
            return ""
        (waiting,) = self._one(connection, "SELECT EXISTS (SELECT 1 FROM inbox)")
        (owned,) = self._one(
            connection,
            "SELECT count(*) FROM owners JOIN nodes USING (name, incarnation) WHERE is_live(nodes)",
        )
        if waiting or owned < SHARD_COUNT:
            return ""
        return why_over({each[0] for each in live}, page_count, record.budgets.get("pages"))

    def nodes(self) -> dict[NodeId, NodeView]:
        with self._database.transaction() as connection:
            found = connection.execute(
                "SELECT name, incarnation, status::text, totals::text, is_live(nodes) FROM nodes "
                "ORDER BY name, incarnation"
            )
            return {
                NodeId(name, incarnation): NodeView(
                    _status(status) if status else NodeStatus(), _totals(totals) if totals else Totals(), is_live
                )
                for name, incarnation, status, totals, is_live in found
            }

    def archive_ends(self, name: str) -> dict[str, int]:
        with self._database.transaction() as connection:
            return dict(connection.execute("SELECT file, length FROM archives WHERE node = %s", [name]).fetchall())

    def ownership(self, shard: int) -> Ownership | None:
        with self._database.transaction() as connection:
            found = connection.execute(
                "SELECT name, incarnation, epoch, is_live(nodes) FROM owners JOIN nodes USING (name, incarnation) "
                "WHERE shard = %s",
                [shard],
            ).fetchone()
            return None if found is None else Ownership(NodeId(found[0], found[1]), found[2], found[3])
