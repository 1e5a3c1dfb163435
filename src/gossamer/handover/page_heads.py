"""What do pages say about themselves in their heads: description and canonical URL?

Neither is in the catalog, so the stored HTML pages are read once, by the crawl's own parser, without their texts. What
was read waits on disk.
"""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from types import TracebackType

from msgspec import Struct

from gossamer.core.url import canonical, host_of, url_id
from gossamer.exchanges import Exchange
from gossamer.handover.link_table import enough_room
from gossamer.handover.stored import StoredPages, is_page
from gossamer.inspect.view import CrawlView
from gossamer.parse.dispatch import declared_type
from gossamer.parse.html import parse_html
from gossamer.records import UrlId, UrlRecord

HTML = frozenset({"text/html", "application/xhtml+xml"})


class PageHead(Struct, frozen=True, gc=False):
    """What a page says about itself."""

    description: str = ""  # `description`, else `og:description`
    canonical: str = ""  # resolved; empty if the page names none


class PageHeads:
    """The heads of the HTML pages of a crawl, on disk. Use with `with`."""

    def __enter__(self) -> PageHeads:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE heads (id BLOB PRIMARY KEY, description TEXT, canonical TEXT, text BLOB) WITHOUT ROWID; BEGIN"
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def read(self, crawl: CrawlView) -> None:
        """Read the heads of all HTML pages that can be read here."""
        pages = StoredPages(crawl)
        for page in pages.in_archive_order(is_html_page):
            head = head_of(pages.exchange(page), page.row.url)
            key = _text_key(page.row.url, head.description) if head.description else None
            with enough_room():
                row = (page.url_id, head.description, head.canonical, key)
                self._db.execute("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", row)
        with enough_room():
            self._db.execute("CREATE INDEX by_text ON heads (text)")

    def of(self, key: UrlId) -> PageHead | None:
        """Return the head of a page; None if it was not read."""
        row = self._db.execute("SELECT description, canonical FROM heads WHERE id = ?", (key,)).fetchone()
        return None if row is None else PageHead(*row)

    def is_shared(self, url: str, description: str) -> bool:
        """Return whether another page of the same host has this description."""
        key = _text_key(url, description)
        found = self._db.execute("SELECT 1 FROM heads WHERE text = ? LIMIT 2", (key,)).fetchall()
        return len(found) > 1


def is_html_page(row: UrlRecord) -> bool:
    """Return whether a row is of a stored HTML page."""
    return is_page(row) and row.content_type in HTML


def head_of(exchange: Exchange, url: str) -> PageHead:
    """Return what an HTML page says about itself."""
    if not exchange.is_decoded:
        return PageHead()
    said = parse_html(exchange.content, declared_type(exchange).charset, want_text=False)
    base = (canonical(said.base, url) if said.base else None) or url
    return PageHead(said.description, (canonical(said.canonical, base) or "") if said.canonical else "")


def is_elsewhere(url: str, head: PageHead) -> bool:
    """Return whether a page names another URL as the canonical one."""
    return bool(head.canonical) and url_id(head.canonical) != url_id(url)


def plain(text: str) -> str:
    """Return a text without what makes no difference for a reader: case and white space."""
    return " ".join(text.casefold().split())


def _text_key(url: str, text: str) -> bytes:
    return blake2b(f"{host_of(url)} {plain(text)}".encode("utf-8", "replace"), digest_size=16).digest()
