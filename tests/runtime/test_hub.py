"""The hub over imagined workers, in virtual time: scheduling, commits, deaths, failures."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.forms import host_of, link_to
from gossamer.model.commands import Stop
from gossamer.model.errors import DiskFullError, GossamerError
from gossamer.model.events import EventName
from gossamer.model.figures import RunState
from gossamer.model.records import FetchTask, Outcome, Result, UrlState
from gossamer.runtime.hub.config import HubLimits
from gossamer.runtime.hub.hub import GRACE_S, MAX_WORKER_DEATHS
from gossamer.sim.scenarios import many_hosts

from .imagined import LAST_COMMIT, HubRun
from .virtual_time import run_virtually

HOSTS = 6
PAGES = 20
SEEDS = [f"http://h{number}.test/" for number in range(HOSTS)]


def prepared(tmp_path: Path, *, workers: int = 1, traits: dict[str, Any] | None = None, **options: Any) -> HubRun:
    hub_limits = options.pop("hub_limits", HubLimits(workers=workers))
    return HubRun(tmp_path, many_hosts(HOSTS, PAGES, **(traits or {})), SEEDS, hub_limits=hub_limits, **options)


def crawled(run: HubRun, *steps: tuple[float, Callable[[], object]]) -> str:
    """Crawl to the end with functions that are called at their times; return why it ended."""

    async def main() -> str:
        for after_s, step in steps:
            run.later(after_s, step)
        return await run.run()

    return run_virtually(main())


def rows(run: HubRun) -> Counter[UrlState]:
    return Counter(row.state for _, row in run.ledger.urls())


# -- tasks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_every_page_is_fetched_once_and_all_is_committed(tmp_path: Path, workers: int) -> None:
    run = prepared(tmp_path, workers=workers)
    assert crawled(run) == "exhausted"
    pages = run.pages()
    assert len(pages) == len(set(pages)) == HOSTS * PAGES
    assert rows(run) == {UrlState.DONE: HOSTS * PAGES}, "read from what is committed"
    assert len(run.workers.channels) == workers
    assert all(channel.is_closed for channel in run.workers.channels)


def test_a_host_stays_with_its_worker_while_the_load_is_small(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=3)
    crawled(run)
    for host in map(host_of, SEEDS):
        serving = [channel for channel in run.workers.channels if any(task.host == host for task in channel.started)]
        assert len(serving) == 1


def test_a_worker_with_much_to_do_shares_it(tmp_path: Path) -> None:
    """All tasks of one host, which may be asked for as much as one likes."""
    web = many_hosts(1, 400, fanout=400, latency_s=5.0)
    limits = FrontierLimits(address_connections=200)
    hub_limits = HubLimits(workers=2)
    run = HubRun(tmp_path, web, SEEDS[:1], hub_limits=hub_limits, delay_s=0.0, host_connections=200, limits=limits)
    assert crawled(run) == "exhausted"
    most, least = sorted((len(channel.started) for channel in run.workers.channels), reverse=True)
    assert least > 100
    assert most <= 3 * least


def test_a_name_without_an_address_kills_its_host_and_nothing_else(tmp_path: Path) -> None:
    web = many_hosts(1, 3)
    run = HubRun(tmp_path, web, ["http://h0.test/", "http://nowhere.test/"])
    assert crawled(run) == "exhausted"
    assert rows(run) == {UrlState.DONE: 3, UrlState.DEAD: 1}
    assert [event.host for event in run.events if event.event is EventName.HOST_DEAD] == ["nowhere.test"]


def test_a_result_that_nobody_waits_for_is_ignored(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    assert crawled(run, (3.0, lambda: run.hub.on_result(Result(9999, Outcome.OK, status=200)))) == "exhausted"
    assert run.crawl.totals.pages == HOSTS * PAGES


def test_every_result_is_observed_after_the_engine_has_completed_it(tmp_path: Path) -> None:
    seen: list[str] = []

    def on_result(task: FetchTask, _result: Result) -> None:
        if not task.url.endswith("/robots.txt"):
            row = run.ledger.look_up(link_to(task.url).id)
            assert row is not None
            assert row.state is UrlState.DONE
            seen.append(task.url)

    run = prepared(tmp_path, on_result=on_result)
    crawled(run)
    assert sorted(seen) == sorted(run.pages())


def test_the_time_limit_ends_a_crawl_and_the_rest_stays_queued(tmp_path: Path) -> None:
    run = prepared(tmp_path, hub_limits=HubLimits(max_time_s=5.0))
    assert crawled(run) == "max_time"
    assert rows(run)[UrlState.QUEUED] > 0
    assert run.crawl.frontier.in_flight == 0


def test_the_state_says_what_the_crawl_is_doing(tmp_path: Path) -> None:
    run = prepared(tmp_path, traits={"latency_s": 3.0})
    states = [run.run_state.state]
    steps = [
        (1.0, lambda: states.append(run.run_state.state)),
        (1.5, lambda: run.run_state.submit(Stop("signal"))),
        (2.5, lambda: states.append(run.run_state.state)),
    ]
    crawled(run, *steps)
    assert states == [RunState.RUNNING, RunState.RUNNING, RunState.STOPPING]


# -- commits ----------------------------------------------------------------------------------------


def test_archives_are_synced_before_the_ledger_is_written(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=2)
    crawled(run)
    commit = ["seal", "flush", "sync 0", "sync 1", "write"]
    whole, rest = divmod(len(run.journal) - 3, len(commit))
    assert rest == 0
    assert run.journal == commit * whole + ["flush", *LAST_COMMIT]
    assert whole == run.run_state.stats.commits >= PAGES - 2, "about one per second"


def test_a_refusal_is_committed_before_its_host_is_asked_again(tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.url.endswith("robots.txt"):
            return None
        asked.append((task.url, run.journal.count("write")))
        if len(asked) > 1:
            return None
        return Result(task.id, Outcome.RATE_LIMITED, status=429, retry_after_s=0.2)

    run = HubRun(tmp_path, many_hosts(1, 2, says=says), SEEDS[:1], delay_s=0.1)
    assert crawled(run) == "exhausted"
    (first, before), (again, after), *_ = asked
    assert first == again
    assert after > before


def test_a_full_window_is_committed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.runtime.hub.hub.COMMIT_PAGES", 10)
    run = prepared(tmp_path, delay_s=0.0)
    crawled(run)
    assert run.run_state.stats.commits >= 8


def test_a_commit_that_fails_stops_the_crawl_with_its_error(tmp_path: Path) -> None:
    run = prepared(tmp_path)

    def fill_disk() -> None:
        run.log.error = OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFullError):
        crawled(run, (3.5, fill_disk))
    assert run.journal[-2:] != LAST_COMMIT, "nothing is committed after a failure"
    assert run.workers.channels[0].is_closed


# -- stopping ---------------------------------------------------------------------------------------


def test_a_stop_lets_requests_under_way_end(tmp_path: Path) -> None:
    run = prepared(tmp_path, traits={"latency_s": 2.0})
    ended: list[float] = []

    async def main() -> None:
        run.later(0.5, run.run_state.submit, Stop("signal"))
        assert await run.run() == "signal"
        ended.append(asyncio.get_running_loop().time())

    run_virtually(main())
    assert ended[0] < 0.5 + GRACE_S
    assert run.crawl.totals.fetches == HOSTS, "robots.txt of each host had been asked for, and was answered"


def test_requests_that_do_not_end_are_given_back(tmp_path: Path) -> None:
    run = prepared(tmp_path, traits={"latency_s": 1000.0})
    ended: list[float] = []

    async def main() -> None:
        run.later(0.5, run.run_state.submit, Stop("signal"))
        await run.run()
        ended.append(asyncio.get_running_loop().time())

    run_virtually(main())
    assert ended[0] == pytest.approx(0.5 + GRACE_S, abs=0.1)
    assert rows(run) == {UrlState.QUEUED: HOSTS}
    assert run.crawl.frontier.in_flight == 0


# -- workers that die or fail -----------------------------------------------------------------------


def test_what_a_dead_worker_had_stored_is_finished_and_the_rest_is_fetched_by_another(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=2)
    stored: list[int] = []

    def kill() -> None:
        worker = run.workers.channels[0]
        stored.extend(result.task_id for result in worker.archived)
        worker.die()

    def stick() -> None:
        run.workers.channels[0].stick()

    steps = [(4.0, stick), (5.9, kill)]
    assert crawled(run, *steps) == "exhausted"
    assert stored, "it had archived what it did not report"
    assert len(run.workers.channels) == 3
    assert run.run_state.stats.worker_deaths == 1
    assert rows(run) == {UrlState.DONE: HOSTS * PAGES}
    assert len(run.pages()) == HOSTS * PAGES, "nothing that was stored is fetched again"


def test_tasks_that_a_dead_worker_had_not_finished_are_fetched_again(tmp_path: Path) -> None:
    run = prepared(tmp_path, traits={"latency_s": 0.5})
    assert crawled(run, (3.2, lambda: run.kill(0))) == "exhausted"
    assert rows(run) == {UrlState.DONE: HOSTS * PAGES}
    assert HOSTS * PAGES < len(run.pages()) <= HOSTS * (PAGES + 1)


def test_a_worker_that_dies_while_the_crawl_stops_is_not_waited_for(tmp_path: Path) -> None:
    run = prepared(tmp_path, traits={"latency_s": 1000.0})
    ended: list[float] = []

    async def main() -> None:
        run.later(0.5, run.run_state.submit, Stop("signal"))
        run.later(1.0, lambda: run.kill(0))
        assert await run.run() == "signal"
        ended.append(asyncio.get_running_loop().time())

    run_virtually(main())
    assert ended[0] == pytest.approx(1.0, abs=0.1)
    assert len(run.workers.channels) == 1, "none is started in its place"


def test_a_worker_that_is_being_started_when_the_crawl_stops_is_closed_too(tmp_path: Path) -> None:
    run = prepared(tmp_path)

    def die_and_stop() -> None:
        run.workers.channels[0].die()
        run.run_state.submit(Stop("signal"))

    assert crawled(run, (2.0, die_and_stop)) == "signal"
    assert [channel.is_closed for channel in run.workers.channels] == [False, True]


def test_workers_that_die_again_and_again_end_the_crawl(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    steps = [(0.2 * n, lambda: run.kill(-1)) for n in range(1, MAX_WORKER_DEATHS + 2)]
    with pytest.raises(GossamerError, match="workers died 21 times"):
        crawled(run, *steps)


def test_the_death_of_a_worker_is_a_warning_with_its_cause(tmp_path: Path) -> None:
    run = prepared(tmp_path, traits={"latency_s": 0.5})
    crawled(run, (3.2, lambda: run.kill(0)))
    assert run.warnings == [f"worker_died: worker 0 was killed by SIGKILL; tasks that return to the queue: {HOSTS}"]


def test_a_page_that_kills_three_workers_becomes_a_dead_letter_and_no_other(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=2, traits={"latency_s": 0.5})
    run.workers.deadly = {"http://h2.test/3", "http://h4.test/"}
    assert crawled(run) == "exhausted"
    dead = {row.url: (row.outcome, row.error) for _, row in run.ledger.urls() if row.state is UrlState.DEAD}
    assert dead == dict.fromkeys(run.workers.deadly, ("internal_error", "3 workers died while they read its answer"))
    assert run.run_state.stats.worker_deaths == 6
    told = [text for text in run.warnings if text.startswith("deadly_page")]
    assert sorted(told) == [
        f"deadly_page: 3 workers died while they read the answer of {url}: it becomes a dead letter (internal_error)"
        for url in sorted(run.workers.deadly)
    ]


def test_pages_that_kill_workers_do_not_use_up_the_deaths_that_end_a_crawl(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=2)
    run.workers.deadly = {f"http://h{host}.test/{page}" for host in range(2) for page in range(11, 16)}
    assert crawled(run) == "exhausted"
    assert run.run_state.stats.worker_deaths == 30 > MAX_WORKER_DEATHS
    assert rows(run) == {UrlState.DONE: HOSTS * PAGES - 10, UrlState.DEAD: 10}


def test_a_worker_that_dies_on_every_page_ends_the_crawl(tmp_path: Path) -> None:
    seeds = [f"http://h{number}.test/" for number in range(40)]
    run = HubRun(tmp_path, many_hosts(40, 1), seeds)
    run.workers.deadly = set(seeds)
    with pytest.raises(GossamerError, match=r"workers died \d+ times; giving up"):
        crawled(run)


def test_a_worker_that_dies_with_one_task_died_of_that(tmp_path: Path) -> None:
    run = HubRun(tmp_path, many_hosts(1, 5, latency_s=0.5), ["http://h0.test/"], hub_limits=HubLimits(workers=2))
    kills = [(0.25 + 0.05 * n, lambda: _kill_the_one_with("http://h0.test/", run)) for n in range(400)]
    assert crawled(run, *kills) == "exhausted"
    assert [row.outcome for _, row in run.ledger.urls()] == ["internal_error"]
    assert run.run_state.stats.worker_deaths == 3


def _kill_the_one_with(url: str, run: HubRun) -> None:
    """Kill the worker that has the only task, without a word on what it was reading."""
    for channel in run.workers.channels:
        outstanding = run.hub._pool.outstanding_up_to(1 << 30)
        has = [task for task in channel.started if task.id in outstanding and task.url == url]
        if has and run.hub._pool.worker_of(has[0].id) == channel.number:
            channel.die()
            return


@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_without_a_result_are_ended_and_their_worker_is_replaced(tmp_path: Path, workers: int) -> None:
    hub_limits = HubLimits(workers=workers, task_limit_s=20.0)
    run = prepared(tmp_path, hub_limits=hub_limits, traits={"latency_s": 0.5})
    lost: list[int] = []

    def lose() -> None:
        worker = run.workers.channels[0]
        lost.extend(task_id for task_id in run.hub._pool.outstanding_up_to(1 << 30))
        lost[:] = [task_id for task_id in lost if run.hub._pool.worker_of(task_id) == 0]
        worker.lose_all()

    assert crawled(run, (3.05, lose)) == "exhausted"
    assert lost
    assert rows(run)[UrlState.DEAD] == len(lost)
    assert rows(run)[UrlState.QUEUED] == 0
    ended = [event for event in run.events if event.reason.startswith("internal_error: no result within 20 s")]
    assert sorted(event.order for event in ended) == sorted(lost)
    assert run.run_state.stats.worker_deaths == 1
    assert len(run.workers.channels) == workers + 1
    assert any(line.startswith("order_lost: worker 0: no result within 20 s; tasks: ") for line in run.warnings)


def test_a_worker_whose_archive_is_full_stops_the_crawl(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=2)
    with pytest.raises(DiskFullError, match="no room"):
        crawled(run, (3.0, lambda: run.workers.channels[1].fail(DiskFullError("no room"))))
    assert run.journal[-2:] != LAST_COMMIT
    assert all(channel.is_closed for channel in run.workers.channels)


def test_events_that_cannot_be_written_at_the_end_fail_the_crawl_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepared(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "events.jsonl")

    monkeypatch.setattr(run.crawl, "give_back", fail)
    with pytest.raises(GossamerError, match="Input/output error"):
        crawled(run, (3.0, lambda: run.run_state.submit(Stop("signal"))))
    assert all(channel.is_closed for channel in run.workers.channels)


def test_a_worker_whose_files_cannot_be_finished_fails_the_crawl(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=2)

    def break_one() -> None:
        run.workers.channels[0].close_error = OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFullError):
        crawled(run, (1.0, break_one))
    assert run.journal[-2:] != LAST_COMMIT
    assert all(channel.is_closed for channel in run.workers.channels), "the other one is closed nevertheless"


def test_what_workers_report_at_their_end_is_added_up(tmp_path: Path) -> None:
    run = prepared(tmp_path, workers=3)
    crawled(run)
    stats = run.run_state.stats
    assert (stats.worker_cpu_s, stats.worker_stall_p99_ms, stats.worker_core_wait_p99_ms) == (3.0, 2.0, 3.0)
    assert stats.worker_stall_max_ms == 9.0
