"""The page of a report can be read on a telephone and without scripts: links, tables, values, examples, warnings."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.url.forms import link_to
from gossamer.model.events import EventName
from gossamer.model.figures import Figures, Totals
from gossamer.model.records import HostRecord, Outcome, QueuedUrl, UrlState
from gossamer.report.build import build_report
from gossamer.report.html import render_html
from gossamer.report.page import breakable
from gossamer.report.record import Point, Report
from gossamer.report.svg import Series, line_chart
from gossamer.report.terminal import render_text
from tests.reading.folders import Crawled, event, finished, small_web, stopped, write_events

__all__ = ["finished", "small_web", "stopped"]

NOTHING = Figures(totals=Totals(), out="crawl")


def with_hosts(folder: Path, *hosts: HostRecord, seconds: float = 100.0) -> Report:
    ledger = MemoryLedger()
    for host in hosts:
        ledger.put_host(host)
    ledger.commit()
    return build_report(folder, ledger, Figures(totals=Totals(seconds=seconds), out="crawl"), 1000.0)


def with_dead(folder: Path, count: int) -> Report:
    ledger = MemoryLedger()
    for number in range(count):
        link = link_to(f"http://a.test/{number}")
        url = QueuedUrl(link.url, link.id, "a.test", 0, number + 1, 0)
        ledger.admit([url])
        row = ledger.look_up(link.id)
        assert row is not None
        row.state, row.outcome, row.status = UrlState.DEAD, Outcome.CLIENT_ERROR.value, 404
        ledger.finish(url, row)
    ledger.commit()
    return build_report(folder, ledger, NOTHING, 1.0)


@pytest.fixture(scope="module")
def page(stopped: Crawled) -> str:
    return (stopped.path / "report.html").read_text("utf-8")


# -- links ----------------------------------------------------------------------------------------


def test_every_link_leads_to_a_place_in_the_page(page: str) -> None:
    targets = re.findall(r'<a [^>]*href="([^"]*)"', page)
    places = re.findall(r' id="([^"]*)"', page)
    assert len(places) == len(set(places))
    assert len(targets) > 6
    assert {target.removeprefix("#") for target in targets} <= set(places)
    assert all(target.startswith("#") for target in targets)


def test_the_table_of_contents_names_every_section(page: str) -> None:
    contents = re.search(r"<nav.*?</nav>", page, re.DOTALL)
    assert contents is not None
    for ident, title in re.findall(r'<h2 id="([^"]*)">([^<]*)</h2>', page):
        assert f'<a href="#{ident}">{title}</a>' in contents[0]


# -- tables and words -----------------------------------------------------------------------------


def test_every_table_scrolls_in_a_frame_of_its_own(page: str) -> None:
    assert page.count("<table>") == page.count('<div class="scroll"><table>') > 5


def test_a_name_breaks_between_its_parts_and_nowhere_else() -> None:
    assert breakable("www.example.org") == "www.<wbr>example.<wbr>org"
    assert breakable("http://a.test/b?c=<d>") == "http:/<wbr>/<wbr>a.<wbr>test/<wbr>b?<wbr>c=<wbr>&lt;d&gt;"


# -- values ---------------------------------------------------------------------------------------


def test_a_chart_shows_the_values_at_each_moment_while_the_pointer_is_over_it() -> None:
    points = [Series("pages", "main", [(0, 0), (10, 1234)]), Series("errors", "second", [(0, 0), (10, 5)])]
    chart = line_chart("over time", points, lambda s: f"{s:g} s", lambda n: f"{n:,.0f}")
    assert "<title>10 s: pages 1,234, errors 5</title>" in chart


def test_a_chart_of_a_long_crawl_has_few_enough_moments_to_point_at() -> None:
    points = [(float(n), float(n)) for n in range(241)]
    chart = line_chart("over time", [Series("pages", "main", points)], str, str)
    assert 60 <= chart.count("<title>") <= 100
    assert "<title>240.0: pages 240.0</title>" in chart, "the end is among them"


def test_the_parts_of_the_bar_of_statuses_say_their_value(page: str) -> None:
    assert re.search(r'<rect class="s2"[^>]*><title>2xx success: [\d,]+</title></rect>', page)


def over_time(folder: Path, *points: Point) -> str:
    return render_html(replace(with_hosts(folder), timeline=[Point(0.0, 0, 0.0, 0, 0, 0), *points]))


def test_domains_and_queue_are_drawn_from_where_they_are_known(tmp_path: Path) -> None:
    page = over_time(
        tmp_path, Point(1.0, 20, 20.0, 0, 0, 0), Point(2.0, 50, 30.0, 0, 7, 40), Point(3.0, 60, 10.0, 0, 9, 30)
    )
    assert "<title>2 s: domains 7</title>" in page
    assert "<title>1 s: pages 20" in page
    assert "<title>1 s: domains" not in page
    assert "<title>1 s: queued" not in page


def test_a_short_last_moment_is_no_peak_of_the_rate(tmp_path: Path) -> None:
    page = over_time(
        tmp_path, Point(1.0, 10, 10.0, 0, 1, 1), Point(2.0, 20, 10.0, 0, 1, 1), Point(2.05, 30, 10.0, 0, 1, 1)
    )
    assert re.search(r"<title>2(\.\d+)? s: pages per second 19\.05<", page)
    assert "pages per second 200" not in page


def test_a_crawl_that_ended_before_its_first_heartbeat_has_no_curve_of_domains(tmp_path: Path) -> None:
    page = over_time(tmp_path, Point(1.0, 6, 6.0, 0, 0, 0), Point(2.0, 10, 4.0, 0, 1, 1))
    assert "Pages per second" in page
    assert "Unique domains" not in page
    assert "URLs queued" not in page


# -- examples -------------------------------------------------------------------------------------


def test_a_kind_of_dead_letters_has_ten_examples_and_the_command_that_lists_all(tmp_path: Path) -> None:
    report = with_dead(tmp_path, 25)
    assert [len(kind.examples) for kind in report.left.dead] == [10]
    page = render_html(report)
    assert page.count("<li><code>http:/<wbr>/<wbr>a.<wbr>test/<wbr>") == 10
    assert "gossamer retry crawl --list --outcome client_error" in page
    assert "15 more" in page


def test_all_dead_letters_are_there_if_they_are_few(tmp_path: Path) -> None:
    page = render_html(with_dead(tmp_path, 4))
    assert page.count("<li><code>http:/<wbr>/<wbr>a.<wbr>test/<wbr>") == 4
    assert "more: <code>" not in page


# -- hosts ----------------------------------------------------------------------------------------


def test_a_host_that_was_never_contacted_is_not_among_those_with_the_most_errors(tmp_path: Path) -> None:
    unknown = HostRecord("nowhere.test", "nowhere.test", fetches=9, errors=9, park_reason="no such name")
    known = HostRecord("a.test", "a.test", fetches=3, errors=1, last_fetch_at=900.0)
    report = with_hosts(tmp_path, unknown, known)
    assert [host.name for host in report.hosts.max_errors] == ["a.test"]
    assert [host.name for host in report.hosts.without_address] == ["nowhere.test"]
    assert report.hosts.without_address_count == 1
    assert "nowhere" in render_html(report)
    assert "nowhere.test" in render_text(report)


@pytest.mark.parametrize(
    ("host", "bound_s"),
    [
        (HostRecord("a.test", "a.test", fetches=11, delay_s=2, first_seen_at=800, last_fetch_at=900), 20.0),
        (HostRecord("a.test", "a.test", fetches=11, delay_s=30, first_seen_at=800, last_fetch_at=890), 90.0),
        (HostRecord("a.test", "a.test", fetches=99, delay_s=30, first_seen_at=1, last_fetch_at=900), 100.0),
    ],
)
def test_the_time_that_a_host_needs_is_never_more_than_it_took(
    tmp_path: Path, host: HostRecord, bound_s: float
) -> None:
    assert with_hosts(tmp_path, host).hosts.longest[0].min_s == bound_s


def test_no_host_bounds_the_time_of_a_crawl_beyond_its_own(finished: Crawled, stopped: Crawled) -> None:
    for crawled in (finished, stopped):
        report = msgspec.json.decode((crawled.path / "report.json").read_bytes(), type=Report)
        assert 0 < report.hosts.longest[0].min_s <= report.summary.seconds
        assert report.timeline[-1].t_s == report.summary.seconds


# -- warnings -------------------------------------------------------------------------------------


def test_a_warning_has_the_time_when_it_was_given(tmp_path: Path) -> None:
    died = "worker 1 was killed by SIGKILL; tasks that return to the queue: 2"
    write_events(
        tmp_path / "events",
        "a",
        [
            event(EventName.WARNING, ts=1_700_000_000.0, rule="worker_died", reason=died),
            event(EventName.WARNING, ts=1_700_000_060.0, rule="worker_died", reason=died),
        ],
    )
    report = build_report(tmp_path, MemoryLedger(), NOTHING, 1.0)
    expected = f"2023-11-14 22:13:20 UTC: {died} (2 times, last at 22:14:20)"
    assert report.warnings == [expected]
    assert expected in render_html(report)
    assert "killed by SIGKILL" in render_text(report)


def test_a_rule_that_warns_very_often_does_not_hide_the_others(tmp_path: Path) -> None:
    often = [event(EventName.WARNING, ts=1e9 + n, rule="error_rate", reason=f"{n} % errors") for n in range(500)]
    once = event(EventName.WARNING, ts=2e9, rule="worker_died", reason="worker 1 was killed by SIGKILL")
    write_events(tmp_path / "events", "a", [*often, once])
    warnings = build_report(tmp_path, MemoryLedger(), NOTHING, 1.0).warnings
    assert len(warnings) == 7
    assert "495 more warnings (error_rate)" in warnings[5]
    assert "SIGKILL" in warnings[6]


# -- languages ------------------------------------------------------------------------------------


def test_declared_and_detected_languages_are_told_apart(finished: Crawled) -> None:
    report = msgspec.json.decode((finished.path / "report.json").read_bytes(), type=Report)
    corpus = report.corpus
    assert sum(one.count for one in corpus.languages) == report.summary.pages
    assert 0 < corpus.languages_checked <= report.summary.pages
    assert sum(one.count for one in corpus.languages_detected) == corpus.languages_checked
    page = render_html(report)
    assert "Languages declared" in page
    assert "Languages detected" in page


# -- URLs -----------------------------------------------------------------------------------------


def test_what_became_of_the_urls_adds_up_to_those_known(finished: Crawled, stopped: Crawled) -> None:
    for crawled in (finished, stopped):
        report = msgspec.json.decode((crawled.path / "report.json").read_bytes(), type=Report)
        urls = {one.name: one.count for one in report.urls}
        assert sum(urls.values()) == report.summary.urls_seen
        assert urls["page"] == report.summary.pages
        assert urls.get("queued", 0) == report.summary.urls_queued


def test_a_crawl_that_left_urls_out_is_not_said_to_have_fetched_everything(tmp_path: Path) -> None:
    report = with_dead(tmp_path, 1)
    for held, said in (
        ({}, "everything within reach was fetched"),
        ({"quarantine": 3}, "but 3 URLs held back may be pages"),
    ):
        summary = replace(report.summary, finished="exhausted", held=held)
        assert said in render_html(replace(report, summary=summary))
