"""What belongs to a crawl as a whole reaches every node: who opted out, private addresses, copies of pages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.sim.web.web import preset
from tests.e2e.program import run, start, summary_of
from tests.e2e.test_cluster import LEASE_S, Nodes
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

PAGES = 40


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=200, near_duplicates=0.4)) as web:
        yield web


def test_a_host_that_one_node_blocks_is_contacted_by_none(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    hosts = {site.partition("//")[2].partition(":")[0] for site in web.seeds()}
    blocked = sorted(hosts)[0]
    nodes = Nodes(web, server, tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "blocked.txt").write_text(f"{blocked}\n")
    nodes.start("a")
    ledger = RedisSharedLedger(server.client(), nodes.name)
    nodes.wait_for(lambda: (record := ledger.record()) is not None and record.blocked)
    nodes.start("b", "c")
    for name in ("a", "b", "c"):
        nodes.end(name)
    ledger.close()
    assert blocked not in {request.host for request in web.log()}


def test_near_duplicates_are_found_across_nodes(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path)
    command = [*nodes.options(), "-o", str(tmp_path / "alone"), "--json", "--no-progress"]
    expected = summary_of(run(*command).stdout)
    nodes.start("a", "b", "c")
    found = [nodes.end(name) for name in ("a", "b", "c")]
    assert expected["near_duplicates"] > 5
    copies = ("duplicates", "near_duplicates")
    assert sum(found[0][each] for each in copies) == sum(expected[each] for each in copies)  # type: ignore[misc]


class Site(BaseHTTPRequestHandler):
    """A chain of pages at a loopback address."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        number = int(self.path.strip("/") or 0) if self.path != "/robots.txt" else -1
        body = f'<a href="/{number + 1}">next</a>'.encode() if 0 <= number < PAGES else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_private_address_that_a_seed_names_is_open_to_all_nodes(server: RedisServer, tmp_path: Path) -> None:
    sites = [ThreadingHTTPServer(("127.0.0.1", 0), Site)]
    port = sites[0].server_port
    # Which node owns a host follows from the key of the crawl: one in two thousand crawls has all of these on one.
    sites += [ThreadingHTTPServer((f"127.0.0.{number}", port), Site) for number in range(2, 13)]
    for site in sites:
        threading.Thread(target=site.serve_forever, daemon=True).start()
    url = f"{server.url}/private"
    pace = ["--politeness-ms", "100", "--max-depth", "100", "--lease", str(LEASE_S), "--no-progress", "--json"]
    seeds = [f"http://127.0.0.{number}:{port}/" for number in range(1, 13)]
    crawl = ["crawl", *seeds, "--ledger", url, "--node", "a", "-o", str(tmp_path / "a"), *pace]
    join = ["join", url, "--node", "b", "-o", str(tmp_path / "b"), "--lease", str(LEASE_S), "--no-progress", "--json"]
    nodes = [start(*command) for command in (crawl, join)]
    summaries = [summary_of(node.communicate(timeout=60)[0]) for node in nodes]
    for site in sites:
        site.shutdown()
        site.server_close()
    assert [summary["pages"] for summary in summaries] == [PAGES * len(seeds)] * 2
    assert summaries[1]["node_pages"] > 0
