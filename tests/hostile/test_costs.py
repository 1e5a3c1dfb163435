"""No case of the catalogue takes much CPU time, memory or disk; and faults that do are found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.amount import IS_ALL
from tests.hostile.costs import cost_of, costs_of
from tests.hostile.crawling import NOT_SEEDS, WHOLE, whole_server
from tests.hostile.planted import FAULTS
from tests.hostile.serving import HostileServer

pytestmark = pytest.mark.timed

PLAIN = "n10"  # one small page
FOUND_BY = {"cpu": "s of CPU", "memory": "bytes of memory", "disk": "bytes written", "hang": "not over"}


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with whole_server() as running:
        yield running


def test_every_case_stays_within_its_bounds_of_cpu_memory_and_disk(server: HostileServer, tmp_path: Path) -> None:
    bare = cost_of(server, PLAIN, tmp_path / "bare")
    names = [name for name in WHOLE.scripts if name not in NOT_SEEDS]
    costs = costs_of(server, names[:: 1 if IS_ALL else 6], tmp_path)
    assert len(costs) >= len(names) // 6 > 15
    assert [offence for cost in costs for offence in cost.offences(bare)] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_by_its_bound(server: HostileServer, tmp_path: Path, fault: str) -> None:
    bare = cost_of(server, PLAIN, tmp_path / "bare")
    program = [sys.executable, "-m", "tests.hostile.planted", fault]
    limit_s = 10.0 if fault == "hang" else 60.0
    offences = cost_of(server, PLAIN, tmp_path, program=program, limit_s=limit_s).offences(bare)
    assert any(FOUND_BY[fault] in offence for offence in offences), offences
    found = {each for each, text in FOUND_BY.items() if any(text in offence for offence in offences)}
    assert found == {fault}
