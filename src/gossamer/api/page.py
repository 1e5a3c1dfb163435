"""A page as a program sees it: the facts at once, its content when it is asked for.

Content is read from the archive on first access and parsed on first use, so an attribute that is not used costs
nothing. An answer whose body is not stored (a type that is not kept, a PDF that is read for its links only) has no
content, and says so (`is_stored`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import turbohtml
from msgspec import Struct
from msgspec.structs import replace

from gossamer.handover.export.documents import DocumentMaker, PageDocument
from gossamer.handover.export.stored import ExportedPage, ExportedPages
from gossamer.model.errors import GossamerError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import UrlId, UrlRecord
from gossamer.parse.dispatch import declared_type
from gossamer.parse.text.article import Article, Outlink
from gossamer.parse.types.charset import decode_html, decode_text
from gossamer.parse.types.sniff import HTML, XHTML
from gossamer.reading.view import OpenCrawl
from gossamer.reading.why.link_meta import meta_of

_TEXT_TYPES = ("text/", "application/json", "application/javascript")


class Headers(Mapping[str, str]):
    """The headers of an answer, by name in any case; the values of a repeated one are joined by `, `."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = list(pairs)  # in order, names in lower case

    def __getitem__(self, name: str) -> str:
        values = self.get_all(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def get_all(self, name: str) -> list[str]:
        """Return all values of a header."""
        wanted = name.lower()
        return [value for key, value in self.pairs if key == wanted]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self.pairs))

    def __len__(self) -> int:
        return len({name for name, _ in self.pairs})

    def __repr__(self) -> str:
        return f"Headers({self.pairs!r})"


class PageParts(Struct, frozen=True):
    """What pages read their content and their relatives from."""

    crawl: OpenCrawl
    pages: ExportedPages
    maker: DocumentMaker


class Page:
    """An answer that was fetched, stored and recorded."""

    def __init__(self, key: UrlId, row: UrlRecord, parts: PageParts) -> None:
        self._key = key
        self._row = row
        self._parts = parts
        self.url = row.url
        self.status = row.status
        self.depth = row.depth
        self.title = row.title
        self.outcome = row.outcome  # one word: ok, client_error, redirect, …
        self.redirect_to = row.redirect_to  # empty if it is no redirect
        self.fetched_at = row.fetched_at  # seconds since 1970

    def __repr__(self) -> str:
        return f"Page({self.url!r})"

    @property
    def is_stored(self) -> bool:
        """Whether the archive has its bytes."""
        return self._row.archived is not None

    @property
    def duplicate_of(self) -> str:
        """The URL of the page that this one duplicates, exactly or nearly; empty if there is none."""
        return self._parts.maker.url_of(self._row.duplicate_of or self._row.near_duplicate_of)

    @property
    def found_on(self) -> str:
        """The URL of the page with the link, or of the redirect, that led here; empty for a seed."""
        return self._parts.maker.url_of(self._row.parent)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What was attached to the link that led here, or to the URL when it was added; redirects pass it on."""
        return meta_of(self._key, self._row, self._parts.crawl.ledger)

    # -- content ----------------------------------------------------------------------------------

    @cached_property
    def _stored(self) -> ExportedPage:
        stored = self._parts.pages.at(self._key, self._row)
        if stored is None:
            raise GossamerError(f"{self.url}: its archive record is missing")
        return stored

    @cached_property
    def _exchange(self) -> Exchange | None:
        return self._parts.pages.exchange(self._stored) if self.is_stored else None

    @property
    def content(self) -> bytes:
        """The body, decoded."""
        return self._exchange.content if self._exchange is not None else b""

    @cached_property
    def headers(self) -> Headers:
        """The response headers, by name in any case."""
        return Headers(self._exchange.headers if self._exchange is not None else [])

    @property
    def content_type(self) -> str:
        """The type of the content as sniffed; of an error, which is not read, as declared."""
        if self._row.content_type or self._exchange is None:
            return self._row.content_type
        return declared_type(self._exchange).essence

    @cached_property
    def html(self) -> str:
        """The source as text, whatever its charset; empty if it is no text."""
        if self._exchange is None or not self._exchange.is_decoded:
            return ""
        label = declared_type(self._exchange).charset
        kind = self.content_type
        if kind in (HTML, XHTML):
            return decode_html(self.content, label)[0]
        is_text = kind.startswith(_TEXT_TYPES) or kind.endswith(("/xml", "+xml", "+json"))
        return decode_text(self.content, label)[0] if is_text else ""

    @cached_property
    def tree(self) -> turbohtml.Document:
        """The parsed source: `tree.select(css)`, `tree.xpath(expression)`, `tree.find(tag)` and more."""
        return turbohtml.parse(self.html)

    def select(self, css: str) -> list[turbohtml.Element]:
        """Return the elements that match a CSS selector, in document order. `.text`, `.attr(name)`, `.select(css)`…"""
        return list(self.tree.select(css))

    def select_one(self, css: str) -> turbohtml.Element | None:
        """Return the first element that matches a CSS selector; None if there is none."""
        return self.tree.select_one(css)

    @cached_property
    def document(self) -> PageDocument:
        """Everything that `gossamer export` writes for the page."""
        stored = self._stored
        return self._parts.maker.make(replace(stored, row=replace(stored.row, content_type=self.content_type)))

    @property
    def article(self) -> Article:
        """The content: main text, headings, dates, links with their anchor texts."""
        return self.document.article if self.is_stored else Article()

    @property
    def text(self) -> str:
        """The main text."""
        return self.article.text

    @property
    def language(self) -> str:
        """The language as detected, otherwise as declared by the page."""
        return self.article.language or self.article.language_declared

    @property
    def links(self) -> list[Outlink]:
        """The links of the page, in order: `url` (resolved), `text` of the anchor, `rel`, `nofollow`."""
        return self.article.links
