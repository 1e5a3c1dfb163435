"""`gossamer pages` as a user runs it: on a site with pages of each kind."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.model.events import Event
from tests.cli.crawled import Crawled
from tests.e2e.program import run
from tests.reading.folders import is_one_line, owned, said
from tests.servers import engines
from tests.servers.plain_site import Answer, plain_site
from tests.servers.redis import running

Output = pytest.CaptureFixture[str]
SLOW_MS = {"slow": 2500, "slower": 9000}


def page(name: str, *links: str, title: str | None = None, words: int = 60, head: str = "") -> Answer:
    anchors = " ".join(f'<a href="/{to}">{to}</a>' for to in links)
    text = " ".join(f"{name}{number}" for number in range(words))
    title = f"<title>{name if title is None else title}</title>"
    return Answer(f"<html><head>{title}{head}</head><body><p>{text} {anchors}</p></body></html>")


def described(text: str) -> str:
    return f'<meta name="description" content="{text}">'


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with plain_site() as site:
        paths = ["slow", "slower", "large", "thin", "untitled", "twin1", "twin2", "hidden", "text.txt"]
        site.answers = {
            "/": page("home", *paths, "missing"),
            **{f"/{path}": page(path) for path in paths},
            "/large": page("large", words=20_000),
            "/thin": page("thin", "deep", words=3),
            "/deep": page("deep", "deeper", title="red\u202eetalp"),
            "/untitled": page("untitled", title=" "),
            "/hidden": page("hidden", head='<meta name="robots" content="noindex">'),
            "/text.txt": Answer("few words", content_type="text/plain"),
            **{f"/{name}": page(name, head=described(name)) for name in ("slow", "slower")},
            "/deeper": page(
                "deeper", head=described("deeper") + '<base href="/x/"><link rel=canonical href="../slow">'
            ),
            "/twin1": page("twin1", title="The  same", head=described("Same  Words")),
            "/twin2": page(
                "twin2", title="the same", head=described("same words") + "<link rel=canonical href='#top'>"
            ),
        }
        out = tmp_path_factory.mktemp("pages") / "crawl"
        done = run("crawl", site.url, "--out", str(out), "--politeness-ms", "0", "--near-dup", "off")
        assert done.returncode == 0, done.stderr
        made_slow(out)
        yield Crawled(site.url, out)


def made_slow(out: Path) -> None:
    """Change what the events say about the time of some requests: no test waits for them."""
    for path in (out / "events").glob("*.jsonl"):
        events = [msgspec.json.decode(line, type=Event) for line in path.read_bytes().splitlines()]
        slow = [
            msgspec.structs.replace(event, total_ms=SLOW_MS.get(event.url.rpartition("/")[2], event.total_ms))
            for event in events
        ]
        path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in slow))


def found(capsys: Output, crawled: Crawled, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head, lines = crawled.answer(capsys, "pages", *words)
    assert head["found"] == len(lines)
    return head, lines


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["--slow", "2"], ["/slower", "/slow"]),
        (["--slow", "2.6"], ["/slower"]),
        (["--large", "100K"], ["/large"]),
        (["--thin", "30"], ["/thin"]),
        (["--deep", "2"], ["/deeper", "/deep"]),
        (["--deep", "2", "--thin", "30"], []),
        (["--missing-title"], ["/untitled"]),
        (["--duplicate-title"], ["/twin1", "/twin2"]),
        (["--noindex"], ["/hidden"]),
        (["--missing-description"], ["/", "/deep", "/hidden", "/large", "/thin", "/untitled"]),
        (["--missing-description", "--noindex"], ["/hidden"]),
        (["--duplicate-description"], ["/twin1", "/twin2"]),
        (["--canonical-elsewhere"], ["/deeper"]),
        (["--noindex", "--host", "other.example"], []),
    ],
)
def test_pages_of_each_kind_are_found(crawled: Crawled, capsys: Output, words: list[str], paths: list[str]) -> None:
    _, lines = found(capsys, crawled, *words)
    listed = [line["url"] for line in lines]
    assert listed == paths


def test_what_was_read_of_pages_is_in_the_answer(crawled: Crawled, capsys: Output) -> None:
    _, (line,) = found(capsys, crawled, "--canonical-elsewhere")
    assert (line["description"], line["canonical"]) == ("deeper", "/slow")
    _, out, _ = said(capsys, "pages", crawled.path, "--canonical-elsewhere")
    assert out.splitlines()[-1].endswith(f" {crawled.site}slow")
    _, lines = found(capsys, crawled, "--noindex")
    assert lines[0]["description"] is None


def test_without_a_filter_all_pages_are_listed(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled)
    assert head["pages"] == len(lines) == 12
    assert [line["url"] for line in lines] == sorted(line["url"] for line in lines)
    (thin,) = [line for line in lines if line["url"] == "/thin"]
    assert (thin["title"], thin["status"], thin["depth"], thin["noindex"]) == ("thin", 200, 1, False)
    assert thin["response_ms"] is None
    assert thin["words"] == 4


class SoftNotFound(dict[str, Answer]):
    """Answers of a site that says "not found" with status 200."""

    def get(self, path: str, default: object = None, /) -> Answer:
        return super().get(path) or page("nothing", title="Sorry")


def test_pages_that_say_not_found_with_200_are_marked(tmp_path: Path, capsys: Output) -> None:
    gone = [f"gone{number}" for number in range(30)]
    with plain_site() as site:
        site.answers = SoftNotFound(
            {"/robots.txt": Answer("", 404), "/": page("home", *gone, "here"), "/here": page("here")}
        )
        done = run("crawl", site.url, "--out", str(tmp_path), "--politeness-ms", "0")
        assert done.returncode == 0, done.stderr
        crawled = Crawled(site.url, tmp_path)
    head, lines = found(capsys, crawled, "--soft-404")
    listed = {line["url"] for line in lines}
    assert listed == {f"/{name}" for name in gone}  # also those before the probe
    assert all(line["soft_404"] for line in lines)
    _, out, _ = said(capsys, "pages", tmp_path, "--limit", "0")
    marked = [line for line in out.splitlines() if line.endswith("(soft 404)")]
    assert len(marked) == head["found"]


def test_a_table_begins_with_a_count_and_is_safe(crawled: Crawled, capsys: Output) -> None:
    status, out, err = said(capsys, "pages", crawled.path, "--deep", "2", "--limit", "1")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].endswith(": 2 of 12 pages")
    assert lines[-1] == "  and 1 more; --limit 0 shows all"
    _, out, _ = said(capsys, "pages", crawled.path, "--deep", "2")
    assert "red\\u202eetalp" in out
    _, out, _ = said(capsys, "pages", crawled.path, "--slow", "2")
    assert [line.split()[-2] for line in out.splitlines()[3:]] == ["9.00", "2.50"]


def test_csv_has_a_line_per_page(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    target = tmp_path / "pages.csv"
    assert said(capsys, "pages", crawled.path, "-o", target)[0] == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"), newline="")))
    assert len(rows) == 12
    assert {row["noindex"] for row in rows} == {"yes", "no"}
    assert {row["response_ms"] for row in rows} == {""}


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_a_reader_that_has_had_enough_ends_it_quietly(crawled: Crawled, form: str) -> None:
    assert crawled.unread("pages", form) == (0, b"")


def test_wrong_options_and_folders_are_one_line(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    wrong = (["--large", "big"], ["--thin", "-1"], ["--slow", "nan"], ["--deep", "x"])
    for words in ((tmp_path,), *((crawled.path, *each) for each in wrong)):
        status, out, err = said(capsys, "pages", *words)
        assert (status, out, is_one_line(err)) == (2, "", True), words


def test_a_crawl_that_runs_and_a_ledger_have_the_same_answer(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    _, lines = found(capsys, crawled, "--slow", "0.000")
    assert len(lines) == 12
    with owned(crawled.path):
        assert found(capsys, crawled, "--slow", "0")[1] == lines
    program = engines.valkey()
    copy = tmp_path / "copy"
    shutil.copytree(crawled.path, copy)
    with running(program, tmp_path) as server:
        assert said(capsys, "migrate", copy, f"{server.url}/later")[0] == 0
        status, out, _ = said(capsys, "pages", f"{server.url}/later", "--slow", "0", "--json")
    assert status == 0
    shared = [json.loads(line.replace(crawled.site, "/")) for line in out.splitlines()[1:]]
    assert sorted(shared, key=str) == sorted(lines, key=str)
