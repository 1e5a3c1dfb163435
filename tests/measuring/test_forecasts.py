"""A day of a small crawl with every fault, in virtual time: its forecasts are right in nine hours of ten."""

from __future__ import annotations

from benchmarks.forecasts import SHARES, Course, Hour, run, week_hosts


def test_the_forecasts_of_a_day_with_every_fault_are_right_in_nine_hours_of_ten() -> None:
    course = run(hosts=48, days=1.0, seed=3)
    assert course.seconds > 22 * 3600
    assert course.fetches > 1.02 * course.pages, "there were faults"
    assert course.share(lambda hour: hour.is_time_right) >= 0.9
    assert course.share(lambda hour: hour.are_pages_right) >= 0.9


def test_the_web_has_hosts_of_every_kind() -> None:
    assert {host.kind for host in week_hosts(200, 1.0, 1)} == set(SHARES)


def test_a_forecast_that_is_wrong_by_more_than_a_quarter_is_not_right() -> None:
    hours = [
        Hour(0.0, 8 * 3600.0, 1000.0, 0, "", then_s=10 * 3600.0, then_pages=1200),
        Hour(0.0, 7 * 3600.0, 1000.0, 0, "", then_s=10 * 3600.0, then_pages=1500),
        Hour(0.0, None, 1000.0, 0, "", then_s=10 * 3600.0, then_pages=1000),
    ]
    assert [hour.is_time_right for hour in hours] == [True, False, False]
    assert [hour.are_pages_right for hour in hours] == [True, False, True]
    assert Course(hours, 0.0, 0, 0, "").share(lambda hour: hour.is_time_right) == 1 / 3
