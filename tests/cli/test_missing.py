"""`gossamer missing` as a user runs it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.crawled import Crawled
from tests.e2e.program import run
from tests.reading.folders import is_one_line, owned, said
from tests.servers import engines
from tests.servers.plain_site import Answer, plain_site
from tests.servers.redis import running

Output = pytest.CaptureFixture[str]
OTHER = "http://other.example/\u202epage"


def page(*links: str) -> Answer:
    anchors = " ".join(f'<a href="{to}">a link</a>' for to in links)
    return Answer(f"<html><head><title>A page</title></head><body><p>Some words. {anchors}</p></body></html>")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with plain_site() as site:
        local = f"http://localhost:{site.server.server_port}/local"
        site.answers = {
            "/robots.txt": Answer("User-agent: *\nDisallow: /private\n", content_type="text/plain"),
            "/": page("/a", "/missing", "/private/x", "/no/1", "/feed", OTHER, "http://other.example/2", local),
            "/local": page(),
            "/deep": page(),
            "/a": page(*[f"/many/{number}" for number in range(20)], OTHER, "/"),
            "/feed": Answer("x", content_type="video/mp4"),
            **{f"/many/{number}": page("/deep", OTHER) for number in range(20)},
        }
        out = tmp_path_factory.mktemp("missing") / "crawl"
        options = [
            "--politeness-ms",
            "0",
            "--near-dup",
            "off",
            "--max-links-per-page",
            "10",
            "--exclude-pattern",
            "/no/",
        ]
        done = run("crawl", site.url, "--out", str(out), *options, "--max-depth", "2")
        assert done.returncode == 0, done.stderr
        # Links are read again, and refused again; what was out of the scope is a seed now.
        done = run("crawl", site.url, local, "--out", str(out), "--politeness-ms", "0", "--max-depth", "3")
        assert done.returncode == 0, done.stderr
        yield Crawled(site.url, out)


def found(capsys: Output, crawled: Crawled, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return crawled.answer(capsys, "missing", *words)


def test_everything_that_is_missing_has_a_reason(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled)
    listed = {(line["url"], line["outcome"], line["status"], line["rule"], line["referrer"]) for line in lines}
    assert listed == {
        ("/private/x", "robots_denied", 0, "", "/"),
        ("/missing", "client_error", 404, "", "/"),
        ("/feed", "type_refused", 200, "", "/"),
        ("/no/1", "excluded", 0, "exclude_pattern", ""),
        ("http://other.example/%E2%80%AEpage", "excluded", 0, "out_of_scope", ""),
        ("http://other.example/2", "excluded", 0, "out_of_scope", ""),
        *((f"/many/{number}", "links_cut", 0, "max_links_per_page", "/a") for number in range(10, 20)),
    }
    paths = [line["url"] for line in lines]
    assert paths == sorted(paths, key=lambda path: crawled.site[:-1] + path if path[0] == "/" else path)
    reasons = {line["url"]: line["reason"] for line in lines}
    assert reasons["/private/x"] == "line 2: Disallow: /private"
    assert (reasons["/feed"], reasons["/no/1"]) == ("a type that is not stored", "/no/")
    assert head["urls"] == 6 + 10
    assert head["refused_links"] > 4  # some are refused in both runs, and one was queued by the second


def test_who_links_to_what_was_refused_is_read_in_the_pages(crawled: Crawled, capsys: Output) -> None:
    _, lines = found(capsys, crawled, "--referrers")
    referrers = {line["url"]: line["referrer"] for line in lines}
    assert referrers["/no/1"] == referrers["http://other.example/2"] == "/"
    assert "" not in referrers.values()


def test_links_cut_of_a_page_that_cannot_be_read_are_a_number(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(crawled.path, copy)
    for path in (copy / "archive").iterdir():
        path.unlink()
    _, (line,) = Crawled(crawled.site, copy).answer(capsys, "missing", "--outcome", "links_cut")
    assert (line["url"], line["referrer"], line["count"]) == ("", "/a", 10)


def test_what_left_the_queue_has_its_referrer(capsys: Output, tmp_path: Path) -> None:
    with plain_site() as site:
        site.answers = {"/": page(*[f"/{number}" for number in range(12)])}
        site.answers |= {f"/{number}": page() for number in range(12)}
        out = tmp_path / "crawl"
        done = run("crawl", site.url, "--out", str(out), "--politeness-ms", "0", "--max-queued", "4")
        assert done.returncode == 0, done.stderr
        _, lines = Crawled(site.url, out).answer(capsys, "missing", "--outcome", "evicted")
        assert lines
        for line in lines:
            assert (line["referrer"], bool(line["url"]), bool(line["reason"])) == ("/", True, True)
        status, listed, _ = said(capsys, "retry", out, "--list", "--json")
    letters = [json.loads(line.replace(site.url, "/")) for line in listed.splitlines()]
    assert status == 0
    assert [letter["url"] for letter in letters] == sorted(letter["url"] for letter in letters)
    assert {letter["referrer"] for letter in letters if letter["outcome"] == "evicted"} == {"/"}
    assert {letter["status"] for letter in letters} == {0}


def test_what_is_queued_is_listed_if_it_is_asked_for(capsys: Output, tmp_path: Path) -> None:
    with plain_site() as site:
        site.answers = {"/": page(*[f"/{number}" for number in range(5)])}
        site.answers |= {f"/{number}": page() for number in range(5)}
        crawled = Crawled(site.url, tmp_path / "crawl")
        done = run("crawl", site.url, "--out", str(crawled.path), "--politeness-ms", "0", "-n", "3")
        assert done.returncode == 0, done.stderr
        head, lines = crawled.answer(capsys, "missing")
        assert (head["urls"], head["queued"], lines) == (0, 3, [])
        head, lines = crawled.answer(capsys, "missing", "--outcome", "queued")
    assert (head["urls"], len({line["url"] for line in lines})) == (3, 3)
    assert {(line["outcome"], line["referrer"], line["host"]) for line in lines} == {("queued", "/", "127.0.0.1")}


def test_outcomes_and_hosts_can_be_chosen(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled, "--outcome", "client_error", "--outcome", "robots_denied")
    assert {line["url"] for line in lines} == {"/missing", "/private/x"}
    assert head["urls"] == 2
    _, lines = found(capsys, crawled, "--host", "other.example")
    assert {line["host"] for line in lines} == {"other.example"}
    assert len(lines) == 2


def test_a_table_begins_with_counts_and_is_limited(crawled: Crawled, capsys: Output) -> None:
    status, out, err = said(capsys, "missing", crawled.path, "--limit", "1")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].endswith(": 16 URLs missing")
    assert any(line.split() == ["links_cut", "max_links_per_page", "10"] for line in lines)
    assert lines[-1] == "  and 15 more; --limit 0 shows all"
    _, out, _ = said(capsys, "missing", crawled.path, "--limit", "0")
    assert (
        f"{crawled.site}many/19  links_cut max_links_per_page: the page has more new links  (on {crawled.site}a)" in out
    )
    assert f"{crawled.site}private/x  robots_denied: line 2: Disallow: /private  (on {crawled.site})\n" in out


def test_csv_has_a_line_per_row(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    target = tmp_path / "missing.csv"
    assert said(capsys, "missing", crawled.path, "-o", target)[0] == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"), newline="")))
    assert len(rows) == 16
    assert list(rows[0]) == ["url", "outcome", "status", "rule", "reason", "referrer", "host", "count", "kind"]
    on_stdout = said(capsys, "missing", crawled.path, "--csv", "-o", "-")[1]
    assert on_stdout.splitlines() == target.read_text("utf-8").splitlines()


def test_wrong_options_and_folders_are_one_line(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    for words in ((crawled.path, "--outcome", "lost"), (tmp_path,), (crawled.path, "-o", tmp_path)):
        status, out, err = said(capsys, "missing", *words)
        assert (status, out, is_one_line(err)) == (2, "", True)


def test_a_crawl_that_runs_and_a_ledger_have_the_same_answer(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    _, lines = found(capsys, crawled)
    with owned(crawled.path):
        assert found(capsys, crawled)[1] == lines
    program = engines.valkey()
    copy = tmp_path / "copy"
    shutil.copytree(crawled.path, copy)
    with running(program, tmp_path) as server:
        assert said(capsys, "migrate", copy, f"{server.url}/later")[0] == 0
        status, out, _ = said(capsys, "missing", f"{server.url}/later", "--json")
    assert status == 0
    shared = [json.loads(line.replace(crawled.site, "/")) for line in out.splitlines()[1:]]
    assert sorted(shared, key=str) == sorted(lines, key=str)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crawled, dict[str, Any]]]:
    """A crawl that every limit cuts, and its summary."""
    with plain_site() as site:
        head = '<html><head><meta name="robots" content="nofollow"><title>t</title></head>'
        site.answers = {
            "/": page("/deep", "/barred", "/long", "/no/1", "/many"),
            "/deep": page("/", "/known", "/deeper/1", "/deeper/2", "/no/1", "/no/2"),
            "/many": page(*[f"/m/{number}" for number in range(8)]),
            "/known": page("/", "/deeper/1"),
            "/barred": Answer(head + '<body><p>Words. <a href="/never/1">1</a> <a href="/never/2">2</a></p></body>'),
            "/long": Answer("<html><body><p>Words.</p>" + "<p>more words of it</p>" * 4000),
            **{f"/m/{number}": page() for number in range(8)},
        }
        crawled = Crawled(site.url, tmp_path_factory.mktemp("cut") / "crawl")
        limits = ["--max-depth", "1", "--max-links-per-page", "5", "--max-bytes", "50000", "--exclude-pattern", "/no/"]
        site.answers["/more"] = page()
        done = run(
            "crawl", site.url, f"{site.url}many", "-o", str(crawled.path), "--json", "--politeness-ms", "0", *limits
        )
        assert done.returncode == 0, done.stderr
        yield crawled, json.loads(done.stdout.splitlines()[-1])


def test_every_cut_has_a_count_in_the_summary(cut: tuple[Crawled, dict[str, Any]]) -> None:
    _, summary = cut
    assert summary["cuts"] == {
        "max_depth": 6,  # links of /deep, where known ones count, too
        "max_depth_pages": 1,
        "max_links_per_page": 3,
        "max_links_per_page_pages": 1,
        "nofollow": 2,
        "nofollow_pages": 1,
        "truncated_pages": 1,
        "rules": 1,
    }


def test_every_cut_has_its_rows(cut: tuple[Crawled, dict[str, Any]], capsys: Output) -> None:
    crawled, _ = cut
    _, lines = crawled.answer(capsys, "missing")
    rows = {(line["outcome"], line["url"], line["rule"], line["referrer"], line["count"]) for line in lines}
    assert rows == {
        *(("too_deep", url, "max_depth", "/deep", 1) for url in ("/known", "/deeper/1", "/deeper/2")),
        *(("links_cut", f"/m/{number}", "max_links_per_page", "/many", 1) for number in (5, 6, 7)),
        ("excluded", "/no/1", "exclude_pattern", "/deep", 1),
        ("excluded", "/no/2", "exclude_pattern", "/deep", 1),
        ("nofollow", "", "nofollow", "/barred", 2),
        ("truncated", "/long", "max_bytes", "/", 1),
    }


def test_the_event_of_a_page_with_too_many_links_names_it(cut: tuple[Crawled, dict[str, Any]]) -> None:
    crawled, _ = cut
    events = [json.loads(line) for path in (crawled.path / "events").iterdir() for line in path.open()]
    (capped,) = [event for event in events if event["event"] == "links_capped"]
    assert capped["url"] == f"{crawled.site}many"


def test_a_crawl_that_was_cut_does_not_claim_that_everything_was_fetched(
    cut: tuple[Crawled, dict[str, Any]], capsys: Output
) -> None:
    crawled, _ = cut
    status, out, _ = said(capsys, "status", crawled.path)
    assert status == 0
    assert "everything within reach was fetched" not in out
    assert "--max-depth" in out
