"""Copies a crawl into a ledger that nodes share, by means that every such ledger has: leases and commits.

A node that fetches nothing takes all shards and commits the rows in lots. How far it has got is part of the crawl's
record, which says that the migration is not finished: no node joins meanwhile. Lots that are committed twice, since a
process died before the mark, change nothing. Messages are compared with those that wait already.

The nodes of the source join under their own names, commit their totals and the lengths of their archive files, and
leave: budgets and counts continue, and readers find the folders.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex

from msgspec.structs import replace

from gossamer.core.ledger.rows import SHARDED
from gossamer.core.ledger.tables import SEEDS
from gossamer.core.url.identity import SHARD_COUNT, shard_of
from gossamer.foundation import failpoints
from gossamer.migration.checksums import ALL_TABLES, archive_rows, message_row, node_row
from gossamer.migration.ledger_source import seed_rows
from gossamer.migration.parts import PAGES, CrawlSource, Lot, NodePart
from gossamer.model.errors import GossamerError, LeaseLostError, LedgerUnavailableError, UsageError
from gossamer.model.figures import Totals
from gossamer.model.state import CrawlRecord, Migration, NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import PAGE_PARTS, Commit, NodeId, SharedLedger

COPIER = "migrate"  # the node that commits the rows
LEASE_S = 60.0
RENEW_S = 5.0
SHARDS_AT_ONCE = 64


class LedgerTarget:
    """See `migration.parts.CrawlTarget`. The caller closes the ledger."""

    def __init__(self, shared: SharedLedger, source: CrawlSource, name: str) -> None:
        self._shared = shared
        self._source = source
        self._name = name
        self._node = NodeId(COPIER, token_hex(6))
        self._epochs: Mapping[int, int] = {}
        self._commits = 0
        self._renewed_at = 0.0
        self._record = source.record
        self.tables: Sequence[str] = ALL_TABLES
        self.file_bytes = 0
        self.notes: Sequence[str] = ()

    def begin(self) -> str | None:
        """Start the crawl, or continue with one that this crawl was not completely copied to."""
        shared = self._shared
        source = self._source
        self._record = shared.start(replace(source.record, migration=Migration(source.id)))
        begun = self._record.migration
        if begun is None:
            raise UsageError(f"{self._name}: there is such a crawl already; choose another name")
        if begun.source != source.id:
            raise UsageError(
                f"{self._name}: an unfinished migration of another crawl, or of this one before it was continued; "
                "choose another name, or remove its keys"
            )
        for node, view in shared.nodes().items():
            if node.name == COPIER and view.is_live:
                shared.leave(node)  # of a process that died
        shared.join(self._node, "", LEASE_S)
        self._renewed_at = time.monotonic()
        self._epochs = shared.take(self._node, range(SHARD_COUNT))
        if len(self._epochs) < SHARD_COUNT:
            raise GossamerError(f"{self._name}: another node has shards of it; try again in {LEASE_S:.0f} s")
        return begun.after

    def add(self, lot: Lot) -> None:
        """Commit a lot, and mark it."""
        by_shard: dict[int, list[Row]] = {}
        pages: list[Row] = []
        for row in lot.rows:
            if row.table in PAGES:
                pages.append(row)
            elif row.table != SEEDS.name:  # which are in the record
                by_shard.setdefault(shard_of(row.key), []).append(row)
        if by_shard:
            epochs = {shard: self._epochs[shard] for shard in by_shard}
            self._commit(Commit(0, Totals(), epochs=epochs, rows=by_shard))
        if pages:
            self._shared.add_pages(pages)
        for shard, links in lot.messages:
            self._add_message(shard, links)
        failpoints.reach("before_mark")
        if lot.after:
            self._change(replace(self._record, migration=Migration(self._source.id, lot.after)))
        self.keep_alive()

    def keep_alive(self) -> None:
        """Renew the lease from time to time."""
        if time.monotonic() - self._renewed_at > RENEW_S:
            self._shared.renew(self._node, NodeStatus())
            self._renewed_at = time.monotonic()

    def _commit(self, commit: Commit) -> None:
        self._commits += 1
        self._shared.commit(self._node, replace(commit, number=self._commits))

    def _add_message(self, shard: int, links: bytes) -> None:
        """Send a message unless it was sent before: each is different, since its commit sent it."""
        if links not in [waiting for _, waiting in self._shared.messages([shard])]:
            self._commit(Commit(0, Totals(), links={shard: links}))

    def _change(self, record: CrawlRecord) -> None:
        changed = replace(record, version=self._record.version + 1)
        if not self._shared.change_record(changed):
            raise GossamerError(f"{self._name}: another migration to it is running")
        self._record = changed

    def add_rest(self) -> None:
        """Store the nodes."""
        for node, part in self._source.nodes().items():
            try:
                self._add_node(node, part)
            except LeaseLostError:
                continue  # it has left: it was stored before. The comparison shows whether all of it was
            failpoints.reach("after_node")

    def _add_node(self, node: NodeId, part: NodePart) -> None:
        shared = self._shared
        shared.join(node, "", LEASE_S)
        if "pages" in self._record.budgets:
            shared.claim(node, "pages", part.totals.new_pages)
        shared.commit(node, Commit(1, part.totals, archives=archive_rows(part.ends)))
        shared.renew(node, part.status)
        shared.leave(node)

    def parts(self) -> Iterator[Sequence[Row]]:
        """Yield everything that is in the ledger."""
        shared = self._shared
        yield seed_rows(self._record)
        for start in range(0, SHARD_COUNT, SHARDS_AT_ONCE):
            yield from shared.scan(range(start, start + SHARDS_AT_ONCE), SHARDED)
        for part in range(PAGE_PARTS):
            yield from shared.pages(part)
        yield [message_row(*message) for message in shared.messages(range(SHARD_COUNT))]
        views = shared.nodes()
        expected = self._source.nodes()
        for node in expected.keys() & views.keys():
            ends = shared.archive_ends(node.name) if expected[node].ends else {}
            yield [node_row(node, NodePart(views[node].totals, views[node].status, ends))]
            yield archive_rows(ends)

    def begin_anew(self) -> None:
        """Forget the mark."""
        self._change(replace(self._record, migration=Migration(self._source.id)))

    def finish(self) -> None:
        """Free the shards, and let nodes join."""
        self._shared.release(self._node, range(SHARD_COUNT))
        self._shared.leave(self._node)
        failpoints.reach("before_end")
        self._change(replace(self._record, migration=None))

    def close(self) -> None:
        """Give up the lease, so that the next attempt need not wait for its end."""
        with suppress(LedgerUnavailableError):  # it ends by itself
            self._shared.leave(self._node)
