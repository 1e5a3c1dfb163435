"""Where does the body of an HTTP/1 answer end, and may its connection be used again?

RFC 9112 6.3, for answers to GET: no body for some statuses, chunks if there is a Transfer-Encoding,
else Content-Length, else everything up to the end of the connection. A Content-Length that is not a
number is ignored; two different ones are a contradiction, and the answer is refused. So are two
different Locations, as by browsers and libcurl: one of them may have been injected.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from gossamer.fetch.plain.head import Head

TO_THE_END: Final = -1
IN_CHUNKS: Final = -2
_LOOKED_AT: Final = frozenset(("content-length", "transfer-encoding", "connection", "location"))
_WITHOUT_BODY: Final = frozenset((101, 204, 304))
_MAX_DIGITS: Final = 18  # more than any real body; such a body ends with its connection


class Framing(Struct, frozen=True, gc=False):
    length: int  # bytes, or TO_THE_END, or IN_CHUNKS
    keeps_alive: bool = False
    error: str = ""


def framing_of(head: Head) -> Framing:
    named = head.named
    if (
        head.status == 200
        and head.http_version == "1.1"
        and len(named) == len(head.headers)
        and "transfer-encoding" not in named
        and "content-length" in named
        and named.get("connection", "keep-alive").lower() == "keep-alive"
    ):  # nearly always, in a quarter of the time
        return _by_length(head, [named["content-length"]], True)
    is_closed = False
    keeps_alive = head.http_version != "1.0"
    lengths: list[str] = []
    has_codings = False
    for name, value in head.headers:
        if name not in _LOOKED_AT:
            continue
        if name == "content-length":
            lengths.append(value)
        elif name == "connection":
            words = value.lower()
            is_closed = is_closed or "close" in words
            keeps_alive = not is_closed and (keeps_alive or "keep-alive" in words)
        elif name == "transfer-encoding":
            has_codings = True
        elif value != head.value(name):
            return Framing(TO_THE_END, error="Location contradicts itself")
    if head.status in _WITHOUT_BODY:
        return Framing(0, keeps_alive and head.status != 101)
    if has_codings:
        names = {name.lower() for name in head.distinct("transfer-encoding")} - {"", "identity"}
        if names - {"chunked"}:
            return Framing(TO_THE_END, error=f"unexpected Transfer-Encoding: {', '.join(sorted(names))[:100]}")
        if names:
            # RFC 9112 6.3: with a Content-Length as well somebody may disagree about where the next answer begins.
            return Framing(IN_CHUNKS, keeps_alive and not lengths)
    return _by_length(head, lengths, keeps_alive) if lengths else Framing(TO_THE_END)


def _by_length(head: Head, lengths: list[str], keeps_alive: bool) -> Framing:
    length = lengths[0]
    if len(lengths) > 1 or "," in length:
        distinct = head.distinct("content-length")
        if len(distinct) > 1:
            return Framing(TO_THE_END, error="Content-Length contradicts itself")
        length = distinct.pop()
    if not length.isdecimal() or not length.isascii() or len(length) > _MAX_DIGITS:
        return Framing(TO_THE_END)
    return Framing(int(length), keeps_alive)
