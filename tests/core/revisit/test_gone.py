from __future__ import annotations

from itertools import count

import pytest

from gossamer.core.revisit.gone import Absence, gone_wait
from gossamer.core.revisit.interval import MAX_DAYS


def waits(absence: Absence) -> list[float]:
    found: list[float] = []
    for misses in count(1):
        wait = gone_wait(absence, misses)
        if wait is None:
            return found
        found.append(wait)
    raise AssertionError


@pytest.mark.parametrize("absence", Absence)
def test_a_page_that_is_gone_is_asked_less_and_less_and_leaves(absence: Absence) -> None:
    found = waits(absence)
    assert found == sorted(found)
    assert len(set(found)) == len(found) > 1
    assert max(found) <= MAX_DAYS


def test_a_page_that_is_said_to_be_gone_is_asked_less_than_one_that_is_missing() -> None:
    assert waits(Absence.MISSING) == [1.0, 3.0, 9.0, 27.0]
    assert waits(Absence.GONE) == [7.0, 28.0]


def test_a_seed_never_leaves() -> None:
    assert gone_wait(Absence.GONE, 15, is_seed=True) == MAX_DAYS
    assert gone_wait(Absence.MISSING, 1, is_seed=True) == 1.0
