"""`gossamer fetch`: what a reader of the page sees comes first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reading.folders import said
from tests.servers.plain_site import Answer, PlainSite, plain_site

MENU = "<nav><ul>" + "".join(f"<li><a href=/{name}>{name}</a>" for name in ("home", "shop")) + "</ul></nav>"
TEXT = "".join(
    f"<p>Kiln number {number} fires at a temperature of 1,280 degrees, twice a week.</p>" for number in range(30)
)


@pytest.fixture(scope="module")
def site() -> Iterator[PlainSite]:
    with plain_site() as site:
        site.answers["/"] = Answer(f"<title>Kilns\u202e</title><body>{MENU}<main><h1>Kilns</h1>{TEXT}</main>")
        site.answers["/empty"] = Answer("<title></title>")
        yield site


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_title_and_main_text_come_before_headers_and_links(site: PlainSite, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "fetch", site.url)
    lines = out.splitlines()
    assert status == 0
    assert lines[:4] == ["Kilns\\u202e", site.url, "", "# Kilns"]
    assert lines[4].startswith("Kiln number 0 fires")
    end = next(at for at, line in enumerate(lines) if line.endswith("more words: --text"))
    assert end == 11, "eight lines of text"
    assert lines[end + 2] == "> GET / HTTP/1.1"
    assert any(line.startswith("links       2") for line in lines[end:])


def test_the_whole_text_is_shown_on_request(site: PlainSite, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "fetch", site.url, "--text")
    assert "Kiln number 29 fires" in out.partition("> GET")[0]
    assert "--text" not in out


def test_a_page_without_text_says_so(site: PlainSite, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "fetch", f"{site.url}empty")
    assert (status, out.splitlines()[:4]) == (0, ["without a title", f"{site.url}empty", "", "(no text)"])


def test_what_is_no_page_begins_with_the_request(site: PlainSite, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "fetch", f"{site.url}missing")
    assert status == 1
    assert out.startswith("> GET /missing HTTP/1.1\n")
    assert "outcome     client_error" in out
