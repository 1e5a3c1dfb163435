"""Politeness of the whole program, over sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run, start
from tests.servers.web import RunningWeb
from tests.support.sites.manners_server import ManneredServer


@pytest.fixture
def fifty() -> Iterator[RunningWeb]:
    with RunningWeb(preset("plain", domains=50, pages=5000)) as web:
        yield web


def test_robots_of_fifty_new_hosts_are_had_within_two_seconds(fifty: RunningWeb, tmp_path: Path) -> None:
    done = run("crawl", *fifty.seeds(), *crawl_options(fifty, tmp_path / "out", 1000), "--max-time", "4")
    assert done.returncode == 0, done.stderr
    asked = [request.arrived_at for request in fifty.log() if request.target == "/robots.txt"]
    assert len(asked) == 50
    assert max(asked) - min(asked) < 2.0


def test_who_opts_out_is_left_alone_within_seconds(fifty: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start("crawl", *fifty.seeds(), *crawl_options(fifty, out, 100), "--max-time", "8")
    try:
        deadline = time.monotonic() + 10
        while len(fifty.log()) < 100 and time.monotonic() < deadline:
            time.sleep(0.05)
        host = fifty.log()[0].host
        (out / "blocked.txt").write_text(f"# asked by mail\n{host}\n", "utf-8")
        written_at = time.monotonic()
    finally:
        process.communicate(timeout=60)
    late = [r for r in fifty.log() if r.host == host and r.arrived_at > written_at + 2.5]
    assert late == []
    others = [r for r in fifty.log() if r.host != host and r.arrived_at > written_at + 2.5]
    assert others, "the crawl went on"
    audit = run("audit", str(out), "--json")
    assert json.loads(audit.stdout)["kept"], audit.stdout
    dead = run("retry", str(out), "--list")
    assert "opted_out" in dead.stdout


def test_retry_after_is_kept_across_a_kill(tmp_path: Path) -> None:
    with ManneredServer(23) as server:  # one of each manner
        command = [
            *("crawl", f"http://seconds-0.test:{server.web.port}/", "--out", str(tmp_path / "out")),
            *("--dns", server.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "50"),
        ]
        process = start(*command)
        deadline = time.monotonic() + 15
        while not any(one.status == 429 for one in server.seen) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.15)  # the refusal is told at once, and a commit begun
        process.kill()
        process.communicate()
        done = run(*command)
        assert done.returncode == 0, done.stderr
        refused = next(one for one in server.seen if one.status == 429)
        later = [one.arrived_at for one in server.seen if one.arrived_at > refused.arrived_at]
        assert min(later) - refused.answered_at >= 3.0 - 0.01
