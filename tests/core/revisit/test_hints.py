from __future__ import annotations

import pytest

from gossamer.core.revisit.hints import MAX_VISITS, HintRecord, chance_of_change, hinted_wait
from gossamer.core.revisit.interval import MIN_DAYS
from gossamer.core.revisit.rate import Rate

RATE = Rate(2.0, 20.0)


def record(changed_right: int = 0, changed_wrong: int = 0, same_right: int = 0, same_wrong: int = 0) -> HintRecord:
    found = HintRecord()
    for count, claims, is_changed in (
        (changed_right, True, True),
        (changed_wrong, True, False),
        (same_right, False, False),
        (same_wrong, False, True),
    ):
        for _ in range(count):
            found.record(claims, is_changed)
    return found


def test_a_claim_of_a_host_that_made_none_before_changes_nothing() -> None:
    plain = 1 - RATE.same_after(5.0)
    assert chance_of_change(RATE, 5.0, HintRecord(), True) == pytest.approx(plain)
    assert chance_of_change(RATE, 5.0, HintRecord(), False) == pytest.approx(plain)
    assert HintRecord().trust == 0


def test_a_claim_of_a_host_that_was_always_right_decides() -> None:
    honest = record(changed_right=20, same_right=20)
    assert chance_of_change(RATE, 5.0, honest, True) > 0.9
    assert chance_of_change(RATE, 5.0, honest, False) < 0.05
    assert honest.trust > 0.85


def test_a_host_that_dates_every_page_today_is_not_believed() -> None:
    liar = record(changed_right=8, changed_wrong=32)
    assert chance_of_change(RATE, 5.0, liar, True) == pytest.approx(1 - RATE.same_after(5.0), abs=0.05)
    assert liar.trust < 0.1


def test_a_host_whose_dates_are_wrong_as_often_as_right_is_not_believed() -> None:
    random = record(10, 10, 10, 10)
    assert random.ratio(True) == pytest.approx(1.0)
    assert random.trust == 0


def test_trust_is_lost_sooner_than_it_was_won() -> None:
    before = record(changed_right=15, same_right=15)
    after = record(changed_right=15, same_right=15, changed_wrong=5)
    assert after.trust < before.trust * 0.6


def test_what_is_long_ago_is_forgotten() -> None:
    reformed = record(changed_wrong=200)
    for _ in range(150):
        reformed.record(True, True)
        reformed.record(False, False)
    assert reformed.trust > 0.8
    assert sum((reformed.changed_right, reformed.changed_wrong, reformed.same_right)) <= MAX_VISITS


def test_without_a_claim_the_wait_is_the_rest_of_the_interval() -> None:
    assert hinted_wait(RATE, 8.0, 5.0, 1 - RATE.same_after(5.0)) == pytest.approx(3.0)


def test_a_believed_change_is_fetched_now_and_a_believed_rest_later() -> None:
    assert hinted_wait(RATE, 8.0, 5.0, 0.97) == 0.0
    assert hinted_wait(RATE, 8.0, 5.0, 0.02) > 6.0


def test_a_claim_never_breaks_the_bounds() -> None:
    assert hinted_wait(RATE, 8.0, 0.01, 1.0) == pytest.approx(MIN_DAYS - 0.01)
    assert hinted_wait(RATE, 30.0, 10.0, 0.0) == 20.0
    assert hinted_wait(Rate(0.05, 1e-4), 30.0, 1.0, 1 - 1e-8) == 0.0
