from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer.model.figures import Figures, RevisitFigures, Totals
from gossamer.telemetry.metrics import render
from gossamer.telemetry.summary import SUMMARY_INDENT, Summary, summary_of
from gossamer.telemetry.text import wrapped
from gossamer.telemetry.view import view_of

# Scripts rely on these names.
FIXED_FIELDS = (
    "pages fetches errors error_rate bytes seconds pages_per_second cpu_seconds peak_rss_bytes peak_private_bytes "
    "unique_hosts unique_domains urls_seen urls_queued urls_parked robots_disallowed duplicates near_duplicates "
    "html_share finished out"
).split()


def test_the_summary_has_every_field_that_scripts_rely_on() -> None:
    assert set(FIXED_FIELDS) <= set(Summary.__struct_fields__)


def test_the_summary_is_drawn_from_the_figures() -> None:
    totals = Totals(pages=3, html_pages=2, fetches=7, errors=1, seconds=2.0, cpu_seconds=0.5, urls_seen=9, dead=1)
    totals.bytes, totals.unique_hosts, totals.unique_domains, totals.robots_disallowed = 1000, 12, 11, 13
    totals.duplicates, totals.near_duplicates = 14, 15
    figures = Figures(
        totals=totals, out="crawl", finished="exhausted", urls_queued=4, urls_parked=2, worker_cpu_seconds=0.25
    )
    found = msgspec.structs.asdict(summary_of(figures))
    wanted = {
        "pages": 3,
        "fetches": 7,
        "errors": 1,
        "bytes": 1000,
        "seconds": 2.0,
        "unique_hosts": 12,
        "unique_domains": 11,
        "urls_seen": 9,
        "robots_disallowed": 13,
        "duplicates": 14,
        "near_duplicates": 15,
        "out": "crawl",
        "error_rate": 0.142857,
        "pages_per_second": 1.5,
        "cpu_seconds": 0.75,
        "hub_cpu_seconds": 0.5,
        "cpu_ms_per_page": 250.0,
        "html_share": 0.6667,
        "urls_queued": 4,
        "urls_parked": 2,
        "finished": "exhausted",
        "dead": 1,
    }
    assert {name: found[name] for name in wanted} == wanted


def test_a_summary_with_urls_held_back_does_not_claim_that_everything_was_fetched() -> None:
    totals = Totals(pages=3, held={"calendar": 1760, "quarantine": 2}, held_dropped=5)
    summary = summary_of(Figures(totals=totals, out="crawl", finished="exhausted"))
    assert summary.ended_because.startswith("all else was fetched, but 1,767 URLs held back")
    assert (summary.held, summary.held_dropped) == ({"calendar": 1760, "quarantine": 2}, 5)
    text = summary.render()
    assert "everything" not in text
    assert "1,760 URLs by the calendar rule" in text
    assert "2 URLs by the quarantine" in text
    assert "5 more links were dropped" in text


def test_links_that_were_dropped_alone_keep_a_summary_from_claiming_everything() -> None:
    summary = summary_of(Figures(totals=Totals(pages=3, held_dropped=5), out="crawl", finished="exhausted"))
    assert "everything" not in summary.render()
    assert "5 more links were dropped" in summary.render()


def test_a_summary_without_urls_held_back_says_that_everything_was_fetched() -> None:
    text = summary_of(Figures(totals=Totals(pages=3), out="crawl", finished="exhausted")).render()
    assert "everything within reach was fetched" in text
    assert "held back" not in text


def test_a_summary_for_a_narrow_terminal_is_broken_at_blanks_with_a_hanging_indent() -> None:
    held = {"max_hosts_per_address": 1760, "quarantine": 2}
    figures = Figures(totals=Totals(pages=3, held=held), out="crawl", finished="exhausted")
    text = summary_of(figures).render()
    for columns in (60, 80):
        lines = wrapped(text, columns, SUMMARY_INDENT).split("\n")
        assert max(map(len, lines)) < columns
        assert len(lines) > len(text.split("\n"))
        added = [line for line in lines if line.startswith(" " * SUMMARY_INDENT)]
        assert len(added) == len(lines) - len(text.split("\n"))
        assert " ".join(" ".join(lines).split()) == " ".join(text.split())


def test_a_summary_names_what_was_evicted() -> None:
    summary = summary_of(Figures(totals=Totals(pages=3, evicted=1200), out="crawl", finished="exhausted"))
    assert summary.evicted == 1200
    assert "1,200 URLs, by --max-queued" in summary.render()
    assert "everything" not in summary.render()


def test_a_crawl_that_was_stopped_is_continued_by_resume_and_a_node_by_join() -> None:
    alone = Figures(totals=Totals(pages=3), out="crawl", finished="stopped")
    assert "stopped by the operator; resume continues" in summary_of(alone).render()
    node = Figures(totals=Totals(pages=3), out="crawl", finished="stopped", node_pages=1)
    assert "stopped by the operator; join continues" in summary_of(node).render()


def test_the_cost_of_a_page_leaves_out_the_start_and_earlier_runs() -> None:
    totals = Totals(pages=300, cpu_seconds=1.5)
    figures = Figures(totals=totals, out="crawl", pages_before=100, crawl_cpu_seconds=0.12)
    assert "0.60 ms of CPU per page while fetching, 1.50 s in all" in summary_of(figures).render()


def test_the_cost_of_a_page_is_that_of_everything_if_its_part_is_not_known() -> None:
    totals = Totals(pages=300, cpu_seconds=1.4)
    figures = Figures(totals=totals, out="crawl", crawl_cpu_seconds=0.9, worker_cpu_seconds=0.1)
    text = summary_of(figures).render()
    assert "5.00 ms of CPU per page" in text
    assert "while fetching" not in text


def test_before_the_first_visit_nothing_says_how_fresh_copies_are() -> None:
    waiting = RevisitFigures(known=40, per_day=100.0, waiting=3, next_at=0.0, freshness=None)
    figures = Figures(totals=Totals(pages=40, fetches=50, seconds=9.0), out="crawl", revisits=waiting)
    summary = summary_of(figures)
    assert (summary.freshness, summary.unknown) == (None, {"freshness": "no page was visited again yet"})
    assert "no known URL was visited again yet: how many copies are fresh is not known" in summary.render()
    assert not [line for line in view_of(figures, 300, has_colors=False) if "fresh" in line.text]
    assert "\ngossamer_freshness_ratio" not in render(figures)
    visited = replace(figures, revisits=replace(waiting, freshness=0.82), totals=Totals(pages=40, visits=4))
    assert "about 82.0 % of the copies are fresh" in summary_of(visited).render()
    assert [line for line in view_of(visited, 300, has_colors=False) if "82.0 % fresh" in line.text]
    assert "\ngossamer_freshness_ratio 0.82" in render(visited)


def test_before_the_first_fetch_there_is_no_share_of_errors() -> None:
    nothing = summary_of(Figures(totals=Totals(), out="crawl"))
    assert (nothing.error_rate, nothing.html_share, nothing.pages_per_second, nothing.cpu_ms_per_page) == (None,) * 4
    assert isinstance(nothing.unknown, dict)
    assert set(nothing.unknown) == {"error_rate", "html_share", "pages_per_second", "cpu_ms_per_page"}
    assert "0  (0 errors, –)" in nothing.render()
