"""`gossamer why`: the whole life of a URL in a real crawl."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.core.url.forms import link_to
from gossamer.model.records import QueuedUrl, Source, UrlRecord, UrlState
from gossamer.reading.why.source import twins_of
from tests.reading.folders import Crawled, finished, is_one_line, ledger_of, said, small_web, stopped

__all__ = ["finished", "small_web", "stopped"]


def _a_url(crawled: Crawled, wanted: Callable[[UrlRecord], bool]) -> str:
    return next(url for url, row in crawled.rows().items() if wanted(row))


def test_the_history_of_a_page_is_shown_from_seed_to_archive(
    finished: Crawled, capsys: pytest.CaptureFixture[str]
) -> None:
    url = _a_url(finished, lambda row: row.depth == 2 and row.outcome == "ok" and row.archived is not None)
    status, out, _ = said(capsys, "why", finished.path, url)
    assert status == 0
    assert "given as a seed" in out
    assert "200 ok" in out
    assert ".warc.gz at " in out
    assert "MISSING" not in out
    assert "pace        one request every " in out
    assert ": --politeness-ms " in out


def test_a_denied_url_names_the_line(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(finished, lambda row: row.outcome == "robots_denied")
    status, out, _ = said(capsys, "why", finished.path, url)
    assert status == 0
    assert "not allowed: line " in out
    assert "Disallow: /" in out


def test_a_dead_url_names_its_attempts(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(finished, lambda row: row.state is UrlState.DEAD)
    _, out, _ = said(capsys, "why", finished.path, url)
    assert "dead, client_error 4" in out
    assert "fetched " in out


def test_a_redirect_leads_on(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(finished, lambda row: row.outcome == "redirect")
    _, out, _ = said(capsys, "why", finished.path, url)
    assert "redirect to " in out


def test_an_excluded_link_has_a_trace(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    home = _a_url(finished, lambda row: row.source is Source.SEED and row.outcome == "ok")
    status, out, _ = said(capsys, "why", finished.path, home + "img/0.png")
    assert status == 0
    assert "refused     extension" in out


def test_a_queued_url_has_a_place(stopped: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(stopped, lambda row: row.state is UrlState.QUEUED)
    status, out, _ = said(capsys, "why", stopped.path, url)
    assert status == 0
    assert "queue       priority " in out
    assert "waits for   the crawl is not running" in out


@pytest.mark.parametrize("url", ["https://never.example/x", "never.example"])
def test_a_url_that_was_never_seen_is_exit_1(finished: Crawled, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "why", finished.path, url)
    assert status == 1
    assert "never seen" in out
    assert "out_of_scope" in out


def test_a_url_that_could_have_been_found_says_so(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    home = _a_url(finished, lambda row: row.depth == 0 and row.outcome == "ok")
    status, out, _ = said(capsys, "why", finished.path, home + "no/such/page")
    assert status == 1
    assert "no rule refuses it" in out


def test_json_names_every_field(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(finished, lambda row: row.archived is not None and row.depth == 1)
    _, out, _ = said(capsys, "why", finished.path, url, "--json")
    life = json.loads(out)
    assert life["row"]["archived"]["file"].endswith(".warc.gz")
    assert life["row"]["state"] == "done"
    assert life["ancestors"][-1]["source"] == "seed"


def test_a_title_cannot_act_on_the_terminal(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished.copied(tmp_path / "copy")
    url = _a_url(finished, lambda row: row.depth == 0 and row.outcome == "ok")
    with ledger_of(folder) as ledger:
        link = link_to(url)
        row = ledger.look_up(link.id)
        assert row is not None
        row.title = "\x1b[2J\x1b]0;pwn\x07"
        ledger.finish(QueuedUrl(url, link.id, link.host, row.priority, row.seq, 0), row)
    _, out, _ = said(capsys, "why", folder, url)
    assert "\x1b" not in out
    assert "\\u001b[2J" in out


@pytest.mark.parametrize("url", ["ftp://a.test/", "http://", "not a url at all"])
def test_what_is_no_url_is_one_line(finished: Crawled, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "why", finished.path, url)
    assert status == 2
    assert is_one_line(err)


def test_a_url_can_be_named_by_its_id(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(finished, lambda row: row.depth == 1 and row.outcome == "ok")
    _, by_url, _ = said(capsys, "why", finished.path, url)
    status, by_id, _ = said(capsys, "why", finished.path, link_to(url).id.hex())
    assert (status, by_id.splitlines()[:5]) == (0, by_url.splitlines()[:5])
    status, out, err = said(capsys, "why", finished.path, "0" * 32)
    assert (status, out, is_one_line(err)) == (2, "", True)
    assert "no URL in the catalog has this id" in err


def test_a_twin_that_is_known_is_named(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    url = _a_url(finished, lambda row: row.depth == 1 and row.outcome == "ok")
    assert url.startswith("http:")
    _, out, _ = said(capsys, "why", finished.path, url.replace("http:", "https:"))
    assert f"but known   {url}: ask for that one" in out
    _, out, _ = said(capsys, "why", finished.path, "https://never.example/x")
    assert "but known" not in out


@pytest.mark.parametrize(
    ("url", "twins"),
    [
        ("http://a.test/", {"https://a.test/", "http://www.a.test/", "https://www.a.test/"}),
        ("https://www.a.test/b", {"http://a.test/b/", "https://www.a.test/b/", "http://www.a.test/b"}),
        ("http://a.test/b/?q=1", {"http://a.test/b?q=1", "https://www.a.test/b?q=1"}),
    ],
)
def test_twins_differ_in_scheme_www_and_slash(url: str, twins: set[str]) -> None:
    found = twins_of(url)
    assert twins <= set(found)
    assert url not in found
    assert len(found) <= 11
