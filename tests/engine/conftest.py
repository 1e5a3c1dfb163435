"""What all tests of the engine share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.ports import Ledger


@pytest.fixture(params=["memory", "local"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    local = LocalLedger(tmp_path / "state")
    local.open()
    yield local
    local.close()
