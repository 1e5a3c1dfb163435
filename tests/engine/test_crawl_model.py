"""See `model`: on the ledger in memory, and on the one on disk, which forgets what was not put."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core import host_table
from gossamer.ports import Ledger

from .model import CrawlModel


class CrawlOnDisk(CrawlModel):
    """The same, with commits at any moment: what was committed is read back as another object."""

    write: Callable[[], None] | None = None

    def new_ledger(self) -> Ledger:
        self.folder = tempfile.TemporaryDirectory()
        ledger = LocalLedger(Path(self.folder.name))
        ledger.open()
        return ledger

    @rule(is_whole=st.booleans())
    def commit(self, is_whole: bool) -> None:
        self.finish_writing()
        self.crawl.save_totals(0.0, 0.0, self.now)
        assert isinstance(self.ledger, LocalLedger)
        self.write = self.ledger.seal()
        if is_whole:
            self.finish_writing()

    def finish_writing(self) -> None:
        if self.write is not None:
            self.write()
            self.write = None

    def reopen_ledger(self) -> None:
        self.finish_writing()
        self.ledger.close()
        self.ledger = LocalLedger(Path(self.folder.name))
        self.ledger.open()

    def rows(self) -> list[tuple[bytes, object]]:
        assert isinstance(self.ledger, LocalLedger)
        changed = self.ledger._store.changed_keys("urls")
        ids = dict.fromkeys([*changed, *(url_id for url_id, _ in self.ledger.urls())])
        return [(url_id, self.ledger.look_up(url_id)) for url_id in ids]

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


CrawlModel.TestCase.settings = settings(max_examples=250, stateful_step_count=40)
TestCrawlModel = CrawlModel.TestCase
CrawlOnDisk.TestCase.settings = settings(max_examples=120, stateful_step_count=40)
TestCrawlOnDisk = CrawlOnDisk.TestCase
