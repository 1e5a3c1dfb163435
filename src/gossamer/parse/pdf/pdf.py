"""Finds the links of a PDF without parsing its structure.

Searched are the bytes of the file and what its Flate streams contain, by pattern: link annotations (`/URI`), and
anything else that is written as a URL. Streams that cannot contain text (images, fonts, color profiles) are omitted,
and so are names of XML namespaces. Object streams come first, because annotations are there. There are caps on
streams, on inflated bytes, on links and on places that look like one, so a malformed or malicious file costs bounded
time and memory; no xref is followed, nothing recurses. About 1 ms per file.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator

from isal import isal_zlib
from isal.igzip_lib import IsalError
from msgspec import Struct

from gossamer.parse.html.hrefs import clean_hrefs

MAX_STREAMS = 4096
MAX_INFLATED_BYTES = 16 * 1024 * 1024  # of all streams together
MAX_LINKS = 50_000
MAX_PLACES = 100_000  # where a link may begin: up to 5 µs each
_HEADER_BYTES = 1024  # what may be between the start of an object and its stream
_INPUT_BYTES = 16_384  # inflated at a time
_SALVAGE_BYTES = 64  # the same where a stream breaks: what comes before is kept
_RAW_WBITS = -15

# Strings may nest parentheses once and escape any byte.
# Plain characters are read in runs: one by one they take 60 ns each, and a file of such strings over a second.
_URI = re.compile(
    rb"/URI\s*+(?:\(([^()\\]*+(?:(?:\\.|\([^()\\]*+(?:\\.[^()\\]*+)*\))[^()\\]*+)*)\)|<([0-9A-Fa-f\s]{2,}+)>)",
    re.DOTALL,
)
_MAX_URI_BYTES = 9000  # with escapes, or as digits
_STREAM = re.compile(rb"\bstream\r?\n")
_OBJECT_STREAM = b"/ObjStm"
_FLATE = re.compile(rb"/(?:FlateDecode|Fl)\b")
# Images, embedded fonts, color profiles (by their number of components), cross-reference tables.
_WITHOUT_TEXT = re.compile(rb"/(?:Image|Length1|Type1C|CIDFontType0C|OpenType|XRef|N\s+[134])\b")
_BARE_REST = re.compile(rb"[^\x00-\x20\x7f-\xff()<>\[\]{}\"'\\^`|]{1,4096}")
_NAMESPACE = re.compile(rb"xmlns(?::[\w.\-]{1,32})?\s*=\s*[\"']$")
_NAMESPACE_BYTES = 48
_PUNCTUATION = b".,;:!?*_~&"
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(\r\n|[\r\n])|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_HTTP = re.compile(r"https?://", re.IGNORECASE)


class PdfLinks(Struct):
    """The http and https links of a PDF, each once; and what was not searched, in one line, or empty."""

    hrefs: list[str]
    problem: str = ""


def pdf_links(content: bytes) -> PdfLinks:
    streams = _Streams(content)
    found: dict[str, None] = {}
    problem = ""
    places = iter(range(MAX_PLACES))
    for part in itertools.chain([content], streams):
        found.update(dict.fromkeys(http_hrefs(map(_text_of, _uris(part, places)))))
        if len(found) > MAX_LINKS:
            problem = f"pdf: more than {MAX_LINKS} links"
        elif next(places, None) is None:
            problem = f"pdf: more than {MAX_PLACES} places that look like a link; what follows was not searched"
        if problem:
            break
    if b"/Encrypt" in content and not problem:
        problem = "pdf: encrypted; links in its streams cannot be read"
    return PdfLinks(list(found)[:MAX_LINKS], problem or streams.problem)


def http_hrefs(raw: Iterable[str]) -> list[str]:
    """Return those of the hrefs that name a host, cleaned: a relative one in a PDF is relative to nothing."""
    return [href for href in clean_hrefs(raw) if _HTTP.match(href)]


def bare_urls(part: bytes, places: Iterator[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield every URL in a text with its position, without the punctuation behind it, as long as there are places."""
    end = 0
    for _ in itertools.count() if places is None else places:
        colon = part.find(b"://", end)
        if colon < 0:
            return
        end = colon + 3
        scheme = part[max(0, colon - 5) : colon].lower()
        start = colon - (5 if scheme == b"https" else 4)
        if not scheme.endswith((b"https", b"http")):
            continue
        rest = _BARE_REST.match(part, end)
        if rest is None or _NAMESPACE.search(part[max(0, start - _NAMESPACE_BYTES) : start]):
            continue
        end = rest.end()
        yield start, part[start:end].rstrip(_PUNCTUATION)


