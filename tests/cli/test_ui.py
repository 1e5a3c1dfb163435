"""`gossamer ui` and the options that start it: what is wrong is one line, and what is not stored."""

from __future__ import annotations

from pathlib import Path

import pytest

import gossamer
from gossamer.cli.dashboard_process import DashboardProcess
from gossamer.model.errors import UsageError
from gossamer.settings.load import from_file, merged, to_toml
from tests.reading.folders import is_one_line, said


@pytest.mark.parametrize("option", ["--ui-listen", "--metrics-listen"])
@pytest.mark.parametrize("address", ["8080", "localhost", ":80", "127.0.0.1:http", "127.0.0.1:99999", "a b:1", "h/x:1"])
def test_what_is_no_address_is_one_line(
    option: str, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("ui", tmp_path), ("crawl", "http://127.0.0.1:1/", "-o", tmp_path / "new")):
        status, _, err = said(capsys, *words, option, address)
        assert status == 2
        assert is_one_line(err)
        assert "expected HOST:PORT" in err
    assert not (tmp_path / "new").exists()


NO_URLS = (
    *("ops.example.org", "ftp://a.test/", "http://", "http://a.test/?x=1", "http://a.test/#x", "http://u@a.test/"),
    *("http://a.test/../b", "http://a.test/a//b", "http://a.test:port/", "http://a b.test/"),
)


@pytest.mark.parametrize("url", NO_URLS)
def test_what_is_no_url_of_a_proxy_is_one_line(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("ui", tmp_path), ("crawl", "http://127.0.0.1:1/", "-o", tmp_path / "new")):
        status, _, err = said(capsys, *words, "--ui-url", url)
        assert status == 2
        assert is_one_line(err)
        assert "expected one as https://" in err
    assert not (tmp_path / "new").exists()


def test_a_file_without_a_token_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "short"
    short.write_text("too short")
    for path, part in ((short, "contains no token"), (tmp_path, "Is a directory"), (tmp_path / "no" / "x", "No such")):
        status, _, err = said(capsys, "crawl", "http://127.0.0.1:1/", "-o", tmp_path / "new", "--ui-token-file", path)
        assert (status, is_one_line(err), part in err) == (2, True, True), err
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_crawl_has_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, part in ((tmp_path / "none", "no such folder"), (tmp_path, "not a crawl folder")):
        status, _, err = said(capsys, "ui", path)
        assert (status, is_one_line(err)) == (2, True)
        assert part in err


def test_the_page_is_a_setting_from_every_source_and_is_not_stored_with_the_crawl(tmp_path: Path) -> None:
    path = tmp_path / "crawl.toml"
    path.write_text(
        '[ui]\nlisten = "127.0.0.1:8080"\nmetrics-listen = "[::1]:9100"\nurl = "https://a.test/x/"\ntoken-file = "t"\n'
    )
    settings = merged(("file", from_file(path)))
    assert settings.ui
    assert (settings.ui_url, settings.ui_token_file) == ("https://a.test/x/", "t")
    text = to_toml(settings)
    assert "listen" not in text
    assert "ui" not in [line.partition(" ")[0] for line in text.splitlines()]


def test_where_nothing_serves_a_page_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "bench", "http://127.0.0.1:1/", "--ui")
    assert (status, is_one_line(err)) == (2, True)
    assert "serves no dashboard" in err
    with pytest.raises(UsageError, match="serves no dashboard"):
        gossamer.crawl("http://127.0.0.1:1/", out=tmp_path / "out", ui=True)


def test_a_page_that_ends_too_early_is_one_warning(tmp_path: Path) -> None:
    told: list[str] = []
    warned: list[str] = []
    process = DashboardProcess(["ui", str(tmp_path / "none")], told.append, warned.append)
    process.thread.join(30)
    process.end()
    assert any("no such folder" in line for line in told)
    assert warned == ["the process of the dashboard has ended with status 2; the crawl goes on without it"]
