from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from gossamer.core.revisit.classes import RULES, PageClass
from gossamer.core.revisit.interval import MAX_DAYS, MIN_DAYS
from gossamer.core.revisit.page import PageState, Visit, VisitFound, after_visit
from gossamer.core.revisit.plain_rule import counted_streak, plain_interval
from gossamer.core.revisit.rate import Rate
from gossamer.core.revisit.schedule import FAILED_DAYS, RevisitRule, Schedule, chance_of
from gossamer.core.revisit.shares import MAX_CREDIT, FetchShares

STATE = PageState(Rate(2.0, 40.0), 0.0, 10.0)


def plain_course(has_changed: list[bool], interval: float = 8.0) -> list[float]:
    streak, found = 0, []
    for each in has_changed:
        streak = counted_streak(streak, each)
        interval = plain_interval(RULES[PageClass.STATIC], interval, streak)
        found.append(interval)
    return found


def test_plain_rule_changed_five_times_in_a_row_is_sooner() -> None:
    assert plain_course([True] * 10) == [8.0] * 4 + [4.0] * 5 + [2.0]


def test_plain_rule_unchanged_three_times_is_later() -> None:
    assert plain_course([False] * 6) == [8.0] * 2 + [16.0] * 3 + [30.0]


def test_plain_rule_a_row_that_is_broken_begins_anew() -> None:
    assert plain_course([True] * 4 + [False] + [True] * 4) == [8.0] * 9


def test_plain_rule_stays_within_an_hour_and_30_days() -> None:
    assert plain_course([True] * 200)[-1] == MIN_DAYS
    assert plain_course([False] * 200)[-1] == MAX_DAYS
    assert plain_interval(RULES[PageClass.POPULAR], 0.0, 1) == 1.0


def test_without_a_price_the_plain_rule_counts() -> None:
    assert Schedule().interval(replace(STATE, streak=5), None) == 5.0
    assert Schedule(rule=RevisitRule.STEPS).interval(replace(STATE, streak=5), 0.3) == 5.0
    assert Schedule().interval(STATE, 0.3) == RULES[PageClass.STATIC].interval(STATE.rate, 0.3)


def test_waits_are_spread_around_the_interval_and_the_first_one_over_it() -> None:
    schedule = Schedule()
    waits = [schedule.wait(STATE, VisitFound.SAME, step / 10) for step in range(11)]
    assert waits[0] == pytest.approx(9.0)
    assert waits[-1] == pytest.approx(11.0)
    assert schedule.first_wait(STATE, 0.25) == 2.5
    assert schedule.first_wait(STATE, 0.0) == MIN_DAYS
    assert schedule.wait(replace(STATE, interval_days=30.0), VisitFound.SAME, 1.0) == MAX_DAYS


def test_a_page_without_an_answer_is_asked_sooner_and_one_that_is_gone_by_its_rule() -> None:
    schedule = Schedule()
    assert schedule.wait(STATE, VisitFound.FAILED, 0.5) == FAILED_DAYS
    state = STATE
    waits: list[float | None] = []
    for number in range(1, 6):
        state = after_visit(state, Visit(number * 1e6, VisitFound.MISSING), STATE.rate)
        waits.append(schedule.wait(state, VisitFound.MISSING, 0.5))
    assert waits == [1.0, 3.0, 9.0, 27.0, None]
    assert schedule.wait(replace(state, is_seed=True), VisitFound.MISSING, 0.5) == MAX_DAYS


def test_chances_are_even_and_repeatable() -> None:
    chances = [chance_of(number.to_bytes(16), 1.7e9) for number in range(10_000)]
    assert chances == [chance_of(number.to_bytes(16), 1.7e9) for number in range(10_000)]
    assert sum(chances) / 10_000 == pytest.approx(0.5, abs=0.02)
    assert all(0 <= chance < 1 for chance in chances)
    assert all(one != other for one, other in pairwise(chances))
    assert chance_of(b"a" * 16, 1.0) != chance_of(b"a" * 16, 2.0)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_fetches_are_divided_by_the_share(share: float) -> None:
    shares = FetchShares(share)
    known = 0
    for _ in range(1000):
        is_known = shares.is_known_turn
        shares.count(is_known=is_known)
        known += is_known
    assert known == pytest.approx(1000 * share, abs=1)


def test_a_share_that_is_not_needed_goes_to_the_other_and_is_not_saved_up() -> None:
    shares = FetchShares(0.5)
    for _ in range(10_000):
        shares.count(is_known=False)  # there is nothing else
    known = 0
    for _ in range(400):
        is_known = shares.is_known_turn
        shares.count(is_known=is_known)
        known += is_known
    assert 200 < known <= 200 + MAX_CREDIT


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="expected a number from 0 to 1"):
        FetchShares(share)
