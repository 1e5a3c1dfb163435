"""A crawl that is killed again before it can commit: its records are counted once, as the servers do."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset
from tests.amount import crossed
from tests.e2e.program import crawl_options, run
from tests.servers.web import RunningWeb


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=200)) as web:
        yield web


DEATHS = (
    ("in_commit:kill:3", "in_recovery:kill:1"),
    ("in_commit:kill:3", "in_recovery:kill:4", "in_recovery:kill:2", "before_commit:kill:1"),
    ("in_commit:kill:3", "in_commit:kill:1", "in_recovery:kill:2"),
)


@pytest.mark.parametrize(("deaths", "workers"), crossed(DEATHS, ("1", "2")))
def test_the_audit_and_the_report_count_every_request_once(
    tmp_path: Path, small_web: RunningWeb, workers: str, deaths: Sequence[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["crawl", *small_web.seeds(), *crawl_options(small_web, out, 40), "--workers", workers]
    for death in deaths:
        killed = run(*arguments, environment={"GOSSAMER_FAILPOINT": death})
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    seen = small_web.judge(JudgeRules(politeness_s=0.04, slack_s=0.003))
    assert seen.is_polite, seen.render()
    audit = json.loads(run("audit", str(out), "--json").stdout)
    assert audit["breaches"] == {}
    # What was in flight, or answered and not archived, at a death is in the servers' log alone.
    assert 0 <= seen.requests - audit["requests"] <= 16 * len(deaths)
    report = json.loads((out / "report.json").read_text())
    assert report["fetches"]["requests"] <= seen.requests
