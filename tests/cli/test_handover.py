"""`gossamer export`, `feed` and `search` as a user runs them."""

from __future__ import annotations

import builtins
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gossamer.handover.search.search import FILE_NAME
from tests.e2e.preloaded import GOSSAMER
from tests.e2e.program import run
from tests.reading.folders import Crawled, finished, is_one_line, said, small_web

__all__ = ["finished", "small_web"]


def test_export_to_a_file_says_how_many(finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, "export", finished.path, "--format", "jsonl", "-o", tmp_path / "p.jsonl")
    assert (status, out) == (0, "")
    assert f"{finished.summary.pages} pages written" in err


@pytest.mark.parametrize("form", ["jsonl", "links", "cdxj"])
def test_export_to_stdout(finished: Crawled, form: str) -> None:
    command = ("export", str(finished.path), "--format", form, "--where", "depth<=1")
    done = run(*command)
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) > 1
    assert run(*command, "-o", "-").stdout == done.stdout


@pytest.mark.parametrize("verb", [("export", "--format", "jsonl"), ("export", "--format", "links"), ("feed",)])
def test_a_reader_that_has_had_enough_ends_it_quietly(finished: Crawled, verb: tuple[str, ...]) -> None:
    command = [*GOSSAMER, verb[0], str(finished.path), *verb[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_reader_that_ends_early_gets_what_was_in_the_pipe_again(finished: Crawled, tmp_path: Path) -> None:
    kept = tmp_path / "cursor"
    command = [*GOSSAMER, "feed", str(finished.path), "--cursor-file", str(kept)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        process.stdout.read(100)  # less than the first line
        process.stdout.close()
    assert not kept.exists()


def test_the_header_of_a_table_is_no_link(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [
        said(capsys, "export", finished.path, "--format", "links", "-o", tmp_path / name)[2].split(" written")[0]
        for name in ("links.jsonl", "links.tsv", "links.csv.gz")
    ]
    assert len(set(told)) == 1
    assert told[0].endswith(" links")


def test_export_names_the_file_in_a_folder(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = said(capsys, "export", finished.path, "--format", "cdxj", "-o", tmp_path)
    assert status == 0
    assert err.endswith(f"captures written to {tmp_path / 'index.cdxj'}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("export", "--format", "xml"),
        ("export",),
        ("export", "--format", "jsonl", "--where", "hots=x"),
        ("export", "--format", "parquet"),
        ("export", "--format", "jsonl", "-o", "/no/such/folder/x"),
        ("export", "--format", "jsonl", "-o", "no-such-folder/"),
        ("export", "--format", "jsonl", "-o", ""),
        ("export", "--format", "jsonl", "--where", "host=,"),
        ("export", "--format", "wet", "--with-text"),
        ("feed", "--limit", "-1"),
        ("feed", "--after", "x"),
        ("feed", "--after", "99999999"),
        ("feed", "--after", "1", "--cursor-file", "c"),
        ("feed", "--cursor-file", "/no/such/folder/c"),
        ("search", "x", "-n", "0"),
        ("search", "***"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    finished: Crawled, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = said(capsys, words[0], finished.path, *words[1:])
    assert (status, out) == (2, "")
    assert is_one_line(err.replace("building the search index: ", "").split(" changes\n")[-1])


@pytest.mark.parametrize("verb", [("export", "--format", "jsonl"), ("feed",), ("search", "x")])
def test_what_is_no_crawl_folder_is_exit_2(
    tmp_path: Path, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = said(capsys, verb[0], tmp_path, *verb[1:])
    assert status == 2
    assert "not a crawl folder" in err
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_is_one_line(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    status, _, err = said(capsys, "export", finished.path, "--format", "parquet", "-o", tmp_path / "p.parquet")
    assert status == 2
    assert "pip install 'gossamer[parquet]'" in err
    assert is_one_line(err)
    assert list(tmp_path.iterdir()) == []


def test_feed_with_a_cursor_file_goes_on(finished: Crawled, tmp_path: Path) -> None:
    words = ("feed", str(finished.path), "--cursor-file", str(tmp_path / "cursor"))
    first = run(*words, "--limit", "7").stdout.splitlines()
    rest = run(*words).stdout.splitlines()
    again = run(*words)
    assert (again.returncode, again.stdout) == (0, "")
    cursors = [json.loads(line)["cursor"] for line in first + rest]
    assert cursors == list(range(1, len(cursors) + 1))
    assert (tmp_path / "cursor").read_text() == f"{len(cursors)}\n"


def test_search_shows_pages_and_says_when_it_builds(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished.copied(tmp_path / "copy")
    (folder / FILE_NAME).unlink(missing_ok=True)
    status, out, err = said(capsys, "search", folder, "a*", "-n", "3", "--json")
    assert status == 0
    assert "building the search index" in err
    hits = [json.loads(line) for line in out.splitlines()]
    assert 0 < len(hits) <= 3
    assert set(hits[0]) == {"url", "title", "date", "language", "snippet", "score", "copies", "copies_found"}
    status, out, err = said(capsys, "search", folder, "a*", "-n", "3")
    assert hits[0]["url"] in out
    assert err == ""
    assert "\x1b" not in out


def test_search_that_finds_nothing_says_so(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, "search", finished.path, "zzzyyyxxx")
    assert (status, out) == (0, "")
    assert "no page contains zzzyyyxxx" in err


@pytest.mark.parametrize("verb", ["export", "feed", "search"])
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, verb, "--help")
    assert status == 0
    assert f"gossamer {verb} crawls/example" in out


def test_a_search_index_that_is_none_is_one_line(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished.copied(tmp_path / "copy")
    (folder / FILE_NAME).write_bytes(b"this is not a database, whatever it is called" * 100)
    status, _, err = said(capsys, "search", folder, "a*")
    assert status == 1
    assert is_one_line(err)
    assert "if it is removed, it will be rebuilt" in err
