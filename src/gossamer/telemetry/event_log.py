"""The event file of a run: written here, and read back.

Events are buffered and written about once per second and at the end, in one write. Some
are written at once, before `emit` returns, because a kill may come before the next commit of
the ledger; see `EventLog.emit`. 2 µs per event, 6 µs for those written at once.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from gossamer.model.errors import DiskFullError
from gossamer.model.events import Event, EventName
from gossamer.telemetry.event_lines import bounded_lines

if TYPE_CHECKING:
    from gossamer.telemetry.crawl_log import CrawlLog

_OPTED_OUT = EventName.OPTED_OUT
_EXCLUDED = EventName.EXCLUDED_BY_RULE
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode


def file_stem(started_at: float) -> str:
    """Return the name of a run's event file without its suffix; names sort as the runs' starts do."""
    return datetime.fromtimestamp(started_at, UTC).strftime("%Y%m%dT%H%M%S%f")


class EventLog:
    """Appends events to its own file in `events/`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.jsonl"
        self._file: BinaryIO | None = None
        self._buffer: list[bytes] = []
        self._written = 0

    def open(self) -> None:
        """Create the file. Names sort as the runs came, also if the clock was set back between them."""
        folder = self._path.parent
        folder.mkdir(parents=True, exist_ok=True)
        last = max((path.stem for path in folder.glob("*.jsonl")), default="")
        if last >= self._path.stem:
            began, _, number = last.partition("_")
            self._path = folder / f"{began}_{int(number or 0) + 1:04}.jsonl"
        self._file = self._path.open("ab", buffering=0)

    def emit(self, event: Event) -> None:
        """Record an event: it reaches the file with the next flush, or at once if a kill must not lose it.

        The ledger is committed about once per second, so a kill may lose what was learned since. Recovery reads two
        facts from the events of the killed run (`runtime.unsaved_facts`) and nothing else: the targets of robots.txt
        redirects, since an archived answer of such a target belongs to no queued URL and would count as damage, and
        the refusals with Retry-After, which bind the next run. The other events of robots.txt and the opt-outs are
        written at once for the audit: it checks later requests against them, so the file must have them even if the
        process is killed.
        """
        self._buffer.append(_encode(event))
        if event.event is _EXCLUDED:  # most events of many crawls
            return
        if event.kind == "robots" or event.retry_after_s > 0 or event.event is _OPTED_OUT:
            with suppress(DiskFullError):  # the next flush raises it again, to a caller that can stop the crawl
                self.flush()

    def flush(self) -> None:
        """Write what was buffered since the last flush, in one write."""
        if not self._buffer or self._file is None:
            return
        data = b"\n".join(self._buffer) + b"\n"
        try:
            self._file.write(data)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(f"{self._path}: no room for events; free some space and resume") from error
            raise
        self._written += len(data)
        self._buffer.clear()

    def mark(self) -> tuple[str, int]:
        """Return the name of the file, and its length with everything accepted so far."""
        return self._path.name, self._written + sum(map(len, self._buffer)) + len(self._buffer)

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


class Logs:
    """The event log, and `crawl.log` if there is one. See `gossamer.ports.EventSink`."""

    def __init__(self, events: EventLog, crawl_log: CrawlLog | None) -> None:
        self._events = events
        self._all = (events,) if crawl_log is None else (events, crawl_log)

    def open(self) -> None:
        for log in self._all:
            log.open()

    def emit(self, event: Event) -> None:
        self._events.emit(event)

    def flush(self) -> None:
        """Write what was recorded since the last flush."""
        for log in self._all:
            log.flush()

    def mark(self) -> tuple[str, int]:
        """Return the name of the event file, and its length with everything accepted so far."""
        return self._events.mark()

    def close(self) -> None:
        """Flush and close the files."""
        for log in self._all:
            log.close()


def read_events(folder: Path) -> Iterator[Event]:
    """Yield all events of a crawl, file by file; lines that a kill tore are skipped."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            for line in bounded_lines(file):
                try:
                    yield _decode(line)
                except msgspec.DecodeError:
                    continue
