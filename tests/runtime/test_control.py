"""Commands to a running crawl: applied in order, at any time, each with its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gossamer.model.commands import (
    AddSeeds,
    ChangeSetting,
    Command,
    CommitSoon,
    Pause,
    PauseCrawl,
    ReportChanges,
    Resume,
    ResumeCrawl,
    SetMemoryWindow,
    SetOptOuts,
    Stop,
    StopCrawl,
    Wake,
)
from gossamer.model.errors import NotListeningError, UsageError
from gossamer.model.events import EventName
from gossamer.model.records import FetchTask, Result
from gossamer.runtime.hub.config import HubLimits
from gossamer.sim.scenarios import many_hosts

from .imagined import LAST_COMMIT, HubRun
from .virtual_time import run_virtually

SEEDS = ["http://h0.test/", "http://h1.test/"]


def prepared(tmp_path: Path, pages: int = 30, **options: object) -> HubRun:
    return HubRun(tmp_path, many_hosts(2, pages), SEEDS, **options)  # type: ignore[arg-type]


def crawled(run: HubRun, *steps: tuple[float, Callable[[], object]]) -> str:
    """Crawl to the end with functions that are called at their times; return why it ended."""

    async def main() -> str:
        for after_s, step in steps:
            run.later(after_s, step)
        return await run.run()

    return run_virtually(main())


@pytest.mark.parametrize(
    "command",
    [
        Stop("signal"),
        Pause(),
        Resume("reader"),
        SetOptOuts(frozenset({"a.test", "b.test"})),
        CommitSoon(),
        ChangeSetting("max-pages", None),
        AddSeeds(["http://a.test/"]),
        SetMemoryWindow(7),
    ],
)
def test_a_command_is_a_record_that_can_be_sent(command: Command) -> None:
    assert msgspec.json.decode(msgspec.json.encode(command), type=Command) == command
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(command), type=Command) == command


def test_commands_are_applied_in_the_order_of_their_submission(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    for names in ({"h0.test"}, {"h0.test", "h1.test"}, {"h1.test"}):
        run.run_state.submit(SetOptOuts(frozenset(names)))
    assert crawled(run) == "exhausted"
    told = [(event.event, event.host) for event in run.events if "opt" in event.event]
    assert told == [
        (EventName.OPTED_OUT, "h0.test"),
        (EventName.OPTED_OUT, "h1.test"),
        (EventName.OPT_OUT_ENDED, "h0.test"),
    ]


def test_a_stop_before_the_start_ends_the_crawl_without_a_request(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    run.run_state.submit(Stop("stopped"))
    run.run_state.submit(Stop("signal"))
    assert crawled(run) == "stopped", "the first reason counts"
    assert run.pages() == []
    assert run.workers.channels[0].is_closed
    assert run.journal[-2:] == LAST_COMMIT


def test_an_opt_out_before_the_start_comes_before_the_first_task(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    run.run_state.submit(SetOptOuts(frozenset({"h0.test"})))
    assert crawled(run) == "exhausted"
    assert {url[:14] for url in run.pages()} == {"http://h1.test"}


def test_an_opt_out_while_it_runs_takes_effect_with_the_next_task(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    before: list[int] = []

    def opt_out() -> None:
        run.run_state.submit(SetOptOuts(frozenset({"h0.test"})))
        before.append(sum("h0.test" in url for url in run.pages()))

    assert crawled(run, (10.2, opt_out)) == "exhausted"
    assert 5 < before[0] < 30
    assert sum("h0.test" in url for url in run.pages()) == before[0]
    assert sum("h1.test" in url for url in run.pages()) == 30


def test_a_command_after_the_end_has_no_effect(tmp_path: Path) -> None:
    run = prepared(tmp_path, pages=3)
    assert crawled(run) == "exhausted"
    events = len(run.events)
    for command in (Stop("signal"), SetOptOuts(frozenset({"h0.test"})), CommitSoon(), Resume()):
        run.run_state.submit(command)
    assert len(run.events) == events
    assert run.journal[-2:] == LAST_COMMIT


def test_a_paused_crawl_makes_no_requests_until_it_is_resumed(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    counts: list[int] = []
    steps = [
        (5.0, lambda: run.run_state.submit(Pause())),
        (5.1, lambda: counts.append(len(run.pages()))),
        (60.0, lambda: counts.append(len(run.pages()))),
        (60.1, lambda: run.run_state.submit(Resume())),
    ]
    assert crawled(run, *steps) == "exhausted"
    assert counts[0] == counts[1] < 60
    assert len(run.pages()) == 60


def test_everyone_who_paused_a_crawl_must_resume_it(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    counts: list[int] = []
    steps = [
        (2.0, lambda: run.run_state.submit(Pause("reader"))),
        (2.0, lambda: run.run_state.submit(Pause("operator"))),
        (3.0, lambda: run.run_state.submit(Resume("reader"))),
        (4.0, lambda: counts.append(len(run.pages()))),
        (20.0, lambda: counts.append(len(run.pages()))),
        (20.1, lambda: run.run_state.submit(Resume("operator"))),
    ]
    assert crawled(run, *steps) == "exhausted"
    assert counts[0] == counts[1]


def test_a_paused_crawl_can_be_stopped(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    run.run_state.submit(Pause())
    assert crawled(run, (30.0, lambda: run.run_state.submit(Stop("signal")))) == "signal"
    assert run.pages() == []


def test_a_crawl_that_waits_for_a_store_ends_at_its_time_limit(tmp_path: Path) -> None:
    run = prepared(tmp_path, hub_limits=HubLimits(max_time_s=9.0))
    run.run_state.submit(Pause("store"))
    assert crawled(run) == "max_time"


def test_the_time_limit_does_not_run_while_the_operator_pauses_a_crawl(tmp_path: Path) -> None:
    run = prepared(tmp_path, hub_limits=HubLimits(max_time_s=9.0))
    run.run_state.submit(Pause())
    assert crawled(run, (30.0, lambda: run.run_state.submit(Resume()))) == "max_time"
    assert run.crawl.totals.seconds == pytest.approx(9.0, abs=1.1), "averages leave the pause out"
    assert run.pages()


def test_a_pause_from_within_a_result_comes_before_the_next_task(tmp_path: Path) -> None:
    """As the library does whose reader falls behind."""
    seen: list[str] = []

    def on_result(task: FetchTask, _result: Result) -> None:
        seen.append(task.url)
        if len(seen) == 6:
            run.run_state.submit(Pause("reader"))
            run.later(50.0, lambda: counts.append(len(run.pages())))
            run.later(50.1, run.run_state.submit, Resume("reader"))
            counts.append(len(run.pages()))

    counts: list[int] = []
    run = prepared(tmp_path, on_result=on_result)
    assert crawled(run) == "exhausted"
    assert counts[0] == counts[1]


def test_the_page_limit_can_be_changed_while_it_runs(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    assert crawled(run, (5.0, lambda: run.run_state.submit(ChangeSetting("max-pages", 20)))) == "max_pages"
    assert run.crawl.totals.pages == 20


def test_the_time_limit_can_be_set_and_removed(tmp_path: Path) -> None:
    run = prepared(tmp_path, hub_limits=HubLimits(max_time_s=10.0))
    steps = [
        (5.0, lambda: run.run_state.submit(ChangeSetting("max-time", None))),
        (15.0, lambda: run.run_state.submit(ChangeSetting("max-time", 20.0))),
    ]
    assert crawled(run, *steps) == "max_time"
    assert 30 < len(run.pages()) < 50


def test_connections_are_bounded_by_the_operator_and_by_memory(tmp_path: Path) -> None:
    run = prepared(tmp_path, hub_limits=HubLimits(connections=50))
    limits: list[int] = []

    async def main() -> None:
        run.run_state.submit(SetMemoryWindow(80))
        task = asyncio.create_task(run.run())
        commands = (SetMemoryWindow(20), ChangeSetting("connections", 10), SetMemoryWindow(90), Wake())
        for command in commands:
            await asyncio.sleep(0.01)
            limits.append(run.crawl.frontier.limits.connections)
            run.run_state.submit(command)
        await asyncio.sleep(0.01)
        limits.append(run.crawl.frontier.limits.connections)
        await task

    run_virtually(main())
    assert limits == [50, 20, 10, 10, 10]


def test_a_commit_can_be_asked_for(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    counts: list[int] = []
    steps = [
        (1.5, lambda: run.run_state.submit(CommitSoon())),
        (1.4, lambda: counts.append(run.journal.count("write"))),
        (1.6, lambda: counts.append(run.journal.count("write"))),
    ]
    assert crawled(run, *steps) == "exhausted"
    assert counts == [1, 2]


def test_operators_commands_are_obeyed_in_the_hubs_turn_and_answered_when_they_are_durable(tmp_path: Path) -> None:
    run = prepared(tmp_path, pages=10)
    told: list[str] = []
    commits: list[int] = []

    async def command() -> None:
        commits.append(run.journal.count("write"))
        told.append(await run.control.obey(PauseCrawl(), "somebody"))
        commits.append(run.journal.count("write"))
        with pytest.raises(UsageError, match="expected a whole number"):
            await run.control.obey(ChangeSetting("max-pages", "many"), "somebody")
        told.append(await run.control.obey(AddSeeds(["http://h0.test/", "http://new.test/"]), "somebody"))
        told.append(await run.control.obey(ReportChanges(["http://h1.test/", "no url"]), "somebody"))
        told.append(await run.control.obey(ResumeCrawl(), "somebody"))

    async def main() -> str:
        run.later(2.0, lambda: tasks.append(asyncio.ensure_future(command())))
        return await run.run()

    tasks: list[asyncio.Task[None]] = []
    assert run_virtually(main()) == "exhausted"
    tasks[0].result()
    assert told[1] == "1 of 2 seeds is new"
    assert told[2].startswith("2 URLs reported as changed: ")
    assert told[3] == "the crawl goes on"
    assert commits[1] >= commits[0] + 2
    rules = [event.rule for event in run.events if event.event is EventName.OPERATOR]
    assert rules == ["pause", "add", "changed", "resume"]


def test_an_operators_command_that_comes_too_late_is_refused_except_a_stop(tmp_path: Path) -> None:
    run = prepared(tmp_path, pages=3)
    told: list[str] = []

    async def main() -> None:
        await run.run()
        with pytest.raises(NotListeningError):
            await run.control.obey(PauseCrawl(), "somebody")
        told.append(await run.control.obey(StopCrawl(), "somebody"))

    run_virtually(main())
    assert told[0].startswith("stopping")
