"""What happens now, for everyone who watches the dashboard: figures every second, and the newest fetches and errors.

One task reads for all viewers, and only while there are some. A viewer has a queue of `MAX_WAITING` messages; if that
is full, it reads too slowly and is dropped, so nothing here grows. A turn reads at most `MAX_TURN_BYTES` of events and
sends at most `MAX_LINES` of them; how many were left out is part of the message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from gossamer.model.errors import GossamerError
from gossamer.model.events import REQUEST_EVENTS, Event, EventName, outcome_of
from gossamer.model.figures import is_error
from gossamer.web.http import NOTHING, Response, fault
from gossamer.web.routes import ApiError, ApiRoute, Nothing
from gossamer.web.source import CrawlSource
from gossamer.web.status import Status

TURN_S = 0.5
FIGURES_S = 1.0
END_WITHIN_S = (
    0.8  # for the last figures, and again until they are sent: a crawl waits 2 s for the end of its dashboard
)
MAX_WAITING = 32
MAX_VIEWERS = 20
MAX_LINES = 100
MAX_TURN_BYTES = 4 << 20
FIRST_BYTES = 1 << 16  # of the events of before
BYTES_PER_EVENT = 400  # about: to say how many were skipped
EVENT_STREAM = "text/event-stream"
_SKIPPED = (b'"event":"excluded_by_rule"', b'"event":"heartbeat"')
_SHOWN = REQUEST_EVENTS | {
    EventName.HOST_PARKED,
    EventName.HOST_DEAD,
    EventName.ROBOTS_DISALLOW,
    EventName.WARNING,
    EventName.OPERATOR,
    EventName.WORKER_LOST,
    EventName.TRAP_QUARANTINED,
    EventName.STARTED,
    EventName.STOPPED,
}
_TROUBLE = frozenset({EventName.WARNING, EventName.HOST_DEAD, EventName.HOST_PARKED, EventName.WORKER_LOST})


class EventsQuery(Struct, frozen=True):
    """Which events."""

    show: Literal["all", "fetches", "errors", "none"] = "all"  # fetches: all but links that robots.txt disallows
    host: Annotated[str, Meta(max_length=300)] = ""
    q: Annotated[str, Meta(max_length=500)] = ""  # a part of the URL


class EventLine(Struct, frozen=True):
    """An event for people."""

    at: float
    event: str
    url: str
    host: str
    status: int
    outcome: str
    bytes: int
    total_ms: int
    kind: str
    text: str
    is_error: bool


class EventBatch(Struct, frozen=True):
    """The newest events; `left_out`: how many more matched, and an estimate of those that were not read."""

    events: list[EventLine]
    left_out: int


class DashboardEnd(Struct, frozen=True):
    """The process of the dashboard ends; the crawl may go on."""

    is_running: bool


class EventTail:
    """Reads what is appended to the newest event file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._offset = 0
        self._decode = msgspec.json.Decoder(Event).decode

    def read(self) -> tuple[list[Event], int]:
        """Return the events since the last call, and how many bytes were skipped because they were too many.

        The first call returns none: see `before`.
        """
        newest = max(self._folder.glob("*.jsonl"), default=None)
        if newest is None:
            return [], 0
        if self._path is None:
            self._path = newest
            self._offset = newest.stat().st_size
        events, skipped = self._appended()
        if newest != self._path:  # another run; the last one ended with what was just read
            self._path = newest
            self._offset = 0
            more, more_skipped = self._appended()
            return events + more, skipped + more_skipped
        return events, skipped

    def _appended(self) -> tuple[list[Event], int]:
        if self._path is None or not self._path.exists():
            return [], 0
        skipped = max(0, self._path.stat().st_size - self._offset - MAX_TURN_BYTES)
        self._offset += skipped
        data = self._bytes(self._offset, MAX_TURN_BYTES)
        whole = data.rfind(b"\n") + 1  # the rest of a line that is being written comes with the next turn
        self._offset += whole
        return self._events(data[:whole]), skipped

    def before(self) -> list[Event]:
        """Return the last events before the current position."""
        start = max(0, self._offset - FIRST_BYTES)
        return self._events(self._bytes(start, self._offset - start))

    def _bytes(self, start: int, length: int) -> bytes:
        if self._path is None:
            return b""
        with self._path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    def _events(self, data: bytes) -> list[Event]:
        return [event for line in data.splitlines() if (event := self._event(line)) is not None]

    def _event(self, line: bytes) -> Event | None:
        if any(mark in line for mark in _SKIPPED):
            return None
        with suppress(msgspec.DecodeError):  # the first line of a part is cut
            event = self._decode(line)
            return event if event.event in _SHOWN else None
        return None


class _Viewer:
    """One connection that watches."""

    def __init__(self, query: EventsQuery) -> None:
        self.query = query
        self.messages: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_WAITING)
        self.is_dropped = False
        self.is_new = True  # it has not seen what happened before
        self.left = asyncio.Event()

    def send(self, message: bytes) -> None:
        try:
            self.messages.put_nowait(message)
        except asyncio.QueueFull:
            self.is_dropped = True


