"""Requisites on two nodes: each is fetched once, by the owner of its host, whoever has the pages that need it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.archive.reader import ArchiveReader
from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import Nodes
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

PLAN = preset("styled", domains=10, pages=100, robots_rules=0.5)


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


def stored(*folders: Path) -> Counter[tuple[str, bool]]:
    """By URL and whether it is a requisite: how often it is in the archives."""
    paths = [path for folder in folders for path in sorted((folder / "archive").glob("*.warc.gz"))]
    answers = [record for path in paths for record in ArchiveReader(path) if record.type in ("response", "revisit")]
    return Counter((each.target, each.is_requisite) for each in answers if b"200" in each.block[9:12])


@pytest.mark.parametrize(("limit", "dies"), [(("--max-pages", "40"), False), ((), True)])
def test_two_nodes_store_every_requisite_once(
    web: RunningWeb, server: RedisServer, tmp_path: Path, limit: tuple[str, ...], dies: bool
) -> None:
    nodes = Nodes(web, server, tmp_path, more=["--requisites", *limit])
    nodes.start("n0", "n1")
    if dies:
        nodes.wait_for_requests(90)
        nodes.kill("n1")
    else:
        nodes.end("n1")
    summary = nodes.end("n0")
    found = stored(tmp_path / "n0", tmp_path / "n1")
    pages = frozenset(url for url, is_requisite in found if not is_requisite and url in web.truth().pages)
    needed = web.web.requisites(pages)
    assert {url for url, is_requisite in found if is_requisite} == needed
    counts = summary["requisites"]
    assert isinstance(counts, dict)
    assert (summary["pages"], counts["stored"], counts["queued"]) == (len(pages), len(needed), 0)
    assert len(pages) == (40 if limit else 100)
    if not dies:
        assert max(found.values()) == 1
        done = run("verify", nodes.url)
        assert done.returncode == 0, done.stdout + done.stderr
