"""Nodes that store their pages in S3: nothing depends on their disks."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import Nodes
from tests.servers import engines
from tests.servers.redis import RedisServer
from tests.servers.s3 import BUCKET, S3Server
from tests.servers.s3 import running as running_s3
from tests.servers.web import RunningWeb


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    program = engines.weed()
    with running_s3(program, tmp_path / "s3") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def test_the_disk_of_a_node_that_died_is_not_needed(server: RedisServer, store: S3Server, tmp_path: Path) -> None:
    with RunningWeb(preset("small", seed=5, pages=200, slow=0.0)) as web:
        nodes = Nodes(web, server, tmp_path, more=["--store", f"s3://{BUCKET}/c", "--save-interval", "20"])
        nodes.start("a", "b")
        nodes.wait_for(lambda: sum("gossamer-a-" in key for key in store.keys("c/")) >= 2)
        nodes.kill("a")
        summary = nodes.end("b")
    shutil.rmtree(tmp_path / "a")
    assert any(key.startswith("c/segments/gossamer-a-") for key in store.keys("c/"))
    environment = dict(os.environ)
    exported = run("export", nodes.url, "--format", "jsonl", environment=environment)
    assert exported.returncode == 0, exported.stderr
    pages = [json.loads(line)["url"] for line in exported.stdout.splitlines()]
    assert len(pages) == len(set(pages)) == summary["pages"]
    # The index of that node is lost, too: its files are indexed from the store.
    packed = run("export", nodes.url, "--format", "wacz", "-o", str(tmp_path / "c.wacz"), environment=environment)
    assert packed.returncode == 0, packed.stderr
    with ZipFile(tmp_path / "c.wacz") as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).splitlines()
    assert lines == sorted(lines)
    assert set(pages) <= {json.loads(line.split(b" ", 2)[2])["url"] for line in lines}
    verified = run("verify", nodes.url, environment=environment)
    assert verified.returncode == 0, verified.stdout