class DashboardStream:
    """Streams figures and events to viewers. `run` must run beside it."""

    def __init__(self, source: CrawlSource, status: Status) -> None:
        self._source = source
        self._status = status
        self._viewers: list[_Viewer] = []
        self._somebody = asyncio.Event()
        self._tails: dict[Path, EventTail] = {}

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                path="/api/events",
                summary="What happens now, as server-sent events",
                handle=self.watch,
                answer=str,
                parameters=EventsQuery,
                media=EVENT_STREAM,
            )
        ]

    async def watch(self, query: EventsQuery) -> Response:
        """Return what happens, as it happens."""
        if len(self._viewers) >= MAX_VIEWERS:
            raise ApiError(503, f"{MAX_VIEWERS} others watch already; close some of their dashboards")
        viewer = _Viewer(query)
        self._viewers.append(viewer)
        self._somebody.set()
        return Response(200, self._messages(viewer), EVENT_STREAM, [("X-Accel-Buffering", "no")], NOTHING)

    async def _messages(self, viewer: _Viewer) -> AsyncGenerator[bytes, None]:
        try:
            yield b"retry: 2000\n\n"
            while not viewer.is_dropped:
                message = await viewer.messages.get()
                if message is None:
                    return
                yield message
        finally:
            viewer.is_dropped = True
            viewer.left.set()
            self._forget_dropped()

    def _forget_dropped(self) -> None:
        """Remove viewers that are gone, also before their streams began."""
        self._viewers = [viewer for viewer in self._viewers if not viewer.is_dropped]
        if not self._viewers:
            self._somebody.clear()

    async def end(self) -> None:
        """Send the last figures, say that the dashboard ends, and end all streams, within twice `END_WITHIN_S`."""
        if not self._viewers:
            return
        self._source.live.forget_figures()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_WITHIN_S):
                await self._send_figures()
        is_running, _ = await self._status.state()
        for viewer in self._viewers:
            viewer.send(_message("end", DashboardEnd(is_running)))
            with suppress(asyncio.QueueFull):
                viewer.messages.put_nowait(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_WITHIN_S):
                for viewer in list(self._viewers):
                    await viewer.left.wait()

    async def run(self) -> None:
        """Read for all viewers, until cancelled."""
        figures_at = 0.0
        while True:
            if not self._viewers:
                await self._somebody.wait()
                figures_at = 0.0
            if time.monotonic() >= figures_at:
                figures_at = time.monotonic() + FIGURES_S
                await self._send_figures()
            if any(viewer.query.show != "none" for viewer in self._viewers):
                await self._send_events()
            self._forget_dropped()
            await asyncio.sleep(TURN_S)

    async def _send_figures(self) -> None:
        try:
            message = _message("status", await self._source.shown(await self._status.read(Nothing())))
        except GossamerError as error:
            message = _message("trouble", {"error": str(error)})
        except Exception as error:  # whatever it is, the next turn may be better
            message = _message("trouble", {"error": fault("figures", error)})
        for viewer in self._viewers:
            viewer.send(message)

    async def _send_events(self) -> None:
        viewers = [viewer for viewer in self._viewers if viewer.query.show != "none"]  # new ones wait a turn
        has_new = any(viewer.is_new for viewer in viewers)
        try:
            events, skipped = await self._source.run(self._read)
            before = await self._source.run(self._before) if has_new else []
        except (GossamerError, OSError):
            return  # the folder is being made or removed; figures say more
        except Exception as error:  # likewise
            fault("events", error)
            return
        lines = list(map(_line, events))
        lines_before = list(map(_line, before))
        for viewer in viewers:
            wanted = [line for line in (lines_before if viewer.is_new else lines) if _matches(line, viewer.query)]
            left_out = 0 if viewer.is_new else max(0, len(wanted) - MAX_LINES) + skipped // BYTES_PER_EVENT
            viewer.is_new = False
            if wanted or left_out:
                viewer.send(_message("events", EventBatch(wanted[-MAX_LINES:], left_out)))

    def _before(self) -> list[Event]:
        return sorted((event for tail in self._tails.values() for event in tail.before()), key=lambda event: event.ts)

    def _folders(self) -> Sequence[Path]:
        if self._source.folder is not None:
            return [self._source.folder.events]
        with self._source.viewing() as view:
            return view.folders.events

    def _read(self) -> tuple[list[Event], int]:
        events = []
        skipped = 0
        folders = self._folders()
        for folder in folders:
            tail = self._tails.setdefault(folder, EventTail(folder))
            more, left = tail.read()
            events += more
            skipped += left
        return sorted(events, key=lambda event: event.ts) if len(folders) > 1 else events, skipped


def _message(name: str, content: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"


def _matches(line: EventLine, query: EventsQuery) -> bool:
    if query.show == "errors" and not line.is_error:
        return False
    if query.show == "fetches" and line.event == EventName.ROBOTS_DISALLOW:
        return False
    return (not query.host or query.host.lower() == line.host) and query.q.lower() in line.url.lower()


def _line(event: Event) -> EventLine:
    is_request = event.event in REQUEST_EVENTS
    outcome = outcome_of(event) if is_request else ""
    failed = is_error(outcome, is_robots=event.kind == "robots") if is_request and outcome else event.event in _TROUBLE
    return EventLine(
        at=event.ts,
        event=event.event.value,
        url=event.url,
        host=event.host,
        status=event.status,
        outcome=outcome,
        bytes=event.bytes,
        total_ms=event.total_ms,
        kind=event.kind,
        text=event.title or event.reason if event.event is not EventName.FETCH_OK else event.title,
        is_error=failed,
    )
