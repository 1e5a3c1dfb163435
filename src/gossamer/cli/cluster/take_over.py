"""May a node use a folder? One that has a crawl of its own only if the node's crawl was migrated from there.

Then the folder becomes the node's: its archive files stay in it, and the crawl's record says who has them.
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.raw_ledger import RawLedger
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.state import ORIGIN_NODE, CrawlRecord
from gossamer.ports.shared_ledger import CrawlRecordStore
from gossamer.reading.node_folders import NODE_FILE
from gossamer.telemetry.text import printable

TRIES = 20  # to change the record while nodes change it too


def take_over(shared: CrawlRecordStore, record: CrawlRecord, folder: CrawlFolder, node: str) -> CrawlRecord:
    """Have a node take the folder over that its crawl was migrated from; return the record as it is now."""
    if record.origin is not None and node == ORIGIN_NODE:
        raise UsageError(
            f"--node {ORIGIN_NODE}: this name stands for the folder that the crawl was migrated from; choose another"
        )
    if not folder.holds_crawl() or (folder.state / NODE_FILE).is_file():
        return record
    with RawLedger(folder.state, is_readonly=True) as ledger:
        identity = ledger.identity()
    if record.origin is None or record.origin.id != identity:
        raise UsageError(
            f"{printable(str(folder.path))}: contains a crawl of its own, or one that was continued since it was "
            "migrated, and a node would replace its ledger; choose another folder, or migrate that crawl"
        )
    if record.ended:
        raise UsageError(f"the crawl is over; {printable(str(folder.path))} stays as it is")
    return _record_taken(shared, record, node)


def _record_taken(shared: CrawlRecordStore, record: CrawlRecord, node: str) -> CrawlRecord:
    for _ in range(TRIES):
        assert record.origin is not None
        blocked = {node if name == ORIGIN_NODE else name: names for name, names in record.blocked.items()}
        origin = replace(record.origin, node=node)
        changed = replace(record, origin=origin, blocked=blocked, version=record.version + 1)
        if shared.change_record(changed):
            return changed
        record = shared.record() or record
    raise GossamerError("the crawl's record is changed all the time; try again")
