"""How much is tested?

By default as much as finds nearly every fault within minutes. With `GOSSAMER_TESTS=all` (`make test-all`) the same
tests take more seeds, rounds and examples; no test runs only then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

IS_ALL = os.environ.get("GOSSAMER_TESTS") == "all"


def amount(few: int, many: int) -> int:
    """Return how many seeds, rounds or examples a test takes."""
    return many if IS_ALL else few


def some(values: Sequence[T], count: int) -> Sequence[T]:
    """Return the first of the values, or all of them."""
    return values if IS_ALL else values[:count]


def crossed(cases: Iterable[T], others: Sequence[S]) -> list[tuple[T, S]]:
    """Return every case with one of the others, in turn, or with each of them."""
    if IS_ALL:
        return [(case, other) for case in cases for other in others]
    return list(zip(cases, cycle(others), strict=False))
