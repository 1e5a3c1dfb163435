"""`gossamer report`: for people, for programs, as a page; beside a running crawl too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.program import run
from tests.reading.folders import Crawled, finished, is_one_line, owned, said, small_web, stopped
from tests.servers.plain_site import Answer, plain_site

__all__ = ["finished", "small_web", "stopped"]


def test_it_is_printed_for_people(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, "report", finished.path)
    assert (status, err) == (0, "")
    for heading in ("Over time", "Answers", "What was collected", "Robots and rules", "Hosts"):
        assert heading in out
    assert "\x1b" not in out


def test_it_is_printed_as_json(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "report", finished.path, "--json")
    assert status == 0
    assert json.loads(out)["summary"]["pages"] == finished.summary.pages


def test_it_is_written_as_a_page(finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "report", finished.path, "--html", tmp_path / "page.html")
    assert status == 0
    assert "page.html" in out
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_languages_of_all_pages_are_counted_if_that_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    german = "Das ist ein Text, der von der Stadt und ihren Leuten handelt, und nicht von etwas anderem; Nummer {}."
    french = "Ceci est un texte qui parle de la ville et de ses habitants, et pas d'autre chose; le numéro est {}."
    with plain_site() as site:
        texts = [german] * 40 + [french] * 10
        links = "".join(f"<a href=/{n}>{n}</a> " for n in range(len(texts)))
        site.answers = {
            "/": Answer(f"<p>{german.format('null')} {links}"),
            **{f"/{n}": Answer(f"<html lang=de><p>{text.format(n)}") for n, text in enumerate(texts)},
        }
        done = run("crawl", site.url, "--out", str(tmp_path / "c"), "--politeness-ms", "0")
        assert done.returncode == 0, done.stderr
    _, out, _ = said(capsys, "report", tmp_path / "c", "--json")
    sample = json.loads(out)["corpus"]
    assert sample["languages_sampled"]
    assert sample["languages_checked"] < 51
    _, out, _ = said(capsys, "report", tmp_path / "c", "--json", "--all-languages")
    corpus = json.loads(out)["corpus"]
    assert not corpus["languages_sampled"]
    assert {each["name"]: each["count"] for each in corpus["languages_detected"]} == {"de": 41, "fr": 10}
    assert (corpus["languages_checked"], corpus["languages_differ"]) == (51, 10)
    _, out, _ = said(capsys, "report", tmp_path / "c", "--all-languages")
    assert "in the texts of 51 pages, 10 with another one declared" in out


def test_beside_a_running_crawl_it_tells_what_is_committed(
    stopped: Crawled, capsys: pytest.CaptureFixture[str]
) -> None:
    with owned(stopped.path):
        status, out, _ = said(capsys, "report", stopped.path, "--json")
    summary = json.loads(out)["summary"]
    assert status == 0
    assert summary["finished"] == "running"
    assert summary["pages"] == stopped.summary.pages
    assert summary["urls_queued"] == stopped.summary.urls_queued


@pytest.mark.parametrize("verb", ["report", "status", "hosts", "verify"])
def test_a_folder_that_is_no_crawl_is_one_line(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        status, out, err = said(capsys, verb, folder)
        assert (status, out) == (2, "")
        assert is_one_line(err)


def test_a_broken_ledger_is_one_line(finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = finished.copied(tmp_path / "copy")
    (folder / "state" / "data.mdb").write_bytes(b"not a ledger" * 1000)
    status, out, err = said(capsys, "report", folder)
    assert (status, out) == (1, "")
    assert is_one_line(err)


def test_a_page_that_cannot_be_written_is_one_line(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = said(capsys, "report", finished.path, "--html", tmp_path / "no" / "such" / "folder.html")
    assert status == 2
    assert is_one_line(err)
