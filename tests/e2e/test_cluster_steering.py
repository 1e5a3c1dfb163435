"""An operator tells a crawl on three nodes what to do: all of them act on it within two seconds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.control.record import open_crawl
from gossamer.reading.cluster import SharedReader
from gossamer.sim.web.web import preset
from tests.e2e.program import run, start
from tests.e2e.test_cluster import Nodes
from tests.e2e.test_steering import WITHIN_S, wait_for
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import HONEST, TRAPS

PAGES = 400
NAMES = ("a", "b", "c")


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=PAGES, slow=0.0)) as web:
        yield web


@pytest.fixture
def nodes(web: RunningWeb, server: RedisServer, tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(web, server, tmp_path, more=["--politeness-ms", "150"])
    nodes.lease_s = 10
    nodes.start(*NAMES)
    nodes.wait_for_requests(60)
    yield nodes
    for process in nodes.running.values():
        process.kill()


def tell(nodes: Nodes, verb: str, *words: str) -> None:
    done = run(verb, nodes.url, *words)
    assert done.returncode == 0, done.stderr
    told_at = time.monotonic()
    wait_for(lambda: time.monotonic() > told_at + WITHIN_S)


def test_all_nodes_pause_within_two_seconds_and_go_on(nodes: Nodes, web: RunningWeb) -> None:
    tell(nodes, "pause")
    before = len(web.log())
    time_then = time.monotonic()
    wait_for(lambda: time.monotonic() > time_then + WITHIN_S)
    assert len(web.log()) == before
    assert "paused" in run("status", nodes.url).stdout
    tell(nodes, "resume")
    nodes.quicken()
    assert {nodes.end(name)["finished"] for name in NAMES} == {"exhausted"}
    nodes.check()


def test_the_status_of_running_nodes_says_how_long_the_crawl_takes(nodes: Nodes) -> None:
    def forecast() -> dict[str, object] | None:
        found: dict[str, object] | None = json.loads(run("status", nodes.url, "--json").stdout)["forecast"]
        return found if found is not None and found["seconds"] else None

    wait_for(forecast)
    shown = run("status", nodes.url).stdout
    assert re.search(r"forecast +[\d,]+ queued URLs? (is|are) done in about .* on 3 nodes", shown), shown
    with SharedReader(*open_crawl(nodes.url), nodes.url, {}, time.time()) as crawl:
        figures = crawl.figures()
    assert figures.forecast is not None, "the dashboard of a ledger shows these"
    assert "on 3 nodes" in figures.forecast.text
    tell(nodes, "pause")
    assert json.loads(run("status", nodes.url, "--json").stdout)["forecast"] is None
    tell(nodes, "resume")
    nodes.quicken()
    for name in NAMES:
        nodes.end(name)


def test_a_blocked_host_is_left_alone_by_all_nodes_within_two_seconds(nodes: Nodes, web: RunningWeb) -> None:
    hosts = [request.host for request in web.log()]
    busy = max(set(hosts), key=hosts.count)
    tell(nodes, "block", busy)
    before = sum(request.host == busy for request in web.log())
    nodes.wait_for_requests(len(web.log()) + 60)
    assert sum(request.host == busy for request in web.log()) == before
    nodes.quicken()
    for name in NAMES:
        nodes.end(name)
    assert sum(request.host == busy for request in web.log()) == before
    assert run("audit", nodes.url).returncode == 0


def has_event(folder: Path, name: str) -> bool:
    return any(f'"event":"{name}"' in path.read_text() for path in (folder / "events").glob("*.jsonl"))


def test_where_a_block_has_ended_a_retry_continues(nodes: Nodes, web: RunningWeb, tmp_path: Path) -> None:
    hosts = [request.host for request in web.log()]
    busy = max(set(hosts), key=hosts.count)
    tell(nodes, "pace", "*", "5")  # it does not end before all of this has happened
    tell(nodes, "block", busy)
    wait_for(lambda: "opted_out" in run("retry", nodes.url, "--list").stdout)
    done = run("unblock", nodes.url, busy)
    assert f"'gossamer retry {nodes.url} --outcome opted_out' queues what the block removed" in done.stdout, done.stderr
    # A node that has not read of it yet would remove them again.
    wait_for(lambda: all(has_event(tmp_path / name, "opt_out_ended") for name in NAMES))
    done = run("retry", nodes.url, "--outcome", "opted_out")
    assert "queued again by the nodes that own them" in done.stdout, done.stderr
    tell(nodes, "pace", "*", "0.05")
    assert {nodes.end(name)["finished"] for name in NAMES} == {"exhausted"}
    assert "opted_out" not in run("retry", nodes.url, "--list").stdout


def test_a_limit_is_lowered_and_raised_again_and_a_seed_added(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path, more=["--politeness-ms", "2000"])
    nodes.start(*NAMES)
    nodes.wait_for_requests(20)
    tell(nodes, "set", "max-pages", "150")
    nodes.quicken()
    assert {nodes.end(name)["finished"] for name in NAMES} == {"max_pages"}
    nodes.check_budget(150, max_more=96)
    assert run("set", nodes.url, "max-pages", "500").returncode == 0
    added = run("add", nodes.url, f"{web.seeds()[0]}an-added-seed")
    assert "1 seed is on the way" in added.stdout, added.stderr
    nodes.start("d")
    nodes.quicken()
    assert nodes.end("d")["finished"] == "exhausted"
    assert any(request.target.endswith("an-added-seed") for request in web.log())
    assert "a seed" in run("why", nodes.url, f"{web.seeds()[0]}an-added-seed").stdout


def test_pages_that_are_reported_reach_the_nodes_that_own_them(nodes: Nodes, web: RunningWeb, tmp_path: Path) -> None:
    changed = tmp_path / "changed.txt"
    urls = [f"{seed}only-reported" for seed in web.seeds()]
    changed.write_text("\n".join([*urls, f"{web.seeds()[0]}", "http://elsewhere.test/"]))
    done = run("add", nodes.url, "--changed", str(changed))
    count = len(urls) + 2
    assert done.stdout == f"{count} URLs are reported as changed, on the way to the nodes\n", done.stderr
    wait_for(lambda: sum(request.target.endswith("/only-reported") for request in web.log()) == len(urls))
    assert "a notice" in run("why", nodes.url, urls[0]).stdout
    nodes.quicken()
    for name in NAMES:
        nodes.end(name)
    assert not any(request.host == "elsewhere.test" for request in web.log()), "it is out of scope"


def test_what_concerns_one_machine_is_refused(nodes: Nodes) -> None:
    done = run("set", nodes.url, "max-time", "5")
    assert done.returncode == 2
    assert "max-time cannot be set for all nodes; these can: max-pages" in done.stderr


def test_all_patterns_in_quarantine_are_released_by_the_nodes_that_own_them(
    server: RedisServer, tmp_path: Path
) -> None:
    url = f"{server.url}/trapped"
    with TrapServer(TRAPS["facets"], 100_000) as trap, TrapServer(HONEST["numbered records"], 100_000) as honest:
        options = ("--ledger", url, "--out", str(tmp_path / "a"), "--politeness-ms", "10", "--max-depth", "99")
        process = start("crawl", trap.seed, honest.seed, *options, "--json")
        wait_for(lambda: "URLs held" in run("traps", url).stdout)
        said = run("traps", url, "--release")
        assert "of 1 pattern released by the nodes that own their hosts" in said.stdout, said.stderr
        wait_for(lambda: "  released; " in run("traps", url).stdout)
        assert run("traps", url, "--release").stdout == "no pattern is in quarantine\n"
        assert run("stop", url).returncode == 0
        process.communicate(timeout=60)
