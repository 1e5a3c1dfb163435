"""What does a server say over plain HTTP/1, byte by byte?

A `PlainTransfer` reads one answer (RFC 9112) from bytes as they come, in pieces of any size, and
touches no socket: `feed` takes bytes, `hang_up` the end of the connection. What is out of order gets the
verdict that libcurl has for it; a test holds the two together. One case is better off here: an answer whose
Content-Length is no number is read to the end of the connection, as browsers do, with the request that was made.

Invariants
- a connection is used again only after an answer whose end was framed, with nothing behind it.
- no more is held than the caps of a head, one line, and the body up to its limit.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from gossamer.fetch.exchange import judged
from gossamer.fetch.framing import IN_CHUNKS, TO_THE_END, framing_of
from gossamer.fetch.guard import AddressPolicy
from gossamer.fetch.head import excess
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.transfer import Clock, Transfer
from gossamer.records import Outcome

# As libcurl takes it: a fourth digit makes an odd status (see head.py), not another protocol.
_STATUS_LINE: Final = re.compile(rb"(?i:http)/(?:1\.[01]|[23])[ \t](\d\d\d)")
_PROTOCOL: Final = b"HTTP/"
_LONGEST_START: Final = len(b"HTTP/1.1 200")
_CHUNK_SIZE: Final = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")
_MOST_LINE_BYTES: Final = 16 * 1024  # between chunks
_BLANK: Final = (b"\r\n", b"\n")


class Part(IntEnum):
    """Which part of an answer comes next."""

    HEAD = 0
    BODY = 1  # of known length
    REST = 2  # a body up to the end of the connection
    SIZE = 3  # of a chunk
    CHUNK = 4
    CHUNK_END = 5
    TRAILERS = 6
    NOTHING = 7


_HEAD, _BODY, _REST, _SIZE, _CHUNK, _CHUNK_END, _TRAILERS, _NOTHING = Part


class PlainTransfer(Transfer):
    """One request over plain HTTP, and what has come of its answer."""

    __slots__ = ("_first_byte_at", "_left", "_part", "_pending", "is_connected", "is_reusable")

    def __init__(self, limits: FetchLimits, policy: AddressPolicy, clock: Clock) -> None:
        super().__init__(limits, policy, clock)
        self.is_connected = self.is_reusable = False

    def next_attempt(self) -> None:
        """Forget the attempt before and aim at the next address."""
        super().next_attempt()
        self.is_connected = self.is_reusable = False
        self._first_byte_at = 0.0
        self._part = _HEAD
        self._left = 0  # bytes of the body, or of a chunk
        self._pending = b""  # a head, or a line, that is not whole

    def first_byte_at(self, latest: float) -> float:
        """Return when the answer began."""
        return min(latest, self._first_byte_at)

    def feed(self, data: bytes) -> bool:
        """Take what came; return whether nothing more is wanted."""
        if self._pending:
            data = self._pending + data
            self._pending = b""
        if self._part is _HEAD:
            if not self._first_byte_at:
                self._first_byte_at = self._clock()
            data = self._take_heads(data)
        if data and self.verdict is None:
            self._take_body(data)
        return self._part is _NOTHING or self.verdict is not None

    def hang_up(self) -> tuple[Outcome, str]:
        """The server has closed: return what came of it."""
        self.is_reusable = False
        if self._part is _REST:
            return judged(self)
        if self._part is not _HEAD:
            missing = f"{self._left} bytes" if self._part is _BODY else "its last chunk"
            return Outcome.DISCONNECTED, f"the answer ended without {missing}"
        if not self.lines and not self._pending:
            return Outcome.DISCONNECTED, "closed without an answer"
        self.lines += _lines(self._pending)
        return Outcome.DISCONNECTED, "closed within the head of the answer"

    def _is_connected(self) -> bool:
        return self.is_connected

    def _refuse(self, error: str) -> None:
        self.stop(Outcome.PROTOCOL_ERROR, error)

    # -- the head ---------------------------------------------------------------------------------

    def _take_heads(self, data: bytes) -> bytes:
        """Take interim heads and the final one; return what follows it."""
        at = 0
        while True:
            start = _STATUS_LINE.match(data, at)
            if start is None and not _may_become_http(data[at:]):
                self._refuse("not an HTTP answer")
                return b""
            end = _end_of_head(data, at)
            if start is None or end < 0:
                self._await_head(data[at:])
                return b""
            lines = _lines(data[at:end])
            self.lines += lines
            status = int(start[1])
            if status >= 200 or status == 101:
                break
            if status < 100:
                self._refuse(f"status {status:03}")
                return b""
            at = end
        self._begin_body(lines, is_folded=b"\n " in data[at:end] or b"\n\t" in data[at:end])
        return data[end:]

    def _await_head(self, data: bytes) -> None:
        """Keep what there is of a head, as long as it is within the caps."""
        self._pending = data
        if self.lines or len(data) > self._limits.max_header_line_bytes:
            over = excess([*self.lines, *_lines(data), data[data.rfind(b"\n") + 1 :]], self._limits)
            if over is not None:
                self.stop(Outcome.PROTOCOL_ERROR if over.is_interim else Outcome.HEADER_TOO_LARGE, over.reason)

    def _begin_body(self, lines: list[bytes], *, is_folded: bool) -> None:
        """Find out from the final head what follows it."""
        if is_folded:
            del self.lines[-len(lines) :]
            lines = _unfolded(lines)
            self.lines += lines
        head = self.final_head()
        self.judge_caps()
        if self.verdict is not None:
            return
        error = _fault(lines) if len(head.headers) + 2 != len(lines) else ""
        length, self.is_reusable, unframed = framing_of(head)
        if error or unframed:
            self._refuse(error or unframed)
        elif length == IN_CHUNKS:
            self._part = _SIZE
        elif length == TO_THE_END:
            self._part = _REST
        else:
            self._left = length
            self._part = _BODY if length else _NOTHING

    # -- the body ---------------------------------------------------------------------------------

    def _take_body(self, data: bytes) -> None:
        part = self._part
        if part is _BODY:
            self._left -= len(data)
            if self._left <= 0:
                self._part = _NOTHING
                if self._left:
                    data = data[: self._left]
                    self.is_reusable = False
            self._take_piece(data)
        elif part is _REST:
            self._take_piece(data)
        elif part is _NOTHING:
            self.is_reusable = False  # nobody asked for what follows
        else:
            self._take_chunks(data)

    def _take_piece(self, data: bytes) -> None:
        if not self.take(data):
            self._part = _NOTHING
            self.is_reusable = False

    def _take_chunks(self, data: bytes) -> None:
        at, end = 0, len(data)
        while at < end and self.verdict is None:
            if self._part is _CHUNK:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._part = _CHUNK_END
                self._take_piece(piece)
            elif self._part is _NOTHING:
                self.is_reusable = False
                return
            else:
                line_end = data.find(b"\n", at) + 1
                if not line_end:
                    self._await_line(data[at:])
                    break
                self._take_line(data[at:line_end])
                at = line_end
        if self._part is _TRAILERS and self.verdict is None:
            self.judge_caps()

    def _await_line(self, data: bytes) -> None:
        self._pending = data
        if len(data) > (self._limits.max_header_line_bytes if self._part is _TRAILERS else _MOST_LINE_BYTES):
            self.stop(Outcome.HEADER_TOO_LARGE, f"a line of more than {len(data) - 1} bytes between chunks")

    def _take_line(self, line: bytes) -> None:
        """Take a line that is no content: of a chunk's size, its end, or a trailer."""
        if self._part is _CHUNK_END:
            self._part = _SIZE
            if line not in _BLANK:
                self._refuse("a chunk is longer than its size")
        elif self._part is _SIZE:
            size = _CHUNK_SIZE.fullmatch(line)
            if size is None:
                self._refuse(f"chunk size {line[:40].decode('latin-1').strip()!r}")
                return
            self._left = int(size[1], 16)
            self._part = _CHUNK if self._left else _TRAILERS
        elif line in _BLANK:
            self._part = _NOTHING
        elif b":" in line:
            self.lines.append(line)
        else:
            self._refuse("a trailer without a colon")


