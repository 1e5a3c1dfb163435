from __future__ import annotations

import pytest

from gossamer.core.politeness.pace import (
    FIRST_PARK_S,
    MAX_DELAY_S,
    MAX_PARK_S,
    MIN_REFUSAL_S,
    Pace,
    PaceRule,
    count_server_error,
    delay_in_force_s,
    record_latency,
    record_result,
    server_errors_24h,
)
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S
from gossamer.model.records import HostRecord, Outcome, Result

NOW = 1000.0


def _host() -> HostRecord:
    return HostRecord("h.test", "h.test")


def _note(
    record: HostRecord, outcome: Outcome, now: float = NOW, *, status: int = 0, retry_after_s: float = -1
) -> None:
    record_result(record, Result(1, outcome, status=status, retry_after_s=retry_after_s), now)


def test_the_floor_is_the_larger_of_setting_and_crawl_delay() -> None:
    pace = Pace(1.0, 1)
    assert pace.floor_s("h.test", None) == 1.0
    assert pace.floor_s("h.test", 0.2) == 1.0
    assert pace.floor_s("h.test", 60.0) == 60.0


def test_the_narrowest_rule_counts_whatever_their_order() -> None:
    rules = [
        PaceRule("*", delay_s=1.0),
        PaceRule("*.example.org", delay_s=2.0),
        PaceRule("*.shop.example.org", delay_s=3.0),
        PaceRule("a.shop.example.org", delay_s=4.0),
    ]
    for task in (rules, rules[::-1]):
        pace = Pace(9.0, 1, task)
        for host, delay_s, pattern in (
            ("other.test", 1.0, "*"),
            ("www.example.org", 2.0, "*.example.org"),
            ("b.shop.example.org", 3.0, "*.shop.example.org"),
            ("a.shop.example.org", 4.0, "a.shop.example.org"),
        ):
            assert (pace.floor_s(host, None), pace.pattern_of(host)) == (delay_s, pattern)
    assert Pace(9.0, 1).pattern_of("other.test") == ""


def test_a_rule_sets_the_pace_of_the_hosts_that_it_names() -> None:
    pace = Pace(1.0, 1, [PaceRule("*.Fast.test", delay_s=0.0, connections=8), PaceRule("slow.test", delay_s=9.0)])
    assert (pace.floor_s("a.fast.test", None), pace.connections("a.fast.test")) == (0.0, 8)
    assert (pace.floor_s("slow.test", None), pace.connections("slow.test")) == (9.0, 1)
    assert (pace.floor_s("other.test", None), pace.connections("other.test")) == (1.0, 1)
    assert pace.floor_s("a.fast.test", 5.0) == 5.0


def test_a_burst_of_refusals_counts_once() -> None:
    record = _host()
    for n in range(10):
        _note(record, Outcome.RATE_LIMITED, NOW + n * 0.01, status=429)
    assert record.backoff == 1
    assert record.parked_until == pytest.approx(NOW + 5.0, abs=0.2)
    _note(record, Outcome.RATE_LIMITED, NOW + 10, status=429)
    assert record.backoff == 2
    assert record.parked_until == NOW + 20


def test_retry_after_holds_the_host_and_is_clamped_to_a_day() -> None:
    record = _host()
    _note(record, Outcome.RATE_LIMITED, status=429, retry_after_s=120)
    assert record.parked_until == NOW + 120
    _note(record, Outcome.RATE_LIMITED, status=429, retry_after_s=30)
    assert record.parked_until == NOW + 120, "a later answer never shortens the promise"
    _note(record, Outcome.SERVER_ERROR, status=503, retry_after_s=10 * 365 * 86400)
    assert record.parked_until == NOW + MAX_RETRY_AFTER_S


def test_a_server_error_without_retry_after_does_not_park() -> None:
    record = _host()
    _note(record, Outcome.SERVER_ERROR, status=500)
    assert (record.parked_until, record.backoff, record.failures_in_a_row) == (0.0, 0, 1)


def test_answers_with_5xx_are_counted_for_24_hours_by_the_hour() -> None:
    record, hour = _host(), 3600.0
    for at in (0.0, 1.0, hour, 23.9 * hour):
        count_server_error(record, at)
    assert server_errors_24h(record, 23.9 * hour) == 4
    assert server_errors_24h(record, 24 * hour) == 2
    count_server_error(record, 24 * hour)
    assert record.server_errors == [(1, 1), (23, 1), (24, 1)]
    assert server_errors_24h(record, 49 * hour) == 0


