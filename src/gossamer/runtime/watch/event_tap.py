"""Passes all events to the sink and to listeners, and records the first failure.

A crawl without a single page reports the first failure as its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from gossamer.model.events import Event, EventName, outcome_of
from gossamer.telemetry.advice import advice_on
from gossamer.telemetry.text import printable

if TYPE_CHECKING:
    from gossamer.ports import EventSink

# A set would hash by a call of Python code.
_TROUBLE = (EventName.HOST_DEAD, EventName.HOST_PARKED, EventName.ERROR, EventName.ROBOTS_UNREACHABLE)

# Returns whether it wants more events: one that does not costs nothing from then on.
OnEvent: TypeAlias = Callable[[Event], bool]


class EventTap:
    def __init__(self, sink: EventSink, on_event: OnEvent | None = None) -> None:
        self._sink = sink
        self._listeners = [] if on_event is None else [on_event]
        self._first_trouble: Event | None = None
        self._is_watching = True  # until the first failure, or the first page

    def listen(self, on_event: OnEvent) -> None:
        """Pass all further events to one more listener, until it wants no more."""
        self._listeners = [*self._listeners, on_event]

    def emit(self, event: Event) -> None:
        """Forward an event to the sink and to the listeners."""
        self._sink.emit(event)
        if self._is_watching:
            self._watch(event)
        if self._listeners:
            self._listeners = [listener for listener in self._listeners if listener(event)]

    def _watch(self, event: Event) -> None:
        if event.event in _TROUBLE:
            self._first_trouble = event
        self._is_watching = self._first_trouble is None and event.event is not EventName.FETCH_OK

    def first_failure(self) -> str:
        """Return the first failure and a hint, in one line; empty if there was none."""
        event = self._first_trouble
        if event is None:
            return ""
        advice = advice_on(outcome_of(event), event.status)
        status = f" {event.status}" if event.status else ""
        return printable(f"{event.url or event.host}: {event.reason}{status}", 300) + (f"; {advice}" if advice else "")
