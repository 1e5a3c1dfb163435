"""What verbs show of a crawl on many machines: the same as of a crawl on one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from zipfile import ZipFile

import pytest

from gossamer.cli.main import main
from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import Nodes
from tests.servers import engines
from tests.servers.redis import RedisServer, running
from tests.servers.web import RunningWeb

PLAN = preset("small", seed=5, pages=150)
NODES = ("a", "b", "c")
RUNNING = (
    ["status"], ["hosts"], ["report"], ["traps"], ["verify"], ["audit"], ["feed"], ["search", "the"],
    ["export", "--format", "jsonl"], ["export", "--format", "cdxj"],
)  # fmt: skip
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
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
        assert run(*single).returncode == 0
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
    assert {key: told[key] for key in ("url", "state", "host")} == {key: alone[key] for key in ("url", "state", "host")}
    assert told["id"] != alone["id"], "each crawl has a key of its own"
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


def exported(capsys: Output, *words: str, status: int = 0) -> dict[str, dict[str, object]]:
    """Return the documents of an export by URL, without what differs from crawl to crawl."""
    lines = shown(capsys, "export", *words, "--format", "jsonl", status=status).splitlines()
    pages = [json.loads(line) for line in lines]
    for page in pages:
        for name in ("fetched_at", "storage", "worker", "parent", "depth", "found_via", "duplicate_of"):
            del page[name]
        for name in ("near_duplicate_of", "similarity", "payload_digest", "seed", "redirected_from"):
            del page[name]
        for name in ("connect_ms", "tls_ms", "first_byte_ms", "total_ms"):
            del page[name]
    assert len({page["url"] for page in pages}) == len(pages)
    return {page["url"]: page for page in pages}


def test_the_export_is_that_of_a_crawl_on_one_machine(crawls: Crawls, capsys: Output, tmp_path: Path) -> None:
    assert exported(capsys, crawls.ledger) == exported(capsys, crawls.one)
    for form in ("cdxj", "links"):
        lines = [shown(capsys, "export", place, "--format", form) for place in (crawls.ledger, crawls.one)]
        assert len(lines[0].splitlines()) == len(lines[1].splitlines())
    shown(capsys, "export", crawls.ledger, "--format", "wet", "-o", str(tmp_path / "text.wet.gz"))
    host = next(iter(exported(capsys, crawls.ledger))).split("/")[2].partition(":")[0]
    chosen = exported(capsys, crawls.ledger, "--where", f"host={host}")
    assert {url.split("/")[2].partition(":")[0] for url in chosen} == {host}


def packed(capsys: Output, out: Path, *words: str, status: int = 0) -> tuple[set[str], set[str]]:
    """Return the nodes whose archive files are in a WACZ, and the pages that it lists."""
    shown(capsys, "export", *words, "--format", "wacz", "-o", str(out), status=status)
    with ZipFile(out) as package:
        nodes = {name.split("-")[1] for name in package.namelist() if name.startswith("archive/")}
        pages = {json.loads(line)["url"] for line in package.read("pages/pages.jsonl").splitlines()[1:]}
        captures = gzip.decompress(package.read("indexes/index.cdx.gz")).decode()
    assert pages <= {json.loads(line.split(" ", 2)[2])["url"] for line in captures.splitlines()}
    return nodes, pages


def test_a_wacz_has_the_archives_of_all_nodes(crawls: Crawls, capsys: Output, tmp_path: Path) -> None:
    everything = exported(capsys, crawls.ledger)
    nodes, pages = packed(capsys, tmp_path / "c.wacz", crawls.ledger)
    assert (nodes, pages) == (set(NODES), set(everything))
    b, moved = crawls.folder / "b", crawls.folder / "moved"
    b.rename(moved)
    try:
        nodes, pages = packed(capsys, tmp_path / "c.wacz", crawls.ledger, status=1)
        assert nodes == set(NODES) - {"b"}
        assert pages == set(exported(capsys, crawls.ledger, status=1))
    finally:
        moved.rename(b)


def test_archives_index_and_catalog_of_all_nodes_agree(crawls: Crawls, capsys: Output) -> None:
    found = json.loads(shown(capsys, "verify", crawls.ledger, "--json"))
    alone = json.loads(shown(capsys, "verify", crawls.one, "--json"))
    assert (found["problems"], found["notes"]) == ([], [])
    assert (found["rows"], found["hosts"]) == (alone["rows"], alone["hosts"])
    assert "agree" in shown(capsys, "verify", crawls.ledger)


def test_pace_and_robots_are_judged_over_the_events_of_all_nodes(crawls: Crawls, capsys: Output) -> None:
    report = json.loads(shown(capsys, "audit", crawls.ledger, "--json"))
    assert report["kept"], report["violations"][:3]
    assert report["runs"] == len(NODES)
    whole = json.loads(shown(capsys, "report", crawls.ledger, "--json"))
    assert report["requests"] == whole["fetches"]["requests"]


def test_ranks_are_those_of_one_machine_and_no_page_differs(crawls: Crawls, capsys: Output) -> None:
    ranks, alone = (json.loads(shown(capsys, "rank", name, "--json")) for name in (crawls.ledger, crawls.one))
    assert [one["domain"] for one in ranks["domains"]] == [one["domain"] for one in alone["domains"]]
    assert [one["rank"] for one in ranks["domains"]] == pytest.approx([one["rank"] for one in alone["domains"]])
    lines = shown(capsys, "diff", crawls.one, crawls.ledger, "--json").splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["counts"]["unchanged"] == alone["computed_from"]["pages"]
    since = json.loads(shown(capsys, "diff", crawls.ledger, "--since", "1d", "--json").splitlines()[0])
    assert since["counts"]["new"] == alone["computed_from"]["pages"]


def test_what_lies_on_a_node_elsewhere_is_counted_and_can_be_named(crawls: Crawls, capsys: Output) -> None:
    everything = exported(capsys, crawls.ledger)
    b, moved = crawls.folder / "b", crawls.folder / "moved"
    b.rename(moved)
    try:
        some = exported(capsys, crawls.ledger, status=1)
        missing = len(everything) - len(some)
        assert 0 < missing < len(everything)
        main(["export", crawls.ledger, "--format", "cdxj"])
        assert f"the bytes of {missing} pages" in capsys.readouterr().err
        ranks = json.loads(shown(capsys, "rank", crawls.ledger, "--json", status=1))["computed_from"]
        assert (ranks["pages"], ranks["pages_missing"]) == (len(some), missing)
        found = json.loads(shown(capsys, "verify", crawls.ledger, "--json", status=1))
        assert found["unreachable"] >= missing
        assert all(problem["where"] in ("node b", "nodes") for problem in found["problems"])
        assert not json.loads(shown(capsys, "audit", crawls.ledger, "--json", status=1))["kept"]
        assert "as far as the events show" in shown(capsys, "audit", crawls.ledger, status=1)
        named = ["--node-folder", f"b={moved}"]
        assert exported(capsys, crawls.ledger, *named) == everything
        ranks = json.loads(shown(capsys, "rank", crawls.ledger, "--json", *named))["computed_from"]
        assert (ranks["pages"], ranks["pages_missing"]) == (len(everything), 0)
        shown(capsys, "verify", crawls.ledger, *named)
        shown(capsys, "audit", crawls.ledger, *named)
        wrong = ["--node-folder", f"b={crawls.folder / 'a'}"]
        assert main(["verify", crawls.ledger, *wrong]) == 2
        assert "the folder of node a" in capsys.readouterr().err
    finally:
        moved.rename(b)


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
        for words in RUNNING:
            shown(capsys, words[0], nodes.url, *words[1:])
        nodes.wait_for(lambda: events_of(tmp_path, "queued_again"))
        assert nodes.end("a")["finished"] == nodes.end("b")["finished"] == "exhausted"
        nodes.check()


def test_what_a_lost_node_had_stored_is_fetched_again(server: RedisServer, tmp_path: Path, capsys: Output) -> None:
    with RunningWeb(preset("small", seed=9, pages=60)) as web:
        nodes = Nodes(web, server, tmp_path, "lost")
        nodes.start("a", "b")
        pages = {nodes.end("a")["pages"], nodes.end("b")["pages"]}
        everything = exported(capsys, nodes.url)
        rmtree(tmp_path / "b")
        exported(capsys, nodes.url, status=1)
        assert "join" in shown(capsys, "retry", nodes.url, "--stored-on", "b")
        nodes.start("a")
        assert {nodes.end("a")["pages"]} == pages, "each page counts once"
        shown(capsys, "verify", nodes.url)
        assert exported(capsys, nodes.url).keys() == everything.keys()
        shown(capsys, "retry", nodes.url, "--stored-on", "z", status=2)


def test_the_feed_continues_where_it_stopped(crawls: Crawls, capsys: Output, tmp_path: Path) -> None:
    cursor = ["--cursor-file", str(tmp_path / "cursor")]
    first = feed_of(capsys, crawls.ledger, "--limit", "40", *cursor)
    rest = feed_of(capsys, crawls.ledger, *cursor)
    assert len(first) == 40
    assert feed_of(capsys, crawls.ledger, *cursor) == []
    urls = [line["url"] for line in first + rest]
    assert set(urls) == {line["url"] for line in feed_of(capsys, crawls.one)}
    assert sorted(urls) == sorted(line["url"] for line in feed_of(capsys, crawls.ledger))
    shown(capsys, "feed", crawls.ledger, "--after", "7", status=2)
    (tmp_path / "cursor").write_text('{"0": 99999999}')
    shown(capsys, "feed", crawls.ledger, *cursor, status=2)


def feed_of(capsys: Output, *words: str, status: int = 0) -> list[dict[str, str]]:
    return [json.loads(line) for line in shown(capsys, "feed", *words, status=status).splitlines()]


def test_a_feed_does_not_pass_a_page_whose_bytes_lie_elsewhere(crawls: Crawls, capsys: Output, tmp_path: Path) -> None:
    cursor = ["--cursor-file", str(tmp_path / "cursor")]
    b, moved = crawls.folder / "b", crawls.folder / "away"
    b.rename(moved)
    try:
        some = feed_of(capsys, crawls.ledger, *cursor, status=1)
    finally:
        moved.rename(b)
    rest = feed_of(capsys, crawls.ledger, *cursor)
    whole = {line["url"] for line in feed_of(capsys, crawls.ledger)}
    assert {line["url"] for line in some} < whole
    assert {line["url"] for line in some} | {line["url"] for line in rest} == whole


def test_pages_of_all_nodes_are_found(crawls: Crawls, capsys: Output, tmp_path: Path) -> None:
    page = next(page for page in exported(capsys, crawls.ledger).values() if len(str(page["title"]).split()) > 1)
    words = str(page["title"])
    hits = [json.loads(line) for line in shown(capsys, "search", crawls.ledger, f'"{words}"', "--json").splitlines()]
    assert page["url"] in [hit["url"] for hit in hits]
    kept = ["--index", str(tmp_path)]
    for _ in range(2):
        again = shown(capsys, "search", crawls.ledger, f'"{words}"', "--json", *kept).splitlines()
        assert [json.loads(line) for line in again] == hits
    assert (tmp_path / "search.sqlite").is_file()
