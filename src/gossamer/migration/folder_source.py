"""A stopped crawl in a folder, to be copied to a ledger that nodes share.

The folder is locked meanwhile, and not changed. Its archive stays where it is: in the ledger a node that never runs
(`ORIGIN_NODE`) stands for the folder, with its totals and its archive files, until a node takes the folder over.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.near_dup import META_KEY, signatures_from
from gossamer.backends.local.raw_ledger import RawLedger
from gossamer.core.ledger import rows
from gossamer.core.ledger.rows import SHARDED
from gossamer.core.ledger.tables import SEEDS
from gossamer.engine.admission.seed_rules import MAX_SHARED
from gossamer.migration.parts import LOT_ROWS, PAGES, Lot, NodePart, shorter
from gossamer.model.errors import UsageError
from gossamer.model.state import (
    ORIGIN_NODE,
    CrawlRecord,
    CrawlState,
    IdentityRecord,
    NodeStatus,
    Origin,
    SeedRecord,
    Terms,
)
from gossamer.ports import Row
from gossamer.ports.shared_ledger import NodeId
from gossamer.reading.folder import CrawlReader
from gossamer.reading.node_folders import NODE_FILE
from gossamer.runtime.session.opt_out import FILE_NAME, OptOutFile
from gossamer.settings.crawl_key import new_crawl_id, upgraded_identity
from gossamer.settings.load import to_toml
from gossamer.settings.model import Settings


class FolderSource:
    """See `migration.parts.CrawlSource`; use it with `with`."""

    def __init__(self, path: Path, terms: Terms) -> None:
        self.folder = CrawlFolder(path)
        self.name = str(path)
        self.settings = Settings()
        self.state = CrawlState()
        self.id = ""
        self.notes: list[str] = []
        self._terms = terms
        self._seeds: list[SeedRecord] = []  # with rules of their own, by number
        self._first_signature = 0  # of those that are compared
        self._identity = IdentityRecord()
        self._ledger = RawLedger(self.folder.state, is_readonly=True)

    def __enter__(self) -> FolderSource:
        self.folder.require_crawl()
        if (self.folder.state / NODE_FILE).is_file():
            raise UsageError(
                f"{self.name}: the folder of a node; the crawl is in the ledger that nodes share: "
                f"gossamer migrate URL {self.name}-copied"
            )
        self.folder.lock()
        try:
            with CrawlReader(self.folder.path) as crawl:
                self.settings = crawl.settings
                self.state = crawl.state
                self._seeds = sorted(crawl.ledger.records(SEEDS), key=lambda seed: seed.number)
            self._check()
            self._ledger.__enter__()
        except BaseException:
            self.folder.release()
            raise
        self.id = self._ledger.identity()
        stored = self._ledger.get("meta", rows.IDENTITY_KEY)
        self._identity = upgraded_identity() if stored is None else rows.decode_identity(stored)
        self._first_signature = signatures_from(self._ledger.get("meta", META_KEY))[1]
        if first := self._first_signature:
            self.notes.append(f"{first} signatures of an earlier version, which are never compared, are left out")
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.__exit__()
        self.folder.release()

    def _check(self) -> None:
        """Raise if the crawl cannot be continued by several nodes."""
        if self.state.is_running:
            raise UsageError(
                f"{self.name}: its last run was killed; 'gossamer resume {self.name}' completes what it had stored: "
                "do that, stop it, and migrate then"
            )
        if len(self._seeds) > MAX_SHARED:
            raise UsageError(
                f"{self.name}: {len(self._seeds)} seeds have a scope, a depth or metadata of their own; "
                f"nodes can share at most {MAX_SHARED}"
            )
        if self.state.reread is not None:
            raise UsageError(
                f"{self.name}: pages are being read again, since a limit was raised, which only one machine can do; "
                f"'gossamer resume {self.name}' until an event 'links_read_again' says that it is done"
            )

    @property
    def record(self) -> CrawlRecord:
        """The record of the crawl."""
        budgets: dict[str, int] = {}
        settings = self.settings
        if settings.max_pages is not None:
            budgets = {"pages": max(settings.max_pages, self.state.totals.new_pages)}
        opt_outs = OptOutFile(self.folder.path / FILE_NAME)
        names = sorted(opt_outs.changed() or ())
        return CrawlRecord(
            self._terms,
            to_toml(settings).encode(),
            scope=self.state.scope,
            budgets=budgets,
            opened=self.state.opened_addresses,
            blocked={ORIGIN_NODE: names} if opt_outs.is_there else {},
            seeds=self._seeds,
            identity=self._identity,
            origin=Origin(self.id, self._ledger.get("meta", rows.CRAWL_KEY) or b""),
            id=new_crawl_id(),
        )

    def nodes(self) -> Mapping[NodeId, NodePart]:
        """Return the folder as a node."""
        ends = {row.key.decode(): int.from_bytes(row.value or b"", "big") for row in self._ledger.rows("archives")}
        status = NodeStatus(machine=socket.gethostname(), folder=str(self.folder.path.absolute()))
        return {NodeId(ORIGIN_NODE, self.id[:12]): NodePart(self.state.totals, status, ends)}

    def lots(self, after: str) -> Iterator[Lot]:
        """Yield everything after a mark: a table and the last key."""
        table, _, key = after.partition(" ")
        tables = (*SHARDED, *PAGES)
        for each in tables[tables.index(table) :] if table else tables:
            start = bytes.fromhex(key) if each == table else b""
            found = self._rows(each, start)
            while lot := list(islice(found, LOT_ROWS)):
                yield Lot([shorter(row) for row in lot], after=f"{each} {lot[-1].key.hex()}")

    def _rows(self, table: str, after: bytes) -> Iterator[Row]:
        if table != "signatures":
            return self._ledger.rows(table, after)
        before = (self._first_signature - 1).to_bytes(8, "big") if self._first_signature else b""
        return self._ledger.rows(table, max(after, before))

    def check_unchanged(self) -> None:
        """Do nothing: the folder is locked."""
