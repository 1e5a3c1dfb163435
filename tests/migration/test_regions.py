"""A crawl whose domains have their region by country moves between ledgers only."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.control.record import own_terms
from gossamer.model.errors import UsageError
from gossamer.model.state import CrawlRecord
from gossamer.settings.load import merged, to_toml
from tests.migration.crawls import between, memory_ledger, to_folder


def test_a_crawl_with_rules_by_country_is_not_moved_to_a_folder(tmp_path: Path) -> None:
    shared = memory_ledger()
    settings = merged(("test", {"region": ["country:DE=eu"]}))
    shared.start(CrawlRecord(own_terms(), to_toml(settings).encode()))
    with pytest.raises(UsageError, match="it can move to a ledger, not to a folder"):
        to_folder(shared, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    assert between(shared, memory_ledger()).is_complete
