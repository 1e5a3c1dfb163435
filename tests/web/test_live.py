"""What happens now: events are read once for all, and who reads too slowly is dropped."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.events import EventName
from gossamer.inspect.reader import CrawlReader
from gossamer.web import live
from gossamer.web.live import EventsQuery, EventTail, Live
from gossamer.web.routes import ApiError
from gossamer.web.source import Source
from gossamer.web.status import Status
from tests.inspect.folders import Crawled, event, finished, small_web, write_events

__all__ = ["finished", "small_web"]


def source_of(folder: Path) -> Source:
    return Source(lambda: CrawlReader(folder), lambda _: "", folder)


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
    assert [each.url for each in tail.read()[0]] == ["http://b/"]


def test_what_is_too_much_for_a_turn_is_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_events(tmp_path, "1", [])
    tail = EventTail(tmp_path)
    tail.read()
    write_events(tmp_path, "1", [event(EventName.FETCH_OK, url=f"http://a/{number}") for number in range(1000)])
    monkeypatch.setattr(live, "MAX_TURN_BYTES", 5000)
    events, skipped = tail.read()
    assert events[-1].url == "http://a/999"
    assert skipped == (tmp_path / "1.jsonl").stat().st_size - 5000


def test_who_reads_too_slowly_is_dropped_and_the_others_go_on(
    finished: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TURN_S", 0.001)
    monkeypatch.setattr(live, "FIGURES_S", 0.0)

    async def main() -> int:
        async with source_of(finished.path) as source, asyncio.timeout(30):
            shown = Live(source, Status(source))
            slow = (await shown.look(EventsQuery(show="none"))).body
            quick = (await shown.look(EventsQuery(show="none"))).body
            assert not isinstance(slow, bytes)
            assert not isinstance(quick, bytes)
            running = asyncio.ensure_future(shown.run())
            received = 0
            async for message in quick:
                received += message.startswith(b"event: status")
                if received > 3 * live.MAX_WAITING:
                    break
            left = [message async for message in slow]  # ends by itself
            running.cancel()
            return len(left)

    assert asyncio.run(main()) <= live.MAX_WAITING + 1


def test_only_so_many_look_at_once_and_who_never_came_is_forgotten(
    finished: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TURN_S", 0.001)
    monkeypatch.setattr(live, "FIGURES_S", 0.0)

    async def main() -> None:
        async with source_of(finished.path) as source, asyncio.timeout(30):
            shown = Live(source, Status(source))
            for _ in range(live.MAX_LOOKERS):
                await shown.look(EventsQuery())
            with pytest.raises(ApiError, match="others look already"):
                await shown.look(EventsQuery())
            running = asyncio.ensure_future(shown.run())
            while not running.done():
                with suppress(ApiError):
                    await shown.look(EventsQuery())
                    break
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(main())
