from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.frontier.workbench import HostSlot, OriginRules
from gossamer.core.politeness.arrival import CLOCK_SLACK_S, MAX_TRANSIT_S, UNKNOWN_DELAY_S, arrived_at, renew_promises
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S
from gossamer.model.records import Outcome, Result
from tests.core.slots import NOW, lone_host

NEVER = float("-inf")


def answer(sent_at: float, first_byte_at: float, finished_at: float) -> Result:
    return Result(1, Outcome.OK, sent_at=sent_at, first_byte_at=first_byte_at, finished_at=finished_at)


# -- arrival -------------------------------------------------------------------------------------------


def test_a_request_arrived_before_its_answer_was_whole() -> None:
    assert arrived_at(answer(10.0, 0.0, 10.03), best_latency_s=0.0) == 10.03


def test_a_request_takes_no_longer_than_the_longest_transit() -> None:
    assert arrived_at(answer(10.0, 0.0, 99.0), best_latency_s=0.0) == 10.0 + MAX_TRANSIT_S


def test_a_request_did_not_arrive_before_it_was_written() -> None:
    assert arrived_at(answer(10.0, 0.0, 0.0), best_latency_s=0.0) == 10.0


def test_a_first_byte_later_than_usual_may_mean_that_the_request_lay_unread() -> None:
    late = answer(10.0, first_byte_at=13.0, finished_at=20.0)
    assert arrived_at(late, best_latency_s=0.5) == pytest.approx(12.5 + CLOCK_SLACK_S)
    assert arrived_at(late, best_latency_s=0.0) == 10.0 + MAX_TRANSIT_S, "nobody knows what is usual"


def test_a_first_byte_as_early_as_usual_changes_nothing() -> None:
    assert arrived_at(answer(10.0, 10.5, 20.0), best_latency_s=0.5) == 10.0 + MAX_TRANSIT_S


def test_the_slack_of_the_clock_does_not_reach_beyond_the_end() -> None:
    assert arrived_at(answer(10.0, 13.0, 13.001), best_latency_s=0.5) == pytest.approx(12.501)


@given(st.floats(0, 5), st.floats(0, 5), st.floats(0, 5))
def test_the_bound_lies_between_writing_and_the_end(to_first_byte: float, to_end: float, best_latency_s: float) -> None:
    result = answer(100.0, 100.0 + to_first_byte, 100.0 + to_first_byte + to_end)
    assert result.sent_at <= arrived_at(result, best_latency_s) <= max(result.sent_at, result.finished_at)


@given(st.floats(0, 5), st.floats(0, 5), st.floats(0, MAX_TRANSIT_S), st.floats(0, 5))
def test_no_request_can_have_arrived_later_than_assumed(
    lay_unread_s: float, answered_in_s: float, transit_s: float, body_s: float
) -> None:
    """The best latency is at most what the server takes itself, since it includes the way there and back."""
    arrived = 100.0 + transit_s + lay_unread_s
    first_byte_at = arrived + answered_in_s
    result = answer(100.0, first_byte_at, first_byte_at + body_s)
    if lay_unread_s:
        assert arrived_at(result, best_latency_s=answered_in_s or 1e-9) >= arrived - 1e-6
    else:
        assert arrived_at(result, best_latency_s=0.0) >= min(arrived, result.finished_at) - 1e-6


# -- promises ------------------------------------------------------------------------------------------


def host_with(delay_s: float, *, has_robots: bool = True) -> HostSlot:
    host = lone_host("a.test")
    host.floor_s = delay_s
    if has_robots:
        host.origins["http://a.test"] = OriginRules(expires_at=NOW + 3600)
    return host


def test_a_promise_that_can_have_been_meant_is_left_as_it_is() -> None:
    host = host_with(10.0)
    host.record.next_at, host.record.parked_until, host.record.slowed_at = NOW + 7, NOW + 600, NOW - 5
    renew_promises(host, NEVER, NOW)
    assert (host.record.next_at, host.record.parked_until, host.record.slowed_at) == (NOW + 7, NOW + 600, NOW - 5)


def test_a_clock_that_was_set_back_freezes_no_host() -> None:
    host = host_with(10.0)
    host.record.next_at = host.record.parked_until = host.record.slowed_at = NOW + 1e9
    renew_promises(host, NEVER, NOW)
    assert host.record.next_at == NOW + 10.0
    assert host.record.parked_until == NOW + MAX_RETRY_AFTER_S
    assert host.record.slowed_at == NOW


def test_after_an_unclean_stop_every_host_counts_as_asked_with_a_request_on_its_way() -> None:
    host = host_with(10.0)
    renew_promises(host, all_asked_at=NOW - 3, now=NOW)
    assert host.record.next_at == NOW - 3 + 10.0 + MAX_TRANSIT_S


def test_a_host_without_a_delay_is_not_delayed_by_a_restart() -> None:
    host = host_with(0.0)
    renew_promises(host, all_asked_at=NOW, now=NOW)
    assert host.record.next_at <= NOW


@pytest.mark.parametrize("delay_s", [0.0, 0.2, 10.0])
def test_a_crawl_delay_that_was_not_stored_is_allowed_for(delay_s: float) -> None:
    host = host_with(delay_s, has_robots=False)
    renew_promises(host, all_asked_at=NOW, now=NOW)
    assert host.record.next_at == NOW + max(UNKNOWN_DELAY_S, delay_s + MAX_TRANSIT_S)


def test_the_back_off_of_a_host_counts_towards_its_wait() -> None:
    host = host_with(1.0)
    host.record.backoff = 3
    renew_promises(host, all_asked_at=NOW, now=NOW)
    assert host.record.next_at == NOW + 8.0 + MAX_TRANSIT_S