def _may_become_http(data: bytes) -> bool:
    """Tell whether this may be the beginning of a status line."""
    if len(data) >= _LONGEST_START or b"\n" in data:
        return False
    return data[: len(_PROTOCOL)].upper() == _PROTOCOL[: len(data)]


def _end_of_head(data: bytes, at: int) -> int:
    """Return where the head that begins there ends, past its blank line, or -1. Lines may end without a CR."""
    end = data.find(b"\n\r\n", at)
    bare = data.find(b"\n\n", at, end) if end >= 0 else data.find(b"\n\n", at)
    if bare >= 0:
        return bare + 2
    return end + 3 if end >= 0 else -1


def _lines(data: bytes) -> list[bytes]:
    """Return the whole lines, each with its end."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def _unfolded(lines: list[bytes]) -> list[bytes]:
    """Join lines that go on with their predecessor (RFC 9112 5.2); the first header has none."""
    whole = lines[:2]
    for line in lines[2:]:
        if line[:1] in (b" ", b"\t"):
            whole[-1] = whole[-1].rstrip() + b" " + line.lstrip(b" \t")
        else:
            whole.append(line)
    return whole


def _fault(lines: list[bytes]) -> str:
    """Return what is wrong with a line of a head that gave no header, or nothing where that may be."""
    for line in lines[1:-1]:
        bare = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        if b"\0" in bare or b"\r" in bare:
            return "a control character in a header"
        if b":" not in bare:
            return "a header without a colon"
    return ""
