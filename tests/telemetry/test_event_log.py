from pathlib import Path

import pytest

from gossamer.model.events import Event, EventName
from gossamer.telemetry.event_log import EventLog, read_events


def _event(name: EventName, *, kind: str = "", target: str = "", retry_after_s: float = 0.0) -> Event:
    return Event(
        ts=1.0,
        event=name,
        url="http://a.test/",
        host="a.test",
        depth=0,
        status=0,
        bytes=0,
        content_type="",
        worker=0,
        t_ms_from_start=0,
        reason="",
        kind=kind,
        target=target,
        retry_after_s=retry_after_s,
    )


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    log = EventLog(tmp_path, "run")
    log.open()
    return log


def test_an_event_reaches_the_file_with_the_next_flush(log: EventLog, tmp_path: Path) -> None:
    log.emit(_event(EventName.FETCH_OK))
    assert list(read_events(tmp_path)) == []
    log.flush()
    assert list(read_events(tmp_path)) == [_event(EventName.FETCH_OK)]


@pytest.mark.parametrize(
    "event",
    [
        _event(EventName.ROBOTS_FETCHED, kind="robots", target="http://b.test/robots.txt"),
        _event(EventName.RETRY, retry_after_s=30),
        _event(EventName.OPTED_OUT),
    ],
)
def test_what_recovery_and_audit_need_after_a_kill_is_written_at_once(
    log: EventLog, tmp_path: Path, event: Event
) -> None:
    log.emit(event)
    assert list(read_events(tmp_path)) == [event]


def test_a_line_that_a_kill_tore_is_skipped(log: EventLog, tmp_path: Path) -> None:
    log.emit(_event(EventName.FETCH_OK))
    log.close()
    with (tmp_path / "run.jsonl").open("ab") as file:
        file.write(b'{"ts":2.0,"event":"fet')
    assert list(read_events(tmp_path)) == [_event(EventName.FETCH_OK)]
