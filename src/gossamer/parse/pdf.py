"""Finds the links of a PDF without parsing its structure.

Link annotations are in plain text, or within compressed object streams. Both are searched
by pattern, with caps on streams and on inflated bytes, so a malformed or malicious file
costs bounded time and memory. No xref is followed, nothing recurses. About 1 ms per file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.parse.hrefs import clean_hrefs

MAX_STREAMS = 4096
MAX_INFLATED_BYTES = 16 * 1024 * 1024
MAX_LINKS = 50_000
_DICTIONARY_BYTES = 512  # what may be between /ObjStm and its stream

# Strings may nest parentheses once and escape any byte. Because of the bound an unclosed one is not read to the end.
_URI = re.compile(
    rb"/URI\s*(?:\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.){0,512}\)){0,4096})\)|<([0-9A-Fa-f\s]{2,8192})>)", re.DOTALL
)
_OBJECT_STREAM = re.compile(rb"/ObjStm\b")
_STREAM = re.compile(rb"\bstream\r?\n")
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(\r\n|[\r\n])|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_HTTP = re.compile(r"https?://", re.IGNORECASE)


def pdf_hrefs(content: bytes) -> list[str]:
    """Return the http and https links of a PDF, each once."""
    raw = islice(_uris(content), MAX_LINKS)
    return [href for href in clean_hrefs(map(_text_of, raw)) if _HTTP.match(href)]


def _uris(content: bytes) -> Iterator[bytes]:
    """Yield every URI as its bytes."""
    for part in (content, *_object_streams(content)):
        for match in _URI.finditer(part):
            literal, hexadecimal = match.groups()
            yield _unhex(hexadecimal) if hexadecimal else _unescape(literal)


def _object_streams(content: bytes) -> Iterator[bytes]:
    """Yield the inflated object streams."""
    left = MAX_INFLATED_BYTES
    position = 0
    for _ in range(MAX_STREAMS):
        marker = _OBJECT_STREAM.search(content, position)
        if marker is None or left <= 0:
            return
        position = marker.end()
        start = _STREAM.search(content, position, position + _DICTIONARY_BYTES)
        if start is None:
            continue
        end = content.find(b"endstream", start.end())
        position = end if end >= 0 else len(content)
        inflated = _inflate(content[start.end() : position], left)
        left -= len(inflated)
        yield inflated


def _inflate(data: bytes, limit: int) -> bytes:
    """Inflate up to `limit` bytes; empty if it cannot be inflated."""
    try:
        return bytes(isal_zlib.decompressobj().decompress(data, limit))
    except IsalError:  # type: ignore[misc]  # the stub declares the class as an instance
        return b""


def _unescape(literal: bytes) -> bytes:
    """Undo the escapes of a literal string (ISO 32000-1, 7.3.4.2)."""

    def replacement(match: re.Match[bytes]) -> bytes:
        octal, newline, other = match.groups()
        if octal:
            return bytes([int(octal, 8) & 0xFF])
        return b"" if newline else _ESCAPED.get(other, other)

    return _ESCAPE.sub(replacement, literal) if b"\\" in literal else literal


def _unhex(text: bytes) -> bytes:
    """Decode a hexadecimal string; an odd last digit counts as if 0 followed (ISO 32000-1, 7.3.4.3)."""
    digits = b"".join(text.split())
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))


def _text_of(raw: bytes) -> str:
    """Decode a PDF string."""
    if raw.startswith(b"\xfe\xff"):
        return raw[2:].decode("utf-16-be", "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
