from __future__ import annotations

import pytest

from gossamer.core.politeness.retry import HOST_FAILURES, MAX_RETRY_AFTER_S, RETRY, wait_before_retry
from gossamer.model.records import Outcome


def _waits(outcome: Outcome, retries: int = 3) -> list[float]:
    waits = []
    for failures in range(1, 10):
        wait_s = wait_before_retry(outcome, failures, 2.0, retries)
        if wait_s is None:
            break
        waits.append(wait_s)
    return waits


@pytest.mark.parametrize(
    ("outcome", "waits"),
    [
        (Outcome.SERVER_ERROR, [2.0, 8.0, 32.0]),
        (Outcome.CONNECT_FAILED, [2.0, 8.0, 32.0]),
        (Outcome.DISCONNECTED, [2.0, 8.0, 32.0]),
        (Outcome.RATE_LIMITED, [2.0, 8.0, 32.0]),
        (Outcome.TIMEOUT, [2.0]),
        (Outcome.CONNECT_TIMEOUT, [2.0]),
        (Outcome.CLIENT_ERROR, []),
        (Outcome.TLS_ERROR, []),
        (Outcome.PROTOCOL_ERROR, []),
        (Outcome.HEADER_TOO_LARGE, []),
        (Outcome.BLOCKED_ADDRESS, []),
        (Outcome.REDIRECT_LOOP, []),
        (Outcome.TOO_MANY_REDIRECTS, []),
        (Outcome.OK, []),
    ],
)
def test_how_often_and_when(outcome: Outcome, waits: list[float]) -> None:
    assert _waits(outcome) == waits


@pytest.mark.parametrize(
    ("outcome", "retries", "attempts"),
    [
        (Outcome.SERVER_ERROR, 0, 0),
        (Outcome.SERVER_ERROR, 5, 5),
        (Outcome.DISCONNECTED, 1, 1),
        (Outcome.TIMEOUT, 0, 0),
        (Outcome.TIMEOUT, 5, 1),
        (Outcome.CLIENT_ERROR, 5, 0),
        (Outcome.HEAD_REFUSED, 0, 1),
    ],
)
def test_the_operator_sets_how_often_a_url_is_tried_again(outcome: Outcome, retries: int, attempts: int) -> None:
    assert len(_waits(outcome, retries)) == attempts


def test_no_wait_is_longer_than_a_day() -> None:
    assert wait_before_retry(Outcome.SERVER_ERROR, 5000, 2.0, 10_000) == MAX_RETRY_AFTER_S


def test_a_lost_worker_never_uses_up_the_attempts_of_a_page() -> None:
    assert wait_before_retry(Outcome.WORKER_LOST, 1000, 2.0, 0) == 2.0
    assert Outcome.WORKER_LOST not in HOST_FAILURES


def test_what_the_page_is_to_blame_for_is_not_the_hosts_failure() -> None:
    for outcome in (Outcome.CLIENT_ERROR, Outcome.TYPE_REFUSED, Outcome.BAD_REDIRECT, Outcome.REDIRECT_LOOP):
        assert outcome not in HOST_FAILURES
        assert outcome not in RETRY
