"""A fingerprint of a page's text, without its numbers and the echo of its own address.

Two pages with one fingerprint have the same content for a reader: counters, dates and the repeated
name of the requested page make no difference. Used as evidence of traps, never to drop a page.
6 µs for 10 KB of text in C, 15 in Python.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from xxhash import xxh3_64_digest

from gossamer.core.url import path_of
from gossamer.kernel import kernel

MIN_BYTES = 20  # less is no evidence: a page made by scripts
MIN_ECHO_CHARS = 4
MAX_ECHOES = 8
MAX_BYTES = 100_000
_DIGITS = b"0123456789"
_DIGIT = re.compile(r"\d")
_MIN_ID_CHARS = 12
_ID = re.compile(r"(?<=/)(?=[^/]*\d)[0-9A-Za-z_-]{12,}(?=/)")


def text_fingerprint(text: bytes, url: str) -> bytes:
    """Return the 8-byte fingerprint of a page's text in UTF-8; empty if there is too little."""
    if len(text) < MIN_BYTES:
        return b""
    return xxh3_64_digest(bare(text[:MAX_BYTES], _echoes(url)))


def plain_bare(text: bytes, parts: list[bytes]) -> bytes:
    """Return a text without some parts, removed one after the other, and without digits; in pure Python."""
    for part in parts:
        text = text.replace(part, b"")
    return text.translate(None, _DIGITS)


bare = kernel.bare if kernel is not None else plain_bare


def _echoes(url: str) -> list[bytes]:
    """Return the parts of its address that a page may repeat, longest first."""
    path = path_of(url)
    if "%" in path:
        path = unquote(path)
    bare, mark, query = path.partition("?")
    name = bare.rpartition("/")[2]
    # Of the folders of a path only those that look like an id are echoed alone.
    ids = _ID.findall(bare) if len(bare) - len(name) > _MIN_ID_CHARS and _DIGIT.search(bare) else []
    if mark or ids:
        values = [part.partition("=")[2] for part in query.split("&")]
        parts = {part for part in (path, bare, name, *values, *ids) if len(part) >= MIN_ECHO_CHARS}
        longest = sorted(parts, key=lambda part: (-len(part), part))[:MAX_ECHOES]
    else:  # most pages: the path is the longest, and 3 µs less
        longest = [part for part in (bare, name) if len(part) >= MIN_ECHO_CHARS]
    return [part.encode("utf-8", "replace") for part in longest]
