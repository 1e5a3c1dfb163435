"""See `model`: on the ledger in memory, and on the one on disk, which forgets what was not put."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.frontier import host_table
from gossamer.model.records import UrlId, UrlRecord
from gossamer.ports import Ledger, SealedChanges
from tests.amount import amount

from .model import CrawlModel


class CrawlOnDisk(CrawlModel):
    """The same, with commits at any moment: what was committed is read back as another object."""

    sealed: SealedChanges | None = None

    def new_ledger(self) -> Ledger:
        self.folder = tempfile.TemporaryDirectory()
        ledger = LocalLedger(Path(self.folder.name))
        ledger.open()
        return ledger

    @rule(is_whole=st.booleans())
    def commit(self, is_whole: bool) -> None:
        self.finish_writing()
        self.crawl.save_state(0.0, 0.0, self.now)
        assert isinstance(self.ledger, LocalLedger)
        self.sealed = self.ledger.seal()
        if is_whole:
            self.finish_writing()

    def finish_writing(self) -> None:
        if self.sealed is not None:
            self.sealed.write()
            self.sealed = None

    def reopen_ledger(self) -> None:
        self.finish_writing()
        self.ledger.close()
        self.ledger = LocalLedger(Path(self.folder.name))
        self.ledger.open()

    def rows(self) -> list[tuple[UrlId, UrlRecord]]:
        assert isinstance(self.ledger, LocalLedger)
        changed = self.ledger._store.changed_keys("urls")
        ids = dict.fromkeys([*changed, *(url_id for url_id, _ in self.ledger.urls())])
        return [(url_id, row) for url_id in ids if (row := self.ledger.look_up(url_id)) is not None]

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if hasattr(self, "folder"):
                self.finish_writing()
                self.ledger.close()
                self.folder.cleanup()


@pytest.fixture(autouse=True, scope="module")
def little_memory() -> Iterator[None]:
    """Let hosts and URLs come and go at the slightest occasion."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_table, "MIN_HEAD_URLS", 1)
        patch.setattr(host_table, "LONG_WAIT_S", 3.0)
        yield


CrawlModel.TestCase.settings = settings(max_examples=amount(62, 250), stateful_step_count=40)
TestCrawlModel = CrawlModel.TestCase
CrawlOnDisk.TestCase.settings = settings(max_examples=amount(30, 120), stateful_step_count=40)
TestCrawlOnDisk = CrawlOnDisk.TestCase
