"""Decodes a body's content coding, under limits.

Never allocates more than the limit plus one step: every decoder returns a bounded number of
bytes per call. The limit is the smaller of `max_bytes` and a plausible size for the input
(100:1 past 1 MiB), so a decompression bomb is cut early. At most three codings are decoded.
A body that is labelled wrongly (gzip, but plain) is returned as it is; a truncated stream
yields its prefix; an unknown coding yields the raw body.

Nor does it take long: a stream that says next to nothing (millions of empty blocks, frames or members) is cut where
its output falls behind its input. What is longer than `SLOW_BYTES`, or coded twice, can still take tenths of a
second: that is for a thread (`is_slow`); the decoders release the GIL.

The usual gzip page costs one call into isal: 13 µs for 26 KB, 4 for a tiny one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import IO, Final, TypeAlias, cast

from isal import igzip_lib, isal_zlib
from msgspec import Struct

_MAX_CODINGS: Final = 3
_RATIO: Final = 100
_RATIO_FREE_BYTES: Final = 1024 * 1024
_ZSTD_WINDOW_BYTES: Final = 8 * 1024 * 1024  # RFC 9659: what an HTTP client must accept, and no more
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_STEP_BYTES: Final = 64 * 1024
SLOW_BYTES: Final = 64 * 1024  # decoded in one call, up to which there is no empty stream that takes 10 ms
_MAX_MEMBERS: Final = 1000  # gzip members in one body: each starts a decoder
_MAX_BLOCKS: Final = 65_536  # of zstd, up to which it is checked whether the last one is there
# No coding makes its content four times as long. Less output than that is no content, but work for nothing.
_STALLED_RATIO: Final = 4
_STALLED_BYTES: Final = 128 * 1024

_IDENTITY: Final = frozenset(("", "identity", "none", "utf-8", "binary", "8bit", "7bit"))
# isal's stub declares its exception class as an instance.
_FAULTS: Final = (cast("type[Exception]", igzip_lib.IsalError), zlib.error)
_GZIP_WBITS: Final = 31
_ZLIB_WBITS: Final = 15
_RAW_WBITS: Final = -15


class Decoded(Struct, frozen=True, gc=False):
    """A body without its content coding."""

    content: bytes
    is_decoded: bool = True  # false: unknown or broken coding, content is the raw body
    is_truncated: bool = False  # content is a prefix: over the limit
    is_cut: bool = False  # content is a prefix: the coded stream ends too early or breaks


_Decoder: TypeAlias = Callable[[bytes, int], Decoded]


def decode(body: bytes, codings: str, max_bytes: int) -> Decoded:
    """Decode the codings named by Content-Encoding, under the limits."""
    names = [name for part in codings.lower().split(",") if (name := part.strip()) not in _IDENTITY]
    if not names or not body:
        return Decoded(body[:max_bytes], is_truncated=len(body) > max_bytes)
    if len(names) > _MAX_CODINGS or any(name not in _DECODERS for name in names):
        return Decoded(body[:max_bytes], is_decoded=False, is_truncated=len(body) > max_bytes)
    limit = min(max_bytes, max(_RATIO_FREE_BYTES, _RATIO * len(body)))
    content = body
    is_truncated = False
    is_cut = False
    for name in reversed(names):
        layer = _DECODERS[name](content, limit)
        if not layer.is_decoded:
            return Decoded(body[:max_bytes], is_decoded=False)
        content = layer.content
        is_truncated |= layer.is_truncated
        is_cut |= layer.is_cut
    return Decoded(content, is_truncated=is_truncated, is_cut=is_cut)


def is_slow(body: bytes, codings: str) -> bool:
    """Return whether decoding may take longer than an event loop can wait."""
    return len(body) > SLOW_BYTES or "," in codings


def _is_stalled(consumed: int, size: int) -> bool:
    """Return whether a decoder has made too little of its input."""
    return consumed > _STALLED_BYTES + _STALLED_RATIO * size


def _gunzip(body: bytes, limit: int) -> Decoded:
    if body[:2] != b"\x1f\x8b":
        return Decoded(body[:limit], is_truncated=len(body) > limit)
    return _inflate(body, limit, _GZIP_WBITS)


def _undeflate(body: bytes, limit: int) -> Decoded:
    """RFC 9110 means the zlib wrapping; many servers send the bare stream."""
    is_wrapped = len(body) >= 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    decoded = _inflate(body, limit, _ZLIB_WBITS if is_wrapped else _RAW_WBITS)
    if not decoded.is_decoded and is_wrapped:
        decoded = _inflate(body, limit, _RAW_WBITS)
    return decoded if decoded.is_decoded else _plain_or_broken(body, limit)


def _inflate(body: bytes, limit: int, wbits: int) -> Decoded:
    """Inflate slice by slice: what follows the end of a member is copied, which must not be the whole rest."""
    parts: list[bytes] = []
    size = at = start = 0
    view = memoryview(body)
    for _ in range(_MAX_MEMBERS):
        inflater = isal_zlib.decompressobj(wbits=wbits)
        known = len(parts)
        start = at
        while not inflater.eof:
            if at >= len(body) or _is_stalled(at, size):
                return Decoded(_joined(parts), is_cut=True)
            end = min(at + SLOW_BYTES, len(body))
            try:
                part = inflater.decompress(view[at:end], limit - size + 1)
            except _FAULTS:
                del parts[known:]
                return _broken(body, _salvaged(parts, view[start:], limit - sum(map(len, parts)), wbits))
            parts.append(part)
            size += len(part)
            if size > limit:
                return Decoded(b"".join(parts)[:limit], is_truncated=True)
            at = end - len(inflater.unused_data)
        # Anything after the stream that is not a further member is padding.
        if wbits != _GZIP_WBITS or body[at : at + 2] != b"\x1f\x8b":
            return Decoded(_joined(parts))
    return Decoded(_joined(parts), is_truncated=True)


def _salvaged(parts: list[bytes], rest: memoryview, limit: int, wbits: int) -> bytes:
    """Return what comes before the error; isal returns nothing from a call that fails, so zlib decodes in steps."""
    inflater = zlib.decompressobj(wbits=wbits)
    try:
        for at in range(0, len(rest), 1024):
            part = inflater.decompress(rest[at : at + 1024], limit)
            parts.append(part)
            limit -= len(part)
            if limit <= 0:
                break
    except zlib.error:
        pass
    return b"".join(parts)


def _unbrotli(body: bytes, limit: int) -> Decoded:
    import brotli  # 0.3 ms, and zstandard 0.7: imported by the first body that is coded so

    decompressor = brotli.Decompressor()
    parts: list[bytes] = []
    size = at = 0
    try:
        while size <= limit:
            piece = b""
            if decompressor.can_accept_more_data():
                piece = body[at : at + SLOW_BYTES]
                at += len(piece)
            part = decompressor.process(piece, output_buffer_limit=min(limit - size + 1, max(_STEP_BYTES, size)))
            parts.append(part)
            size += len(part)
            if decompressor.is_finished():
                return _within(_joined(parts), limit)
            has_ended = not part and not piece and decompressor.can_accept_more_data()
            if has_ended or _is_stalled(at, size):
                return Decoded(_joined(parts), is_cut=True)
    except brotli.error:
        return _broken(body, b"".join(parts)) if any(parts) else _plain_or_broken(body, limit)
    return _within(_joined(parts), limit)


class _Slices:
    """A body that is read slice by slice, and ends where its output falls behind."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0
        self.size = 0  # of the output so far
        self.is_stalled = False

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes; nothing at the end."""
        if _is_stalled(self._at, self.size):
            self.is_stalled = True
            return b""
        piece = self._body[self._at : self._at + size]
        self._at += len(piece)
        return piece


def _unzstd(body: bytes, limit: int) -> Decoded:
    if body[:4] != _ZSTD_MAGIC and not 0x184D2A50 <= int.from_bytes(body[:4], "little") <= 0x184D2A5F:
        return Decoded(body[:limit], is_truncated=len(body) > limit)
    import zstandard

    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    parts: list[bytes] = []
    slices = _Slices(body)
    try:
        with context.stream_reader(cast("IO[bytes]", slices), read_size=_STEP_BYTES, read_across_frames=True) as reader:
            while slices.size <= limit and (
                part := reader.read(min(limit - slices.size + 1, max(_STEP_BYTES, slices.size)))
            ):
                parts.append(part)
                slices.size += len(part)
    except zstandard.ZstdError:
        return _broken(body, b"".join(parts))
    content = _joined(parts)
    if slices.size > limit:
        return _within(content, limit)
    return Decoded(content, is_cut=slices.is_stalled or not _is_whole_zstd(body))


def _is_whole_zstd(body: bytes) -> bool:
    """Return whether the last frame is complete; the reader reports no error if it is cut. Decodes nothing."""
    import zstandard

    at = blocks = 0
    while at < len(body) and body[at : at + 4] == _ZSTD_MAGIC:
        try:
            frame = zstandard.get_frame_parameters(body[at : at + 32])
            at += zstandard.frame_header_size(body[at : at + 32])
        except zstandard.ZstdError:
            return False
        is_last = False
        while not is_last:
            blocks += 1
            if at + 3 > len(body) or blocks > _MAX_BLOCKS:
                return False
            # RFC 8878 3.1.1.2: last, type (1 is a run: one byte whatever its size), size.
            block = int.from_bytes(body[at : at + 3], "little")
            is_last = bool(block & 1)
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        at += 4 * frame.has_checksum
    return at <= len(body)


def _joined(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _within(content: bytes, limit: int) -> Decoded:
    return Decoded(content[:limit], is_truncated=len(content) > limit)


def _broken(body: bytes, prefix: bytes) -> Decoded:
    """An error in the stream: return what came before it; if nothing did, the body cannot be decoded."""
    return Decoded(prefix, is_cut=True) if prefix else Decoded(body, is_decoded=False)


def _plain_or_broken(body: bytes, limit: int) -> Decoded:
    """Codings without a magic number: text that was never coded, or a broken stream?"""
    sample = body[:512]
    is_text = not any(byte < 32 and byte not in b"\t\n\f\r\x1b" for byte in sample)
    return _within(body, limit) if is_text else Decoded(body, is_decoded=False)


_DECODERS: Final[Mapping[str, _Decoder]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
