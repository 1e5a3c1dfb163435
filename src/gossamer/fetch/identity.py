"""The crawler's identity, and the request head on the wire.

The request head is composed here in the order in which libcurl writes it, because getting
it from libcurl (DEBUGFUNCTION) costs a callback per network event; a test compares the
two byte for byte.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_ACCEPT: Final = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_ACCEPT_ENCODING: Final = "Accept-Encoding: gzip, deflate, br, zstd"


class Identity(Struct, frozen=True, gc=False):
    """Who is crawling. A `contact` that is a mail address is also sent in `From`."""

    user_agent: str
    contact: str = ""

    def headers(self) -> tuple[str, ...]:
        """Return the header lines of every request, in their order on the wire, without Host and User-Agent."""
        sender = (f"From: {_one_line(self.contact)}",) if _is_mail(self.contact) else ()
        return (_ACCEPT, _ACCEPT_ENCODING, *sender)


def head_tail(identity: Identity) -> bytes:
    """Return the part of the request head that is the same for all requests: everything after the Host line."""
    lines = (f"User-Agent: {_one_line(identity.user_agent)}", *identity.headers())
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1", "replace")


def request_head(url: str, tail: bytes, extra: tuple[tuple[str, str], ...] = (), method: str = "GET") -> bytes:
    """Return the request head as libcurl writes it for a canonical URL (over HTTP/2: the HTTP/1.1 equivalent)."""
    authority, slash, target = url.partition("://")[2].partition("/")
    if "#" in target:
        target = target.partition("#")[0]
    start = f"{method} {slash}{target} HTTP/1.1\r\nHost: {authority}\r\n".encode("utf-8", "replace")
    if not extra:
        return start + tail + b"\r\n"
    more = "".join([f"{name}: {value}\r\n" for name, value in extra])
    return start + tail + more.encode("latin-1", "replace") + b"\r\n"


def _is_mail(contact: str) -> bool:
    return "@" in contact and "/" not in contact


def _one_line(text: str) -> str:
    return " ".join(text.split())
