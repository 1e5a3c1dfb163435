"""A report says what the crawl did, in JSON, HTML and on a terminal, and nothing from the web acts in it."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.url.forms import link_to
from gossamer.model.events import EventName
from gossamer.model.figures import Figures, Totals
from gossamer.model.records import DomainRecord, HostRecord, Outcome, QueuedUrl, UrlState
from gossamer.report.build import build_report, write_report
from gossamer.report.html import render_html
from gossamer.report.record import Report
from gossamer.report.terminal import COLUMNS, render_text, table
from gossamer.settings.model import Settings
from tests.reading.folders import Crawled, event, finished, small_web, stopped, write_events

__all__ = ["finished", "small_web", "stopped"]

NOTHING = Figures(totals=Totals(), out="crawl")
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\x1b]0;pwn\x07\u202e"


@pytest.fixture(scope="module")
def report(finished: Crawled) -> Report:
    return msgspec.json.decode((finished.path / "report.json").read_bytes(), type=Report)


def test_a_crawl_leaves_both_reports(finished: Crawled) -> None:
    assert (finished.path / "report.html").stat().st_size > 5000
    assert not list(finished.path.glob(".*.tmp"))


def test_the_report_agrees_with_the_summary(report: Report, finished: Crawled) -> None:
    summary = finished.summary
    assert report.summary == summary
    assert sum(report.corpus.depths) == summary.pages == report.timeline[-1].pages
    assert sum(one.count for one in report.corpus.content_types) == summary.pages
    assert sum(one.count for one in report.fetches.outcomes) == summary.fetches
    assert sum(one.count for one in report.corpus.domains) == summary.pages
    assert sum(one.count for one in report.left.dead) == summary.dead
    assert sum(one.count for one in report.fetches.errors) == summary.errors
    assert report.robots.disallowed == summary.robots_disallowed
    assert sum(one.count for one in report.robots.rules) == summary.robots_disallowed
    assert report.corpus.duplicates == summary.duplicates
    assert report.timeline[-1].domains == summary.unique_domains


def test_what_is_left_is_reported_with_the_time_that_politeness_takes(stopped: Crawled) -> None:
    report = msgspec.json.decode((stopped.path / "report.json").read_bytes(), type=Report)
    assert report.left.queued == stopped.summary.urls_queued > 0
    assert sum(report.left.queued_by_depth) == report.left.queued
    longest = report.left.hosts[0]
    assert longest.seconds == pytest.approx(longest.wait_s + (longest.queued - 1) * longest.delay_s, abs=0.2)
    assert report.left.finish_s == longest.seconds


def test_a_report_of_nothing_can_be_made(tmp_path: Path) -> None:
    report = build_report(tmp_path, MemoryLedger(), NOTHING, 1.0)
    assert render_html(report)
    assert render_text(report)


# -- what the web can do to a report --------------------------------------------------------------


def _hostile_report(folder: Path) -> Report:
    """Return a report in which every text from the web is evil."""
    ledger = MemoryLedger()
    ledger.put_host(HostRecord(EVIL, EVIL, queued=3, pages=1, fetches=9, errors=9, parked_until=2e9, park_reason=EVIL))
    ledger.put_domain(DomainRecord(EVIL, pages=1))
    for number, (state, outcome) in enumerate(
        [(UrlState.DEAD, EVIL), (UrlState.DONE, Outcome.OK.value), (UrlState.DONE, Outcome.ROBOTS_DENIED.value)]
    ):
        link = link_to(f"http://a.test/{number}")
        url = QueuedUrl(link.url, link.id, "a.test", 0, number + 1, 0)
        ledger.admit([url])
        row = ledger.look_up(link.id)
        assert row is not None
        row.url, row.state, row.outcome, row.error = f"http://a.test/{EVIL}", state, outcome, f"line 1: {EVIL}"
        row.language = row.content_type = row.title = row.truncated = EVIL
        ledger.finish(url, row)
    ledger.commit()
    write_events(
        folder / "events",
        "a",
        [
            event(EventName.WARNING, reason=EVIL),
            event(EventName.EXCLUDED_BY_RULE, reason=EVIL),
            event(EventName.ERROR, order=1, reason=EVIL, status=429, host=EVIL),
        ],
    )
    return build_report(folder, ledger, NOTHING, 1.0)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name == "href"}


def test_nothing_from_the_web_acts_in_the_page(tmp_path: Path) -> None:
    page = render_html(_hostile_report(tmp_path))
    tags = _Tags()
    tags.feed(page)
    assert EVIL[:30] not in page
    assert not tags.names & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert not {name for name in tags.attributes if name.startswith("on")} | (tags.attributes & {"src", "style"})
    findings = {"#broken", "#redirects", "#titles"}
    assert tags.targets == {"#time", "#answers", "#corpus", *findings, "#rules", "#hosts", "#left"}, "its own sections"
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_nothing_from_the_web_acts_on_the_terminal(tmp_path: Path) -> None:
    text = render_text(_hostile_report(tmp_path))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def test_the_page_lets_a_browser_load_nothing_but_its_own_style(finished: Crawled) -> None:
    page = (finished.path / "report.html").read_text("utf-8")
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = page.partition("Content-Security-Policy")[2].partition(">")[0]
    assert f"style-src &#x27;sha256-{digest}&#x27;" in policy
    assert "default-src &#x27;none&#x27;" in policy
    assert not re.search(r"url\(|@import|https?://(?!site-|www\.|blog|shop|docs)", page)


def test_the_terminal_report_fits_its_columns(finished: Crawled, stopped: Crawled) -> None:
    for crawled in (finished, stopped):
        report = msgspec.json.decode((crawled.path / "report.json").read_bytes(), type=Report)
        report.summary.out = "crawl"
        report.warnings.append(f"2026-11-16 16:28:36 UTC: {'a long text, ' * 15} (1,000 times, last at 17:00:00)")
        text = render_text(report)
        assert max(map(len, text.splitlines())) <= COLUMNS
        assert "(1,000 times, last at 17:00:00)" in " ".join(text.split())


def test_a_table_cuts_what_does_not_fit() -> None:
    text = table(["host", "pages", "<why"], [("h" * 300, "1", "short")], most=60)
    assert max(map(len, text.splitlines())) <= 60
    assert "…" in text


def test_writing_twice_replaces_the_report(tmp_path: Path) -> None:
    for pages in (1, 2):
        write_report(tmp_path, MemoryLedger(), Figures(totals=Totals(pages=pages), out="crawl"), Settings())
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report).summary.pages == 2


def test_a_parked_host_is_reported_with_its_reason(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    ledger.put_host(HostRecord("a.test", "a.test", queued=41, delay_s=5, parked_until=1060.0, park_reason="429"))
    ledger.commit()
    report = build_report(tmp_path, ledger, NOTHING, 1000.0)
    assert [(host.name, host.park_reason) for host in report.hosts.parked] == [("a.test", "429")]
    assert report.left.hosts[0].seconds == 60 + 41 * 5, "robots.txt first"


def test_what_was_held_back_and_evicted_is_reported_by_rule(tmp_path: Path) -> None:
    totals = Totals(held={"calendar": 1234, "quarantine": 5}, held_dropped=66, evicted=777, urls_seen=9)
    report = build_report(tmp_path, MemoryLedger(), Figures(totals=totals, out="crawl"), 1.0)
    assert [(one.name, one.count) for one in report.left.held] == [("calendar", 1234), ("quarantine", 5)]
    assert (report.left.held_dropped, report.left.evicted) == (66, 777)
    page = render_html(report)
    section = page[page.index("Held back, dropped and evicted") :]
    for name, number in (("calendar rule", "1,234"), ("quarantine of traps", "5"), ("beyond the cap", "66")):
        assert re.search(rf"{name}[^|]*?>{number}<", section), name
    assert re.search(r"--max-queued[^|]*?>777<", section)
    text = render_text(report)
    assert "1,234 URLs by the calendar rule" in text
    assert "777 URLs, by --max-queued" in text


def test_a_crawl_that_left_nothing_out_does_not_speak_of_it(tmp_path: Path) -> None:
    page = render_html(build_report(tmp_path, MemoryLedger(), NOTHING, 1.0))
    assert "Held back" not in page
