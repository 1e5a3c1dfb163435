"""The dashboard of a crawl on many machines: all nodes on one page, commands through the crawl's record."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gossamer.engine.admission.revival import NO_LETTERS
from gossamer.sim.web.web import preset
from tests.e2e.dashboard_crawl import ADDRESS, shown, wait_for
from tests.e2e.test_cluster import Nodes, verb
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb
from tests.web.serving import Served

PAGES = 400
WITHIN_S = 2.0


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=PAGES, slow=0.0)) as web:
        yield web


@pytest.fixture
def nodes(web: RunningWeb, server: RedisServer, tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(web, server, tmp_path, more=["--politeness-ms", "200"])
    nodes.own_options = {"b": ["--ui", "--metrics-listen", "127.0.0.1:0"]}
    nodes.start("a", "b")
    nodes.wait_for_requests(40)
    yield nodes
    for process in nodes.running.values():
        process.kill()
        process.communicate()


def test_the_page_of_a_ledger_shows_and_steers_all_nodes(nodes: Nodes, web: RunningWeb) -> None:
    with shown(nodes.url) as address:
        page = Served([address])
        wait_for(lambda: page.ask("/api/status").json["pages"] > 0)
        status = page.ask("/api/status").json
        assert [(node["name"], node["is_live"]) for node in status["nodes"]] == [("a", True), ("b", True)]
        assert (status["state"], status["can_control"]) == ("running", True)
        hosts = page.ask("/api/hosts").json["hosts"]
        assert {host["name"] for host in hosts} & {request.host for request in web.log()}
        life = page.ask(f"/api/why?url={quote(web.seeds()[0], safe='')}").json["life"]
        assert life["place"]["owner"] in ("a", "b")
        assert "all nodes pause" in page.command("pause").json["text"]
        told_at = time.monotonic()
        wait_for(lambda: time.monotonic() > told_at + WITHIN_S)
        before = len(web.log())
        wait_for(lambda: time.monotonic() > told_at + 2 * WITHIN_S)
        assert len(web.log()) == before
        wait_for(lambda: page.ask("/api/status").json["state"] == "paused")
        assert page.command("pause").status == 409
        assert "go on" in page.command("resume").json["text"]
        wait_for(lambda: len(web.log()) > before)
        assert page.command("set", key="workers", value=3).status == 400
        retried = page.command("retry").json["text"]  # whether there are any depends on how far the crawl is
        assert "queue" in retried or retried == NO_LETTERS
        nodes.quicken()
        for name in ("a", "b"):
            nodes.end(name)
        wait_for(lambda: page.ask("/api/status").json["state"] == "finished")
        assert page.command("pause").status == 409


def test_a_node_with_a_page_shows_the_whole_crawl_and_its_own_metrics(nodes: Nodes) -> None:
    verb("pace", nodes.url, "*", "2")  # the crawl must not be over soon
    output = nodes.running["b"].stderr
    assert output is not None
    text = ""
    while not (ADDRESS.search(text) and "/metrics" in text):
        text += output.readline()
    address, metrics = ADDRESS.search(text), re.search(r"http://(\S+)/metrics", text)
    assert address is not None
    assert metrics is not None
    page = Served([f"dashboard  {address.group()}", f"metrics    {metrics.group()}"])
    wait_for(lambda: len(page.ask("/api/status").json["nodes"]) == 2)

    def pages_of_the_node() -> int:
        found = re.search(rb"(?m)^gossamer_pages_total (\d+)", page.ask("/metrics", host=metrics.group(1)).body)
        return 0 if found is None else int(found.group(1))

    wait_for(lambda: 0 < pages_of_the_node() < page.ask("/api/status").json["pages"])
