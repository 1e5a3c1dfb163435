"""A crawl that runs is asked over the socket in its folder."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gossamer.control.running import QueryClient, query
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.figures import Figures, RunState
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.e2e.program import start
from tests.e2e.test_steering import Running, wait_for
from tests.servers.web import RunningWeb

PAGES = 300


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=PAGES, slow=0.0)) as web:
        yield web


def figures_of(answer: object) -> Figures:
    return msgspec.convert(answer, Figures)


def test_the_figures_of_a_running_crawl_are_answered_and_are_no_event(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out", "--workers", "2")
    state = crawl.out / "state"
    first = figures_of(query(state, "figures"))
    assert first.state is RunState.RUNNING
    assert first.workers == 2
    assert first.urls_queued > 0
    assert first.latency["total"].count >= 30
    assert first.latency["connect"].count > 0
    assert first.latency["dns"].count > 0
    wait_for(lambda: figures_of(query(state, "figures")).run_seconds > 3.0)

    async def ask_twice() -> list[Figures]:
        async with QueryClient(state) as client:
            return [figures_of(await client.ask("figures")) for _ in range(2)]

    later, last = asyncio.run(ask_twice())
    assert first.totals.fetches < later.totals.fetches <= last.totals.fetches
    assert last.rates["run"].fetches > 0
    assert last.open_files > 0
    assert last.free_bytes > 0
    assert crawl.end()["pages"] == PAGES
    assert crawl.commands() == []
    with pytest.raises(GossamerError, match="takes no commands now"):
        query(state, "figures")


def test_status_asks_a_crawl_that_runs(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out", pace_ms=2000)
    wait_for(lambda: "forecast   nothing" not in crawl.tell("status") and "bound by" in crawl.tell("status"))
    shown = crawl.tell("status")
    assert "bound by   politeness: " in shown
    assert "hosts wait for their delay" in shown
    assert "/s on average, " in shown
    assert "private" in shown
    status = json.loads(crawl.tell("status", "--json"))
    assert status["bound_by"]["resource"] == "politeness"
    assert status["forecast"]["seconds"] >= 0
    assert status["rates"].keys() == {"10s", "1m", "run"}
    crawl.tell("stop")
    crawl.process.communicate(timeout=60)


def test_status_does_not_wait_for_a_process_that_stands_still(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    crawl.process.send_signal(signal.SIGSTOP)
    asked_at = time.monotonic()
    status = json.loads(crawl.tell("status", "--json"))
    assert time.monotonic() - asked_at < 10
    assert (status["is_running"], status["bound_by"]) == (True, None)
    crawl.process.send_signal(signal.SIGCONT)
    crawl.tell("stop")
    crawl.process.communicate(timeout=60)


def test_a_crawl_that_has_ended_still_has_its_histograms(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    crawl.end()
    with CrawlReader(crawl.out) as reader:
        figures = reader.figures()
    assert figures.latency["first_byte"].count == figures.latency["body"].count >= PAGES
    assert figures.commit_time.count == figures.commits > 0
    assert figures.flush_time.count == figures.commits
    assert figures.compression_ratio > 1
    assert figures.batch_fill > 1


def test_the_figures_of_the_last_run_are_not_stored_with_every_commit_of_the_next(
    web: RunningWeb, tmp_path: Path
) -> None:
    crawl = Running(web, tmp_path / "out", "-n", "50")
    crawl.end()
    resumed = start("resume", str(crawl.out), "-n", "10000", "--json", "--no-progress")
    wait_for((crawl.out / "state" / "control").exists)
    crawl.wait_for_requests(40)
    with CrawlReader(crawl.out) as reader:
        assert (reader.is_running, reader.state.figures) == (True, None)
    resumed.communicate(timeout=120)
    with CrawlReader(crawl.out) as reader:
        assert reader.state.figures is not None
        assert reader.figures().totals.pages == PAGES


def test_a_host_is_answered_with_what_the_crawl_knows_now(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    busy = max({request.host for request in web.log()}, key=lambda host: sum(r.host == host for r in web.log()))
    host = query(crawl.out / "state", "host", name=busy)
    assert isinstance(host, dict)
    assert host["name"] == busy
    assert host["delay_s"] >= 0.1
    assert host["queued"] >= host["in_flight"]
    assert host["fetches"] > 0
    assert host["robots"][0]["status"] in (200, 404)
    shown = json.loads(crawl.tell("hosts", busy, "--json"))["host"]
    assert shown.keys() == host.keys()
    with pytest.raises(UsageError, match="not a host of this crawl"):
        query(crawl.out / "state", "host", name="unknown.test")
    with pytest.raises(UsageError, match="not a command or a query"):
        query(crawl.out / "state", "weather")
    crawl.tell("stop")
    crawl.process.communicate(timeout=60)
