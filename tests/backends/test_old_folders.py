"""A folder that an earlier version made can be read by this one."""

from __future__ import annotations

from pathlib import Path

import lmdb

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.local.store import Store
from gossamer.core.ledger import rows
from gossamer.core.url.forms import link_to


def test_tables_that_a_folder_does_not_have_are_empty(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    old = Store(tmp_path / "state", ("urls", "queue", "hosts", "domains", "meta"), {}, is_readonly=False)
    old.open()
    old.create_tables()
    old.put("meta", rows.FORMAT_KEY, rows.FORMAT)
    old.write(old.seal()._changes)
    old.close()
    with lmdb.open(str(tmp_path / "state"), max_dbs=20, readonly=True) as environment, environment.begin() as txn:
        assert txn.get(b"changes") is None, "the folder is not old"
    ledger = LocalLedger(tmp_path / "state", is_readonly=True)
    ledger.open()
    try:
        assert ledger.first_with_content(b"x" * 16) is None
        assert ledger.last_change() == 0
        assert ledger.archive_ends() == {}
        assert ledger.look_up(link_to("http://a.test/").id) is None
    finally:
        ledger.close()
