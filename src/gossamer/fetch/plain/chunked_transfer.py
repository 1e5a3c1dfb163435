"""Reads a body in chunks (RFC 9112 7.1), for plain HTTP and for libcurl.

libcurl passes chunks on as they were received, so that what is between them can be counted here: extensions and
sizes can be any number of times as long as the content. It reads them too, and so knows where an answer ends.

Invariants
- no more is received than the limit of the body and the cap of a head together, whatever it is.
- a chunk is added to the body, and a line is read, when it is complete or the data ends.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from gossamer.fetch.transfer import Transfer
from gossamer.foundation.expressions import expression
from gossamer.model.records import Outcome, Truncation

# Possessive quantifiers: otherwise 16 KiB of zeros and a letter would take 12 ms.
_CHUNK_SIZE: Final = expression(rb"(?=[0-9A-Fa-f])0*+([0-9A-Fa-f]{0,15}+)[ \t]*+(?:;[^\n]*+)?\r?\n")
_MAX_LINE_BYTES: Final = 16 * 1024  # between chunks
_BLANK: Final = (b"\r\n", b"\n")
_LONG_CHUNK: Final = "a chunk is longer than its size"
_LONG_LINE: Final = "too long a line between chunks"


class ChunkPart(IntEnum):
    """Which part of an answer comes next."""

    HEAD = 0
    BODY = 1  # of known length
    REST = 2  # a body up to the end of the connection
    SIZE = 3  # of a chunk
    CHUNK = 4
    CHUNK_END = 5
    TRAILERS = 6
    NOTHING = 7


_HEAD, _BODY, _REST, _SIZE, _CHUNK, _CHUNK_END, _TRAILERS, _NOTHING = ChunkPart


class ChunkedTransfer(Transfer):
    """One request, the part of its answer that comes next, and how to read it if it comes in chunks."""

    __slots__ = ("_left", "_line_bytes", "_part", "_pending", "_received", "is_reusable")

    def next_attempt(self) -> None:
        """Reset the previous attempt and select the next address."""
        super().next_attempt()
        self.is_reusable = False  # the connection, after this answer
        self._part = _HEAD
        self._line_bytes = 0  # in `lines`, without the final head
        self._left = 0  # bytes of the body, or of a chunk
        self._pending = b""  # an incomplete line
        self._received = 0  # bytes, and what is between chunks

    def release(self) -> None:
        """Drop everything that belongs to the request."""
        super().release()
        self._pending = b""

    def stop(self, verdict: Outcome, error: str) -> None:
        """Set a verdict: whatever follows on the connection is ignored."""
        super().stop(verdict, error)
        self.is_reusable = False

    def _refuse(self, error: str) -> None:
        self.stop(Outcome.PROTOCOL_ERROR, error)

    def _cut_excess(self) -> None:
        """Cut an answer of which more was received than body and head may have."""
        if self._received > self.limit + self._limits.max_header_bytes and self._part is not _NOTHING:
            self.cut = Truncation.LENGTH
            self._part = _NOTHING
            self.is_reusable = False

    def _read_piece(self, data: bytes) -> None:
        if not self.add_chunk(data):
            self._part = _NOTHING
            self.is_reusable = False

    def _read_chunks(self, data: bytes) -> None:
        at = 0
        end = len(data)
        while at < end and self.verdict is None:
            part = self._part
            if part is _CHUNK:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._part = _CHUNK_END
                self._read_piece(piece)
            elif part is _NOTHING:
                self.is_reusable = False
                return
            else:
                line_end = data.find(b"\n", at) + 1
                if not line_end:
                    self._await_line(data[at:])
                    return
                run_end = self._read_run(data, at) if part is _SIZE else at
                if run_end == at:
                    self._read_line(data[at:line_end])
                    at = line_end
                else:
                    at = run_end

    def _read_run(self, data: bytes, at: int) -> int:
        """Read all chunks that are complete in the data, at once; return where the last one ends."""
        pieces = []
        room = self.limit - self.size
        while (size := _CHUNK_SIZE.match(data, at)) is not None:
            start = size.end()
            length = int(size[1] or b"0", 16)
            end = start + length
            room -= length
            if not length or room < 0 or data[end : end + 2] != b"\r\n" or start - at > _MAX_LINE_BYTES:
                break
            pieces.append(data[start:end])
            at = end + 2
        if pieces:
            self._read_piece(b"".join(pieces))
        return at

    def _await_line(self, data: bytes) -> None:
        self._pending = data
        if self._part is _CHUNK_END and data != b"\r":
            self._refuse(_LONG_CHUNK)
        elif len(data) > (self._limits.max_header_line_bytes if self._part is _TRAILERS else _MAX_LINE_BYTES):
            self.stop(Outcome.HEADER_TOO_LARGE, _LONG_LINE)

    def _read_line(self, line: bytes) -> None:
        """Read a line that is not content: a chunk's size, its end, or a trailer."""
        if self._part is _CHUNK_END:
            self._part = _SIZE
            if line not in _BLANK:
                self._refuse(_LONG_CHUNK)
        elif self._part is _SIZE:
            self._read_size(line)
        elif line in _BLANK:
            self._part = _NOTHING
        elif b":" in line:
            self._read_trailer(line)
        else:
            self._refuse("a trailer without a colon")

    def _read_size(self, line: bytes) -> None:
        size = _CHUNK_SIZE.fullmatch(line)
        if len(line) > _MAX_LINE_BYTES:
            self.stop(Outcome.HEADER_TOO_LARGE, _LONG_LINE)
        elif size is None:
            self._refuse(f"chunk size {line[:40].decode('latin-1').strip()!r}")
        else:
            self._left = int(size[1] or b"0", 16)
            self._part = _CHUNK if self._left else _TRAILERS

    def _read_trailer(self, line: bytes) -> None:
        self.lines.append(line)
        self._line_bytes += len(line)
        limits = self._limits
        if len(self.lines) > limits.max_headers or self._line_bytes > limits.max_header_bytes:
            self.judge_caps()
