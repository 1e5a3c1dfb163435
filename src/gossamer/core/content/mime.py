"""Parses Content-Type headers.

The WHATWG rules: "parse a MIME type" (mimesniff 4.4) and "extract a MIME type" from
several headers (Fetch 3.5). A header that cannot be parsed is the same as none. A pure
function of the header values, cached: there are few distinct ones in a crawl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from gossamer.foundation.expressions import expression

MAX_CHARS = 4096  # of all headers together: what follows is no type

_HTTP_SPACE = "\t\n\r "
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_QUOTED_TEXT = expression(r"[\t\x20-\x7e\x80-\xff]*")


class MimeType(Struct, frozen=True):
    """A media type: `essence` is `type/subtype` in lower case, empty if there is none."""

    essence: str = ""
    parameters: dict[str, str] = {}

    @property
    def charset(self) -> str:
        """The charset label as declared, not checked."""
        return self.parameters.get("charset", "")

    def __str__(self) -> str:
        return self.essence + "".join(f";{name}={_quote(value)}" for name, value in self.parameters.items())


NO_TYPE = MimeType()


def parse_mime_type(text: str) -> MimeType:
    """Parse one MIME type; `NO_TYPE` if it is not one."""
    head, _, rest = text.strip(_HTTP_SPACE).partition(";")
    major, slash, minor = head.partition("/")
    minor = minor.rstrip(_HTTP_SPACE)
    if not slash or not _TOKEN.fullmatch(major) or not _TOKEN.fullmatch(minor):
        return NO_TYPE
    parameters: dict[str, str] = {}
    for name, value in _parameters(rest):
        if _TOKEN.fullmatch(name) and _QUOTED_TEXT.fullmatch(value):
            parameters.setdefault(name, value)
    return MimeType(f"{major}/{minor}".lower(), parameters)


@lru_cache(maxsize=1024)
def combined_mime_type(values: tuple[str, ...]) -> MimeType:
    """Return the type that follows from one or more Content-Type headers."""
    # Fetch 3.5: the last valid value wins; its charset may be inherited from an earlier equal type.
    found = NO_TYPE
    charset = ""
    for value in _split_outside_quotes(", ".join(values)[:MAX_CHARS]):
        candidate = parse_mime_type(value)
        if candidate is NO_TYPE or candidate.essence == "*/*":
            continue
        if candidate.essence != found.essence or candidate.charset:
            charset = candidate.charset
        elif charset:
            candidate = MimeType(candidate.essence, {**candidate.parameters, "charset": charset})
        found = candidate
    return found


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """Yield names (lower case) with their values; names may be anything."""
    position = 0
    end = len(text)
    while position < end:
        while position < end and text[position] in _HTTP_SPACE:
            position += 1
        stop = _index_of_any(text, ";=", position)
        name = text[position:stop].lower()
        position = stop + 1
        if stop >= end or text[stop] == ";":
            continue
        if text.startswith('"', position):
            value, position = _quoted_string(text, position)
            position = _index_of_any(text, ";", position) + 1
            yield name, value
            continue
        stop = _index_of_any(text, ";", position)
        value = text[position:stop].rstrip(_HTTP_SPACE)
        position = stop + 1
        if value:
            yield name, value


def _quoted_string(text: str, position: int) -> tuple[str, int]:
    """Read the quoted string that starts at `position`; the closing quote may be missing."""
    out: list[str] = []
    position += 1
    while position < len(text) and text[position] != '"':
        if text[position] == "\\" and position + 1 < len(text):
            position += 1
        out.append(text[position])
        position += 1
    return "".join(out), position + 1


def _index_of_any(text: str, characters: str, start: int) -> int:
    """Return the position of the first of `characters`, or the end."""
    return min((at for at in (text.find(one, start) for one in characters) if at >= 0), default=len(text))


def _split_outside_quotes(text: str) -> list[str]:
    """Split at commas that are not in a quoted string (Fetch: "get, decode, and split")."""
    parts = []
    start = 0
    position = 0
    while position < len(text):
        if text[position] == '"':
            position = _quoted_string(text, position)[1]
            continue
        if text[position] == ",":
            parts.append(text[start:position])
            start = position + 1
        position += 1
    parts.append(text[start:])
    return parts


def _quote(value: str) -> str:
    """Return a parameter's value, quoted if it is not a token."""
    if _TOKEN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
