"""Deaths, and the books agree. `make chaos` runs a hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.sim.chaos import run_chaos
from tests.amount import amount

ROUNDS = amount(3, 5)


@pytest.mark.parametrize("seed", range(11, amount(12, 13)))
def test_nothing_is_lost_or_doubled_whatever_ends_the_process(tmp_path: Path, seed: int) -> None:
    report = run_chaos(ROUNDS, tmp_path, seed, print)
    assert not report.problems, report.render()
    assert report.deaths >= ROUNDS
