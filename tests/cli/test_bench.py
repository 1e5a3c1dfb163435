"""`gossamer bench` runs, and its stages add up."""

from __future__ import annotations

import json

import pytest

from gossamer.cli.bench.stages import STAGES
from gossamer.cli.main import main

PAGES = 200


def _bench(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, float]:
    assert main(["bench", "--pages", str(PAGES), "--json", *words]) == 0
    figures: dict[str, float] = json.loads(capsys.readouterr().out)
    return figures


def test_a_bench_tells_what_a_page_costs(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _bench(capsys)
    assert figures["pages"] == PAGES
    assert 0 < figures["cpu_ms_per_page"] < 1000
    assert figures["peak_private_bytes"] > 0
    assert figures["loop_stall_p99_ms"] >= 0
    assert figures["core_wait_p99_ms"] >= 0
    assert figures["stages"] is None


def test_the_stages_add_up_to_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    profile = _bench(capsys, "--stages")["stages"]
    assert isinstance(profile, dict)
    assert set(profile["stages"]) == set(STAGES)
    parts = sum(share["us"] for share in profile["stages"].values())
    assert parts + profile["else_us"] == pytest.approx(profile["whole_us"], abs=0.1)
    assert abs(profile["else_us"]) < profile["whole_us"] / 2
    # The synthetic web sends nothing compressed. A stage without calls stands for functions that nobody uses any more.
    assert [name for name, share in profile["stages"].items() if not share["calls"]] == ["decode"]


def test_hub_and_workers_are_measured_separately(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _bench(capsys, "--workers", "2")
    assert figures["pages"] == PAGES
    assert figures["hub_cpu_ms_per_page"] > 0
    assert figures["worker_cpu_ms_per_page"] > 0


def test_stages_of_several_processes_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--stages", "--workers", "2"]) == 2
    assert "--workers 1" in capsys.readouterr().err


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--pages", "50", "--stages"]) == 0
    text = capsys.readouterr().out
    assert "for a core" in text
    assert "everything else" in text
    assert "total" in text
