"""Whole crawls of the synthetic web over loopback, judged by what its servers saw."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.archive.cdxj import sorted_lines
from gossamer.archive.reader import ArchiveReader
from gossamer.backends.local.digest_log import DIGEST_BYTES, TABLE
from gossamer.backends.local.store import Store
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.truth import Scope
from gossamer.sim.web.web import preset
from tests.amount import some
from tests.archive.test_cdxj import without_details
from tests.e2e.program import crawl, crawl_options, fetched_urls, run, start, summary_of
from tests.servers.web import RunningWeb

SLACK_S = 0.003


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small")) as web:
        yield web


def judge_rules(pace_ms: int, scope: Scope = "domain") -> JudgeRules:
    return JudgeRules(politeness_s=pace_ms / 1000, slack_s=SLACK_S, scope=scope)


@pytest.mark.parametrize("workers", some([2, 1], 1))
def test_3000_pages_on_50_hosts_are_all_fetched_once_and_politely(tmp_path: Path, workers: int) -> None:
    with RunningWeb(preset("polite50", crawl_delay_s=0.05)) as web:
        summary = crawl(web, tmp_path / "out", 30, "--workers", str(workers))
        report = web.judge(judge_rules(30))
    assert report.is_clean, report.render()
    assert report.coverage == 1.0, report.render()
    assert summary["finished"] == "exhausted"
    assert summary["urls_queued"] == 0
    assert summary["pages"] >= 3000


def test_a_crawl_leaves_a_complete_folder(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    crawl(small_web, out, 20)
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"crawl.toml", "report.json", "report.html", "index/index.cdxj", "state/data.mdb"} <= names
    assert any(name.endswith(".warc.gz") for name in names)
    assert not any(".open" in name or name.endswith(".tmp") for name in names)


def test_a_crawl_logs_what_is_in_its_filters_so_that_opening_reads_no_keys(tmp_path: Path) -> None:
    with RunningWeb(preset("rough", domains=20, pages=150)) as web:
        crawl(web, tmp_path / "out", 10)
    store = Store(tmp_path / "out" / "state", ("urls", "contents", TABLE), {}, is_readonly=True)
    store.open()
    for table, name in (("urls", b"u"), ("contents", b"c")):
        logged = sum(len(digests) // DIGEST_BYTES for _, digests in store.committed_views(TABLE, name))
        assert logged == store.committed_count(table) > 50
    store.close()


def test_archive_tools_accept_the_archive_and_make_the_same_index(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    crawl(small_web, out, 20, "--save-interval", "100")
    files = sorted((out / "archive").glob("*.warc.gz"))
    assert len(files) >= 4
    tools = Path(sys.executable).parent
    for tool in ("warcio", "fastwarc"):
        for file in files:
            done = subprocess.run([tools / tool, "check", file], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([tools / "cdxj-indexer", *files], capture_output=True, text=True, check=True)
    index = (out / "index" / "index.cdxj").read_text("utf-8").splitlines()
    assert without_details(index) == sorted_lines(done.stdout.splitlines())


def test_one_connection_and_no_delay_give_the_same_sequence_twice(tmp_path: Path, small_web: RunningWeb) -> None:
    for name in ("first", "second"):
        crawl(small_web, tmp_path / name, 0, "-c", "1", "--scope", "any", seeds=small_web.seeds(2), is_new=True)
    first, second = fetched_urls(tmp_path / "first"), fetched_urls(tmp_path / "second")
    assert len(first) > 400
    assert first == second


def test_the_first_pass_reaches_its_target_of_domains_fairly(tmp_path: Path) -> None:
    csv = tmp_path / "domains.csv"
    with RunningWeb(preset("broad", domains=1500, pages=4500)) as web:
        rows = [f"{n + 1},{seed}" for n, seed in enumerate(web.seeds(60))]
        csv.write_text("rank,domain\n" + "\n".join(rows) + "\n", "utf-8")
        options = crawl_options(web, tmp_path / "out", 100)
        done = run("crawl", "--domain-seeds-csv", str(csv), "--target-unique-domains", "1000", *options)
        report = web.judge(judge_rules(100, scope="any"))
    summary = summary_of(done.stdout)
    assert done.returncode == 0
    assert summary["finished"] == "target_domains"
    assert 1000 <= summary["unique_domains"] <= 1300
    assert report.is_clean, report.render()
    hosts = [url.split("/")[2] for url in fetched_urls(tmp_path / "out")]
    assert len(set(hosts)) == len(hosts), "a second page of a domain came before the target was reached"


def test_breadth_serves_domains_in_turn(tmp_path: Path) -> None:
    with RunningWeb(preset("plain", domains=20, pages=400)) as web:
        crawl(web, tmp_path / "out", 0, "-c", "1", "--scope", "any")
    fetched: dict[str, int] = {}
    for url in fetched_urls(tmp_path / "out")[:200]:
        domain = url.split("/")[2]
        fetched[domain] = fetched.get(domain, 0) + 1
    assert len(fetched) == 20
    assert max(fetched.values()) - min(fetched.values()) <= 1


def test_a_signal_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    arguments = ["crawl", *small_web.seeds(), *crawl_options(small_web, out, 60)]
    process = start(*arguments, "-vv")
    assert process.stderr is not None
    for line in process.stderr:  # wait until it is well under way
        if line.startswith("heartbeat"):
            break
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 11
    stopped = summary_of(stdout)
    assert stopped["finished"] == "signal"
    assert stopped["urls_queued"] > 0
    assert (out / "report.html").exists()
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    report = small_web.judge(judge_rules(60))
    assert report.is_clean, report.render()
    assert report.coverage == 1.0, report.render()
    assert summary_of(done.stdout)["pages"] >= 400


def test_a_limit_that_was_reached_can_be_raised(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    first = crawl(small_web, out, 10, "-n", "50")
    assert first["finished"] == "max_pages"
    assert first["pages"] == 50
    done = run("resume", str(out), "--max-pages", "120", "--json")
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == 120
    report = small_web.judge(judge_rules(10))
    assert report.is_clean, report.render()


def test_a_run_that_fetches_nothing_says_so_and_what_would_fetch(tmp_path: Path, small_web: RunningWeb) -> None:
    command = ("crawl", *small_web.seeds(), *crawl_options(small_web, tmp_path / "out", 0), "--max-pages", "30")
    first = run(*command)
    assert "NOTHING WAS FETCHED" not in first.stderr
    again = run(*command, "--json")
    assert again.returncode == 0
    assert summary_of(again.stdout)["run_fetches"] == 0
    assert "NOTHING WAS FETCHED: the page limit was reached; the 30 pages above are of earlier runs" in again.stderr
    assert f"resume {tmp_path / 'out'} --max-pages N' raises the limit" in again.stderr


def test_options_that_would_change_a_crawl_are_refused(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    crawl(small_web, out, 10, "-n", "5")
    done = run("resume", str(out), "--order", "score")
    assert done.returncode == 2
    assert "--order" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_has_one_owner(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    process = start("crawl", *small_web.seeds(), *crawl_options(small_web, out, 300), "-vv")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("fetch_ok"):
            break
    done = run("crawl", *small_web.seeds(), *crawl_options(small_web, out, 300))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert done.returncode == 2
    assert f"in use by process {process.pid}" in done.stderr
    assert process.returncode == 11


def test_debug_prints_a_record_a_page(tmp_path: Path, small_web: RunningWeb) -> None:
    done = run("crawl", *small_web.seeds(3), *crawl_options(small_web, tmp_path / "out", 10), "-n", "10", "--debug")
    *records, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert (len(records), summary["pages"]) == (10, 10)
    assert len({record["url"] for record in records} & set(fetched_urls(tmp_path / "out"))) == 10
    assert all(record["title"] and abs(record["ts"] - time.time()) < 120 for record in records)
    assert {len(record["words"].split()) for record in records} == {20}


def test_every_record_of_a_page_names_its_request(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    crawl(small_web, out, 10, "-n", "20")
    records = [record for path in sorted((out / "archive").iterdir()) for record in ArchiveReader(path)]
    assert records[0].type == "warcinfo"
    info = records[0].block.decode()
    for name in (
        "software: Gossamer/",
        "format: ",
        "conformsTo: ",
        "robots: ",
        "http-header-user-agent: ",
        "operator: ",
    ):
        assert name in info
    requests = {record.fields["warc-concurrent-to"] for record in records if record.type == "request"}
    answers = {f"<{record.id}>" for record in records if record.type in ("response", "revisit")}
    assert requests == answers
