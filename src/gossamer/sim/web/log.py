"""What the servers saw: one record per request, in memory and, optionally, in a file.

Times are `time.monotonic()`, which on Linux is one clock for all processes of a machine.
Invariants: a record is appended when the head of its request is complete; `finished_at` is
set when the answer is passed to the socket, before the client can see it, so that no false
overlaps are recorded. The file has one JSON object per line, each written once, when
finished (or at the end).
Cost: 0.3 µs per request; the file 1 µs more, in batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct


class LoggedRequest(Struct, gc=False):
    """A request as the server saw it. Filled in when it ends; 0 in `finished_at` means it has not."""

    arrived_at: float
    host: str
    target: str
    connection: int
    in_flight: int  # at this host when it arrived, including itself
    agent: str
    finished_at: float = 0.0
    status: int = 0  # 0: no answer, the connection was closed
    max_late_s: float = 0.0  # it may have arrived this much earlier: the server stood still before


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(LoggedRequest)


class RequestLog:
    """All requests so far, in order of arrival."""

    def __init__(self, path: Path | None = None) -> None:
        self.requests: list[LoggedRequest] = []
        self._path = path
        self._unwritten: list[LoggedRequest] = []
        self._next = 0

    def append(self, request: LoggedRequest) -> None:
        """Record a request; the caller completes the record later."""
        self.requests.append(request)

    def clear(self) -> None:
        """Forget all requests, for a second crawl of the same server; the file is unchanged."""
        self.flush(is_last=True)
        self.requests.clear()
        self._next = 0

    def flush(self, *, is_last: bool = False) -> None:
        """Append to the file what has finished since the last time; at the end, all."""
        if self._path is None:
            return
        pending = self._unwritten + self.requests[self._next :]
        self._next = len(self.requests)
        ready = pending if is_last else [request for request in pending if request.finished_at]
        self._unwritten = [] if is_last else [request for request in pending if not request.finished_at]
        if ready:
            with self._path.open("ab") as file:
                file.write(encode_log(ready))


def encode_log(requests: Iterable[LoggedRequest]) -> bytes:
    """One JSON object per line."""
    return _encoder.encode_lines(list(requests))


def decode_log(lines: bytes) -> list[LoggedRequest]:
    """The requests of a log file, in order of arrival."""
    return sorted(_decoder.decode_lines(lines), key=lambda request: request.arrived_at)


def read_log(path: Path) -> list[LoggedRequest]:
    """The requests in a file that a server wrote."""
    return decode_log(path.read_bytes())
