from __future__ import annotations

import msgspec
import pytest

from gossamer.model.figures import BOUNDS_S, Figures, Histogram, Totals, is_error
from gossamer.model.records import FetchKind, Outcome, Result


def figures(totals: Totals, run_seconds: float = 0.0) -> Figures:
    return Figures(totals=totals, out="crawl", run_seconds=run_seconds)


def test_a_crawl_that_did_nothing_has_no_rates_and_shares() -> None:
    nothing = figures(Totals())
    assert {nothing.error_rate, nothing.html_share, nothing.pages_per_second, nothing.cpu_ms_per_page} == {None}
    assert nothing.pages_per_second_since(nothing) == 0


def test_rates_and_shares_follow_from_the_totals() -> None:
    some = figures(Totals(pages=8, html_pages=6, fetches=20, errors=5, seconds=4.0, cpu_seconds=2.0))
    assert (some.error_rate, some.html_share, some.pages_per_second, some.cpu_ms_per_page) == (0.25, 0.75, 2.0, 250.0)


def test_the_rate_between_two_moments_is_that_of_the_run() -> None:
    before, after = figures(Totals(pages=30), run_seconds=10.0), figures(Totals(pages=40), run_seconds=12.0)
    assert after.pages_per_second_since(before) == 5.0


def test_a_copy_of_totals_does_not_change_with_later_counts() -> None:
    totals = Totals()
    before = totals.copy()
    totals.count_fetch(FetchKind.PAGE, Result(1, Outcome.OK, status=200))
    totals.count_page(Result(1, Outcome.OK, content_type="text/html"))
    assert before == Totals()


@pytest.mark.parametrize(
    "outcome", [Outcome.CLIENT_ERROR, Outcome.SERVER_ERROR, Outcome.RATE_LIMITED, Outcome.TIMEOUT, Outcome.DNS_FAILED]
)
def test_no_answer_and_4xx_and_5xx_are_errors(outcome: Outcome) -> None:
    assert is_error(outcome, is_robots=False)


@pytest.mark.parametrize(
    "outcome", [Outcome.OK, Outcome.NOT_MODIFIED, Outcome.TYPE_REFUSED, Outcome.REDIRECT, Outcome.BAD_REDIRECT]
)
def test_2xx_and_3xx_answers_are_no_errors(outcome: Outcome) -> None:
    assert not is_error(outcome, is_robots=False)


def test_a_missing_robots_txt_is_no_error_but_one_that_refuses_is() -> None:
    assert not is_error(Outcome.CLIENT_ERROR, is_robots=True)
    assert is_error(Outcome.RATE_LIMITED, is_robots=True)
    assert is_error(Outcome.SERVER_ERROR, is_robots=True)


def test_a_histogram_counts_up_to_each_bound_and_beyond_the_last() -> None:
    times = Histogram()
    for seconds in (0.0, 0.001, 0.0011, 60.0, 61.0):
        times.add(seconds)
    assert times.counts[:2] == [2, 1]
    assert times.counts[-2:] == [1, 1]
    assert (times.count, len(times.counts)) == (5, len(BOUNDS_S) + 1)


def test_a_quantile_lies_within_its_class() -> None:
    times = Histogram()
    assert times.quantile(0.5) == 0.0
    for _ in range(90):
        times.add(0.03)
    for _ in range(10):
        times.add(0.7)
    assert 0.025 < times.quantile(0.5) <= 0.05
    assert 0.5 < times.quantile(0.95) <= 1.0
    times.add(1000.0)
    assert times.quantile(1.0) == BOUNDS_S[-1], "beyond the last bound nothing is known"


def test_figures_are_read_back_from_json() -> None:
    some = Figures(totals=Totals(pages=3), out="crawl", latency={"dns": Histogram()})
    assert msgspec.json.decode(msgspec.json.encode(some), type=Figures) == some
