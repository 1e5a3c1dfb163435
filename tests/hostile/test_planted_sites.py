"""Sites without end and honest sites that resemble them, crawled by the program over loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.core.quarantine import BUDGET
from gossamer.sim.trap_server import TrapServer
from gossamer.sim.trap_sites import HONEST, TRAPS
from tests.e2e.program import run, summary_of


def crawl(server: TrapServer, out: Path) -> dict[str, Any]:
    options = ("--politeness-ms", "0", "--max-depth", "10000", "--max-pages", "1200", "--json")
    done = run("crawl", server.seed, "--out", str(out), *options)
    assert done.returncode == 0, done.stderr
    return summary_of(done.stdout)


@pytest.mark.parametrize("name", ["a calendar", "session ids", "facets", "facets in any order", "an endless path"])
def test_a_trap_is_cut_at_its_budget_and_what_is_held_back_is_said(tmp_path: Path, name: str) -> None:
    with TrapServer(TRAPS[name], None) as server:
        summary = crawl(server, tmp_path / "out")
        assert server.requests <= BUDGET
    assert summary["finished"] == "held"
    assert summary["held"]["quarantine"] > 0
    lines = [line for path in (tmp_path / "out" / "events").glob("*.jsonl") for line in path.read_text().splitlines()]
    events = [json.loads(line) for line in lines]
    (warning,) = [event for event in events if event["event"] == "warning" and event["reason"] == "held_back"]
    (cut,) = [event for event in events if event["event"] == "trap_quarantined"]
    before = [event for event in events[: events.index(cut)] if event["event"] == "fetch_ok"]
    assert len(before) <= 400, "until then it is not known to be a trap"
    (stopped,) = [event for event in events if event["event"] == "stopped"]
    assert {warning["rule"]: warning["links"]} == stopped["held"] == summary["held"]
    status = run("status", str(tmp_path / "out")).stdout
    assert "held back" in status
    assert "everything within reach" not in status


@pytest.mark.parametrize(
    "name",
    [
        *("numbered records", "tables of measurements", "an archive by date", "an API reference"),
        *("products with a number and a price", "articles by a random id"),
    ],
)
def test_an_honest_site_is_fetched_whole(tmp_path: Path, name: str) -> None:
    with TrapServer(HONEST[name], 600) as server:
        summary = crawl(server, tmp_path / "out")
        assert server.requests == 601
    assert summary["held"] == {}
