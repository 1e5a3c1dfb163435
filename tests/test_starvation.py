"""A test that measures time and fails while others take the CPU time is run again, and no other one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.starvation import stolen_share

PROJECT = Path(__file__).resolve().parent.parent
CONFTEST = """
from pathlib import Path
from tests import conftest, starvation

times = [[0] * 8]

def cpu_times():
    times.append([time + step for time, step in zip(times[-1], [100, 0, 0, 50, 0, 0, 0, {stolen}])])
    return times[-1]

starvation.cpu_times = cpu_times

def pytest_configure(config):
    config.addinivalue_line("markers", "timed: measures time")

def pytest_runtest_protocol(item, nextitem):
    return starvation.run_test(item, nextitem) or None

def pytest_terminal_summary(terminalreporter):
    conftest.pytest_terminal_summary(terminalreporter)
"""
TESTS = """
from pathlib import Path
import pytest

tried = []

@pytest.fixture
def fresh():
    return []

@pytest.mark.timed
def test_passes_at_the_third_try(fresh):
    fresh.append(1)
    assert len(fresh) == 1
    tried.append(1)
    assert len(tried) == 3

def test_never_passes():
    tried.append(2)
    assert False

@pytest.mark.timed
def test_misses_its_bound():
    tried.append(3)
    assert False, "too slow"

def test_counts():
    print("tried", [tried.count(number) for number in (1, 2, 3)])
"""


def outcome(folder: Path, stolen: int) -> str:
    """Return what pytest prints about these tests if so much time is taken during each."""
    (folder / "conftest.py").write_text(CONFTEST.format(stolen=stolen), "utf-8")
    (folder / "test_them.py").write_text(TESTS, "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rsA", "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False).stdout


def test_what_measures_time_is_run_again_on_a_starved_machine(tmp_path: Path) -> None:
    said = outcome(tmp_path, stolen=100)
    assert "tried [3, 1, 3]" in said
    assert "PASSED" in next(line for line in said.splitlines() if "third_try" in line and "ED" in line)
    assert "1 failed, 2 passed, 1 skipped" in said
    assert "1 skipped: measure time, which others took" in said
    assert "2 repeated: measure time, which others took" in said


def test_on_a_machine_that_is_left_alone_nothing_is_run_twice(tmp_path: Path) -> None:
    said = outcome(tmp_path, stolen=5)
    assert "tried [1, 1, 1]" in said
    assert "3 failed, 1 passed" in said
    assert "repeated" not in said


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ([0] * 8, [30, 0, 20, 900, 0, 0, 0, 50], 0.5),
        ([5] * 8, [5] * 8, 0.0),
        ([], [], 0.0),
        ([1] * 4, [2] * 4, 0.0),  # an old kernel, without that column
    ],
)
def test_idle_time_is_not_wanted(before: list[int], after: list[int], share: float) -> None:
    assert stolen_share(before, after) == share