def _uris(part: bytes, places: Iterator[int]) -> Iterator[bytes]:
    """Yield every URI as its bytes: annotations, then what is written elsewhere. Each place that is examined counts."""
    spans: list[tuple[int, int]] = []
    end = 0
    # A search by the pattern alone would hold the GIL for as long as it finds nothing.
    for _ in places:
        start = part.find(b"/URI", end)
        if start < 0:
            break
        end = start + 4
        match = _URI.match(part, start, start + _MAX_URI_BYTES)  # without an end it would hold the GIL for long
        if match is not None:
            end = match.end()
            spans.append((start, end))
            literal, hexadecimal = match.groups()
            yield _unhex(hexadecimal) if hexadecimal else _unescape(literal)
    following = iter([*spans, (len(part), len(part))])
    begin, end = next(following)
    for start, url in bare_urls(part, places):
        while start >= end:
            begin, end = next(following)
        if start < begin:
            yield url


class _Streams:
    """The inflated streams of a file. `problem` is complete when all have been yielded."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.problem = ""

    def __iter__(self) -> Iterator[bytes]:
        left = MAX_INFLATED_BYTES
        for number, (start, end) in enumerate(self._spans()):
            if number == MAX_STREAMS:
                self.problem = f"pdf: more than {MAX_STREAMS} streams; the others were not searched"
                return
            inflated = _inflate(self._content[start:end], left)
            left -= len(inflated)
            yield inflated
            if left <= 0:
                self.problem = f"pdf: more than {MAX_INFLATED_BYTES >> 20} MiB inflated; what follows was not searched"
                return

    def _spans(self) -> list[tuple[int, int]]:
        """Return where Flate streams are that can contain text, object streams first."""
        content = self._content
        objects = []
        others = []
        position = 0
        while (match := _STREAM.search(content, position)) is not None:
            start = match.end()
            end = content.find(b"endstream", start)
            position = end = end if end >= 0 else len(content)
            header = content[max(0, match.start() - _HEADER_BYTES) : match.start()]
            header = header[max(0, header.rfind(b"obj")) :]
            if _OBJECT_STREAM in header:
                objects.append((start, end))
            elif _FLATE.search(header) and not _WITHOUT_TEXT.search(header):
                others.append((start, end))
        return objects + others


def _inflate(data: bytes, limit: int) -> bytes:
    """Inflate up to `limit` bytes; what comes before a fault is kept. A wrong checksum at the end is none."""
    if len(data) < 2 or data[0] & 0x0F != 8:
        return b""
    inflater = isal_zlib.decompressobj(wbits=_RAW_WBITS)
    out = bytearray()
    start = 2
    try:
        while start < len(data) and len(out) < limit and not inflater.eof:
            out += inflater.decompress(data[start : start + _INPUT_BYTES], limit - len(out))
            start += _INPUT_BYTES
    except IsalError:  # type: ignore[misc]  # the stub declares the class as an instance
        return _salvaged(data, start, limit)
    return bytes(out)


def _salvaged(data: bytes, broken: int, limit: int) -> bytes:
    """Return what comes before a fault at or after `broken`: a call that fails returns nothing of what it inflated."""
    inflater = zlib.decompressobj(wbits=_RAW_WBITS)
    out = bytearray(inflater.decompress(data[2:broken], limit))
    try:
        for start in range(broken, len(data), _SALVAGE_BYTES):
            out += inflater.decompress(data[start : start + _SALVAGE_BYTES], limit - len(out))
            if len(out) >= limit:
                break
    except zlib.error:
        pass
    return bytes(out)


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
