"""What happens now: events are read once for all, and who reads too slowly is dropped."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import lmdb
import msgspec
import pytest

from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.events import EventName
from gossamer.model.figures import Figures, RunState, Throughput, Totals
from gossamer.model.state import CrawlState
from gossamer.reading.folder import CrawlReader
from gossamer.runtime.session.control_socket import FILE_NAME
from gossamer.web import dashboard, live_crawl
from gossamer.web.dashboard import DashboardStream, EventsQuery, EventTail
from gossamer.web.hosts import Hosts
from gossamer.web.routes import ApiError
from gossamer.web.source import CrawlSource
from gossamer.web.status import Status
from tests.reading.folders import Crawled, event, finished, ledger_of, owned, small_web, stopped, write_events

__all__ = ["finished", "small_web", "stopped"]


def source_of(folder: Path) -> CrawlSource:
    return CrawlSource(lambda: CrawlReader(folder), str(folder))


def test_a_tail_returns_each_event_once_across_files_and_half_lines(tmp_path: Path) -> None:
    tail = EventTail(tmp_path)
    assert tail.read() == ([], 0)
    write_events(tmp_path, "1", [event(EventName.FETCH_OK, url=f"http://a/{number}") for number in range(3)])
    assert tail.read() == ([], 0)
    assert [each.url for each in tail.before()] == ["http://a/0", "http://a/1", "http://a/2"]
    path = tmp_path / "1.jsonl"
    whole = path.read_bytes()
    line = whole.splitlines(keepends=True)[0]
    path.write_bytes(whole + line[:40])
    assert tail.read() == ([], 0)
    path.write_bytes(whole + line)
    assert [each.url for each in tail.read()[0]] == ["http://a/0"]
    write_events(tmp_path, "2", [event(EventName.HEARTBEAT), event(EventName.FETCH_OK, url="http://b/")])
    path.write_bytes(whole + line + line)
    assert [each.url for each in tail.read()[0]] == ["http://a/0", "http://b/"], "the end of the last run, too"
    path.unlink()
    (tmp_path / "2.jsonl").unlink()
    assert tail.read() == ([], 0)
    write_events(tmp_path, "3", [event(EventName.FETCH_OK, url="http://c/")])
    assert [each.url for each in tail.read()[0]] == ["http://c/"], "in a folder that was made anew"


def test_what_is_too_much_for_a_turn_is_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_events(tmp_path, "1", [])
    tail = EventTail(tmp_path)
    tail.read()
    write_events(tmp_path, "1", [event(EventName.FETCH_OK, url=f"http://a/{number}") for number in range(1000)])
    monkeypatch.setattr(dashboard, "MAX_TURN_BYTES", 5000)
    events, skipped = tail.read()
    assert events[-1].url == "http://a/999"
    assert skipped == (tmp_path / "1.jsonl").stat().st_size - 5000


def test_who_reads_too_slowly_is_dropped_and_the_others_go_on(
    finished: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "TURN_S", 0.001)
    monkeypatch.setattr(dashboard, "FIGURES_S", 0.0)

    async def main() -> int:
        async with source_of(finished.path) as source, asyncio.timeout(30):
            shown = DashboardStream(source, Status(source, Hosts(source)))
            slow = (await shown.watch(EventsQuery(show="none"))).body
            quick = (await shown.watch(EventsQuery(show="none"))).body
            assert not isinstance(slow, bytes)
            assert not isinstance(quick, bytes)
            running = asyncio.ensure_future(shown.run())
            received = 0
            async for message in quick:
                received += message.startswith(b"event: status")
                if received > 3 * dashboard.MAX_WAITING:
                    break
            left = [message async for message in slow]  # ends by itself
            running.cancel()
            return len(left)

    assert asyncio.run(main()) <= dashboard.MAX_WAITING + 1


def test_only_so_many_look_at_once_and_who_never_came_is_forgotten(
    finished: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "TURN_S", 0.001)
    monkeypatch.setattr(dashboard, "FIGURES_S", 0.0)

    async def main() -> None:
        async with source_of(finished.path) as source, asyncio.timeout(30):
            shown = DashboardStream(source, Status(source, Hosts(source)))
            for _ in range(dashboard.MAX_VIEWERS):
                await shown.watch(EventsQuery())
            with pytest.raises(ApiError, match="others watch already"):
                await shown.watch(EventsQuery())
            running = asyncio.ensure_future(shown.run())
            while not running.done():
                with suppress(ApiError):
                    await shown.watch(EventsQuery())
                    break
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(main())


def test_who_looks_when_the_page_ends_gets_the_last_figures_and_its_end(stopped: Crawled) -> None:
    async def main() -> list[bytes]:
        async with source_of(stopped.path) as source, asyncio.timeout(30):
            shown = DashboardStream(source, Status(source, Hosts(source)))
            messages = (await shown.watch(EventsQuery(show="none"))).body
            assert not isinstance(messages, bytes)
            with owned(stopped.path):
                assert source.live.is_running()
                await source.live.figures()  # a second old when the crawl has ended
            received = asyncio.ensure_future(_all(messages))
            await shown.end()
            return await received

    *_, status, end = asyncio.run(main())
    figures = msgspec.json.decode(status.removeprefix(b"event: status\ndata: "))
    assert (figures["is_running"], figures["state"]) == (False, "finished")
    assert figures["finished"] == stopped.summary.finished
    assert figures["pages"] == stopped.summary.pages
    assert figures["show_again"] == f"gossamer ui {stopped.path}"
    assert end == b'event: end\ndata: {"is_running":false}\n\n'


async def _all(messages: AsyncIterable[bytes]) -> list[bytes]:
    return [message async for message in messages]


def test_an_end_does_not_wait_for_who_never_reads(finished: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "END_WITHIN_S", 0.01)

    async def main() -> None:
        async with source_of(finished.path) as source, asyncio.timeout(30):
            shown = DashboardStream(source, Status(source, Hosts(source)))
            await shown.watch(EventsQuery())
            await shown.end()

    asyncio.run(main())


def test_an_error_of_our_own_ends_a_turn_and_not_the_page(
    finished: Crawled, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dashboard, "TURN_S", 0.001)
    monkeypatch.setattr(dashboard, "FIGURES_S", 0.0)
    errors = [RuntimeError("broken\x1b[31m\nred"), lmdb.Error("MDB_PANIC"), OSError(5, "Input/output error")]

    def open_view() -> CrawlReader:
        if errors:
            raise errors.pop(0)
        return CrawlReader(finished.path)

    async def main() -> list[bytes]:
        async with CrawlSource(open_view, str(finished.path)) as source, asyncio.timeout(30):
            shown = DashboardStream(source, Status(source, Hosts(source)))
            messages = (await shown.watch(EventsQuery(show="none"))).body
            assert not isinstance(messages, bytes)
            running = asyncio.ensure_future(shown.run())
            received = []
            async for message in messages:
                received.append(message)
                if message.startswith(b"event: status"):
                    break
            running.cancel()
            return received

    _, *troubles, _ = asyncio.run(main())
    assert [message.startswith(b"event: trouble\ndata: ") for message in troubles] == [True] * 3
    assert all(name in message for name, message in zip((b"broken", b"MDB_PANIC", b"Input"), troubles, strict=True))
    assert "\x1b" not in capsys.readouterr().err


def test_a_crawl_that_begins_anew_in_the_folder_is_the_one_that_is_shown(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")

    async def main() -> None:
        async with source_of(path) as source, asyncio.timeout(30):
            assert (await source.read(lambda view: view.state.totals.pages)) > 0
            shutil.rmtree(path)
            with pytest.raises(GossamerError, match="no such folder") as raised:
                await source.read(lambda view: view.state.totals.pages)
            assert not isinstance(raised.value, UsageError), "it is no fault of the request"
            finished.copied(path)
            with ledger_of(path) as ledger:
                ledger.put_crawl_state(CrawlState(totals=Totals(runs=1, pages=77)))
            assert await source.read(lambda view: view.state.totals.pages) == 77

    asyncio.run(main())


def test_a_crawl_that_stands_still_is_read_from_its_ledger_and_asked_again_later(
    stopped: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_crawl, "ANSWER_WITHIN_S", 0.05)
    asked = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    async def main() -> None:
        socket = await asyncio.start_unix_server(silent, stopped.path / "state" / FILE_NAME)
        async with source_of(stopped.path) as source, asyncio.timeout(30), socket:
            assert (await source.live.figures()).totals.pages > 0
            for _ in range(3):
                with pytest.raises(GossamerError, match="not answered"):
                    await source.live.ask("figures")

    with owned(stopped.path):
        asyncio.run(main())
    assert asked == 1


def test_passes_over_the_events_leave_threads_to_other_questions(finished: Crawled) -> None:
    goes_on = threading.Event()

    async def main() -> None:
        async with source_of(finished.path) as source, asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            passes = [tasks.create_task(source.read_events(lambda _: goes_on.wait(20))) for _ in range(10)]
            await asyncio.sleep(0)
            try:
                assert await source.read(lambda view: view.state.totals.pages) > 0
                assert not any(each.done() for each in passes)
            finally:
                goes_on.set()

    asyncio.run(main())


def test_the_counters_of_a_crawl_that_stands_still_do_not_go_back(
    stopped: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_crawl, "ANSWER_WITHIN_S", 0.05)
    monkeypatch.setattr(live_crawl, "FIGURES_S", 0.0)
    ahead = Figures(
        totals=Totals(pages=10**6), out="crawl", state=RunState.RUNNING, rates={"10s": Throughput(pages=9.0)}
    )

    async def answers_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(msgspec.json.encode({"ok": True, "text": "", "value": ahead}) + b"\n")
        await reader.read()
        writer.close()

    async def main() -> None:
        socket = await asyncio.start_unix_server(answers_once, stopped.path / "state" / FILE_NAME)
        async with source_of(stopped.path) as source, asyncio.timeout(30), socket:
            with owned(stopped.path):
                assert (await source.live.figures()).rates
                still = await source.live.figures()
                assert (still.totals.pages, still.rates) == (10**6, {})
            assert 0 < (await source.live.figures()).totals.pages < 10**6, "it has ended: what is committed counts"

    asyncio.run(main())


def test_fetches_are_shown_without_the_links_that_robots_txt_disallows(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    found = [event(EventName.FETCH_OK, url="http://a/"), event(EventName.ROBOTS_DISALLOW, url="http://a/no")]
    write_events(path / "events", "9", found)

    async def shown(show: Literal["all", "fetches"]) -> list[str]:
        async with source_of(path) as source, asyncio.timeout(30):
            looked = DashboardStream(source, Status(source, Hosts(source)))
            messages = (await looked.watch(EventsQuery(show=show))).body
            assert not isinstance(messages, bytes)
            running = asyncio.ensure_future(looked.run())
            async for message in messages:
                if message.startswith(b"event: events"):
                    running.cancel()
                    lines = msgspec.json.decode(message.partition(b"data: ")[2])["events"]
                    return [line["url"] for line in lines]
            raise AssertionError("no events came")

    assert asyncio.run(shown("fetches")) == ["http://a/"]
    assert asyncio.run(shown("all")) == ["http://a/", "http://a/no"]
