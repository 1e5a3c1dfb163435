"""A crawl moves from a folder to a ledger that nodes share, and back: nothing is lost, nothing is fetched twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.archive.warc import warc_date
from gossamer.backends.local.raw_ledger import RawLedger
from gossamer.core import rows
from gossamer.inspect.reader import CrawlReader
from gossamer.sim.running import RunningWeb
from gossamer.sim.server_judge import JudgeRules
from gossamer.sim.web import preset
from tests.e2e.program import crawl_options, run, start, summary_of
from tests.e2e.test_cluster import Nodes
from tests.servers.redis import RedisServer, redis_program, running

PLAN = preset("small", seed=3, pages=200)
PACE_MS = 20
LEASE_S = "2"
STOPPED_AT = 60
Content = tuple[bytes, str, str, bytes, object]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = redis_program()
    if program is None:
        pytest.skip("no redis-server: make engines")
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


def crawl_until(web: RunningWeb, out: Path, pages: int, *more: str) -> None:
    """Crawl a part of the web, and stop as an operator does."""
    process = start("crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--max-pages", str(pages), *more)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


def tables(folder: Path) -> dict[str, dict[bytes, bytes | None]]:
    """Return all rows of a ledger."""
    with RawLedger(folder / "state", is_readonly=True) as ledger:
        return {table: {row.key: row.value for row in ledger.rows(table)} for table in rows.TABLES}


def content(row: bytes | None) -> Content:
    record = rows.decode_content(row or b"")
    return record.url_id, record.url, warc_date(record.date), record.payload_digest, record.archived


def migrate(*words: object, status: int = 0) -> dict[str, object]:
    done = run("migrate", *map(str, words), "--json")
    assert done.returncode == status, done.stderr + done.stdout
    return summary_of(done.stdout) if done.stdout else {"error": done.stderr}


def test_a_crawl_comes_back_from_a_ledger_as_it_was(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    one, two, url = tmp_path / "one", tmp_path / "two", f"{server.url}/round"
    crawl_until(web, one, STOPPED_AT)
    before = tables(one)
    there = migrate(one, url)
    assert tables(one) == before, "the source is not changed"
    back = migrate(url, two)
    assert there["is_complete"]
    assert back["is_complete"]
    after = tables(two)
    for table in rows.SHARDED:
        assert after[table] == before[table], table
    assert after["archives"] == before["archives"]
    assert sorted(map(repr, after["signatures"].values())) == sorted(map(repr, before["signatures"].values()))
    both = [{key: content(value) for key, value in each["contents"].items()} for each in (before, after)]
    assert both[0] == both[1]
    assert run("verify", str(two)).returncode == 0
