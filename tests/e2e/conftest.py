"""What several end-to-end tests need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import engines
from tests.servers.redis import RedisServer, running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """Return a Redis server of the test's own."""
    program = engines.valkey()
    with running(program, tmp_path / "redis") as server:
        yield server
