"""Each task counts once, whatever the event files repeat or tear."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gossamer.model.events import Event, EventName
from gossamer.model.figures import Totals
from gossamer.reading.requests.runs import read_runs
from gossamer.report.events import EventFigures
from tests.reading.folders import event, write_events


def _page(order: int, at: float = 1.0, url: str = "", sent_at: float = 0.5) -> Event:
    return event(
        EventName.FETCH_OK,
        ts=at,
        order=order,
        status=200,
        url=url or f"http://a.test/{order}",
        host="a.test",
        sent_at=sent_at,
        t_ms_from_start=int(at * 1000),
    )


def _figures(folder: Path) -> EventFigures:
    figures = EventFigures()
    figures.read([folder], {})
    return figures


def test_a_task_recorded_twice_in_a_run_counts_once(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [_page(1), _page(2), _page(1)])
    assert _figures(tmp_path).requests == 2


def test_the_same_task_id_in_another_run_is_another_task(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [_page(1, url="http://a.test/x")])
    write_events(tmp_path, "b", [_page(1, at=9.0, sent_at=9.5, url="http://a.test/y")])
    figures = _figures(tmp_path)
    assert (figures.requests, figures.runs) == (2, 2)


def test_a_page_recorded_by_a_killed_run_and_again_on_recovery_counts_once(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [_page(1, sent_at=5.25, url="http://a.test/x")])
    recovered = _page(1, at=9.0, sent_at=5.2500001, url="http://a.test/x")
    later = _page(2, at=9.5, sent_at=9.4, url="http://a.test/x")
    write_events(tmp_path, "b", [recovered, later])
    assert _figures(tmp_path).requests == 2


def test_a_duplicate_event_does_not_hide_its_task(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [event(EventName.DUPLICATE, order=1), _page(1)])
    assert _figures(tmp_path).requests == 1


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [_page(1), _page(2)])
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"event":"no_such_event"}\n\xff\xfe\n' + path.read_bytes()[:-20])
    assert _figures(tmp_path).requests == 1


def test_pauses_between_runs_are_not_crawl_time(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [event(EventName.STARTED, ts=100.0), _page(1, at=2.0)])
    write_events(tmp_path, "b", [event(EventName.STARTED, ts=90_000.0), _page(1, at=3.0, sent_at=2.9)])
    assert _figures(tmp_path).timeline(Totals(), 0)[-1].t_s == pytest.approx(5.0, abs=0.01)


def test_errors_are_reported_by_outcome_and_status_but_for_a_missing_robots(tmp_path: Path) -> None:
    write_events(
        tmp_path,
        "a",
        [
            event(EventName.ERROR, order=1, status=404, reason="client_error"),
            event(EventName.RETRY, order=2, status=429, host="a.test", reason="rate_limited: slow down"),
            event(EventName.ERROR, order=3, reason="timeout: no byte for 10 s"),
            event(EventName.ROBOTS_UNREACHABLE, order=4, kind="robots", status=503, reason="server_error"),
            event(EventName.ROBOTS_FETCHED, order=5, kind="robots", status=404, reason="client_error"),
        ],
    )
    figures = _figures(tmp_path)
    assert {one.name: one.count for one in figures.errors.top()} == {
        "client_error 404": 1,
        "server_error 503": 1,
        "rate_limited 429": 1,
        "timeout": 1,
    }
    assert figures.robots_unreachable == 1
    assert figures.rate_limited["a.test"] == 1
    assert figures.fetches().retries == 1


def test_only_lines_with_the_needle_are_read(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [_page(1), event(EventName.ERROR, order=2, host="b.test")])
    assert [one.host for _, one in read_runs(tmp_path, b"b.test")] == ["b.test"]


def test_no_events_are_no_error(tmp_path: Path) -> None:
    assert _figures(tmp_path / "missing").timeline(Totals(), 0)[-1].pages == 0


def test_a_copy_recorded_by_a_killed_run_and_recovered_by_the_next_counts_once(tmp_path: Path) -> None:
    def page(order: int, ts: float) -> list[Event]:
        return [
            event(EventName.FETCH_OK, ts=ts, url="http://a.test/", order=order, sent_at=100.0),
            event(EventName.DUPLICATE, ts=ts, url="http://a.test/", order=order),
        ]

    write_events(tmp_path, "1", page(5, 100.1))
    write_events(tmp_path, "2", page(1, 200.0))
    told = [one for _, one in read_runs(tmp_path) if one.event is EventName.FETCH_OK]
    assert len(told) == 1


def test_what_a_killed_run_did_not_commit_counts_when_the_next_run_does_it_again(tmp_path: Path) -> None:
    first, lost, refused = _page(1), _page(2), event(EventName.EXCLUDED_BY_RULE, reason="scope")
    write_events(tmp_path, "a", [first, lost, refused])
    write_events(tmp_path, "b", [_page(1, at=9.0, sent_at=9.5, url="http://a.test/2"), refused])
    figures = EventFigures()
    figures.read([tmp_path], {"a.jsonl": len(msgspec.json.encode(first)) + 1})
    assert (figures.requests, figures.not_committed) == (2, 1)
    assert [(one.name, one.count) for one in figures.excluded.top()] == [("scope", 1)]


def test_a_recovered_page_that_its_killed_run_did_not_commit_counts_once(tmp_path: Path) -> None:
    write_events(tmp_path, "a", [_page(1, sent_at=5.25)])
    write_events(tmp_path, "b", [_page(1, at=9.0, sent_at=5.25)])
    figures = EventFigures()
    figures.read([tmp_path], {"a.jsonl": 0})
    assert (figures.requests, figures.not_committed) == (1, 1)


def test_a_link_that_is_held_back_is_not_among_those_that_were_excluded(tmp_path: Path) -> None:
    held, refused = (event(EventName.EXCLUDED_BY_RULE, reason=reason) for reason in ("quarantine", "out_of_scope"))
    write_events(tmp_path, "a", [held, refused])
    assert [one.name for one in _figures(tmp_path).excluded.top()] == ["out_of_scope"]
