"""Crawls that are bound by different things say so while they run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from gossamer.control.running import query
from gossamer.model.figures import Figures, Resource
from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run, start
from tests.e2e.test_steering import wait_for
from tests.servers.web import RunningWeb


class Case(Struct, frozen=True):
    """A crawl, and what it is bound by."""

    answers_after_s: float
    pace_ms: int
    options: tuple[str, ...]
    resource: Resource
    says: str


CASES = {
    "politeness": Case(0.0, 2000, (), Resource.POLITENESS, "hosts wait for their delay"),
    "connections": Case(0.3, 0, ("-c", "3"), Resource.CONNECTIONS, "3 of 3 connections are in use (--connections)"),
    "host connections": Case(0.3, 0, (), Resource.CONNECTIONS, "in flight as they may (--host-connections 1)"),
    "nothing": Case(6.0, 0, ("-n", "3", "--timeout", "30"), Resource.NOTHING_LEFT, "--max-pages is reached"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_crawl_says_what_it_is_bound_by(tmp_path: Path, name: str) -> None:
    case, out = CASES[name], tmp_path / "out"
    seen: list[Figures] = []

    def is_bound() -> bool:
        figures = msgspec.convert(query(out / "state", "figures"), Figures)
        seen.append(figures)
        bound_by = figures.bound_by
        return bound_by is not None and bound_by.resource is case.resource and case.says in bound_by.evidence

    is_slow = 1.0 if case.answers_after_s else 0.0
    plan = preset("small", seed=5, pages=400, slow=is_slow, slow_s=case.answers_after_s)
    with RunningWeb(plan) as web:
        process = start("crawl", *web.seeds(), *crawl_options(web, out, case.pace_ms), "--no-progress", *case.options)
        wait_for((out / "state" / "control").exists)
        wait_for(is_bound, 30.0)
        if case.resource is Resource.POLITENESS:
            wait_for(lambda: is_bound() and seen[-1].forecast is not None, 30.0)
            forecast = seen[-1].forecast
            assert forecast is not None
            assert "(of what is known now)" in forecast.text
            assert (forecast.seconds or 0) > 0
        run("stop", str(out))
        process.communicate(timeout=60)
