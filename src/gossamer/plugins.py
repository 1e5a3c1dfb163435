"""What a plugin implements: one Protocol per kind, and the records that it gets and returns.

A plugin is an object, or a class without arguments, that an installed package names as an entry point in the group of
its kind. A crawl uses it if it is named with `--plugin NAME`. See docs/plugins.md; `examples/plugins` has one of each.

    kind          group                     used for
    parser        gossamer.parsers          reading answers of some content types
    sink          gossamer.sinks            storing answers, beside the archive
    order         gossamer.orders           which URL of a host comes first
    link filter   gossamer.link_filters     which links are queued

A parser that raises ends its page with the outcome `internal_error`. Any other plugin that raises ends the crawl with
one line and without a commit: `resume` goes on from there, and no link or page is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from gossamer.core.links.intake import FoundLink

__all__ = [
    "Answer",
    "AnswerSink",
    "ContentParser",
    "FoundLink",
    "LinkFilter",
    "OrderPolicy",
    "ParsedContent",
    "SinkFactory",
]


class ParsedContent(Struct, kw_only=True):
    """What a parser found in an answer."""

    title: str = ""
    text: str = ""
    links: Sequence[str] = ()  # as written: they are resolved against the URL of the answer
    language: str = ""  # as declared


class ContentParser(Protocol):
    """Reads answers of some types, which are then fetched and stored like HTML. Called from several threads."""

    @property
    def content_types(self) -> Sequence[str]:
        """The types that it reads, in lower case and without parameters: `text/csv`."""
        ...

    def parse(self, content: bytes, url: str, content_type: str) -> ParsedContent:
        """Return what is in an answer. It is called again for the same answer after a kill, and by exports."""
        ...


class Answer(Struct, frozen=True, kw_only=True):
    """A complete answer to a request for a page."""

    url: str
    status: int
    fetched_at: float  # seconds since 1970
    content_type: str
    headers: Sequence[tuple[str, str]]  # in order, names in lower case
    content: bytes  # decoded
    title: str
    is_page: bool  # status 200 of a type that is stored


class AnswerSink(Protocol):
    """Stores answers. After a kill it may get an answer again that it had stored: URL and `fetched_at` tell."""

    def write(self, answer: Answer) -> None:
        """Store an answer, so that it survives the death of this process. One at a time.

        Called in the event loop, so be quick; only for an answer of over 8 MB in a thread.
        """
        ...

    def sync(self) -> None:
        """Return when all that was written survives a power cut. About once per second, in a thread of its own."""
        ...

    def close(self) -> None:
        """Finish what is open."""
        ...


class SinkFactory(Protocol):
    """Opens the sink of a worker."""

    def __call__(self, folder: Path, worker: int) -> AnswerSink:
        """Return a sink for one worker of a crawl; no two that run at the same time have the same number."""
        ...


class OrderPolicy(Protocol):
    """Ranks the URLs of a host. The order between hosts stays that of `--order`."""

    def score(self, url: str, depth: int) -> float:
        """Return 0 to 100; more is sooner. Asked once per URL, when it is queued."""
        ...


class LinkFilter(Protocol):
    """Decides about links that no rule refuses; asked after these, and before hooks of a program."""

    def accept(self, link: FoundLink) -> bool:
        """Return whether a link may be queued. The same URL may be asked about again."""
        ...
