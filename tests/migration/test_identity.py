"""The key of a crawl moves with it, and so do ids of the format before."""

from __future__ import annotations

from pathlib import Path

from gossamer.backends.local.ledger import LocalLedger
from gossamer.control.record import adopted
from gossamer.core.ledger import rows
from gossamer.model.state import IdentityRecord
from gossamer.reading.folder import CrawlReader
from tests.migration.crawls import changed, memory_ledger, shared_tables, tables, to_folder, to_ledger
from tests.reading.folders import Crawled, small_web, stopped  # noqa: F401


def identity_in(folder: Path) -> IdentityRecord:
    with CrawlReader(folder) as crawl:
        return crawl.ledger.identity.record


def test_the_key_of_a_crawl_moves_to_a_ledger_and_back(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    own = identity_in(stopped.path)
    assert own.key != bytes(16)
    ledger = memory_ledger()
    assert to_ledger(stopped.path, ledger).is_complete
    record = ledger.record()
    assert record is not None
    assert record.identity == own
    assert to_folder(ledger, tmp_path / "back").is_complete
    assert identity_in(tmp_path / "back") == own


def test_a_folder_of_the_format_before_moves_with_its_ids(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    old = stopped.copied(tmp_path / "old")
    with changed(old) as raw:
        raw._store.put("meta", rows.FORMAT_KEY, rows.FORMAT_BEFORE)
        raw._store.put("meta", rows.IDENTITY_KEY, None)
        raw._store.write_now()
    before = tables(old)
    ledger = memory_ledger()
    assert to_ledger(old, ledger).is_complete
    record = ledger.record()
    assert record is not None
    assert record.ids.is_unkeyed
    assert record.ids.key != bytes(16)
    assert adopted(ledger, record) == record
    assert shared_tables(ledger)["urls"] == before["urls"]
    assert tables(old) == before, "the source stays as it was"
    assert to_folder(ledger, tmp_path / "back").is_complete
    assert identity_in(tmp_path / "back") == record.ids
    back = LocalLedger(tmp_path / "back" / "state")
    back.open()
    assert back.identity.record == record.ids
    back.close()
