"""Reads an answer over plain HTTP/1.

A `PlainTransfer` reads one answer (RFC 9112) from bytes as they arrive, in pieces of any size, and uses no
socket: `feed` accepts bytes, `hang_up` the end of the connection. Malformed answers get the same verdict as
from libcurl; a test compares the two, and lists where they differ and why. One case is handled better here:
an answer whose Content-Length is not a number is read to the end of the connection, as browsers do, without
a second request.

Invariants
- a connection is reused only after an answer with a framed end and nothing after it.
- no more is received than the limit of the body and the cap of a head together, whatever it is.
- no more is buffered than the caps of a head, one line, and the body up to its limit.
- data that arrives one byte at a time is examined once: lines are processed when they are complete.
"""

from __future__ import annotations

import re
from typing import Final

from gossamer.fetch.exchange import judged
from gossamer.fetch.plain.chunked_transfer import ChunkedTransfer, ChunkPart
from gossamer.fetch.plain.framing import IN_CHUNKS, TO_THE_END, framing_of
from gossamer.fetch.plain.head import head_of
from gossamer.model.records import Outcome

# As in libcurl: a fourth digit makes an odd status (see head.py), not another protocol.
_STATUS_LINE: Final = re.compile(rb"(?i:http)/(?:1\.[01]|[23])[ \t](\d\d\d)")
_PROTOCOL: Final = b"HTTP/"
_LONGEST_START: Final = len(b"HTTP/1.1 200")
_BLANK: Final = (b"\r\n", b"\n")
_HEAD, _BODY, _REST, _SIZE, _CHUNK, _CHUNK_END, _TRAILERS, _NOTHING = ChunkPart


class PlainTransfer(ChunkedTransfer):
    """One request over plain HTTP, and what has arrived of its answer."""

    __slots__ = ("_first_byte_at", "_head_at")

    def next_attempt(self) -> None:
        """Reset the previous attempt and select the next address."""
        super().next_attempt()
        self._first_byte_at = 0.0
        self._head_at = 0  # in `lines`: where the current head begins

    @property
    def is_silent(self) -> bool:
        """Whether no byte of an answer was received."""
        return self._part is _HEAD and not self.lines and not self._pending

    def first_byte_at(self, latest: float) -> float:
        """Return when the answer began."""
        return min(latest, self._first_byte_at)

    def feed(self, data: bytes) -> bool:
        """Process received bytes; return whether the answer is complete or no more of it is wanted."""
        self._received += len(data)
        if self._pending:
            data = self._pending + data
            self._pending = b""
        if self._part is _HEAD:
            if not self._first_byte_at:
                self._first_byte_at = self._clock()
            data = self._read_heads(data)
        if data and self.verdict is None:
            self._read_body(data)
            if self._received > self.limit:
                self._cut_excess()
        return self._part is _NOTHING or self.verdict is not None

    def hang_up(self) -> tuple[Outcome, str]:
        """Return the outcome after the server has closed the connection."""
        if self._part is _REST:
            return judged(self)
        if self._part is not _HEAD:
            missing = f"{self._left} bytes" if self._part is _BODY else "its last chunk"
            return Outcome.DISCONNECTED, f"the answer ended without {missing}"
        if self.is_silent:
            return Outcome.DISCONNECTED, "closed without an answer"
        return Outcome.DISCONNECTED, "closed within the head of the answer"

    def _is_connected(self) -> bool:
        return False  # once it is connected, the request is written and counted

    def _has_whole_head(self) -> bool:
        return self._part is not _HEAD

    # -- the head ---------------------------------------------------------------------------------

    def _read_heads(self, data: bytes) -> bytes:
        """Read interim heads and the final one; return what follows it."""
        if self._head_at < len(self.lines):
            if not data.startswith(_BLANK) and _end_of_head(data, 0) < 0:
                self._await_head(data)
                return b""
            data = self._from_its_beginning(data)
        at = 0
        while self.verdict is None:
            start = _STATUS_LINE.match(data, at)
            if start is None and not _may_become_http(data[at:]):
                self._refuse("not an HTTP answer")
                break
            end = _end_of_head(data, at)
            if start is None or end < 0:
                self._await_head(data[at:])
                break
            lines = _lines(data[at:end])
            self.lines += lines
            status = int(start[1])
            if status >= 200 or status == 101:
                self._begin_body(lines, is_folded=data.find(b"\n ", at, end) >= 0 or data.find(b"\n\t", at, end) >= 0)
                return data[end:]
            if status < 100:
                self._refuse(f"status {status:03}")
                break
            self._head_at = len(self.lines)
            self._line_bytes += end - at
            self.stop_at_excess(self.lines)
            at = end
        return b""

    def _await_head(self, data: bytes) -> None:
        """Buffer an incomplete head, as long as it is within the caps."""
        end = data.rfind(b"\n") + 1
        self._pending = data[end:]
        if end:
            self.lines += _lines(data)
            self._line_bytes += end
        limits = self._limits
        if (
            len(data) > limits.max_header_line_bytes
            or self._line_bytes + len(self._pending) > limits.max_header_bytes
            or (end and len(self.lines) > limits.max_headers)
        ):
            self.stop_at_excess([*self.lines, self._pending])

    def _from_its_beginning(self, data: bytes) -> bytes:
        """Return the data with the buffered lines of the current head before it."""
        early = b"".join(self.lines[self._head_at :])
        del self.lines[self._head_at :]
        self._line_bytes -= len(early)
        return early + data

    def _begin_body(self, lines: list[bytes], *, is_folded: bool) -> None:
        """Determine from the final head what follows it."""
        if is_folded:
            self.stop_at_excess(self.lines)
            del self.lines[-len(lines) :]
            lines = _unfolded(lines)
            self.lines += lines
        head = self.head = head_of(lines)
        self.judge_caps()
        if self.verdict is not None:
            return
        error = _fault(lines) if len(head.headers) + 2 != len(lines) or b"\0" in head.raw else ""
        framing = framing_of(head)
        self.is_reusable = framing.keeps_alive
        if error or framing.error:
            self._refuse(error or framing.error)
        elif self.request.is_head:
            self._part = _NOTHING  # RFC 9110 9.3.2: its headers describe a body that is not sent
        elif framing.length == IN_CHUNKS:
            self._part = _SIZE
        elif framing.length == TO_THE_END:
            self._part = _REST
        else:
            self._left = framing.length
            self._part = _BODY if framing.length else _NOTHING

    # -- the body ---------------------------------------------------------------------------------

    def _read_body(self, data: bytes) -> None:
        part = self._part
        if part is _BODY:
            self._left -= len(data)
            if self._left <= 0:
                self._part = _NOTHING
                if self._left:
                    data = data[: self._left]
                    self.is_reusable = False
            self._read_piece(data)
        elif part is _REST:
            self._read_piece(data)
        elif part is _NOTHING:
            self.is_reusable = False  # what follows was not requested
        else:
            self._read_chunks(data)


