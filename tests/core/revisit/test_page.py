from __future__ import annotations

from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gossamer.core.revisit.classes import PageClass
from gossamer.core.revisit.page import (
    DAY_S,
    PACKED_BYTES,
    PageState,
    Visit,
    VisitFound,
    after_visit,
    first_state,
    unpacked,
)
from gossamer.core.revisit.plain_rule import counted_streak
from gossamer.core.revisit.rate import (
    MAX_DAYS,
    MAX_SHAPE,
    MIN_DAYS,
    MIN_SHAPE,
    Rate,
    changed,
    changed_at,
    first_seen,
    unchanged,
)

PRIOR = Rate(0.6, 12.0)
START = PageState(PRIOR, 1_700_000_000.0)


def visit(days: float, found: VisitFound = VisitFound.SAME, *, brought: bool = False) -> Visit:
    return Visit(START.visited_at + days * DAY_S, found, brought)


@given(
    st.floats(MIN_SHAPE, MAX_SHAPE),
    st.floats(MIN_DAYS, MAX_DAYS),
    st.tuples(st.integers(0, 4_294_967_295), st.integers(0, 2_592_000), st.integers(-120, 120)),
    st.tuples(st.sampled_from(PageClass), st.booleans(), st.booleans(), st.booleans()),
    st.tuples(st.integers(0, 15), st.integers(0, 15)),
)
def test_what_is_stored_comes_back(
    shape: float,
    days: float,
    numbers: tuple[int, int, int],
    flags: tuple[PageClass, bool, bool, bool],
    counts: tuple[int, int],
) -> None:
    visited_at, interval_s, streak = numbers
    state = PageState(Rate(shape, days), visited_at, interval_s / DAY_S, streak, *flags, *counts)
    stored = state.packed()
    assert len(stored) == PACKED_BYTES
    back = unpacked(stored)
    assert back.rate.shape == pytest.approx(shape, rel=2e-4)
    assert back.rate.days == pytest.approx(days, rel=2e-4)
    assert back.visited_at == visited_at
    assert round(back.interval_days * DAY_S) == interval_s
    assert back.streak == streak
    assert (back.page_class, back.is_class_set, back.is_learned, back.is_seed) == flags
    assert (back.links, back.misses) == counts
    assert back.packed() == stored


def test_rounding_does_not_add_up_over_many_visits() -> None:
    draw = Random(1)
    exact = stored = START
    for number in range(1, 500):
        seen = visit(number * 0.5, VisitFound.CHANGED if draw.random() < 1 - exp(-0.1) else VisitFound.SAME)
        exact = after_visit(exact, seen, PRIOR)
        stored = unpacked(after_visit(stored, seen, PRIOR).packed())
    assert stored.rate.mean == pytest.approx(exact.rate.mean, rel=0.01)


def test_the_first_visit_counts_a_time_of_change_as_far_as_it_is_trusted() -> None:
    old = Visit(START.visited_at, VisitFound.CHANGED, modified_at=START.visited_at - 200 * DAY_S, modified_trust=0.9)
    told, untold = first_state(old, PRIOR), first_state(replace(old, modified_trust=0.0), PRIOR)
    assert told.rate == first_seen(PRIOR, 200.0, 0.9)
    assert (told.is_learned, untold.is_learned) == (True, False)
    assert untold == START
    ahead = replace(old, modified_at=START.visited_at + DAY_S)
    assert first_state(ahead, PRIOR) == START


def test_a_class_and_a_seed_are_known_from_the_first_visit() -> None:
    state = first_state(visit(0), PRIOR, set_class=PageClass.NEWS, is_seed=True)
    assert (state.page_class, state.is_class_set, state.is_seed) == (PageClass.NEWS, True, True)


def test_a_visit_changes_the_belief_by_what_it_found() -> None:
    assert after_visit(START, visit(4), PRIOR).rate == unchanged(PRIOR, 4.0)
    assert after_visit(START, visit(4, VisitFound.CHANGED), PRIOR).rate == changed(PRIOR, 4.0)


def test_a_time_of_change_counts_if_it_is_trusted_and_after_the_last_visit() -> None:
    at = START.visited_at + 4 * DAY_S
    told = Visit(at, VisitFound.CHANGED, modified_at=at - DAY_S, modified_trust=0.8)
    assert after_visit(START, told, PRIOR).rate == changed_at(PRIOR, 4.0, 1.0, 0.8)
    for modified_at in (START.visited_at - DAY_S, at + DAY_S):
        odd = Visit(at, VisitFound.CHANGED, modified_at=modified_at, modified_trust=0.8)
        assert after_visit(START, odd, PRIOR).rate == changed(PRIOR, 4.0)


def test_the_prior_of_a_page_is_replaced_at_its_second_visit_and_never_again() -> None:
    better = Rate(2.0, 100.0)
    second = after_visit(START, visit(4), better)
    assert second.rate == unchanged(better, 4.0)
    assert after_visit(second, visit(8), PRIOR).rate == unchanged(second.rate, 4.0)


def test_a_failed_visit_says_nothing() -> None:
    assert after_visit(START, visit(4, VisitFound.FAILED), PRIOR) == START


def test_misses_are_counted_in_a_row_and_the_belief_survives_them() -> None:
    state = START
    for number in range(1, 20):
        state = after_visit(state, visit(number, VisitFound.MISSING), PRIOR)
    assert (state.misses, state.rate) == (15, PRIOR)
    assert after_visit(state, visit(30), PRIOR).misses == 0


def test_a_class_that_the_operator_has_set_stays() -> None:
    fixed = PageState(PRIOR, START.visited_at, page_class=PageClass.RARE, is_class_set=True)
    for number in range(1, 8):
        fixed = after_visit(fixed, visit(number / 8, VisitFound.CHANGED, brought=True), PRIOR)
    assert fixed.page_class is PageClass.RARE


def test_a_page_that_changes_often_and_brings_links_becomes_news() -> None:
    state = START
    for number in range(1, 5):
        state = after_visit(state, visit(number / 2, VisitFound.CHANGED, brought=True), PRIOR)
    assert state.page_class is PageClass.NEWS


def test_a_clock_that_went_back_does_no_harm() -> None:
    back = after_visit(START, visit(-5), PRIOR)
    assert back.rate == PRIOR
    assert back.visited_at < START.visited_at


def test_streaks_go_on_for_ever_within_a_byte() -> None:
    streak, multiples = 0, 0
    for _ in range(1000):
        streak = counted_streak(streak, True)
        multiples += streak % 5 == 0
    assert (streak <= 127, multiples) == (True, 200)
    multiples = 0
    for _ in range(999):
        streak = counted_streak(streak, False)
        multiples += streak % 3 == 0
    assert (streak >= -128, multiples) == (True, 333)
