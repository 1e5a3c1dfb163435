"""What several end-to-end tests need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.redis import RedisServer, redis_program, running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """Return a Redis server of the test's own."""
    program = redis_program()
    if program is None:
        pytest.skip("no redis-server: make engines")
    with running(program, tmp_path / "redis") as server:
        yield server
