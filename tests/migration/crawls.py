"""A stopped crawl in a folder, and a ledger in memory to migrate it to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gossamer.backends.local.raw_ledger import RawLedger
from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.control.copied_folder import complete_copy
from gossamer.control.record import own_terms
from gossamer.core.ledger import rows
from gossamer.migration.folder_source import FolderSource
from gossamer.migration.folder_target import FolderPlan, FolderTarget
from gossamer.migration.ledger_source import LedgerSource
from gossamer.migration.ledger_target import LedgerTarget
from gossamer.migration.parts import CrawlSource, CrawlTarget
from gossamer.migration.run import Migrated, migrate
from gossamer.ports.shared_ledger import SharedLedger

NOW = 1_700_000_000.0
Tables = dict[str, dict[bytes, bytes]]


def memory_ledger() -> MemorySharedLedger:
    return MemorySharedLedger(lambda: NOW)


def run(source: CrawlSource, target: CrawlTarget) -> Migrated:
    """Migrate; the target is closed however that ends."""
    try:
        return migrate(source, target, "copy", lambda what, rows: None)
    finally:
        target.close()


def to_ledger(folder: Path, shared: SharedLedger) -> Migrated:
    with FolderSource(folder, own_terms()) as source:
        return run(source, LedgerTarget(shared, source, "copy"))


def ledger_source_of(shared: SharedLedger) -> LedgerSource:
    record = shared.record()
    assert record is not None
    return LedgerSource(shared, record, "ledger")


def to_folder(shared: SharedLedger, folder: Path, *, allows_missing: bool = False) -> Migrated:
    source = ledger_source_of(shared)
    return run(source, FolderTarget(FolderPlan(folder, {}, allows_missing, NOW, complete_copy), source))


def between(shared: SharedLedger, other: SharedLedger) -> Migrated:
    source = ledger_source_of(shared)
    return run(source, LedgerTarget(other, source, "copy"))


def tables(folder: Path) -> Tables:
    """Return all rows of the ledger in a folder, sorted by table."""
    with RawLedger(folder / "state", is_readonly=True) as ledger:
        return {table: {row.key: row.value or b"" for row in ledger.rows(table)} for table in rows.TABLES}


def shared_tables(shared: SharedLedger) -> Tables:
    """Return all rows of a shared ledger, with what waits in inboxes and how much every node has done."""
    found: Tables = {}
    for lot in ledger_source_of(shared).lots(""):
        for table, key, value in lot.rows:
            found.setdefault(table, {})[key] = value or b""
        for shard, links in lot.messages:
            found.setdefault("letters", {})[shard.to_bytes(2, "big") + links] = b""
    for node, view in shared.nodes().items():
        if view.totals.fetches:
            done = rows.encode([view.totals, shared.archive_ends(node.name)])
            found.setdefault("nodes", {})[f"{node.name}/{node.incarnation}".encode()] = done
    return found


@contextmanager
def changed(folder: Path) -> Iterator[RawLedger]:
    """Open the ledger in a folder row by row, to plant something."""
    with RawLedger(folder / "state", is_readonly=False) as ledger:
        yield ledger
