"""A crawl moves from a folder to a ledger that nodes share, and back: nothing is lost, nothing is fetched twice."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.archive.warc import warc_date
from gossamer.backends.local.raw_ledger import RawLedger
from gossamer.core.ledger import rows
from gossamer.model.records import FetchKind
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset
from tests.e2e.program import crawl, crawl_options, run, start, summary_of
from tests.e2e.test_cluster import Nodes
from tests.reading.folders import is_one_line
from tests.servers import engines
from tests.servers.redis import RedisServer, running
from tests.servers.s3 import BUCKET
from tests.servers.s3 import running as s3_running
from tests.servers.web import RunningWeb

PLAN = preset("small", seed=3, pages=200)
PACE_MS = 20
LEASE_S = "2"
STOPPED_AT = 60
KEPT = ("archive/", "index/", "events/", "files/", "crawl.log", "crawl.toml", "seeds.txt")
Content = tuple[bytes, str, str, bytes, object]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


def crawl_a_part(web: RunningWeb, out: Path, *more: str) -> None:
    """Crawl until a part of the web was requested, and stop as an operator does."""
    stop_midway(start("crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), *more), web)


def stop_midway(process: subprocess.Popen[str], web: RunningWeb) -> None:
    until = time.monotonic() + 60
    while len(web.log()) < STOPPED_AT and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 11, err


def tables(folder: Path) -> dict[str, dict[bytes, bytes | None]]:
    """Return all rows of a ledger."""
    with RawLedger(folder / "state", is_readonly=True) as ledger:
        return {table: {row.key: row.value for row in ledger.rows(table)} for table in rows.TABLES}


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files except those of the lock and the ledger."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.parent != folder / "state"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def content(row: bytes | None) -> Content:
    record = rows.decode_content(row or b"")
    return record.url_id, record.url, warc_date(record.date), record.payload_digest, record.archived


def migrate(*words: object, status: int = 0) -> dict[str, object]:
    done = run("migrate", *map(str, words), "--json")
    assert done.returncode == status, done.stderr + done.stdout
    return summary_of(done.stdout) if done.stdout else {"error": done.stderr}


def test_a_crawl_comes_back_from_a_ledger_as_it_was(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    one, two, url = tmp_path / "one", tmp_path / "two", f"{server.url}/round"
    crawl_a_part(web, one, "--store", "warc", "--store", "files", "--crawl-log")
    before, files = tables(one), files_in(one)
    there = migrate(one, url)
    assert (tables(one), files_in(one)) == (before, files), "the source is not changed"
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
    assert {path: data for path, data in files_in(two).items() if path.startswith(KEPT)} == {
        path: data for path, data in files.items() if path.startswith(KEPT)
    }
    verified = json.loads(run("verify", str(two), "--json").stdout)
    assert verified["is_fine"], verified
    assert verified["plain_files"]
    state, known = (CrawlReader(each) for each in (two, one))
    with state, known:
        assert state.state.totals == known.state.totals
        assert state.settings == known.settings


def test_a_crawl_that_came_back_is_continued_to_the_same_end(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    one, two, whole, url = tmp_path / "one", tmp_path / "two", tmp_path / "whole", f"{server.url}/back"
    crawl_a_part(web, one)
    migrate(one, url)
    migrate(url, two)
    done = run("resume", str(two), "--json")
    assert done.returncode == 0, done.stderr
    check_served(web, stored=summary_of(done.stdout)["pages"])
    assert run("verify", str(two)).returncode == 0
    with RunningWeb(PLAN) as fresh:
        crawl(fresh, whole, PACE_MS)
    assert pages_of(two) == pages_of(whole)


def pages_of(folder: Path) -> set[str]:
    """Return the paths of all pages: hosts are the same, but not the ports of two webs."""
    with CrawlReader(folder) as crawl:
        found = (row.url for _, row in crawl.ledger.urls() if row.outcome == "ok" and row.kind is FetchKind.PAGE)
        return {re.sub(r":\d+/", "/", url, count=1) for url in found}


def check_served(web: RunningWeb, *, stored: int, max_twice: int = 0) -> None:
    """Compare what the servers saw with how many pages are stored."""
    verdict = web.judge(JudgeRules(politeness_s=PACE_MS / 1000, slack_s=0.01), web.truth())
    assert verdict.is_polite, verdict.render()
    assert verdict.missing == 0, verdict.missing_samples
    assert verdict.fetched_twice.count <= max_twice
    assert verdict.pages_fetched == stored


def test_nodes_continue_a_crawl_from_a_folder(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    one, url = tmp_path / "one", f"{server.url}/joined"
    crawl_a_part(web, one)
    told = shown_by_verbs(str(one))
    migrate(one, url)
    assert shown_by_verbs(url) == told
    nodes = [
        start("join", url, "-o", str(folder), "--node", name, "--lease", LEASE_S, "--json")
        for name, folder in (("a", one), ("b", tmp_path / "b"))
    ]
    ends = [node.communicate(timeout=120) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], ends
    summaries = [summary_of(out) for out, _ in ends]
    pages = {summary["pages"] for summary in summaries}
    assert pages == {told["pages_before"] + sum(summary["node_pages"] for summary in summaries)}
    check_served(web, stored=pages.pop())
    assert run("verify", url).returncode == 0
    again = json.loads(run("why", url, told["url"], "--json").stdout)
    assert again["place"]["stored_on"] == "a", "the folder is that of node a now"


def test_a_crawl_of_two_nodes_is_continued_on_one_machine(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path, "parted", ["--politeness-ms", str(PACE_MS)])
    nodes.start("a", "b")
    nodes.wait_for_requests(2 * STOPPED_AT)
    assert run("stop", nodes.url).returncode == 0
    pages = [int(str(nodes.end(name, status=11)["node_pages"])) for name in ("a", "b")]
    folder = tmp_path / "one"
    assert migrate(nodes.url, folder)["is_complete"]
    assert run("verify", str(folder)).returncode == 0
    assert run("verify", nodes.url).returncode == 0, "the source stays as it is"
    assert json.loads(run("status", str(folder), "--json").stdout)["pages"] == sum(pages)
    done = run("resume", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    check_served(web, stored=summary_of(done.stdout)["pages"])
    assert run("verify", str(folder)).returncode == 0
    audit = json.loads(run("audit", str(folder), "--json").stdout)
    assert audit["kept"], audit["violations"][:3]


def test_dead_letters_that_nodes_were_to_queue_again_are_queued(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path, "requested")
    nodes.start("a")
    nodes.end("a")
    assert "join" in run("retry", nodes.url).stdout
    dead = len(run("retry", nodes.url, "--list").stdout.splitlines())
    assert dead
    folder = tmp_path / "one"
    migrate(nodes.url, folder)
    assert run("retry", str(folder), "--list").stdout == ""
    assert json.loads(run("status", str(folder), "--json").stdout)["urls_queued"] >= dead


def test_a_kill_is_followed_by_a_refusal_and_a_complete_copy(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    one, url, back = tmp_path / "one", f"{server.url}/killed", tmp_path / "back"
    crawl_a_part(web, one)
    for point in ("before_mark:kill:3", "after_node:kill:1", "before_end:kill:1"):
        killed = run("migrate", str(one), url, environment={"GOSSAMER_FAILPOINT": point})
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        join = ["join", url, "-o", str(tmp_path / "b")]
        begin = ["crawl", *web.seeds(), "--contact", "t@example.org", "--ledger", url, "-o", str(tmp_path / "b")]
        for words in (join, begin, ["status", url]):
            check_refused(*words, says="run 'gossamer migrate FROM URL' again")
    assert migrate(one, url)["is_complete"]
    for point in ("after_file:kill:1", "before_mark:kill:7", "before_end:kill:1", "before_end:kill:2"):
        killed = run("migrate", url, str(back), environment={"GOSSAMER_FAILPOINT": point})
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        for words in (["resume", str(back)], ["crawl", "-o", str(back)], ["status", str(back)]):
            check_refused(*words, says=f"run 'gossamer migrate FROM {back}' again")
    assert migrate(url, back)["is_complete"]
    assert tables(back)["urls"] == tables(one)["urls"]
    assert run("verify", str(back)).returncode == 0


def check_refused(*words: str, says: str, status: int = 2) -> None:
    done = run(*words)
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stderr
    assert is_one_line(done.stderr), done.stderr


def test_pages_fetched_before_the_move_count_against_the_budget(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    one, url = tmp_path / "one", f"{server.url}/budget"
    crawl_a_part(web, one, "--max-pages", "120")
    migrate(one, url)
    joined = run("join", url, "-o", str(tmp_path / "b"), "--node", "b", "--lease", LEASE_S, "--json")
    assert joined.returncode == 0, joined.stderr
    summary = summary_of(joined.stdout)
    assert (summary["pages"], summary["finished"]) == (120, "max_pages")
    before = json.loads(run("status", str(one), "--json").stdout)["pages"]
    assert before + summary["node_pages"] == 120, "the folder can still be read, though no node has taken it"
    assert run("verify", url).returncode == 0


def test_what_lies_in_a_lost_folder_is_fetched_again(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    one, url = tmp_path / "one", f"{server.url}/lost"
    crawl_a_part(web, one)
    migrate(one, url)
    before = json.loads(run("status", url, "--json").stdout)["pages"]
    assert before
    shutil.rmtree(one)
    lost = run("verify", url)
    assert lost.returncode == 1
    assert "node origin" in lost.stdout
    assert "join" in run("retry", url, "--stored-on", "origin").stdout
    joined = run("join", url, "-o", str(tmp_path / "b"), "--node", "b", "--lease", LEASE_S, "--json")
    assert joined.returncode == 0, joined.stderr
    summary = summary_of(joined.stdout)
    check_served(web, stored=summary["pages"], max_twice=before + 20)
    exported = run("export", url, "--format", "jsonl")
    assert len(exported.stdout.splitlines()) == summary["pages"], exported.stderr


def shown_by_verbs(crawl: str) -> dict[str, Any]:
    """Return what verbs say of a crawl, without what differs between a folder and a ledger."""
    status = json.loads(run("status", crawl, "--json").stdout)
    report = json.loads(run("report", crawl, "--json").stdout)
    verified = json.loads(run("verify", crawl, "--json").stdout)
    pages = sorted(run("export", crawl, "--format", "jsonl").stdout.splitlines())
    url = json.loads(pages[0])["url"]
    why = json.loads(run("why", crawl, url, "--json").stdout)
    summary = {key: value for key, value in report["summary"].items() if key in SHOWN}
    return {
        "url": url,
        "pages_before": status["pages"],
        "status": {key: status[key] for key in ("pages", "max_pages", "fetches", "errors", "urls_seen", "urls_queued")},
        "summary": summary,
        "verified": {key: value for key, value in verified.items() if key != "notes"},
        "pages": pages,
        "why": {key: value for key, value in why.items() if key not in ("place", "node")},
    }


SHOWN = {
    "pages", "fetches", "errors", "bytes", "seconds", "unique_hosts", "unique_domains", "urls_seen", "urls_queued",
    "urls_parked", "robots_disallowed", "duplicates", "near_duplicates", "html_share", "finished", "dead", "held",
}  # fmt: skip


def test_a_crawl_whose_archive_is_in_s3_moves_there_and_back(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    program = engines.weed()
    one, two, url = tmp_path / "one", tmp_path / "two", f"{server.url}/s3"
    with s3_running(program, tmp_path / "s3") as s3:
        store = ["--store", f"s3://{BUCKET}/moved", "--save-interval", "10"]
        environment = s3.environment(0)
        process = start("crawl", *web.seeds(), *crawl_options(web, one, PACE_MS), *store, environment=environment)
        stop_midway(process, web)
        for words in (["migrate", str(one), url], ["verify", url]):
            done = run(*words, environment=environment)
            assert done.returncode == 0, done.stdout + done.stderr
        joined = run("join", url, "-o", str(one), "--node", "a", "--lease", LEASE_S, "--json", environment=environment)
        assert joined.returncode == 0, joined.stderr
        pages = summary_of(joined.stdout)["pages"]
        check_served(web, stored=pages)
        assert run("migrate", url, str(two), environment=environment).returncode == 0
        verified = run("verify", str(two), environment=environment)
        assert verified.returncode == 0, verified.stdout
        exported = run("export", str(two), "--format", "jsonl", environment=environment)
        assert exported.returncode == 0, exported.stderr
        assert len(exported.stdout.splitlines()) == pages
        again = run("resume", str(two), "--json", environment=environment)
        assert again.returncode == 0, again.stderr
        assert summary_of(again.stdout)["pages"] == pages
