"""Where a page comes from, when and how fast: the same facts in JSONL, Parquet and CSV."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec import Struct

import gossamer
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import use
from gossamer.handover.export import documents as ancestry
from gossamer.handover.export.documents import Ancestry
from gossamer.handover.export.export import export
from gossamer.handover.where import selection_from
from gossamer.model.records import FetchKind, QueuedUrl, Source
from gossamer.reading.folder import CrawlReader
from tests.reading.folders import ledger_of
from tests.servers.plain_site import Answer, PlainSite, plain_site

DATED = (
    '<html lang="de"><head><title>Dated</title><meta property="article:published_time" content="2024-05-01">'
    '<meta property="article:modified_time" content="2024-05-02T10:00:00+02:00"></head>'
    "<body><p>The words of this page are in English, and that is not the language which it declares for them.</p>"
)


class Site(Struct):
    """A crawled site."""

    url: str
    path: Path

    def exported(self, form: str, out: Path, *conditions: str) -> Path:
        with CrawlReader(self.path) as crawl:
            export(crawl, form, out, selection_from(conditions))
        return out

    def pages(self, tmp_path: Path, *conditions: str) -> dict[str, dict[str, Any]]:
        """Return the documents by path, with paths instead of URLs."""
        text = self.exported("jsonl", tmp_path / "pages.jsonl", *conditions).read_text("utf-8")
        found = [json.loads(line.replace(self.url, "/")) for line in text.splitlines()]
        return {page["url"]: page for page in found}

    def table(self, tmp_path: Path, *conditions: str) -> dict[str, dict[str, Any]]:
        rows = pq.read_table(self.exported("parquet", tmp_path / "pages.parquet", *conditions)).to_pylist()
        return {"/" + row["url"].removeprefix(self.url): row for row in rows}

    def cells(self, tmp_path: Path, *conditions: str) -> dict[str, dict[str, str]]:
        with self.exported("csv", tmp_path / "pages.csv", *conditions).open(newline="", encoding="utf-8") as file:
            return {"/" + row["url"].removeprefix(self.url): row for row in csv.DictReader(file)}


def answers(site: str) -> dict[str, Answer]:
    sitemap = f"<urlset><url><loc>{site}listed</loc><lastmod>2024-05-03</lastmod></url></urlset>"
    return {
        "/robots.txt": Answer(f"User-agent: *\nSitemap: {site}sitemap.xml\n", content_type="text/plain"),
        "/sitemap.xml": Answer(f'<?xml version="1.0"?>{sitemap}', content_type="application/xml"),
        "/": Answer(
            '<p>Front <a href="/a">A</a> <a href="/r1">moved</a> <a href="/loop1">round</a> <a href="/me">me</a>'
        ),
        "/a": Answer('<p>Page A <a href="/dated">dated</a>'),
        "/dated": Answer(DATED),
        "/r1": Answer(status=301, location="/r2"),
        "/r2": Answer(status=302, location="/end"),
        "/end": Answer('<p>The end <a href="/behind">behind</a>'),
        "/behind": Answer("<p>Behind the end"),
        "/loop1": Answer(status=302, location="/loop2"),
        "/loop2": Answer(status=302, location="/loop1"),
        "/me": Answer(status=302, location="/me"),
        "/listed": Answer("<p>Listed in a sitemap"),
        "/other": Answer('<p>Another seed <a href="/under-other">under it</a>'),
        "/under-other": Answer("<p>Under the other seed"),
    }


async def _crawl(site: PlainSite, out: Path) -> None:
    def accept(link: gossamer.FoundLink) -> bool | dict[str, Any]:
        return {"text": link.text, "n": [1]} if link.text in ("moved", "dated") else True

    seeds = [site.url, site.url + "other"]
    options: dict[str, Any] = {"politeness_ms": 0, "traps": False, "max_wait": 3.0, "near_dup": "off"}
    async with gossamer.crawl(seeds, out=out, accept_link=accept, **options) as pages:
        async for _ in pages:
            pass


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    out = tmp_path_factory.mktemp("columns") / "crawl"
    with plain_site() as site:
        site.answers = answers(site.url)
        asyncio.run(_crawl(site, out))
        yield Site(site.url, out)


def test_every_page_names_its_seed(crawled: Site, tmp_path: Path) -> None:
    seeds = {path: page["seed"] for path, page in crawled.pages(tmp_path).items()}
    first = dict.fromkeys(["/", "/a", "/dated", "/end", "/behind"], "/")
    assert seeds.pop("/listed") in ("/", "/other")  # of a sitemap of the host, where both are
    assert seeds == first | dict.fromkeys(["/other", "/under-other"], "/other")
    assert all(row["seed"].startswith(crawled.url) for row in crawled.table(tmp_path).values())


def test_redirects_that_led_to_a_page_are_listed_in_order(crawled: Site, tmp_path: Path) -> None:
    page = crawled.pages(tmp_path)["/end"]
    assert (page["redirected_from"], page["redirects"], page["redirect_loop"]) == (["/r1", "/r2"], [], False)
    chain = [crawled.url + "r1", crawled.url + "r2"]
    assert crawled.table(tmp_path)["/end"]["redirected_from"] == chain
    assert crawled.cells(tmp_path)["/end"]["redirected_from"] == " ".join(chain)
    assert crawled.pages(tmp_path)["/behind"]["redirected_from"] == []


def test_a_redirect_lists_where_it_leads_and_a_loop_is_called_one(crawled: Site, tmp_path: Path) -> None:
    pages = crawled.pages(tmp_path, "status>=300", "status<400")
    ways = {path: (page["redirects"], page["redirect_loop"]) for path, page in pages.items()}
    assert ways["/r1"] == (["/r2", "/end"], False)
    assert ways["/r2"] == (["/end"], False)
    assert ways["/loop1"] == (["/loop2", "/loop1"], True)
    assert ways["/me"][1]
    rows = crawled.table(tmp_path, "status>=300", "status<400")
    assert (rows["/loop1"]["redirect_loop"], rows["/r1"]["redirect_loop"]) == (True, False)
    cells = crawled.cells(tmp_path, "status>=300", "status<400")
    assert (cells["/loop1"]["redirect_loop"], cells["/r1"]["redirect_loop"]) == ("true", "false")


def test_dates_are_points_in_time_in_tables_and_texts_in_documents(crawled: Site, tmp_path: Path) -> None:
    page, row, cells = (read(tmp_path)["/dated"] for read in (crawled.pages, crawled.table, crawled.cells))
    assert (page["published"], page["modified"]) == ("2024-05-01", "2024-05-02T08:00:00Z")
    assert row["published"] == datetime(2024, 5, 1, tzinfo=UTC)
    assert row["modified"] == datetime(2024, 5, 2, 8, tzinfo=UTC)
    assert (cells["published"], cells["modified"]) == ("2024-05-01T00:00:00.000Z", "2024-05-02T08:00:00.000Z")
    assert page["fetched_at"] == cells["fetch_time"] == f"{row['fetch_time']:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
    assert crawled.table(tmp_path)["/listed"]["lastmod"] == datetime(2024, 5, 3, tzinfo=UTC)
    assert crawled.table(tmp_path)["/a"]["published"] is None


def test_declared_and_detected_language_are_two_columns(crawled: Site, tmp_path: Path) -> None:
    for read in (crawled.pages, crawled.table, crawled.cells):
        page = read(tmp_path)["/dated"]
        assert (page["language"], page["language_declared"]) == ("en", "de")


def test_requests_are_timed(crawled: Site, tmp_path: Path) -> None:
    pages, rows, cells = crawled.pages(tmp_path), crawled.table(tmp_path), crawled.cells(tmp_path)
    assert any(page["connect_ms"] is not None for page in pages.values())
    for path, page in pages.items():
        assert 0 <= page["first_byte_ms"] <= page["total_ms"] < 10_000
        assert page["tls_ms"] is None
        for name in ("connect_ms", "tls_ms", "first_byte_ms", "total_ms"):
            assert rows[path][name] == page[name]
            assert cells[path][name] == ("" if page[name] is None else str(page[name]))


def test_metadata_of_links_are_a_column(crawled: Site, tmp_path: Path) -> None:
    metas = {path: page["meta"] for path, page in crawled.pages(tmp_path).items() if page["meta"]}
    assert metas == {"/dated": {"text": "dated", "n": [1]}, "/end": {"text": "moved", "n": [1]}}
    assert json.loads(crawled.table(tmp_path)["/dated"]["meta"]) == metas["/dated"]
    assert crawled.table(tmp_path)["/a"]["meta"] is None
    assert json.loads(crawled.cells(tmp_path)["/end"]["meta"]) == metas["/end"]


def _queued(url: str, parent: str = "", source: Source = Source.LINK, **fields: Any) -> QueuedUrl:
    link = link_to(url)
    above = link_to(parent).id if parent else b""
    return QueuedUrl(url, link.id, link.host, 0, fields.pop("seq", 1), 1, source=source, parent=above, **fields)


@pytest.fixture(autouse=True)
def same_ids(crawled: Site) -> None:
    """Make ids as the crawl does."""
    with CrawlReader(crawled.path) as reader:
        identity = reader.ledger.identity
    use(identity)


def _seed_of(crawled: Site, path: Path, *urls: QueuedUrl) -> str:
    """Return the seed of the last of some URLs that a crawl knows, too."""
    shutil.copytree(crawled.path, path)
    with ledger_of(path) as ledger:
        ledger.admit(urls)
    with CrawlReader(path) as crawl:
        return Ancestry(crawl).seed_of(urls[-1].id, record_of(urls[-1]))


def test_parents_that_lead_round_end_without_a_seed(crawled: Site, tmp_path: Path) -> None:
    pair = _queued("http://h.test/a", "http://h.test/b"), _queued("http://h.test/b", "http://h.test/a")
    assert _seed_of(crawled, tmp_path / "c", *pair) == ""


def test_a_page_that_was_announced_has_no_seed(crawled: Site, tmp_path: Path) -> None:
    assert _seed_of(crawled, tmp_path / "c", _queued("http://h.test/a", source=Source.NOTICE)) == ""


def test_a_sitemap_belongs_to_the_first_page_of_its_host(
    crawled: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ancestry, "MAX_REMEMBERED", 2)  # more than that is looked up again
    seed = link_to("http://seed.test/")
    chain = [
        QueuedUrl(seed.url, seed.id, seed.host, 0, 1, 0, source=Source.SEED),
        _queued("http://h.test/later", "http://h.test/sitemap.xml", Source.SITEMAP, seq=2),
        _queued("http://h.test/first", seed.url, seq=3),
        _queued("http://h.test/sitemap.xml", source=Source.SITEMAP, kind=FetchKind.SITEMAP, seq=4),
        _queued("http://h.test/page", "http://h.test/sitemap.xml", Source.SITEMAP, seq=5),
    ]
    assert _seed_of(crawled, tmp_path / "c", *chain) == seed.url
