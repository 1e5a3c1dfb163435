"""Counting much in little memory."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.reading.aggregates import Frequent, Leaders, NamedCount, RateSeries, Spread


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_percentiles_are_right_to_a_few_percent(numbers: list[int]) -> None:
    spread = Spread()
    for number in numbers:
        spread.add(number)
    found = spread.percentiles()
    exact = sorted(numbers)[max(0, -(-len(numbers) // 2) - 1)]
    assert found.p50 == pytest.approx(exact, rel=0.03, abs=0.1)
    assert found.most == max(numbers)
    assert found.count == len(numbers)


def test_doublings_have_no_gaps_and_lose_nothing() -> None:
    spread = Spread()
    for number in (0, 1, 5, 5, 4096):
        spread.add(number)
    classes = spread.octaves()
    assert sum(one.count for one in classes) == 5
    assert [one.below for one in classes[:-1]] == [one.least for one in classes[1:]]


def test_an_empty_distribution_is_all_zero() -> None:
    assert Spread().percentiles().p99 == 0
    assert Spread().octaves() == []


def test_frequent_names_survive_a_flood_of_rare_ones() -> None:
    names = Frequent(max_names=100)
    for number in range(5000):
        names.add("often")
        names.add(f"rare {number}")
    assert names.top(1) == [NamedCount("often", 5000)]
    assert len(names.top()) <= 100


def test_leaders_are_the_highest_scores_in_order() -> None:
    leaders: Leaders[int] = Leaders(3)
    scores = list(range(50))
    random.Random(1).shuffle(scores)
    for score in scores:
        leaders.offer(score, score)
    assert leaders.rows() == [49, 48, 47]


def test_nothing_leads_with_a_score_of_zero() -> None:
    leaders: Leaders[str] = Leaders(3)
    leaders.offer(0, "nobody")
    assert leaders.rows() == []


def test_a_time_line_stays_short_and_loses_nothing() -> None:
    line = RateSeries()
    for second in range(100_000):
        line.bin_at(second).pages += 1
    assert len(line.bins) <= 240
    assert sum(part.pages for part in line.bins) == 100_000
    assert line.width_s * len(line.bins) >= 100_000
