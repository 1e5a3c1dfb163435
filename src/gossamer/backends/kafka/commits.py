"""How a commit is made on Kafka and Cassandra: sent, journaled, decided, applied.

0. compare   signatures with those of other pages, and store them at once: of two nodes that fetch near copies at the
             same time, one finds the other's
1. send      the links for other shards, to the topic; readers wait until the commit is made
2. journal   the whole commit, in rows of the node's own
3. decide    one change of the node's fence (`leases`), under its conditions; from then on the commit is made
4. apply     rows, contents, positions and the crawl's record, one batch per partition; repeated or too late
             it does nothing. Last the copy of the fence, which says that everything is applied

A node makes its next commit when the last one is applied. So only the last commit of a node that died can be
incomplete, and who buries it completes that from the journal, before its shards are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import zstandard
from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.kafka.database import Keyspace, Statement, int_bytes, long_bytes
from gossamer.backends.kafka.layout import Layout
from gossamer.backends.kafka.leases import Lease, Leases
from gossamer.backends.kafka.pages import StoredPages
from gossamer.backends.kafka.record import Record
from gossamer.backends.kafka.rows import ShardRows
from gossamer.foundation import failpoints
from gossamer.model.errors import GossamerError
from gossamer.model.records import Similar, UrlId
from gossamer.ports.shared_ledger import Commit, NodeId

CHUNK_BYTES = 256 << 10
_ZSTD_LEVEL = 1
_WRITE_CHUNK = "INSERT INTO journal (crawl, name, incarnation, chunk, number, body) VALUES (?, ?, ?, ?, ?, ?)"
_WRITE_POSITION = "INSERT INTO positions (crawl, shard, position) VALUES (?, ?, ?) USING TIMESTAMP ?"
_WRITE_ARCHIVE = "INSERT INTO archives (crawl, node, file, length) VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
_encode = msgspec.msgpack.Encoder().encode


class JournaledCommit(Struct, frozen=True):
    commit: Commit  # without its links and signatures
    positions: dict[int, tuple[int, int]]  # shard -> from where on its links are not done with, timestamp
    at_us: int  # the engine's time


_plan = msgspec.msgpack.Decoder(JournaledCommit).decode
_similar = msgspec.msgpack.Decoder(dict[UrlId, Similar]).decode


class Commits:
    """See the module."""

    def __init__(self, database: Keyspace, record: Record) -> None:
        self._database = database
        self._crawl = database.name
        self._record = record
        self.rows = ShardRows(database)
        self.pages = StoredPages(database)
        self.leases = Leases(database, self.complete)
        self._layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        """How the crawl is divided."""
        if self._layout is None:
            found = self._record.read()
            if found is None:
                raise GossamerError(f"ledger {self._crawl}: there is no crawl of this name any more")
            self._layout = found.layout
        return self._layout

    def make(self, node: NodeId, plan: JournaledCommit, similar: Mapping[UrlId, Similar]) -> bool:
        """Journal and decide a commit; False if the node's lease has ended."""
        number = plan.commit.number
        body = zstandard.ZstdCompressor(_ZSTD_LEVEL).compress(_encode(plan))
        chunks = [body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES)]
        failpoints.reach("before_journal")
        self._database.read_many(
            (_WRITE_CHUNK, (self._crawl, node.name, node.incarnation, place, number, chunk))
            for place, chunk in enumerate(chunks)
        )
        failpoints.reach("before_decision")
        return self.leases.decide(node, number, plan.commit.totals, _encode(similar), len(chunks))

    def apply(self, node: NodeId, plan: JournaledCommit) -> dict[bytes, UrlId]:
        """Apply a commit that is made; return contents of which another page is the first."""
        commit = plan.commit
        if commit.added:
            self._record.extend(commit.added)
        failpoints.reach("before_rows")
        self._database.write_batches(self.pages.grouped(self._statements(plan)))
        self.write_positions(plan.positions)
        self._write_archives(node, plan)
        failpoints.reach("before_contents")
        known = self.pages.add_contents(commit.contents, self.layout)
        failpoints.reach("before_publication")
        self.leases.publish(node, commit.number, commit.totals)
        return known

    def _statements(self, plan: JournaledCommit) -> Iterator[tuple[int, Statement]]:
        commit = plan.commit

        def stamp_of(shard: int) -> int:
            return commit.epochs[shard] + commit.number

        return self.rows.statements(commit.rows, stamp_of, self.layout)

    def write_positions(self, positions: Mapping[int, tuple[int, int]]) -> None:
        """Store from where on the links of shards are not done with, each with a timestamp."""
        crawl = self._crawl.encode()
        statements = [
            self._database.statement(_WRITE_POSITION, crawl, int_bytes(shard), long_bytes(position), long_bytes(stamp))
            for shard, (position, stamp) in positions.items()
        ]
        self._database.write_batches([((crawl,), statements)])

    def _write_archives(self, node: NodeId, plan: JournaledCommit) -> None:
        crawl = self._crawl.encode()
        name = node.name.encode()
        stamp = long_bytes(plan.at_us)
        statements = [
            self._database.statement(_WRITE_ARCHIVE, crawl, name, row.key, row.value or long_bytes(0), stamp)
            for row in plan.commit.archives
        ]
        self._database.write_batches([((crawl, name), statements)])

    def complete(self, node: NodeId, lease: Lease) -> None:
        """Apply the last commit of an incarnation, unless it is applied."""
        copy = self.leases.copies().get(node)
        if lease.commit and (copy is None or copy.commit < lease.commit):
            self.apply(node, self.journaled(node, lease))

    def journaled(self, node: NodeId, lease: Lease) -> JournaledCommit:
        """Return the last commit of an incarnation."""
        found = self._database.read(
            "SELECT number, body FROM journal WHERE crawl = ? AND name = ? AND incarnation = ?",
            *(self._crawl, node.name, node.incarnation),
        )
        chunks = [body for number, body in found if number == lease.commit][: lease.journal]
        if len(chunks) < lease.journal:
            raise GossamerError(
                f"ledger {self._crawl}: Cassandra has lost the journal of commit {lease.commit} of node {node.name}; "
                "restore its data"
            )
        body = zstandard.ZstdDecompressor().decompress(b"".join(chunks), max_output_size=1 << 31)
        return _plan(body)


def similar_in(answer: bytes | None) -> dict[UrlId, Similar]:
    """Return which pages of a commit are similar to others, from the answer that is stored with it."""
    return _similar(answer) if answer else {}


def plan_of(commit: Commit, positions: dict[int, tuple[int, int]], at_us: int) -> JournaledCommit:
    """Return a commit as it is journaled: without what was sent and stored before."""
    return JournaledCommit(replace(commit, links={}, signatures={}), positions, at_us)
