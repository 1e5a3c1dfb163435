from __future__ import annotations

from gossamer.model.events import Event, EventName
from gossamer.runtime.watch.event_tap import EventTap
from tests.reading.folders import event

from .imagined import JournalSink


def test_every_event_reaches_the_sink_and_the_listener_until_it_wants_no_more() -> None:
    sink, heard = JournalSink([], []), list[Event]()

    def listen(one: Event) -> bool:
        heard.append(one)
        return len(heard) < 2

    tap = EventTap(sink, listen)
    events = [event(EventName.FETCH_OK, ts=float(number)) for number in range(5)]
    for one in events:
        tap.emit(one)
    assert sink.events == events
    assert heard == events[:2]


def test_the_first_trouble_is_remembered_with_what_would_help() -> None:
    tap = EventTap(JournalSink([], []))
    tap.emit(event(EventName.STARTED))
    assert tap.first_failure() == ""
    tap.emit(
        event(EventName.HOST_DEAD, host="a.test", reason="blocked_address: 127.0.0.1 is in 127.0.0.0/8 (loopback)")
    )
    tap.emit(event(EventName.HOST_DEAD, host="b.test", reason="dns_not_found: no such name"))
    assert tap.first_failure().startswith("a.test: blocked_address")
    assert "--allow-network" in tap.first_failure()


def test_after_the_first_page_no_trouble_is_the_reason_for_an_empty_crawl() -> None:
    tap = EventTap(JournalSink([], []))
    tap.emit(event(EventName.FETCH_OK))
    tap.emit(event(EventName.HOST_DEAD, host="a.test", reason="dns_not_found: no such name"))
    assert tap.first_failure() == ""