def test_five_failures_in_a_row_park_a_host_longer_each_time() -> None:
    record = _host()
    for _ in range(4):
        _note(record, Outcome.TIMEOUT)
    assert record.parked_until == 0.0
    _note(record, Outcome.TIMEOUT)
    assert record.parked_until == NOW + FIRST_PARK_S
    _note(record, Outcome.TIMEOUT)
    assert record.parked_until == NOW + 2 * FIRST_PARK_S
    for _ in range(3000):
        _note(record, Outcome.CONNECT_FAILED)
    assert record.parked_until == NOW + MAX_PARK_S


def test_one_success_ends_the_row() -> None:
    record = _host()
    for _ in range(4):
        _note(record, Outcome.TIMEOUT)
    _note(record, Outcome.OK, status=200)
    assert record.failures_in_a_row == 0
    _note(record, Outcome.TIMEOUT)
    assert record.parked_until == 0.0


def test_a_missing_page_and_a_lost_worker_are_no_failures_of_the_host() -> None:
    record = _host()
    for _ in range(3):
        _note(record, Outcome.TIMEOUT)
    _note(record, Outcome.WORKER_LOST)
    assert record.failures_in_a_row == 3
    _note(record, Outcome.CLIENT_ERROR, status=404)
    assert record.failures_in_a_row == 0


def test_the_delay_doubles_and_recovers_and_never_falls_below_its_floor() -> None:
    record = _host()
    delays = []
    for _ in range(4):
        _note(record, Outcome.SERVER_ERROR, status=500)
        delays.append(delay_in_force_s(record, 1.0))
    assert delays == [1.0, 2.0, 4.0, 8.0]
    for expected in (4.0, 2.0, 1.0, 1.0):
        _note(record, Outcome.OK, status=200)
        assert delay_in_force_s(record, 1.0) == expected


def test_back_off_holds_without_a_configured_delay_and_has_a_bound() -> None:
    record = _host()
    assert delay_in_force_s(record, 0.0) == 0.0
    record.backoff = 1
    assert delay_in_force_s(record, 0.0) == 1.0
    record.backoff = 8
    assert delay_in_force_s(record, 60.0) == MAX_DELAY_S
    assert delay_in_force_s(record, 2 * MAX_DELAY_S) == 2 * MAX_DELAY_S


def test_rising_latency_doubles_the_delay_until_it_stops_rising() -> None:
    record = _host()
    for _ in range(10):
        record_latency(record, 0.2)
    assert delay_in_force_s(record, 1.0) == 1.0, "a steady host keeps its floor"
    seen = set()
    for step in range(120):
        record_latency(record, min(3.0, 0.2 * 1.1**step))
        seen.add(delay_in_force_s(record, 1.0))
    assert seen == {1.0, 2.0, 4.0, 8.0}, "a step at a time"
    assert delay_in_force_s(record, 1.0) == 8.0, "3 s are three doublings of what is usual"
    delays = []
    for _ in range(60):
        record_latency(record, 0.2)
        delays.append(delay_in_force_s(record, 1.0))
    assert delays == sorted(delays, reverse=True), "it recovers step by step"
    assert delays[-1] == 1.0


def test_a_quick_host_is_never_slowed_by_noise_and_a_slow_one_not_by_being_slow() -> None:
    quick, slow = _host(), _host()
    for number in range(200):
        record_latency(quick, 0.2 if number % 7 == 0 else 0.004)
        record_latency(slow, 3.0)
    assert delay_in_force_s(quick, 1.0) == 1.0
    assert delay_in_force_s(slow, 1.0) == 1.0


def test_without_a_delay_latency_makes_none() -> None:
    record = _host()
    record.slow_steps = 3
    assert delay_in_force_s(record, 0.0) == 0.0


def test_failures_of_requests_sent_side_by_side_double_the_delay_once() -> None:
    record = _host()
    for number in range(4):
        record_result(record, Result(number, Outcome.SERVER_ERROR, status=500, sent_at=NOW - 1), NOW + number * 0.01)
    assert record.backoff == 1
    record_result(record, Result(9, Outcome.RATE_LIMITED, status=429, sent_at=NOW - 1), NOW + 0.1)
    assert record.backoff == 1
    record_result(record, Result(9, Outcome.SERVER_ERROR, status=500, sent_at=NOW + 60), NOW + 61)
    assert record.backoff == 2


def test_a_refusal_holds_for_longer_than_a_commit_takes() -> None:
    record = _host()
    _note(record, Outcome.RATE_LIMITED, status=429, retry_after_s=0.001)
    assert record.parked_until == NOW + MIN_REFUSAL_S
