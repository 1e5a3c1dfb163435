"""What do pages say about themselves in their heads: description and canonical URL?

Neither is in the catalog, so the stored HTML pages are read once, by the crawl's own parser, without their texts. What
was read waits on disk. Costs: 0.27 ms of CPU per page.
"""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from types import TracebackType

from msgspec import Struct

from gossamer.core.url.forms import canonical, host_of, url_id
from gossamer.handover.export.stored import ExportedPages, is_page
from gossamer.handover.findings.link_table import enough_room
from gossamer.model.exchanges import Exchange
from gossamer.model.records import UrlId, UrlRecord
from gossamer.parse.dispatch import declared_type
from gossamer.parse.html.html import parse_html
from gossamer.reading.view import CrawlView
from gossamer.report.record import DescriptionFigures, SharedText

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
            "CREATE TABLE heads (id BLOB PRIMARY KEY, url TEXT, description TEXT, canonical TEXT, text BLOB); BEGIN"
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def read(self, crawl: CrawlView) -> None:
        """Read the heads of all HTML pages that can be read here."""
        pages = ExportedPages(crawl)
        for page in pages.in_archive_order(is_html_page):
            head = head_of(pages.exchange(page), page.row.url)
            key = _text_key(page.row.url, head.description) if head.description else None
            with enough_room():
                row = (page.url_id, page.row.url, head.description, head.canonical, key)
                self._db.execute("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?)", row)
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

    def figures(self, shown: int, examples: int = 3) -> DescriptionFigures:
        """Return how many descriptions are missing or shared, with the first of each kind."""
        groups = self._db.execute(
            "SELECT text, min(description), count(*) AS pages FROM heads WHERE text IS NOT NULL"
            " GROUP BY text HAVING pages > 1 ORDER BY pages DESC, text LIMIT ?",
            (shown,),
        ).fetchall()
        return DescriptionFigures(
            read=self._number("SELECT count(*) FROM heads"),
            missing=self._number("SELECT count(*) FROM heads WHERE text IS NULL"),
            missing_examples=self._urls("WHERE text IS NULL ORDER BY rowid LIMIT ?", shown),
            shared=self._number(
                "SELECT coalesce(sum(pages), 0) FROM (SELECT count(*) AS pages FROM heads WHERE text IS NOT NULL"
                " GROUP BY text) WHERE pages > 1"
            ),
            shared_examples=[
                SharedText(text, pages, self._urls("WHERE text = ? ORDER BY rowid LIMIT ?", key, examples))
                for key, text, pages in groups
            ],
        )

    def _number(self, question: str) -> int:
        with enough_room():
            return int(self._db.execute(question).fetchone()[0])

    def _urls(self, which: str, *values: object) -> list[str]:
        with enough_room():
            return [url for (url,) in self._db.execute(f"SELECT url FROM heads {which}", values)]  # noqa: S608 - ours


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
