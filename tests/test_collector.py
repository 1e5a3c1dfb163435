"""Old objects are left alone; cycles of young ones still go."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from gossamer.foundation.collector import make_full_collections_rare


class Knot:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def thresholds() -> Iterator[tuple[int, int, int]]:
    """Give the collector's thresholds, and set them again."""
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_young_garbage_goes_and_full_collections_are_rare(thresholds: tuple[int, int, int]) -> None:
    make_full_collections_rare()
    assert gc.get_threshold()[:2] == thresholds[:2]
    full_before = gc.get_stats()[2]["collections"]
    knot = weakref.ref(Knot())
    old = [[number] for number in range(100 * thresholds[0] * thresholds[1])]
    assert knot() is None
    assert gc.get_stats()[2]["collections"] == full_before
    assert old
