"""What is new, changed, gone or moved between two crawls, or in one crawl since a moment?

Only pages count: URLs that were answered with 200 and stored. A page has *changed* if its title or the words of its
main text are others; if only markup, attributes or navigation are, it is counted as unchanged in text. Both catalogs
are read in the order of ids, side by side: memory does not grow with the crawls. Bodies are read only of pages whose
content differs.

In one crawl, the catalog has the last visit of a URL; what it was before the moment is found by the index.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from gossamer.core.dedup.shingles import shingle_hashes
from gossamer.core.ledger.rows import decode_url, encode
from gossamer.core.links.requisite import requisite_id
from gossamer.handover.export.documents import DocumentMaker, iso_time
from gossamer.handover.export.stored import ExportedPage, ExportedPages, is_answer, is_page
from gossamer.handover.findings.link_table import enough_room
from gossamer.model.errors import UsageError
from gossamer.model.records import FetchKind, Outcome, UrlId, UrlRecord
from gossamer.ports import Catalog
from gossamer.reading.view import CrawlView
from gossamer.settings.regions import regions_of

_GONE = frozenset({404, 410})
_MARKS = re.compile(r"(?m)^(?:#{1,6}|-) ")  # that a text has of its markup: headings, list items
_Rows = Iterator[tuple[UrlId, UrlRecord]]
_OtherRow = tuple[UrlId, UrlRecord]
_OtherRows = Iterator[tuple[UrlId, _OtherRow]]


class DiffKind(StrEnum):
    """What has become of a page."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    MOVED = "moved"


class DiffEntry(Struct, kw_only=True):
    """A page that is new, changed, gone or moved."""

    change: DiffKind
    url: str
    at: str  # of the later visit
    before: str | UnsetType = UNSET  # when the earlier visit was; not of a new page
    status: int
    similarity: float | UnsetType = UNSET  # of the texts of a changed page; missing if one of them could not be read
    to: str | UnsetType = UNSET  # where a page has moved


class DiffCounts(Struct):
    """How many pages there are of each kind."""

    new: int = 0
    changed: int = 0
    gone: int = 0  # 404 or 410 now
    moved: int = 0  # a redirect now
    unchanged: int = 0
    unchanged_text: int = 0  # only markup, attributes or navigation have changed
    failed: int = 0  # a page before; now an error, or not allowed
    not_fetched: int = 0  # a page before, and not fetched since
    unread: int = 0  # bodies that could not be read, so that the texts are not compared


class PageText(Struct, frozen=True):
    """What is compared of a page."""

    title: str
    words: list[str]

    def similarity(self, other: PageText) -> float:
        """Return the share of common shingles (five consecutive words) of two texts, from 0 to 1."""
        own, others = (set(shingle_hashes(" ".join(text.words))) for text in (self, other))
        return len(own & others) / len(own | others) if own or others else 1.0


class _Texts:
    """Reads the bodies and texts of a crawl's pages."""

    def __init__(self, crawl: CrawlView) -> None:
        self.pages = ExportedPages(crawl)
        self._maker = DocumentMaker(crawl, self.pages)

    def body(self, page: ExportedPage) -> bytes:
        return self.pages.exchange(page).content

    def text(self, page: ExportedPage) -> PageText:
        article = self._maker.make(page).article
        return PageText(" ".join(article.title.split()), _MARKS.sub("", article.text).split())


