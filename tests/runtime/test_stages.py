"""Exclusive CPU time by stage."""

from __future__ import annotations

import time

import pytest

from gossamer.cli.bench.stages import STAGES, ClockCost, StageClock, clock_cost, installed, profile
from gossamer.core.url import forms as url
from gossamer.model.errors import GossamerError

FREE = ClockCost(0.0, 0.0)


def _burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_time_in_another_stage_counts_there_only() -> None:
    clock = StageClock({"outer": (), "inner": ()})
    inner = clock.timed("inner", lambda: _burn(0.02))

    def work() -> None:
        _burn(0.01)
        inner()

    clock.timed("outer", work)()
    spent = clock.spent()
    assert spent["outer"].ns == pytest.approx(10e6, rel=0.3)
    assert spent["inner"].ns == pytest.approx(20e6, rel=0.3)
    assert spent["outer"].inner_calls == 1


def test_what_a_function_raises_comes_out_and_its_time_counts() -> None:
    clock = StageClock({"stage": ()})

    def fail() -> None:
        raise ValueError("as it should")

    with pytest.raises(ValueError, match="as it should"):
        clock.timed("stage", fail)()
    assert clock.spent()["stage"].calls == 1


def test_parts_and_remainder_are_the_whole() -> None:
    clock = StageClock({"stage": ()})
    clock.timed("stage", lambda: _burn(0.01))()
    found = profile(clock, whole_s=0.03, pages=10, cost=FREE)
    assert found.stages["stage"].us + found.else_us == pytest.approx(found.whole_us, abs=0.02)
    assert found.whole_us == pytest.approx(3000)


def test_the_cost_of_the_clock_is_taken_off() -> None:
    cost = clock_cost(2000)
    assert 0 < cost.inside_ns + cost.outside_ns < 1e5
    clock = StageClock({"stage": ()})
    timed = clock.timed("stage", lambda: None)
    for _ in range(2000):
        timed()
    found = profile(clock, whole_s=0.0, pages=2000, cost=cost)
    assert found.stages["stage"].us < 1.0


def test_functions_are_replaced_where_they_were_imported_and_put_back() -> None:
    from gossamer.runtime.workers import page as worker_page

    before, imported = url.links_from, vars(worker_page)
    clock = StageClock()
    with installed(clock):
        assert imported["links_from"] is url.links_from is not before
        imported["links_from"]("http://a.test/", ["b"])
    assert imported["links_from"] is url.links_from is before
    assert clock.spent()["URLs"].calls == 1


def test_a_name_that_is_gone_is_an_error() -> None:
    stages = {**STAGES, "parse": ("parse.html:no_such_function",)}
    with pytest.raises(GossamerError, match="no_such_function"), installed(StageClock(stages), stages):
        pass
