"""Which languages are the texts of a crawl in? Detected in a sample of its pages, or in all, read from the archive.

A crawl records what pages declare; detection would cost a quarter of all that is done with a page. So it is done here,
for one page in 100, at least 20 and at most 200, spread evenly over the catalog, by the visible text of their first
30 kB: the main text, which an export takes, needs the tree of a page and ten times as long.
0.6 ms per page that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from gossamer.archive.reader import ArchivedRecord, exchange_of
from gossamer.fetch.body import decode
from gossamer.model.records import ArchiveSpan, UrlRecord
from gossamer.parse.dispatch import parse_exchange
from gossamer.parse.html.markup import primary_language
from gossamer.parse.text.language import detect_language
from gossamer.reading.aggregates import Frequent, NamedCount

MIN_PAGES = 20
MAX_PAGES = 200
_ONE_IN = 100
_MAX_PAGE_BYTES = 300_000  # longer ones are not sampled: one could take as long as all others
_READ_BYTES = 30_000  # of a page: a few thousand characters of its text decide
_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
UNKNOWN = "not recognized"

ReadRecord: TypeAlias = Callable[[ArchiveSpan], ArchivedRecord | None]


class DetectedLanguages(Struct, frozen=True):
    """The languages of a sample."""

    languages: Sequence[NamedCount] = ()
    checked: int = 0
    differ: int = 0  # declare another language than was detected
    is_sample: bool = True


class _Tally:
    """The languages of texts, counted."""

    def __init__(self) -> None:
        self.languages = Frequent()
        self.differ = 0

    def add(self, row: UrlRecord, read: ReadRecord) -> None:
        """Count a page. What cannot be read is not counted."""
        found = _detected(row, read)
        if found is None:
            return
        self.languages.add(found or UNKNOWN)
        declared = primary_language(row.language)
        self.differ += bool(found and declared and declared != found)

    def counts(self, *, is_sample: bool) -> DetectedLanguages:
        return DetectedLanguages(self.languages.top(20), self.languages.total, self.differ, is_sample)


class AllLanguages:
    """Every page whose text is stored; one that repeats another page's bytes is not counted."""

    def __init__(self, read: ReadRecord) -> None:
        self._read = read
        self._tally = _Tally()

    def offer(self, row: UrlRecord) -> None:
        """Read a page, if it has a text."""
        if _has_text(row):
            self._tally.add(row, self._read)

    def detect(self, _: ReadRecord) -> DetectedLanguages:
        """Return the languages of the texts."""
        return self._tally.counts(is_sample=False)


class LanguageSample:
    """Every n-th of the pages that are offered; n doubles whenever there are twice as many as needed."""

    def __init__(self) -> None:
        self._every = 1
        self._skipped = 0
        self._offered = 0
        self._rows: list[UrlRecord] = []

    def offer(self, row: UrlRecord) -> None:
        """Include a page, if it is its turn and its text can be read."""
        self._offered += 1
        self._skipped += 1
        if self._skipped < self._every or not _has_text(row) or row.content_bytes > _MAX_PAGE_BYTES:
            return
        self._skipped = 0
        self._rows.append(row)
        if len(self._rows) >= 2 * MAX_PAGES:
            self._rows = self._rows[::2]
            self._every *= 2

    def detect(self, read: ReadRecord) -> DetectedLanguages:
        """Return the languages of the texts."""
        wanted = min(max(MIN_PAGES, self._offered // _ONE_IN), MAX_PAGES)
        step = -(-len(self._rows) // wanted) or 1
        tally = _Tally()
        for row in self._rows[::step]:
            tally.add(row, read)
        return tally.counts(is_sample=True)


def _has_text(row: UrlRecord) -> bool:
    is_stored = row.archived is not None and not row.duplicate_of
    return is_stored and row.content_type in _TYPES and row.content_bytes > 0


def _detected(row: UrlRecord, read: ReadRecord) -> str | None:
    record = read(row.archived) if row.archived is not None else None
    if record is None or record.type != "response":
        return None
    exchange = exchange_of(record)
    coding = exchange.header("content-encoding")
    exchange.content = exchange.body
    exchange.is_decoded = True
    if coding:
        exchange.content = decode(exchange.body, coding, _MAX_PAGE_BYTES).content
    exchange.content = _beginning(exchange.content)
    return detect_language(parse_exchange(exchange, want_text=True, want_pdf_links=False).text).code


def _beginning(content: bytes) -> bytes:
    """Return the first part of a page. Cut at a blank: half a character would make it look like another charset."""
    if len(content) <= _READ_BYTES:
        return content
    blank = content.rfind(b" ", 0, _READ_BYTES)
    return content[: blank if blank > 0 else _READ_BYTES]
