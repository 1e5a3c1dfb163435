"""The report says what may have to be corrected: broken links, redirects, titles; bounded, with the true totals."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.url.forms import link_to
from gossamer.model.figures import Figures, Totals
from gossamer.model.records import Outcome, QueuedUrl, UrlState
from gossamer.report import findings
from gossamer.report.build import build_report
from gossamer.report.html import render_html
from gossamer.report.record import DescriptionFigures, FindingFigures, Report, SharedText
from gossamer.report.terminal import render_text
from tests.cli.crawled import Crawled
from tests.e2e.program import run
from tests.reading.folders import said
from tests.servers.plain_site import Answer, plain_site

SITE = "http://a.test/"
EVIL = "</td><script>alert(1)</script>\x1b[2J\u202e"


class Rows:
    """A ledger with rows of a test."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger()
        self._number = 0

    def add(self, path: str, outcome: Outcome, status: int = 0, *, to: str = "", title: str = "", on: str = "") -> None:
        link = link_to(SITE + path)
        self._number += 1
        url = QueuedUrl(link.url, link.id, "a.test", 0, self._number, 0, parent=link_to(SITE + on).id if on else b"")
        self.ledger.admit([url])
        row = self.ledger.look_up(link.id)
        assert row is not None
        is_answered = outcome in (Outcome.OK, Outcome.REDIRECT)
        row.state = UrlState.DONE if is_answered else UrlState.DEAD
        row.outcome, row.status, row.title, row.content_type = outcome.value, status, title, "text/html"
        row.redirect_to = SITE + to if to else ""
        self.ledger.finish(url, row)

    def report(self, folder: Path) -> Report:
        self.ledger.commit()
        return build_report(folder, self.ledger, Figures(totals=Totals(), out="my crawl"), 1.0)


@pytest.fixture
def found(tmp_path: Path) -> Report:
    rows = Rows()
    rows.add("home", Outcome.OK, 200, title="Home")
    rows.add("gone", Outcome.CLIENT_ERROR, 404, on="home")
    rows.add("secret", Outcome.ROBOTS_DENIED)
    rows.add("old", Outcome.REDIRECT, 301, to="home", on="home")
    rows.add("far", Outcome.REDIRECT, 301, to="old")
    rows.add("lost", Outcome.REDIRECT, 302, to="gone")
    rows.add("round1", Outcome.REDIRECT, 302, to="round2")
    rows.add("round2", Outcome.REDIRECT, 302, to="round1")
    rows.add("blank", Outcome.OK, 200, title=" ")
    rows.add("twin1", Outcome.OK, 200, title="Twin")
    rows.add("twin2", Outcome.OK, 200, title="tWIN ")
    return rows.report(tmp_path)


def test_totals_are_true_and_the_worst_redirects_come_first(found: Report) -> None:
    figures = found.findings
    assert (figures.broken, figures.redirects, figures.loops, figures.broken_ends) == (1, 5, 2, 1)
    (broken,) = figures.broken_examples
    assert (broken.url, broken.status, broken.found_on) == (f"{SITE}gone", 404, f"{SITE}home")
    assert [one.is_loop for one in figures.chains] == [True, True, False, False, False]
    assert [one.url for one in figures.chains[2:]] == [SITE + path for path in ("lost", "far", "old")]
    assert figures.chains[3].chain == [f"{SITE}old", f"{SITE}home"]
    assert (figures.html_pages, figures.missing_titles, figures.shared_titles) == (4, 1, 2)
    (shared,) = figures.shared_title_examples
    assert sorted(shared.examples) == [f"{SITE}twin1", f"{SITE}twin2"]


def test_the_page_and_the_terminal_name_the_commands_that_list_all(found: Report) -> None:
    page, text = render_html(found), render_text(found)
    for command in ("links 'my crawl' --broken", "links 'my crawl' --redirects", "pages 'my crawl' --duplicate-title"):
        assert f"gossamer {command}".replace("'", "&#x27;") in page
        assert f"gossamer {command}" in text
    assert "a loop" in page
    assert "gossamer report &#x27;my crawl&#x27; --html FILE</code> does" in page
    assert "  redirects     5; 2 loops, 1 end broken: gossamer links" in text


def test_nothing_to_correct_is_not_mentioned_on_a_terminal(tmp_path: Path) -> None:
    rows = Rows()
    rows.add("home", Outcome.OK, 200, title="Home")
    report = rows.report(tmp_path)
    assert "To correct" not in render_text(report)
    assert render_html(report).count('<p class="none">none</p>') > 3


def test_many_findings_are_counted_and_not_all_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MAX_FOLLOWED", 30)
    monkeypatch.setattr(findings, "MAX_TITLES", 10)
    rows = Rows()
    for number in range(50):
        rows.add(f"gone{number}", Outcome.CLIENT_ERROR, 404)
        rows.add(f"moved{number}", Outcome.REDIRECT, 301, to=f"gone{number}")
        rows.add(f"page{number}", Outcome.OK, 200, title=f"Title {number}")
    report = rows.report(tmp_path)
    figures: FindingFigures = report.findings
    assert (figures.broken, len(figures.broken_examples)) == (50, findings.SHOWN)
    assert (figures.redirects, figures.redirects_followed, len(figures.chains)) == (50, 30, findings.SHOWN)
    assert figures.titles_compared == 10
    page = render_html(report)
    assert page.count("<p>30 more.</p>") == 2
    assert "Of the first 30," in page


def test_nothing_from_the_web_acts_in_findings(tmp_path: Path) -> None:
    rows = Rows()
    for path in ("a", "b"):
        rows.add(path, Outcome.OK, 200, title=EVIL)
    report = rows.report(tmp_path)
    shared = [SharedText(EVIL, 2, [EVIL])]
    report.findings.descriptions = DescriptionFigures(
        read=2, missing=1, missing_examples=[EVIL], shared=2, shared_examples=shared
    )
    page = render_html(report)
    for text in ("<script", "\x1b", "\u202e"):
        assert text not in page
    assert "&lt;script&gt;" in page


def test_descriptions_are_read_when_a_page_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def page(*links: str, description: str = "") -> Answer:
        anchors = "".join(f"<a href='{link}'>x</a>" for link in links)
        return Answer(f"<title>{links}</title><meta name=description content='{description}'><p>Text {anchors}")

    with plain_site() as site:
        site.answers = {"/": page("/a", "/b?secret=1", "/c"), "/a": page("/", description="Same  words")}
        site.answers |= {"/b?secret=1": page("/a", description="same words"), "/c": page("/c", description="Own")}
        crawled = Crawled(site.url, tmp_path / "crawl")
        options = ("--politeness-ms", "0", "--mask-queries", "--near-dup", "off")
        assert run("crawl", site.url, "--out", str(crawled.path), *options).returncode == 0
    assert "Not read: descriptions" in (crawled.path / "report.html").read_text("utf-8")
    assert said(capsys, "report", crawled.path, "--html", tmp_path / "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "1 of 4 HTML pages. <code>gossamer pages" in text
    assert "2 pages with the description of another page" in text
    assert "secret=1" not in text.replace("<wbr>", "")
