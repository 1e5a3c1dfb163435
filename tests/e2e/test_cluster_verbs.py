"""What verbs show of a crawl on many machines: the same as of a crawl on one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.sim.running import RunningWeb
from gossamer.sim.web import preset
from tests.e2e.test_cluster import Nodes
from tests.servers.redis import RedisServer, redis_program, running

PLAN = preset("small", seed=5, pages=150)
NODES = ("a", "b", "c")
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = redis_program()
    if program is None:
        pytest.skip("no redis-server: make engines")
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


class Crawls:
    """A crawl by three nodes, and the same crawl on one machine."""

    def __init__(self, ledger: str, folder: Path) -> None:
        self.ledger = ledger
        self.folder = folder
        self.one = str(folder / "one")
        self.summary: dict[str, object] = {}


@pytest.fixture(scope="module")
def crawls(server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Crawls:
    folder = tmp_path_factory.mktemp("crawls")
    with RunningWeb(PLAN) as web:
        nodes = Nodes(web, server, folder)
        made = Crawls(nodes.url, folder)
        nodes.start(*NODES)
        summaries = [nodes.end(name) for name in NODES]
        made.summary = summaries[0]
        single = [*nodes.options(), "--no-progress", "-o", made.one]
        subprocess.run([sys.executable, "-m", "gossamer", *single], check=True, capture_output=True)
    return made


def shown(capsys: Output, *words: str, status: int = 0) -> str:
    capsys.readouterr()
    done = main(words)
    out, err = capsys.readouterr()
    assert done == status, err
    return out


def fetched_page(crawls: Crawls, capsys: Output) -> str:
    """Return the URL of a page."""
    hosts = json.loads(shown(capsys, "hosts", crawls.ledger, "--json"))["hosts"]
    page = json.loads(shown(capsys, "hosts", crawls.ledger, hosts[0]["name"], "--json"))
    return next(str(each["url"]) for each in page["requests"] if each["outcome"] == "ok" and "page" in each["purpose"])


def test_why_tells_the_history_and_names_the_nodes(crawls: Crawls, capsys: Output) -> None:
    url = fetched_page(crawls, capsys)
    told = json.loads(shown(capsys, "why", crawls.ledger, url, "--json"))
    alone = json.loads(shown(capsys, "why", crawls.one, url, "--json"))
    assert {key: told[key] for key in ("url", "state", "host", "id")} == {
        key: alone[key] for key in ("url", "state", "host", "id")
    }
    assert [each["outcome"] for each in told["attempts"]] == [each["outcome"] for each in alone["attempts"]]
    assert told["place"]["owner"] in NODES
    assert told["place"]["stored_on"] in NODES
    assert told["place"]["epoch"] > 0
    text = shown(capsys, "why", crawls.ledger, url)
    assert f"node {told['place']['stored_on']}" in text
    assert "(response of" in text, "the record is read from the node's archive"
    shown(capsys, "why", crawls.ledger, "http://never.example/", status=1)


def test_hosts_lists_all_hosts_and_every_request_to_one(crawls: Crawls, capsys: Output) -> None:
    both = [json.loads(shown(capsys, "hosts", place, "--json")) for place in (crawls.ledger, crawls.one)]
    counts = [{(host["name"], host["pages"]) for host in each["hosts"]} for each in both]
    assert counts[0] == counts[1]
    name = both[0]["hosts"][0]["name"]
    pages = [json.loads(shown(capsys, "hosts", place, name, "--json")) for place in (crawls.ledger, crawls.one)]
    asked = [sorted(request["url"] for request in page["requests"]) for page in pages]
    assert asked[0] == asked[1]
    assert asked[0]


def test_the_report_counts_the_whole_crawl_once(crawls: Crawls, capsys: Output, tmp_path: Path) -> None:
    report, alone = (json.loads(shown(capsys, "report", place, "--json")) for place in (crawls.ledger, crawls.one))
    assert report["summary"]["pages"] == crawls.summary["pages"] == alone["summary"]["pages"]
    assert report["summary"]["finished"] == "exhausted"
    assert report["timeline"][-1]["pages"] == report["summary"]["pages"]
    assert report["corpus"]["content_types"] == alone["corpus"]["content_types"]
    assert report["warnings"] == []
    assert report["runs"] == len(NODES)
    shown(capsys, "report", crawls.ledger, "--html", str(tmp_path / "report.html"))
    assert "<title>Crawl crawl" in (tmp_path / "report.html").read_text()


def test_dead_letters_and_traps_of_all_nodes_are_listed(crawls: Crawls, capsys: Output) -> None:
    listed, alone = (shown(capsys, "retry", place, "--list").splitlines() for place in (crawls.ledger, crawls.one))
    assert sorted(listed) == sorted(alone)
    assert listed
    assert shown(capsys, "traps", crawls.ledger) == shown(capsys, "traps", crawls.one)


def events_of(folder: Path, name: str) -> list[dict[str, object]]:
    """Return the events of this name of all nodes."""
    lines = [line for path in folder.glob("*/events/*.jsonl") for line in path.read_text().splitlines()]
    return [event for line in lines if f'"{name}"' in line and (event := json.loads(line))["event"] == name]


def test_dead_letters_are_queued_again_while_the_crawl_runs(
    server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    with RunningWeb(preset("small", seed=7, pages=120)) as web:
        nodes = Nodes(web, server, tmp_path, "running")
        nodes.start("a", "b")
        nodes.wait_for_requests(1)
        nodes.wait_for(lambda: shown(capsys, "retry", nodes.url, "--list"))
        assert "they act within a few seconds" in shown(capsys, "retry", nodes.url)
        nodes.wait_for(lambda: events_of(tmp_path, "queued_again"))
        assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
        nodes.check()
