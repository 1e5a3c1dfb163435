"""Which languages are the texts of a crawl in? Detected in a sample of its pages, read from the archive.

A crawl records what pages declare; detection takes the text, which costs more than all the rest of a page. So
it is done here, for up to 200 pages that are spread evenly over the catalog. Costs: 1.3 ms per page of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from gossamer.archive.reader import ArchivedRecord, exchange_of
from gossamer.fetch.body import decode
from gossamer.inspect.aggregates import Frequent, NamedCount
from gossamer.parse.article import PageSource, read_article
from gossamer.parse.dispatch import declared_type
from gossamer.parse.markup import primary_language
from gossamer.records import ArchiveSpan, UrlRecord

MAX_PAGES = 200
_MAX_PAGE_BYTES = 300_000  # longer ones are not sampled: one could take as long as all others
_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
UNKNOWN = "not recognized"

ReadRecord: TypeAlias = Callable[[ArchiveSpan], ArchivedRecord | None]


class DetectedLanguages(Struct, frozen=True):
    """The languages of a sample."""

    languages: Sequence[NamedCount] = ()
    checked: int = 0
    differ: int = 0  # declare another language than was detected


class LanguageSample:
    """Every n-th of the pages that are offered; n doubles whenever there are twice as many as needed."""

    def __init__(self) -> None:
        self._every = 1
        self._skipped = 0
        self._rows: list[UrlRecord] = []

    def offer(self, row: UrlRecord) -> None:
        """Include a page, if it is its turn and its text can be read."""
        self._skipped += 1
        if self._skipped < self._every or not _is_readable(row):
            return
        self._skipped = 0
        self._rows.append(row)
        if len(self._rows) >= 2 * MAX_PAGES:
            self._rows = self._rows[::2]
            self._every *= 2

    def detect(self, read: ReadRecord) -> DetectedLanguages:
        """Return the languages of the texts. What cannot be read is not counted."""
        step = -(-len(self._rows) // MAX_PAGES) or 1
        languages, differ = Frequent(), 0
        for row in self._rows[::step]:
            found = _detected(row, read)
            if found is None:
                continue
            languages.add(found or UNKNOWN)
            declared = primary_language(row.language)
            differ += bool(found and declared and declared != found)
        return DetectedLanguages(languages.top(20), languages.total, differ)


def _is_readable(row: UrlRecord) -> bool:
    return (
        row.archived is not None
        and not row.duplicate_of
        and row.content_type in _TYPES
        and 0 < row.content_bytes <= _MAX_PAGE_BYTES
    )


def _detected(row: UrlRecord, read: ReadRecord) -> str | None:
    record = read(row.archived) if row.archived is not None else None
    if record is None or record.type != "response":
        return None
    exchange = exchange_of(record)
    content, coding = exchange.body, exchange.header("content-encoding")
    if coding:
        content = decode(content, coding, _MAX_PAGE_BYTES).content
    charset = declared_type(exchange).charset
    source = PageSource(url=row.url, content_type=row.content_type, content=content, header_charset=charset)
    return read_article(source).language
