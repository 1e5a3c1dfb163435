"""The live view: the same figures for any width."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from gossamer.model.figures import ActiveWarning, BoundBy, Figures, Forecast, Resource, RunState, Throughput, Totals
from gossamer.telemetry.progress import Progress
from gossamer.telemetry.screen import Screen
from gossamer.telemetry.view import share_done, view_of
from tests.telemetry.terminals import FakeTerminal

RUNNING = Figures(
    totals=Totals(pages=4500, fetches=5000, errors=12, bytes=1_200_000_000, unique_domains=33),
    out="crawl",
    max_pages=10_000,
    run_seconds=723.0,
    urls_queued=50_000,
    in_flight=18,
    hosts={"ready": 0, "waiting": 412, "parked": 12, "busy": 18},
    private_bytes=120_000_000,
    memory_ceiling_bytes=2_000_000_000,
    rates={"10s": Throughput(pages=123.4, fetches=130.0, bytes=2_100_000.0), "1m": Throughput(fetches=130.0)},
    bound_by=BoundBy(Resource.POLITENESS, "412 of 430 hosts wait for their delay"),
    forecast=Forecast(185.0, text="--max-pages ends it in about 3 min (of what is known now)"),
)


def lines(figures: Figures, width: int = 120) -> list[str]:
    return [line.text for line in view_of(figures, width, has_colors=False)]


def test_a_wide_terminal_shows_everything() -> None:
    assert lines(RUNNING) == [
        "[#########-----------] 45 %  4,500 of 10,000 pages · 3 min left",
        "123.4 pages/s · 12 errors (0.2 %) · memory 120.0 MB of 2.0 GB · 12 min 3 s · 2.1 MB/s · 1.2 GB received",
        "50,000 queued · hosts: 0 ready, 412 waiting, 12 parked · 18 in flight · 33 domains",
        "bound by politeness: 412 of 430 hosts wait for their delay",
        "--max-pages ends it in about 3 min (of what is known now)",
    ]


def test_a_limit_that_cannot_be_reached_is_no_goal() -> None:
    assert lines(replace(RUNNING, urls_queued=500))[0].startswith(
        "[##################--] 90 %  4,500 of at most 10,000 pages"
    )


@pytest.mark.parametrize("width", [1, 2, 10, 20, 40, 80, 120, 200])
def test_no_line_is_as_wide_as_the_terminal(width: int) -> None:
    busy = replace(RUNNING, warnings=[ActiveWarning("disk", "it is nearly full", 1.0, is_lasting=True)])
    assert all(len(line) < max(2, width) for line in lines(busy, width))


def test_a_narrow_terminal_shows_what_matters_most() -> None:
    assert lines(RUNNING, 40)[:3] == [
        "4,500 of 10,000 pages · 3 min left",
        "123.4 pages/s · 12 errors (0.2 %)",
        "50,000 queued · 18 in flight",
    ]


def test_the_share_is_of_the_pages_or_of_what_is_known() -> None:
    assert share_done(RUNNING) == 0.45
    assert share_done(replace(RUNNING, urls_queued=500)) == 0.9, "the limit cannot be reached"
    assert share_done(replace(RUNNING, max_pages=None)) == 5000 / 55_000
    assert share_done(Figures(totals=Totals(), out="crawl")) == 0.0


def test_a_lower_bound_of_the_time_left_is_called_so() -> None:
    forecast = Forecast(seconds=180.0, text="", is_at_least=True)
    figures = Figures(totals=Totals(pages=4), out="crawl", forecast=forecast)
    assert "at least 3 min left" in view_of(figures, 100, has_colors=False)[0].text


def test_a_paused_crawl_says_so_and_has_no_time_left() -> None:
    shown = lines(replace(RUNNING, state=RunState.PAUSED, paused_seconds=200.0, forecast=None))
    assert shown[0].endswith("pages · paused for 3 min 20 s")
    assert "/s before" in shown[1]
    assert "left" not in " ".join(shown)


def test_warnings_that_last_are_named_and_those_of_the_past_are_not() -> None:
    warnings = [ActiveWarning("disk", "…", 1.0, is_lasting=True), ActiveWarning("worker_died", "…", 1.0)]
    assert lines(replace(RUNNING, warnings=warnings))[-1] == "warnings: disk"


def test_colours_surround_the_same_text() -> None:
    coloured = view_of(RUNNING, 80, has_colors=True)
    assert [line.text for line in coloured] == lines(RUNNING, 80)
    assert any("\x1b[" in line.styled for line in coloured)
    assert all(line.text in line.styled for line in coloured)


def test_many_errors_are_red() -> None:
    failing = replace(RUNNING, rates={**RUNNING.rates, "1m": Throughput(fetches=100.0, errors=6.0)})
    assert "\x1b[31m" in view_of(failing, 80, has_colors=True)[1].styled
    assert "\x1b[31m" not in view_of(RUNNING, 80, has_colors=True)[1].styled


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = FakeTerminal()
    Progress(Screen(terminal)).show(RUNNING)
    assert not any("\x1b[1m" in text or "\x1b[2m" in text for text in terminal.writes)
    monkeypatch.delenv("NO_COLOR")
    Progress(Screen(terminal)).show(RUNNING)
    assert any("\x1b[1m" in text for text in terminal.writes)


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = FakeTerminal()
    Progress(Screen(terminal)).show(RUNNING)
    assert terminal.shown()[0].endswith("/s on average")
    assert not any("\x1b" in text for text in terminal.writes)


def test_after_the_end_no_view_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = FakeTerminal()
    progress = Progress(Screen(terminal))
    progress.show(RUNNING)
    progress.end()
    progress.show(RUNNING)
    assert terminal.shown() == [""]


def test_off_a_terminal_no_control_characters_are_printed() -> None:
    out = io.StringIO()
    Progress(out).show(RUNNING)
    assert "\x1b" not in out.getvalue()
    assert "4,500/10,000 pages" in out.getvalue()
