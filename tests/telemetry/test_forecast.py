"""Forecasts: what is queued, at the pace of its hosts, until it is done or a limit is reached."""

from __future__ import annotations

from math import inf, isfinite

import pytest

from gossamer.telemetry.forecast import Forecaster, ForecastLimits

HOUR_S = 3600.0


def of(*hosts: tuple[str, int, float, float]) -> Forecaster:
    forecaster = Forecaster(max_wait_s=300.0)
    for host in hosts:
        forecaster.add(*host)
    return forecaster


def test_the_slow_host_is_named_and_the_rest_has_its_own_time() -> None:
    others = [(f"h{n}.test", 7200, 1.0, 0.0) for n in range(50)]
    found = of(("docs.example.org", 41_000, 5.0, 0.0), *others).forecast(ForecastLimits())
    assert found.seconds == pytest.approx(57 * HOUR_S, rel=0.01)
    assert found.rest_seconds == pytest.approx(2 * HOUR_S, rel=0.01)
    assert [(host.name, host.queued, host.delay_s) for host in found.slow_hosts] == [("docs.example.org", 41_000, 5.0)]
    assert found.text == (
        "docs.example.org: 41,000 URLs at 5 s = 57 h; everything else is done in 2 h (of what is known now)"
    )


def test_equal_hosts_are_not_slow() -> None:
    found = of(*((f"h{n}.test", 600, 1.0, 0.0) for n in range(5))).forecast(ForecastLimits())
    assert (found.slow_hosts, found.rest_seconds) == ([], found.seconds)
    assert found.text == "3,000 queued URLs are done in about 10 min (of what is known now)"


def test_several_slow_hosts_are_counted() -> None:
    hosts = [("a.test", 1000, 60.0, 0.0), ("b.test", 900, 60.0, 0.0), ("c.test", 60, 1.0, 0.0)]
    found = of(*hosts).forecast(ForecastLimits())
    assert [host.name for host in found.slow_hosts] == ["a.test", "b.test"]
    assert "and 1 more like it" in found.text


def test_the_first_limit_ends_the_crawl() -> None:
    forecaster = of(*((f"h{n}.test", 1000, 1.0, 0.0) for n in range(10)))
    pages = forecaster.forecast(ForecastLimits(pages_left=2000))
    assert pages.seconds == pytest.approx(200.0, rel=0.1)
    assert pages.text.startswith("--max-pages ends it in about 3 min")
    half = forecaster.forecast(ForecastLimits(pages_left=2000, pages_per_fetch=0.5))
    assert half.seconds == pytest.approx(400.0, rel=0.1)
    timed = forecaster.forecast(ForecastLimits(pages_left=2000, seconds_left=50.0))
    assert (timed.seconds, timed.rest_seconds) == (50.0, 50.0)
    assert timed.text.startswith("--max-time ends it in about 50 s")
    neither = forecaster.forecast(ForecastLimits(pages_left=20_000, seconds_left=5000.0))
    assert neither.seconds == pytest.approx(999.0, rel=0.01)


def test_what_else_binds_a_crawl_makes_it_longer() -> None:
    forecaster = of(*((f"h{n}.test", 10, 1.0, 0.0) for n in range(1000)))
    assert forecaster.forecast(ForecastLimits()).seconds == pytest.approx(9.0, rel=0.01)
    assert forecaster.forecast(ForecastLimits(max_fetches_per_s=100.0)).seconds == 100.0


def test_what_is_not_counted_is_told() -> None:
    forecaster = of(("a.test", 10, 1.0, 0.0), ("b.test", 70, 1.0, 310.0))
    found = forecaster.forecast(ForecastLimits())
    assert found.seconds == pytest.approx(9.0)
    assert found.text.endswith("; 70 URLs of parked hosts are not counted")
    forecaster.unknown_urls = 5000
    assert forecaster.forecast(ForecastLimits()).text.endswith(
        "5,000 URLs of hosts that are not in memory are not counted"
    )


def test_a_host_that_is_parked_for_long_counts_if_the_crawl_lasts_until_then_anyway() -> None:
    parked = ("b.test", 70, 1.0, 900.0)
    assert of(("a.test", 601, 1.0, 0.0), parked).forecast(ForecastLimits()).seconds == pytest.approx(969.0)
    assert of(("a.test", 599, 1.0, 0.0), parked).forecast(ForecastLimits()).seconds == pytest.approx(598.0)
    chain = of(("a.test", 601, 1.0, 0.0), ("c.test", 10, 1.0, 1260.0), parked).forecast(ForecastLimits())
    assert chain.seconds == pytest.approx(1269.0), "it waits for one, and then for the other"


def test_while_more_urls_are_found_than_fetched_it_is_a_lower_bound_and_says_so() -> None:
    forecaster = of(("a.test", 10, 1.0, 0.0))
    growing = forecaster.forecast(ForecastLimits(is_growing=True))
    assert growing.is_at_least
    assert growing.text == "10 queued URLs are done in about 9 s at least: more URLs are found than fetched"
    assert not forecaster.forecast(ForecastLimits()).is_at_least
    ended = forecaster.forecast(ForecastLimits(is_growing=True, pages_left=5))
    assert not ended.is_at_least, "the limit ends it, whatever is found"
    assert not of().forecast(ForecastLimits(is_growing=True)).is_at_least


def test_time_passes_between_two_forecasts() -> None:
    forecaster = of(("a.test", 1001, 1.0, 0.0), ("b.test", 101, 1.0, 0.0))
    later = forecaster.forecast(ForecastLimits(), age_s=40.0)
    assert (later.seconds, later.rest_seconds, later.slow_hosts[0].seconds) == (960.0, 60.0, 960.0)
    assert forecaster.forecast(ForecastLimits(seconds_left=100.0), age_s=40.0).seconds == 60.0
    assert forecaster.forecast(ForecastLimits(), age_s=4000.0).seconds == 0.0


def test_an_empty_queue_needs_no_time() -> None:
    assert of().forecast(ForecastLimits(pages_left=10)).text == "nothing is queued"
    assert of().forecast(ForecastLimits()).seconds == 0.0


@pytest.mark.parametrize(("interval_s", "wait_s"), [(1e308, 0.0), (inf, 0.0), (1.0, inf), (0.0, 0.0)])
def test_a_pace_without_measure_is_no_error(interval_s: float, wait_s: float) -> None:
    forecaster = Forecaster(inf)
    forecaster.add("never.test", 1000, interval_s, wait_s)
    forecast = forecaster.forecast(ForecastLimits(pages_left=500))
    assert forecast.seconds is not None
    assert isfinite(forecast.seconds)
    assert forecast.text
