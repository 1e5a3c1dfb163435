from __future__ import annotations

import io
import re

from msgspec.structs import replace

from gossamer.model.figures import BoundBy, Figures, Forecast, Resource, Throughput, Totals
from gossamer.telemetry.progress import Progress, progress_line


def figures(run_seconds: float, pages: int = 0, hosts: dict[str, int] | None = None) -> Figures:
    totals = Totals(pages=pages, unique_domains=2, errors=3, bytes=4000)
    return Figures(totals=totals, out="crawl", run_seconds=run_seconds, hosts=hosts or {})


def test_the_line_shows_the_figures_of_the_moment() -> None:
    some = replace(figures(61.0, 1234), max_pages=5000, urls_queued=70, in_flight=8)
    assert progress_line(some) == (
        "1,234/5,000 pages · 20/s · 70 queued · 8 in flight · 2 domains · 3 errors · 4.0 kB · 1 min 1 s"
    )


def test_the_rate_is_that_of_the_last_seconds() -> None:
    assert "7/s" in progress_line(replace(figures(100.0, 900), rates={"10s": Throughput(pages=7.1)})).split(" · ")


def test_off_a_terminal_a_line_with_the_time_appears_every_30_seconds() -> None:
    out = io.StringIO()
    progress = Progress(out)
    for second in range(1, 100):
        progress.show(figures(float(second), 10 * second))
    lines = out.getvalue().splitlines()
    assert [line.split(" ")[1] for line in lines] == ["300", "600", "900"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ .* · 10\.0/s on average$", line) for line in lines)


def test_on_request_every_heartbeat_is_a_line() -> None:
    quiet, talkative = io.StringIO(), io.StringIO()
    for second in range(1, 4):
        Progress(quiet).on_beat(figures(float(second), 50 * second))
        Progress(talkative, every_beat=True).on_beat(figures(float(second), 50 * second))
    assert quiet.getvalue() == ""
    assert [line.split(" ")[1] for line in talkative.getvalue().splitlines()] == ["50", "100", "150"]
    assert "50.0/s on average" in talkative.getvalue()


def test_the_line_says_what_binds_the_crawl_and_how_long_it_needs() -> None:
    some = replace(figures(1.0), bound_by=BoundBy(Resource.DNS, "…"), forecast=Forecast(7300.0))
    assert progress_line(some).endswith(" · bound by dns · 2 h left")
