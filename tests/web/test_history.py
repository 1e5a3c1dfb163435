"""The history of a crawl: equal intervals, whatever the rhythm of its heartbeats, and no speed in a pause."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from gossamer.model.events import EventName
from gossamer.reading.folder import CrawlReader
from gossamer.web.history import MAX_INTERVALS, Count, evened, history
from tests.reading.folders import Crawled, event, finished, owned, small_web, stopped, write_events

__all__ = ["finished", "small_web", "stopped"]


def test_bursts_are_averaged_over_equal_intervals() -> None:
    # 50 pages at once, every second: 0 and 500 per second between the counts.
    counts = [Count(second + late, 50 * (second + (late > 0)), 0, 7) for second in range(60) for late in (0.0, 0.1)]
    points = evened(counts, [])
    steps = [round(after.t_s - before.t_s, 3) for before, after in pairwise(points)]
    assert max(steps) - min(steps) <= 0.002
    assert all(40 <= (point.pages_per_second or 0) <= 60 for point in points)
    assert points[-1].pages == counts[-1].pages
    assert {point.bytes_per_second for point in points} == {None}, "nobody counted them"


def test_a_long_history_has_a_bounded_number_of_points() -> None:
    assert len(evened([Count(float(second), second, 0, 0) for second in range(5000)], [])) == MAX_INTERVALS


@pytest.mark.parametrize("counts", [[], [Count(0.0, 5, 0, 0)], [Count(3.0, 5, 0, 0), Count(3.0, 9, 0, 0)]])
def test_what_took_no_time_has_no_history(counts: list[Count]) -> None:
    assert evened(counts, []) == []


def test_a_pause_is_a_gap_and_does_not_slow_down_what_is_around_it() -> None:
    # 10 pages per second for 40 s, a pause of 60 s, and again.
    before = [Count(float(second), 10 * second, 0, 0) for second in range(0, 41, 5)]
    after = [Count(float(second), 10 * second - 600, 0, 0) for second in range(105, 141, 5)]
    points = evened([*before, *after], [(42.0, 102.0)])
    paused = [point for point in points if 50 <= point.t_s <= 100]
    assert paused
    assert {point.pages_per_second for point in paused} == {None}
    speeds = [point.pages_per_second for point in points if point.pages_per_second is not None]
    assert all(8 <= speed <= 12 for speed in speeds), speeds


def test_the_history_of_a_crawl_that_runs_has_pages_bytes_and_pauses(stopped: Crawled, tmp_path: Path) -> None:
    path = stopped.copied(tmp_path / "copy")
    for old in (path / "events").glob("*.jsonl"):
        old.unlink()
    lines = []
    for second in range(100):
        if second == 50:
            lines.append(event(EventName.OPERATOR, ts=1050.0, rule="pause"))
            lines.append(event(EventName.OPERATOR, ts=1149.0, rule="resume"))
        now = 1000.0 + second + (100 if second >= 50 else 0)
        lines.append(event(EventName.FETCH_OK, ts=now, bytes=3000))
        lines.append(event(EventName.HEARTBEAT, ts=now, fetched=20 * second, errors=second, frontier_size=9))
    write_events(path / "events", "1", lines)
    with owned(path), CrawlReader(path) as crawl:
        points = history(crawl).points
    known = [point for point in points if point.pages_per_second is not None]
    assert 0 < len(known) < len(points)
    middle = known[len(known) // 4]
    assert middle.pages_per_second == pytest.approx(20, rel=0.2)
    assert middle.bytes_per_second == pytest.approx(3000, rel=0.2)
    assert middle.errors_per_second == pytest.approx(1, rel=0.5)
    assert {point.queued for point in points[1:]} == {9}


def test_a_pause_is_a_gap_in_the_history_of_a_crawl_that_has_ended(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    for old in (path / "events").glob("*.jsonl"):
        old.unlink()
    pages = finished.summary.pages
    lines = [
        event(EventName.STARTED, ts=1000.0),
        event(EventName.HEARTBEAT, ts=1010.0, fetched=pages // 2),
        event(EventName.OPERATOR, ts=1010.0, rule="pause"),
        event(EventName.OPERATOR, ts=1040.0, rule="resume"),
        event(EventName.STOPPED, ts=1050.0),
    ]
    write_events(path / "events", "1", lines)
    with CrawlReader(path) as crawl:
        points = history(crawl).points
    assert points[-1].pages == pages
    assert {point.pages_per_second for point in points if 16 <= point.t_s <= 40} == {None}
    assert max(point.pages_per_second or 0 for point in points) == pytest.approx(pages / 20, rel=0.1)
