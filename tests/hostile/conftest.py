"""The catalogue is crawled once by each test process; the tests look at what is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.crawling import Aftermath, crawl_catalogue, whole_server


@pytest.fixture(scope="session")
def after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    with whole_server() as server:
        aftermath = crawl_catalogue(server, tmp_path_factory.mktemp("hostile") / "out")
        yield aftermath
        aftermath.close()