def _may_become_http(data: bytes) -> bool:
    """Return whether this may be the beginning of a status line."""
    if len(data) >= _LONGEST_START or b"\n" in data:
        return False
    return data[: len(_PROTOCOL)].upper() == _PROTOCOL[: len(data)]


def _end_of_head(data: bytes, at: int) -> int:
    """Return where the head that begins at `at` ends, after its blank line, or -1. Lines may end without a CR."""
    first = data.find(b"\n", at)
    if first < 0:
        return -1  # a long, slow line: the searches below take 40 µs over 60 KiB without a line feed, this takes 1
    end = data.find(b"\n\r\n", first)
    bare = data.find(b"\n\n", first, end + 1) if end >= 0 else data.find(b"\n\n", first)
    if bare >= 0:
        return bare + 2
    return end + 3 if end >= 0 else -1


def _lines(data: bytes) -> list[bytes]:
    """Return the complete lines, each with its end."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def _unfolded(lines: list[bytes]) -> list[bytes]:
    """Join folded lines with their predecessor (RFC 9112 5.2); the first header has none."""
    whole = [[line] for line in lines[:2]]
    for line in lines[2:]:
        if line[:1] in (b" ", b"\t"):
            before = whole[-1]
            before[-1] = before[-1].rstrip()
            if not before[-1]:
                del before[-1]
            before.append(line.lstrip(b" \t"))
        else:
            whole.append([line])
    return [b" ".join(parts) for parts in whole]


def _fault(lines: list[bytes]) -> str:
    """Return what is wrong with the lines of a head, or the empty string."""
    if b"\0" in lines[0]:
        return "a control character in the status line"
    for line in lines[1:-1]:
        bare = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        if b"\0" in bare or b"\r" in bare:
            return "a control character in a header"
        if b":" not in bare:
            return "a header without a colon"
    return ""
