"""What came back from a server, what was read in it, and what is stored of it. None leaves the worker that made it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gossamer.model.records import ContentRecord, FetchTask, Outcome, Truncation


class Exchange(Struct):
    """One HTTP request and its answer, byte for byte. Made by fetch, read by parse and archive."""

    url: str
    outcome: Outcome
    error: str = ""  # one line for people, if there was no complete answer
    status: int = 0
    address: str = ""  # the IP address that answered
    http_version: str = ""  # "1.0", "1.1", "2", "3"
    tls_version: str = ""
    request_head: bytes = b""  # as written: request line, headers, blank line
    response_head: bytes = b""  # status line, headers, blank line of the final answer
    headers: list[tuple[str, str]] = []  # in order, names lower case, values latin-1
    body: bytes = b""  # as sent, with its content coding, without its transfer coding
    content: bytes = b""  # the body decoded, under the limits
    is_decoded: bool = True  # false if the coding is unknown or broken: content is the raw body
    truncated: Truncation = Truncation.NONE
    sent_at: float = 0.0
    requests_sent: int = 0  # 1 once it was written: a transfer writes one request and never repeats it
    first_byte_at: float = 0.0
    finished_at: float = 0.0
    wire_bytes: int = 0  # body bytes received
    connect_s: float = -1.0  # until TCP was connected; -1 on a kept connection
    tls_s: float = -1.0  # the handshake; -1 without one
    body_sha1: bytes = b""  # of the body, if already computed
    first_values: dict[str, str] | None = None  # of the headers; see `named`

    @property
    def named(self) -> dict[str, str]:
        """The first value of each header by its name in lower case. Headers must not change after the first call."""
        first_values = self.first_values
        if first_values is None:
            first_values = self.first_values = dict(self.headers[::-1])
        return first_values

    def header(self, name: str) -> str:
        """Return the first value of a header (name in lower case), or the empty string."""
        return self.named.get(name, "")

    def all_values(self, name: str) -> list[str]:
        """Return all values of a header (name in lower case)."""
        named = self.named
        if name not in named:
            return []
        if len(named) == len(self.headers):  # no header is repeated
            return [named[name]]
        return [value for key, value in self.headers if key == name]


class HiddenPart(Struct, frozen=True):
    """A part of a page that a style of its own hides: see `parse.hiding`."""

    how: int
    start: int  # in the visible text, in bytes
    end: int
    hrefs: list[str] = []


class Document(Struct):
    content_type: str = ""  # sniffed, without parameters
    charset: str = ""
    language: str = ""
    title: str = ""
    description: str = ""
    canonical: str = ""
    visible: bytes = b""  # the visible text in UTF-8: it is hashed more often than read
    hrefs: list[str] = []  # links to follow, resolved against nothing: see `base`
    base: str = ""  # what hrefs are relative to
    is_noindex: bool = False
    is_nofollow: bool = False
    is_noarchive: bool = False
    words: int = 0  # in the text
    nofollow_links: int = 0  # with rel=nofollow, or on a page with nofollow: counted, not followed
    problem: str = ""  # what was not read, in one line
    hidden: list[HiddenPart] = []  # of its text and links
    dates: dict[str, str] = {}  # of a feed's entries: when they changed, by URL
    interval_s: int = 0  # how often a feed wants to be fetched; 0: it does not say

    @property
    def text(self) -> str:
        return self.visible.decode()


class FetchedPage(Struct):
    """A complete answer on its way into the sinks."""

    task: FetchTask
    exchange: Exchange
    first_copy: ContentRecord | None = None  # the first page with this content, if it is known
    prepared: Any = None  # what the archive's `prepare` computed for its `write`


class Volume(Struct, gc=False):
    """How well a sink compresses: what it was given to store so far, and what that takes in its files."""

    given_bytes: int = 0
    file_bytes: int = 0

    def __add__(self, other: Volume) -> Volume:
        return Volume(self.given_bytes + other.given_bytes, self.file_bytes + other.file_bytes)
