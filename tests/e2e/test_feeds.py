"""Feeds as sources of URLs, in a whole crawl: however they are found, with what is commonly wrong in them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.model.records import Outcome, UrlRecord
from tests.amount import some
from tests.e2e.program import run, start
from tests.e2e.test_steering import wait_for
from tests.servers.plain_site import Answer, PlainSite, plain_site

# What is written in a feed about an entry, and what is stored with the page.
DATES = {
    "Mon, 05 Feb 2024 12:00:00 GMT": "2024-02-05T12:00:00Z",
    "5 Feb 24 12:00 +0100": "2024-02-05T11:00:00Z",
    "Montag, 5. Februar 2024": "2024-02-05T00:00:00Z",
    "2024-02-05T12:00:00.5-05:00": "2024-02-05T17:00:00Z",
    "02/05/2024 1:30 pm": "2024-02-05T13:30:00Z",
    "1707134400": "2024-02-05T12:00:00Z",
    "30 Feb 2024": "",
    "Mon, 05 Feb 2124 12:00:00 GMT": "",
    "soon": "",
}


def _items(shape: str, prefix: str) -> str:
    return "".join(shape.format(url=f"/{prefix}/{number}", date=date) for number, date in enumerate(DATES))


RSS = "<item><title>A & B &nbsp; C</title><link> {url}#top </link><pubDate>{date}</pubDate></item>"
ATOM = "<entry><link rel='self' href='/no'/><link rel='alternate' href='{url}'/><updated>{date}</updated></entry>"
RDF = "<item rdf:about='{url}'><dc:date>{date}</dc:date></item>"


def _fill(site: PlainSite) -> None:
    host = site.url.rstrip("/")
    pages = {f"/{name}/{number}": Answer("<p>An article.") for name in "abcd" for number in range(len(DATES))}
    site.answers |= pages | {
        "/robots.txt": Answer(f"Sitemap: {host}/c.xml\n"),
        "/": Answer("<link rel='alternate' type='application/rss+xml' href='/a'><p>Home.<a href='/b.php'>news</a>"),
        "/a": Answer(f"<rss><channel><ttl>60</ttl>{_items(RSS, 'a')}", content_type="application/rss+xml"),
        # Declared as a page, in another charset than it says, and something before the document.
        "/b.php": Answer(
            f"\n<feed xmlns='http://www.w3.org/2005/Atom'><title>Caf\xe9</title>{_items(ATOM, 'b')}", charset="latin-1"
        ),
        "/c.xml": Answer(
            f"<?xml version='1.0'?><rss><channel>{_items(RSS, 'c')}</channel></rss>", content_type="text/xml"
        ),
        "/d.rdf": Answer(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/' "
            f"xmlns:dc='urn:dc'>{_items(RDF, 'd')}</rdf:RDF>",
            content_type="application/rdf+xml",
        ),
    }


def _rows(out: Path) -> dict[str, UrlRecord]:
    ledger = LocalLedger(out / "state", is_readonly=True)
    ledger.open()
    try:
        return {"/" + row.url.split("/", 3)[3]: row for _, row in ledger.urls()}
    finally:
        ledger.close()


@pytest.mark.parametrize("workers", some(["2", "1"], 1))
def test_feeds_are_sources_of_pages_with_dates(tmp_path: Path, workers: str) -> None:
    with plain_site() as site:
        _fill(site)
        out = tmp_path / "c"
        seeds = (site.url, site.url + "d.rdf")
        done = run("crawl", *seeds, "--out", str(out), "--politeness-ms", "0", "--workers", workers)
    assert done.returncode == 0, done.stderr
    rows = _rows(out)
    found = {name: [rows[f"/{name}/{number}"] for number in range(len(DATES))] for name in "abcd"}
    for name, entries in found.items():
        assert {row.outcome for row in entries} == {Outcome.OK}, name
        assert [row.lastmod for row in entries] == list(DATES.values()), name
    types = {path: rows[path].content_type for path in ("/a", "/b.php", "/c.xml", "/d.rdf")}
    rss, atom = "application/rss+xml", "application/atom+xml"
    assert types == {"/a": rss, "/b.php": atom, "/c.xml": rss, "/d.rdf": rss}
    assert "/no" not in rows


def test_a_feed_that_is_fetched_again_leads_to_its_new_entries(tmp_path: Path) -> None:
    def feed(*paths: str) -> Answer:
        items = "".join(f"<item><link>{path}</link></item>" for path in paths)
        return Answer(f"<rss><channel>{items}</channel></rss>", content_type="application/rss+xml")

    with plain_site() as site:
        pages = {f"/{name}": Answer(f"<p>The page {name}.") for name in ("first", "second")}
        site.answers |= pages | {"/": Answer("<a href=/feed>feed</a>"), "/feed": feed("/first")}
        out = tmp_path / "c"
        options = ("--politeness-ms", "0", "--revisit", "--revisit-min", "1")
        crawl = start("crawl", site.url, "--out", str(out), *options)
        try:
            wait_for(lambda: "/first" in site.requests)
            site.answers["/feed"] = feed("/second", "/first")
            changed = tmp_path / "changed.txt"
            changed.write_text(site.url + "feed")
            wait_for((out / "state" / "control").exists)
            done = run("add", str(out), "--changed", str(changed))
            assert done.stdout == "1 URL reported as changed: 1 due\n", done.stderr
            wait_for(lambda: "/second" in site.requests)
        finally:
            crawl.send_signal(signal.SIGTERM)
            crawl.communicate(timeout=60)
    assert (site.requests.count("/feed"), site.requests.count("/first")) == (2, 1)
    assert "changed" in run("why", str(out), site.url + "feed").stdout
