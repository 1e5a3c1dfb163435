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
from gossamer.core import frontier
from gossamer.ports import Ledger

from .model import IDLE_HOSTS, CrawlModel


class CrawlOnDisk(CrawlModel):
    """The same, with commits at any moment: what was committed is read back as another object."""

    def new_ledger(self) -> Ledger:
        self.folder = tempfile.TemporaryDirectory()
        ledger = LocalLedger(Path(self.folder.name))
        ledger.open()
        return ledger

    @rule(is_whole=st.booleans())
    def commit(self, is_whole: bool) -> None:
        self.crawl.keep_tally(0.0, 0.0)
        self.ledger.commit()

    def reopen_ledger(self) -> None:
        self.ledger.close()
        self.ledger = LocalLedger(Path(self.folder.name))
        self.ledger.open()

    def rows(self) -> list[tuple[bytes, object]]:
        assert isinstance(self.ledger, LocalLedger)
        ids = dict.fromkeys([*self.ledger._pending.urls, *(url_id for url_id, _ in self.ledger.urls())])
        return [(url_id, self.ledger.look_up(url_id)) for url_id in ids]

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.ledger.close()
            self.folder.cleanup()


@pytest.fixture(autouse=True, scope="module")
def few_idle_hosts() -> Iterator[None]:
    """Let even idle hosts leave memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier, "IDLE_HOSTS_KEPT", IDLE_HOSTS)
        yield


CrawlModel.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestCrawlModel = CrawlModel.TestCase
CrawlOnDisk.TestCase.settings = settings(max_examples=50, stateful_step_count=40)
TestCrawlOnDisk = CrawlOnDisk.TestCase
