"""`gossamer sitemap` as a user runs it: on a site whose sitemaps are wrong in every way."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.handover.findings.sitemap_findings import SitemapFault, lastmod_fault
from tests.cli.crawled import Crawled
from tests.e2e.program import run
from tests.reading.folders import is_one_line, said
from tests.servers.plain_site import Answer, plain_site

Output = pytest.CaptureFixture[str]
XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
NOW = 1_780_000_000.0  # 2026-05-28T20:26:40Z


def page(*links: str, head: str = "") -> Answer:
    anchors = " ".join(f'<a href="{to}">{to}</a>' for to in links)
    return Answer(f"<html><head><title>{links}</title>{head}</head><body><p>Words {anchors}</p></body></html>")


def xml(body: str) -> Answer:
    return Answer(f'<?xml version="1.0"?>{body}', content_type="application/xml")


def urls(site: str, *entries: tuple[str, str]) -> str:
    return "".join(
        f"<url><loc>{site}{path}</loc>{f'<lastmod>{lastmod}</lastmod>' if lastmod else ''}</url>"
        for path, lastmod in entries
    )


def answers(site: str) -> dict[str, Answer]:
    first = urls(
        site, ("", "2020-01-02"), ("fine", ""), ("gone", ""), ("old", ""), ("hidden", ""), ("private", ""), ("far", "")
    )
    second = urls(site, ("fine", ""), ("soon", "2999-01-01"), ("odd", "last week"), ("a.zip", ""), ("login", ""))
    return {
        "/robots.txt": Answer(
            f"User-agent: *\nDisallow: /private\nSitemap: {site}index.xml\nSitemap: {site}lost.xml\n"
            f"Sitemap: {site}torn.xml\n",
            content_type="text/plain",
        ),
        "/index.xml": xml(
            f"<sitemapindex {XMLNS}><sitemap><loc>{site}one.xml</loc></sitemap>"
            f"<sitemap><loc>{site}two.xml</loc></sitemap></sitemapindex>"
        ),
        "/one.xml": xml(f"<urlset {XMLNS}>{first}</urlset>"),
        "/two.xml": xml(f"<urlset {XMLNS}>{second}</urlset>"),
        "/torn.xml": xml(f"<urlset {XMLNS}>{urls(site, ('torn', ''))}<url><loc>{site}to"),
        "/": page("/fine", "/unlisted"),
        "/fine": page("/"),
        "/unlisted": page("/", "/"),
        "/old": Answer(status=301, location="/far"),
        "/far": Answer(status=302, location="/fine"),
        "/hidden": page(head='<meta name="robots" content="noindex">'),
        "/soon": page("/soon"),
        "/odd": page("/odd"),
        "/torn": page("/torn"),
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with plain_site() as site:
        site.answers = answers(site.url)
        out = tmp_path_factory.mktemp("sitemap") / "crawl"
        done = run("crawl", site.url, "--out", str(out), "--politeness-ms", "0", "--near-dup", "off")
        assert done.returncode == 0, done.stderr
        yield Crawled(site.url, out)


def found(capsys: Output, crawled: Crawled, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    status, out, err = said(capsys, "sitemap", crawled.path, *words, "--json")
    assert (status, err) == (1, "")
    head, *lines = (json.loads(line.replace(crawled.site, "/")) for line in out.splitlines())
    return head, lines


def test_every_difference_is_found_with_its_reason(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled)
    order = [kind.value for kind in SitemapFault]
    assert lines == sorted(lines, key=lambda line: (order.index(line["finding"]), line["url"]))
    seen = {(line["finding"], line["url"]): (line["outcome"], line["status"], line["sitemap"]) for line in lines}
    reasons = {(line["finding"], line["url"]): line["reason"] for line in lines}
    torn = reasons.pop(("unreadable", "/torn.xml"))
    assert torn != ""
    assert seen.pop(("unreadable", "/torn.xml"))[:2] == ("ok", 200)
    assert seen == {
        ("unreadable", "/lost.xml"): ("client_error", 404, ""),
        ("broken", "/gone"): ("client_error", 404, "/one.xml"),
        ("redirect", "/old"): ("ok", 200, "/one.xml"),
        ("redirect", "/far"): ("ok", 200, "/one.xml"),
        ("noindex", "/hidden"): ("ok", 200, "/one.xml"),
        ("disallowed", "/private"): ("robots_denied", 0, "/one.xml"),
        ("lastmod", "/soon"): ("ok", 200, "/two.xml"),
        ("lastmod", "/odd"): ("ok", 200, "/two.xml"),
        ("not_fetched", "/a.zip"): ("", 0, "/two.xml"),
        ("not_fetched", "/login"): ("", 0, "/two.xml"),
        ("not_listed", "/unlisted"): ("ok", 200, ""),
    }
    assert reasons[("not_fetched", "/a.zip")] == "extension .zip"
    assert reasons[("not_fetched", "/login")].startswith("exclude_pattern ")
    assert reasons[("lastmod", "/soon")] == "in the future"
    assert reasons[("lastmod", "/odd")] == "not a date"
    (old,) = [line for line in lines if line["url"] == "/old"]
    assert old["chain"] == ["/far", "/fine"]
    assert head["compared"] == {"sitemaps": 4, "listed": 12, "pages": 6}
    assert head["counts"]["redirect"] == 2
    assert sum(head["counts"].values()) == len(lines)


def test_findings_can_be_chosen_and_written_as_csv(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    head, lines = found(capsys, crawled, "--finding", "redirect", "--finding", "broken")
    assert {line["finding"] for line in lines} == {"redirect", "broken"}
    assert head["counts"]["noindex"] == 1
    target = tmp_path / "sitemap.csv"
    assert said(capsys, "sitemap", crawled.path, "-o", target)[0] == 1
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"), newline="")))
    assert len(rows) == 12


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_a_reader_that_has_had_enough_changes_no_exit_status(crawled: Crawled, form: str) -> None:
    assert crawled.unread("sitemap", form) == (1, b"")


def test_a_table_has_counts_and_some_of_each_kind(crawled: Crawled, capsys: Output) -> None:
    status, out, _ = said(capsys, "sitemap", crawled.path, "--limit", "1")
    assert status == 1
    assert "4 sitemaps with 12 URLs, 6 pages\n" in out
    assert "\nlisted, and a redirect\n" in out
    assert "1 of each are shown; --limit 0 shows all" in out
    assert out.index("listed, and broken") < out.index("pages that no sitemap lists")
    status, out, err = said(capsys, "sitemap", crawled.path, "--finding", "nonsense")
    assert (status, out, is_one_line(err)) == (2, "", True)


def test_a_crawl_without_sitemaps_says_so(capsys: Output, tmp_path: Path) -> None:
    with plain_site() as site:
        site.answers = {"/": page("/a")}
        out = tmp_path / "crawl"
        assert run("crawl", site.url, "--out", str(out), "--politeness-ms", "0").returncode == 0
    status, text, err = said(capsys, "sitemap", out)
    assert (status, is_one_line(err)) == (0, True)
    assert "0 sitemaps with 0 URLs" in text
    assert "robots.txt of no host lists one" in err


@pytest.mark.parametrize(
    ("lastmod", "last_modified", "expected"),
    [
        ("2026-05-01", "", ""),
        ("2026-05-01", "Fri, 01 May 2026 20:00:00 GMT", ""),
        ("2026-05-01", "Fri, 15 May 2026 20:00:00 GMT", "the page has changed since, by its Last-Modified"),
        ("2026-05-20", "Fri, 15 May 2026 20:00:00 GMT", "the page has not changed then, by its Last-Modified"),
        ("2026-05-01", "Thu, 28 May 2026 20:26:35 GMT", ""),  # made for the request
        ("2026-05-29", "", ""),
        ("2026-06-29", "", "in the future"),
        ("yesterday", "", "not a date"),
        ("2026-05-01", "nonsense", ""),
    ],
)
def test_a_date_contradicts_itself_or_the_page(lastmod: str, last_modified: str, expected: str) -> None:
    assert lastmod_fault(lastmod, last_modified, NOW) == expected