class Difference:
    """The differences, and how many of each kind have been found so far."""

    def __init__(self) -> None:
        self.counts = DiffCounts()

    def between(self, earlier: CrawlView, later: CrawlView) -> Iterator[DiffEntry]:
        """Yield what differs between two crawls, in the order of URL ids in the earlier one."""
        _check_ids(earlier, later)
        old_texts = _Texts(earlier)
        new_texts = _Texts(later)
        with _identified(later.ledger, earlier.ledger) as later_rows:
            yield from self._side_by_side(earlier.ledger.urls(), later_rows, old_texts, new_texts)

    def _side_by_side(
        self, earlier: _Rows, later: _OtherRows, old_texts: _Texts, new_texts: _Texts
    ) -> Iterator[DiffEntry]:
        for key, old, other in _side_by_side(earlier, later):
            new_key, new = other if other is not None else (key, None)
            was_page = old is not None and is_page(old)
            if new is None or not is_answer(new) or not new.outcome:
                self.counts.not_fetched += was_page
            elif old is None or not was_page:
                yield from self._first(new)
            elif not is_page(new):
                yield from self._ended(new, old.fetched_at)
            elif old.content_hash == new.content_hash:
                self.counts.unchanged += 1
            else:
                pair = old_texts.pages.at(key, old), new_texts.pages.at(new_key, new)
                yield from self._compared(old_texts, new_texts, new, old.fetched_at, pair)

    def since(self, crawl: CrawlView, moment: float) -> Iterator[DiffEntry]:
        """Yield what differs in a crawl since a moment, in the order of URL ids."""
        texts = _Texts(crawl)
        for key, row in crawl.ledger.urls():
            if not is_answer(row) or not row.outcome:
                continue
            if row.fetched_at < moment:
                self.counts.not_fetched += is_page(row)
                continue
            old = texts.pages.before(key, row, moment) if row.visits > 1 else None
            is_answered = row.archived is not None  # else its visits may have no captures
            if old is None and row.visits > 1 and is_answered and not texts.pages.is_indexed(row.url):
                self.counts.unread += 1
            elif old is None or old.record.block[9:12] not in (b"200", b"304"):
                yield from self._first(row)
            elif not is_page(row):
                yield from self._ended(row, old.record.date)
            else:
                yield from self._compared(texts, texts, row, old.record.date, (old, texts.pages.at(key, row)))

    def _first(self, row: UrlRecord) -> Iterator[DiffEntry]:
        """Yield a URL that was no page before, if it is one now."""
        if is_page(row):
            self.counts.new += 1
            yield DiffEntry(change=DiffKind.NEW, url=row.url, at=iso_time(row.fetched_at), status=row.status)

    def _ended(self, row: UrlRecord, before: float) -> Iterator[DiffEntry]:
        """Yield a URL that was a page before and is none now, unless it has failed."""
        entry = DiffEntry(
            change=DiffKind.GONE, url=row.url, at=iso_time(row.fetched_at), before=iso_time(before), status=row.status
        )
        if row.status in _GONE:
            self.counts.gone += 1
            yield entry
        elif row.outcome == Outcome.REDIRECT.value:
            self.counts.moved += 1
            entry.change = DiffKind.MOVED
            entry.to = row.redirect_to
            yield entry
        else:
            self.counts.failed += 1

    def _compared(
        self,
        old_texts: _Texts,
        new_texts: _Texts,
        row: UrlRecord,
        before: float,
        pair: tuple[ExportedPage | None, ExportedPage | None],
    ) -> Iterator[DiffEntry]:
        """Yield a URL that is a page before and now, if its text has changed."""
        old, new = pair
        entry = DiffEntry(
            change=DiffKind.CHANGED,
            url=row.url,
            at=iso_time(row.fetched_at),
            before=iso_time(before),
            status=row.status,
        )
        if old is None or new is None:
            self.counts.unread += 1
            self.counts.changed += 1
            yield entry
            return
        if old_texts.body(old) == new_texts.body(new):
            self.counts.unchanged += 1
            return
        old_text = old_texts.text(old)
        new_text = new_texts.text(new)
        if old_text == new_text and old_text.words:
            self.counts.unchanged_text += 1
            return
        self.counts.changed += 1
        entry.similarity = round(old_text.similarity(new_text), 4) if old_text.words or new_text.words else 0.0
        yield entry


@contextmanager
def _identified(catalog: Catalog, other: Catalog) -> Iterator[_OtherRows]:
    """Yield the rows of a catalog, with their own ids, by the ids that their URLs have in another one, and sorted.

    Every crawl has its own key. The rows are sorted on disk; memory does not grow with the crawls.
    """
    if catalog.identity.record == other.identity.record:
        yield ((key, (key, row)) for key, row in catalog.urls())
        return
    with closing(sqlite3.connect("", isolation_level=None)) as db:
        db.executescript("CREATE TABLE rows (id BLOB PRIMARY KEY, own BLOB, row BLOB) WITHOUT ROWID; BEGIN")
        with enough_room():
            for key, row in catalog.urls():
                its_id = other.url_id(row.url)
                if row.kind is FetchKind.REQUISITE:
                    its_id = requisite_id(its_id)
                db.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, ?)", (its_id, key, encode(row)))
        found = db.execute("SELECT id, own, row FROM rows ORDER BY id")
        yield ((its_id, (key, decode_url(row))) for its_id, key, row in found)


def _side_by_side(old: _Rows, new: _OtherRows) -> Iterator[tuple[UrlId, UrlRecord | None, _OtherRow | None]]:
    """Yield the rows of two catalogs by their id, each of which is sorted by it."""
    left = next(old, None)
    right = next(new, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            yield left[0], left[1], None
            left = next(old, None)
        elif left is None or right[0] < left[0]:
            yield right[0], None, right[1]
            right = next(new, None)
        else:
            yield left[0], left[1], right[1]
            left = next(old, None)
            right = next(new, None)


def _check_ids(earlier: CrawlView, later: CrawlView) -> None:
    """Raise if the same URL may have different ids: the regions of a crawl are part of them."""
    regions = regions_of(later.settings)
    if earlier.settings.region != later.settings.region or (regions is not None and regions.has_countries):
        raise UsageError(
            f"{earlier.name} and {later.name}: crawls with different regions, or regions by country, cannot be "
            "compared; expected the same --region rules, by name"
        )
