"""Our own code fails on one page, or a worker dies or hangs: that page ends, the crawl goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset
from gossamer.telemetry.summary import Summary
from tests.amount import crossed
from tests.e2e.program import crawl_options, run, summary_of
from tests.servers.web import RunningWeb
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import Site

STAGES = {"in_decode": 1, "in_parse": 9, "after_fetch": 9}  # and when each raises


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small")) as web:
        yield web


def events_of(out: Path, name: str) -> list[dict[str, Any]]:
    lines = [line for path in sorted((out / "events").glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["event"] == name]


@pytest.mark.parametrize(("stage", "workers"), crossed(STAGES, (1, 2)))
def test_an_error_of_ours_ends_one_page_and_not_the_crawl(
    tmp_path: Path, small_web: RunningWeb, stage: str, workers: int
) -> None:
    out = tmp_path / "out"
    done = run(
        *("crawl", *small_web.seeds(), *crawl_options(small_web, out, 10), "--workers", str(workers)),
        environment={"GOSSAMER_FAILPOINT": f"{stage}:raise:{STAGES[stage]}"},
    )
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["worker_deaths"] == 0
    crashed = [event for event in events_of(out, "error") if event["reason"].startswith("internal_error")]
    robots = [event for event in events_of(out, "robots_unreachable") if event["reason"].startswith("internal_error")]
    count = len(crashed) + len(robots)
    assert 1 <= count <= workers, "each worker raises once, if it comes that far"
    assert all("failpoint" in event["reason"] for event in crashed)
    warnings = [event for event in events_of(out, "warning") if event.get("rule") == "internal_error"]
    assert warnings
    assert "crash.txt" in warnings[0]["reason"]
    assert f"warning: {warnings[0]['reason']}" in done.stderr
    details = (out / "events" / "crash.txt").read_text()
    assert details.count(f"\nRuntimeError: failpoint {stage}") == details.count("Traceback") == count
    report = json.loads((out / "report.json").read_text())
    assert any("internal error" in line for line in report["warnings"])
    assert small_web.judge(JudgeRules(politeness_s=0.01, slack_s=0.003)).is_polite


def test_a_worker_that_dies_is_named_with_its_signal(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    done = run(
        *("crawl", *small_web.seeds(), *crawl_options(small_web, out, 20), "--workers", "2"),
        environment={"GOSSAMER_FAILPOINT": "after_archive_write:kill:20"},
    )
    assert done.returncode == 0, done.stderr
    deaths = [event["reason"] for event in events_of(out, "warning") if event.get("rule") == "worker_died"]
    assert len(deaths) == 2
    assert all("SIGKILL" in reason for reason in deaths)
    assert all(f"warning: {reason}" in done.stderr for reason in deaths)
    report = json.loads((out / "report.json").read_text())
    assert sum("SIGKILL" in line for line in report["warnings"]) == 2
    assert "SIGKILL" in (out / "report.html").read_text()


def test_a_page_that_kills_its_worker_becomes_a_dead_letter_and_the_others_are_fetched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    site = Site(lambda n: f"/p/{n}", lambda n: f"a page about the number {n} and nothing else, written for a test")
    with TrapServer(site, 40) as server:
        done = run(
            *("crawl", server.seed, "--out", str(out), "--workers", "2", "--politeness-ms", "0", "--json"),
            *("--host-connections", "8"),
            environment={"GOSSAMER_FAILPOINT": "in_parse:kill:@/p/7"},
        )
        assert done.returncode == 0, done.stderr
        assert server.paths.count("/p/7") == 3
    summary = summary_of(done.stdout)
    assert (summary["pages"], summary["worker_deaths"], summary["urls_queued"]) == (40, 3, 0)
    text = f"3 workers died while they read the answer of {server.seed}p/7: it becomes a dead letter (internal_error)"
    assert f"warning: {text}" in done.stderr
    (warning,) = [event for event in events_of(out, "warning") if event.get("rule") == "deadly_page"]
    assert warning["reason"] == text
    why = run("why", str(out), f"{server.seed}p/7").stdout
    assert "dead, internal_error: 3 workers died while they read its answer" in why


def test_a_page_that_recovery_cannot_read_does_not_keep_the_folder_shut(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    arguments = ["crawl", *small_web.seeds(), *crawl_options(small_web, out, 10)]
    killed = run(*arguments, environment={"GOSSAMER_FAILPOINT": "before_commit:kill:2"})
    assert killed.returncode == -signal.SIGKILL
    done = run(*arguments, environment={"GOSSAMER_FAILPOINT": "in_parse:raise:1"})
    assert done.returncode == 0, done.stderr
    crashed = [event for event in events_of(out, "error") if event["reason"].startswith("internal_error")]
    assert len(crashed) == 1
    assert "failpoint in_parse" in (out / "events" / "crash.txt").read_text()


def test_a_stopped_worker_is_replaced_and_the_crawl_ends(
    tmp_path: Path, small_web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.runtime.workers.channel.SYNC_LIMIT_S", 1.0)

    async def main() -> Summary:
        crawl = gossamer.crawl(
            small_web.seeds(),
            out=tmp_path / "out",
            workers=2,
            dns=small_web.dns_address,
            allow_network=("127.0.0.0/8",),
            politeness_ms=20,
            max_wait=3.0,
        )
        async with asyncio.timeout(90), crawl as pages:
            await anext(pages)
            os.kill(children()[0], signal.SIGSTOP)
            return await crawl.finish()

    summary = asyncio.run(main())
    assert summary.worker_deaths == 1
    (warning,) = [event for event in events_of(tmp_path / "out", "warning") if event["rule"] == "worker_died"]
    assert "did not answer for 1 s" in warning["reason"]
    report = small_web.judge(JudgeRules(politeness_s=0.02, slack_s=0.003))
    assert report.missing == 0, report.render()


def children() -> list[int]:
    """Return the worker processes of this process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            arguments = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"gossamer.runtime.workers.process" in arguments:
            found.append(int(path.parent.name))
    return found
