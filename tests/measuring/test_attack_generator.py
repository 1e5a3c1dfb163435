"""Random hostile answers are read in time; and one that is not is found, with its seed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.attack_answers import MAX_BYTES, answer_of
from benchmarks.attack_generator import CHILD, MAX_LOOP_S, hunt

SEEDS = range(2_000, 2_060)
SLOW = 2_000
PLANTED = """
import sys, time
from benchmarks import attack_generator
read = attack_generator.read

def read_badly(answer):
    if answer.seed == {seed}:
        {fault}
    return read(answer)

attack_generator.read = read_badly
attack_generator.serve()
"""
FAULTS = {
    "it is slow": ("s = attack_generator.Steps(); s.run('planted', lambda: burn()); return s", "mostly in planted"),
    "it is slow in a thread": ("s = attack_generator.Steps(); s.worker_s = 2.0; return s", "in a worker's thread"),
    "it takes memory": ("kept.append(b'x' * 300_000_000)", "MB of memory"),
    "it raises": ("raise RuntimeError('planted')", "RuntimeError: planted"),
    "it never returns": ("time.sleep(1000)", "not read within 2 s"),
    "it kills the process": ("import os; os._exit(3)", "the process died"),
}


def test_a_seed_makes_the_same_answer_every_time() -> None:
    assert answer_of(7) == answer_of(7)
    assert answer_of(7) != answer_of(8)


def test_answers_are_of_every_kind_and_within_the_limits_of_the_wire() -> None:
    answers = [answer_of(seed) for seed in range(60)]
    assert {answer.kind for answer in answers} == set(MAX_BYTES)
    assert all(len(answer.body) <= MAX_BYTES[answer.kind] for answer in answers)
    assert len({answer.codings for answer in answers}) >= 5
    assert any(answer.body.startswith(b"%PDF") for answer in answers)


def test_sixty_random_answers_are_read_within_the_bounds() -> None:
    readings = list(hunt(iter(SEEDS), CHILD))
    assert [reading.seed for reading in readings] == list(SEEDS)
    assert [offence for reading in readings for offence in reading.offences()] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_with_its_seed(fault: str) -> None:
    code, found = FAULTS[fault]
    burning = (
        f"def burn():\n    end = time.process_time() + {2 * MAX_LOOP_S}\n    while time.process_time() < end: pass\n"
    )
    program = f"import time\nkept = []\n{burning}" + PLANTED.format(seed=SLOW, fault=code)
    max_wait_s = 2.0 if fault == "it never returns" else 100.0  # the others return, however slow the machine is
    readings = list(hunt(iter(range(SLOW, SLOW + 2)), [sys.executable, "-c", program], max_wait_s))
    assert len(readings) == 2, "the next answer is read all the same"
    offences = readings[0].offences()
    assert len(offences) == 1
    assert offences[0].startswith(f"seed {SLOW}: ")
    assert found in offences[0]
