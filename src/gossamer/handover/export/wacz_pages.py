"""The pages that a WACZ lists: seeds first, then the others in archive order.

Replay tools show all of `pages.jsonl` at once, so it has at most `MAX_LISTED` seeds and as many other pages; they
search in the rest, which is in `extraPages.jsonl`. A page is shown as it was at the time of its last visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from tempfile import TemporaryFile
from types import TracebackType
from typing import BinaryIO, Self

import msgspec
from msgspec import Struct

from gossamer.handover.export.documents import DocumentMaker, iso_time, wanted_pages
from gossamer.handover.export.stored import StoredPage, StoredPages
from gossamer.handover.where import Selection
from gossamer.model.records import Source
from gossamer.reading.view import CrawlView

MAX_LISTED = 10_000
PAGES = "pages.jsonl"
EXTRA_PAGES = "extraPages.jsonl"
_SEED_SOURCES = (Source.SEED, Source.REDIRECT)
_CHUNK_BYTES = 1 << 20
_encode = msgspec.json.Encoder().encode


class ListedPage(Struct, omit_defaults=True):
    """A line of a list of pages."""

    id: str
    url: str
    ts: str
    title: str
    text: str = ""
    seed: bool = False


class PageLists:
    """The lists of a WACZ, in temporary files until they are complete."""

    def __init__(self, *, with_text: bool) -> None:
        self.with_text = with_text
        self.count = 0
        self.main_page: Mapping[str, str] = {}  # the first seed, as in datapackage.json
        self._listed = {True: 0, False: 0}  # pages in pages.jsonl: seeds, and others
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._seeds, self._others, self._extra = (self._stack.enter_context(_temporary()) for _ in range(3))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def add(self, page: ListedPage) -> None:
        """Add a page."""
        self.count += 1
        line = _encode(page) + b"\n"
        if self._listed[page.seed] < MAX_LISTED:
            self._listed[page.seed] += 1
            (self._seeds if page.seed else self._others).write(line)
        else:
            self._extra.write(line)
        if page.seed and not self.main_page:
            self.main_page = {"mainPageUrl": page.url, "mainPageDate": page.ts}

    def files(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield the lists: the name of each and its bytes."""
        yield PAGES, self._list("pages", "Pages", self._seeds, self._others)
        if self._extra.tell():
            yield EXTRA_PAGES, self._list("extra-pages", "Other pages", self._extra)

    def _list(self, name: str, title: str, *parts: BinaryIO) -> Iterator[bytes]:
        yield _encode({"format": "json-pages-1.0", "id": name, "title": title, "hasText": self.with_text}) + b"\n"
        for part in parts:
            yield from chunks_of(part)


def _temporary() -> BinaryIO:
    return TemporaryFile(prefix="gossamer-")


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield what was written to a temporary file."""
    file.seek(0)
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def list_pages(
    crawl: CrawlView, pages: StoredPages, selection: Selection, ends: Mapping[str, int], lists: PageLists
) -> None:
    """Add the selected pages whose records lie before the ends of the archive files."""
    maker = DocumentMaker(crawl, pages, for_search=not selection.languages)
    is_read = lists.with_text or bool(selection.languages)
    is_wanted = wanted_pages(selection)
    hosts = selection.hosts
    for page in pages.of_hosts(hosts, is_wanted) if hosts else pages.in_archive_order(is_wanted):
        if page.span.offset + page.span.length > ends.get(page.span.file, 0):
            continue
        title = page.row.title
        text = ""
        if is_read:
            document = maker.make(page)
            if not selection.has_language(document.language):
                continue
            title = document.article.title
            text = document.article.text if lists.with_text else ""
        lists.add(_listed(page, title, text))


def _listed(page: StoredPage, title: str, text: str) -> ListedPage:
    row = page.row
    is_seed = row.depth == 0 and row.source in _SEED_SOURCES
    return ListedPage(page.url_id.hex(), row.url, iso_time(page.record.date), title or row.url, text, is_seed)
