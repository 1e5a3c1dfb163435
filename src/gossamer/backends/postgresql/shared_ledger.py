"""The shared ledger on PostgreSQL: one transaction per call.

**Fencing.** Whatever is written in the name of a node locks the node's row first, and looks whether its lease runs. Who
takes a shard of a dead node locks that node's row too, and ends it. So a commit is complete before its shards are
taken, or it is refused.

**Locks** are requested in one order: the crawl's row, nodes by name, then rows of pages by key. Commits do not need the
crawl's row, so nodes commit at the same time.

**Inboxes.** Two commits to one inbox may become visible in another order than their positions. So messages are read and
removed by their ids; those of one sender stay in order, since its commits are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from gossamer.backends.postgresql import pages as stored_pages
from gossamer.backends.postgresql.connections import Bytes, Connection
from gossamer.backends.postgresql.leases import Leases, LockedNode
from gossamer.backends.postgresql.table_rows import ROWS_AT_ONCE, read_rows, write_rows
from gossamer.model.errors import LeaseLostError
from gossamer.model.records import UrlId
from gossamer.ports import Row
from gossamer.ports.shared_ledger import PAGE_PARTS, Commit, KnownBefore, Message, NodeId

_SHARDS_AT_ONCE = 64
_MESSAGES_AT_ONCE = 1000
_MESSAGES_READ_AT_ONCE = 20
_to_json = msgspec.json.Encoder().encode
_encode = msgspec.msgpack.Encoder().encode
_answer = msgspec.msgpack.Decoder(KnownBefore).decode


class PostgresSharedLedger(Leases):
    """See `gossamer.ports.shared_ledger` for the contract. Thread-safe."""

    # -- rows and links ---------------------------------------------------------------------------

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        with self._database.transaction() as connection:
            if commit.added:
                self._lock_crawl(connection)
            known = self._lock(connection, node)
            if commit.number <= known.commit:
                is_last = commit.number == known.commit and known.answer is not None
                return _answer(known.answer or b"") if is_last else KnownBefore()
            self._check_basis(connection, node, known, commit)
            if commit.added:
                self._extend_record(connection, commit.added)
            write_rows(connection, commit.rows)
            self._send(connection, f"{node.name}/{node.incarnation}/{commit.number}".encode(), commit.links)
            self._remove_read(connection, node, commit.read)
            if commit.archives:
                connection.execute(
                    "INSERT INTO archives SELECT %s, * FROM unnest(%s::text[], %s::bigint[]) "
                    "ON CONFLICT (node, file) DO UPDATE SET length = EXCLUDED.length",
                    [node.name, [row.key.decode() for row in commit.archives],
                     [int.from_bytes(row.value or b"", "big") for row in commit.archives]],
                )  # fmt: skip
            contents = stored_pages.add_contents(connection, commit.contents)
            answer = KnownBefore(contents, stored_pages.add_signatures(connection, commit.signatures))
            connection.execute(
                "UPDATE nodes SET commit = %s, totals = %s, pages = %s, domains = %s, answer = %s "
                "WHERE name = %s AND incarnation = %s",
                [commit.number, _to_json(commit.totals).decode(), commit.totals.new_pages, commit.totals.unique_domains,
                 _encode(answer), node.name, node.incarnation],
            )  # fmt: skip
            return answer

    def _check_basis(self, connection: Connection, node: NodeId, known: LockedNode, commit: Commit) -> None:
        """Raise if a commit is based on what is no longer there."""
        where = f"ledger {self._name}: node {node.name}"
        if commit.number != known.commit + 1:
            raise LeaseLostError(f"{where}: the engine has lost its commit {commit.number - 1}")
        (budget,) = self._one(connection, "SELECT pages FROM crawl")
        if budget is not None and commit.totals.new_pages > known.claims.get("pages", 0):
            raise LeaseLostError(f"{where}: the engine has lost its claim to {commit.totals.new_pages} pages")
        needed = {*commit.rows, *commit.read}
        if not needed:
            return
        owned = connection.execute(
            "SELECT shard, epoch FROM owners WHERE name = %s AND incarnation = %s AND shard = ANY(%s)",
            [node.name, node.incarnation, list(needed)],
        )
        found: dict[int, int] = dict(owned.fetchall())
        for shard in needed:
            if found.get(shard) != commit.epochs[shard]:
                raise LeaseLostError(f"{where}: shard {shard} is not its own any more")

    def _send(self, connection: Connection, sent_as: bytes, links: Mapping[int, bytes]) -> None:
        if links:
            connection.execute(
                "INSERT INTO inbox (shard, id, links) SELECT shard, %b, links "
                "FROM unnest(%b::int[], %b::bytea[]) AS sent(shard, links)",
                [sent_as, list(links), Bytes(links.values())],
            )

    def _remove_read(self, connection: Connection, node: NodeId, read: Mapping[int, Sequence[bytes]]) -> None:
        pairs = [(shard, each) for shard, ids in read.items() for each in ids]
        if not pairs:
            return
        removed = connection.execute(
            "DELETE FROM inbox USING unnest(%b::int[], %b::bytea[]) AS read(shard, id) "
            "WHERE inbox.shard = read.shard AND inbox.id = read.id",
            [[shard for shard, _ in pairs], Bytes(each for _, each in pairs)],
        )
        if removed.rowcount != len(pairs):
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: the engine has lost messages to its shards")

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        pairs = [(shard, each) for shard, ids in read.items() for each in ids]
        with self._database.transaction() as connection:
            self._require_live(connection, node)
            found = connection.execute(
                """
                SELECT shard, id, links FROM (
                    SELECT shard, position, id, links,
                        sum(octet_length(links)) OVER (ORDER BY position) - octet_length(links) AS before
                    FROM (
                        SELECT inbox.* FROM inbox JOIN owners USING (shard)
                        WHERE owners.name = %b AND owners.incarnation = %b AND NOT EXISTS (
                            SELECT 1 FROM unnest(%b::int[], %b::bytea[]) AS read(shard, id)
                            WHERE read.shard = inbox.shard AND read.id = inbox.id
                        )
                        ORDER BY position LIMIT %b
                    ) AS waiting
                ) AS counted WHERE before < %b ORDER BY position
                """,
                [node.name, node.incarnation, [shard for shard, _ in pairs], Bytes(each for _, each in pairs),
                 _MESSAGES_AT_ONCE, max_bytes],
                binary=True,
            )  # fmt: skip
            messages: dict[int, list[Message]] = {}
            for shard, its_id, links in found:
                messages.setdefault(shard, []).append(Message(its_id, links))
            moved = connection.execute(
                "SELECT shard FROM unnest(%b::int[], %b::bytea[]) AS read(shard, id) WHERE NOT EXISTS "
                "(SELECT 1 FROM inbox WHERE inbox.shard = read.shard AND inbox.id = read.id)",
                [[shard for shard, _ in pairs], Bytes(each for _, each in pairs)],
            ).fetchall() if pairs else ()  # fmt: skip
            return {shard: some for shard, some in messages.items() if (shard,) not in moved}

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        for some in _batches(shards):
            with self._database.transaction() as connection:
                (owned,) = self._one(
                    connection,
                    "SELECT count(*) FROM owners WHERE name = %s AND incarnation = %s AND shard = ANY(%s)",
                    [node.name, node.incarnation, some],
                )
                if owned != len(some):
                    raise LeaseLostError(f"node {node.name}: shards that it reads are not its own any more")
                for table in tables:
                    yield from read_rows(connection, some, table)

    # -- for readers ------------------------------------------------------------------------------

    def look_up(self, ids: Sequence[UrlId]) -> list[bytes | None]:
        with self._database.transaction() as connection:
            found = connection.execute("SELECT key, value FROM urls WHERE key = ANY(%b)", [Bytes(ids)], binary=True)
            known = dict(found.fetchall())
        return [known.get(each) for each in ids]

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards, whoever owns them."""
        for some in _batches(shards):
            with self._database.transaction() as connection:
                for table in tables:
                    yield from read_rows(connection, some, table)

    # -- for `gossamer migrate` -------------------------------------------------------------------

    def pages(self, part: int) -> Iterator[list[Row]]:
        for table, key, value in (("contents", "hash", "page"), ("signatures", "page", "signature")):
            query = f"SELECT {key}, {value} FROM {table} WHERE {key} >= %b AND {key} < %b"  # noqa: S608
            with self._database.transaction() as connection, connection.cursor(name="pages") as cursor:
                after = bytes([part + 1]) if part < PAGE_PARTS - 1 else b"\xff" * 33
                cursor.execute(query, [bytes([part]), after], binary=True)
                while found := cursor.fetchmany(ROWS_AT_ONCE):
                    yield [Row(table, *each) for each in found]

    def add_pages(self, rows: Sequence[Row]) -> None:
        with self._database.transaction() as connection:
            stored_pages.load_pages(connection, rows)

    def messages(self, shards: Collection[int]) -> Iterator[tuple[int, bytes]]:
        with self._database.transaction() as connection, connection.cursor(name="messages") as cursor:
            query = "SELECT shard, links FROM inbox WHERE shard = ANY(%b) ORDER BY shard, position"
            cursor.execute(query, [list(shards)], binary=True)
            while found := cursor.fetchmany(_MESSAGES_READ_AT_ONCE):
                yield from found

    def close(self) -> None:
        self._database.close()


def _batches(shards: Collection[int]) -> Iterator[list[int]]:
    waiting = sorted(shards)
    for start in range(0, len(waiting), _SHARDS_AT_ONCE):
        yield waiting[start : start + _SHARDS_AT_ONCE]
