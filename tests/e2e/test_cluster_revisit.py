"""Nodes fetch known pages again, and go on for one that dies: on every ledger, by the servers' own log."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.program import run, start
from tests.e2e.test_revisit import OPTIONS, PACE_MS, SHORTEST_S
from tests.servers import engines
from tests.servers.changing_site import changing_site
from tests.servers.kafka_cassandra import shared_both
from tests.servers.postgresql import running_postgres
from tests.servers.redis import running

HOSTS = [f"127.0.2.{number}" for number in range(1, 9)]
UNCOMMITTED_S = 2.0  # of visits that a killed node had made: the next owner makes them again


@pytest.fixture(
    params=[
        "valkey",
        engines.param("postgresql"),
        engines.param("kafka", "cassandra"),
    ]
)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    name = f"again-{os.getpid()}"
    with ExitStack() as stack:
        if request.param == "kafka":
            yield shared_both().prepared(name)
            return
        if request.param == "valkey":
            program = engines.valkey()
            server_url = stack.enter_context(running(program, tmp_path / "redis")).url
        else:
            server_url = stack.enter_context(running_postgres()).url
            name = name.replace("-", "_")
        yield f"{server_url}/{name}"


def node(folder: Path, name: str, *command: str) -> subprocess.Popen[str]:
    return start(*command, "--node", name, "-o", str(folder / name), "--lease", "3", "--no-progress")


def test_visits_go_on_when_a_node_is_killed(ledger_url: str, tmp_path: Path) -> None:
    with changing_site(HOSTS) as site:
        options = [option for option in OPTIONS if option != "--no-progress"]
        first = node(
            tmp_path, "a", "crawl", *site.seeds, "--ledger", ledger_url, *options, "--contact", "t@example.org"
        )
        site.wait_for(20)
        second = node(tmp_path, "b", "join", ledger_url)
        site.wait_for(250)
        second.kill()
        second.communicate(timeout=60)
        killed_at = time.time()
        before = len(site.pages())
        site.wait_for(before + 350, timeout_s=90)
        told = run("stop", ledger_url)
        assert told.returncode == 0, told.stderr
        printed, err = first.communicate(timeout=60)
    assert "Traceback" not in err
    for (host, path), visits in site.visits().items():
        for one, other in pairwise(visits):
            was_lost = one.at <= killed_at <= other.at and killed_at - one.at < UNCOMMITTED_S
            assert other.at - one.at >= SHORTEST_S - 0.05 or was_lost, (host, path, one, other)
        is_alive = any(visit.status in (200, 304) for visit in visits[-2:])
        assert not is_alive or any(visit.at > killed_at for visit in visits), (host, path)
    for asked in site.by_host().values():
        assert min(after.at - before.at for before, after in pairwise(asked)) >= PACE_MS / 1000 - 0.02
    counted = re.search(r"([0-9]+) visits of known URLs", printed + err)
    assert counted is not None, printed
    assert int(counted.group(1)) > 250
