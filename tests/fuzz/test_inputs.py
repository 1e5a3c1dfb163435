"""Whatever arrives, no reader raises: URLs, robots.txt, pages, archives, sitemaps, PDF files.

`HYPOTHESIS_PROFILE=search` looks for longer, and elsewhere each time.
"""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from gossamer.archive.reader import ArchiveReader
from gossamer.core.requisite import requisite_id
from gossamer.core.robots import parse_robots
from gossamer.core.scope import Reach, Scope
from gossamer.core.traps import is_dated, shape_trap
from gossamer.core.url import canonical, host_of, key_of, link_to, links_from, origin_of, path_of, port_of, url_id
from gossamer.core.url_patterns import patterns_of
from gossamer.core.written_dates import written_time
from gossamer.errors import GossamerError
from gossamer.exchanges import Exchange
from gossamer.parse.article import PageSource
from gossamer.parse.dispatch import parse_exchange
from gossamer.parse.feeds import parse_feed
from gossamer.parse.fingerprint import text_fingerprint
from gossamer.parse.pdf import pdf_links
from gossamer.parse.requisites import needs_of_css, needs_of_page
from gossamer.parse.sitemap import parse_sitemap
from gossamer.records import Outcome

URL_PIECES = st.sampled_from(
    [
        "http:",
        "https:",
        "//",
        "/",
        "\\",
        "@",
        ":",
        "?",
        "#",
        "[",
        "]",
        "%",
        "%00",
        "%2e",
        "..",
        ".",
        "xn--",
        "0x7f",
        "&",
        "=",
        "\t",
        "\n",
        "\0",
        "é",
        "。",
        "\ud800",
        "a",
        "1",
        "::1",
        "localhost",
        "255",
        ";jsessionid=",
        "utm_x=1",
        "sid=",
    ]
)
URLS = st.lists(URL_PIECES | st.text(max_size=5), max_size=12).map("".join)
MARKUP = st.sampled_from(
    [
        b"<a href='",
        b"<base href=",
        b"<meta charset=",
        b"<title>",
        b"</",
        b">",
        b"<!--",
        b"<![CDATA[",
        b"<svg>",
        b"<template>",
        b"<script>",
        b"&#x0;",
        b"&#xD800;",
        b"<table>",
        b"<select>",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"http://a.test/",
        b"<meta http-equiv=refresh content='0;url=",
        b"<frameset>",
        b"<plaintext>",
        b"<math>",
    ]
)
STYLES = st.sampled_from(
    [
        b"<link rel=stylesheet href=",
        b"<img srcset='",
        b" 1x, ",
        b"<style>",
        b"</style>",
        b"<p style='",
        b"url(",
        b"url('",
        b"@import ",
        b'@import "',
        b"@namespace ",
        b"/*",
        b"*/",
        b"\\",
        b"\\d800 ",
        b"\\110000",
        b")",
        b"';",
        b'";',
    ]
)
XML = st.sampled_from(
    [
        b"<?xml version='1.0' encoding='",
        b"utf-16",
        b"'?>",
        b"<urlset>",
        b"<url>",
        b"<loc>",
        b"</loc>",
        b"<!DOCTYPE x [",
        b"<!ENTITY a 'b'>",
        b"&a;",
        b"]>",
        b"<sitemapindex>",
        b"<sitemap>",
        b"<rss>",
        b"<item>",
        b"<link>",
        b"</link>",
        b"</item>",
        b"<pubDate>",
        b"</pubDate>",
        b"<![CDATA[",
        b"]]>",
        b"http://a.test/",
        b"\x1f\x8b\x08",
        b"<lastmod>",
        b"2024-01-01",
        b"\0",
    ]
)
PDF = st.sampled_from(
    [
        b"%PDF-1.7\n",
        b"/URI (",
        b"/URI <",
        b")",
        b">",
        b"\\",
        b"\\777",
        b"/ObjStm",
        b"stream\n",
        b"endstream",
        b"(" * 50,
        b"\xfe\xff",
        b"http://a.test/",
        b"/Length 99999999",
        b"0 0 R",
        b"x\x9c",
    ]
)
ROBOTS = st.sampled_from(
    [
        b"User-agent: ",
        b"*",
        b"gossamer",
        b"Disallow: /",
        b"Allow: ",
        b"$",
        b"**",
        b"Crawl-delay: ",
        b"nan",
        b"-1",
        b"1e999",
        b"Sitemap: ",
        b"\r",
        b"\n",
        b"\0",
        b"\xff",
        b"#",
        b"%zz",
        b":",
        b"\xef\xbb\xbf",
    ]
)

# The reader of heads lets no value through that holds these.
HEADERS = st.text(st.characters(exclude_characters="\0\r\n", codec="latin-1"), max_size=30)


def mixed(pieces: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(pieces | st.binary(max_size=20), max_size=40).map(b"".join)


def answer(kind: str, content: bytes, *headers: tuple[str, str]) -> Exchange:
    return Exchange(
        "http://a.test/", Outcome.OK, status=200, headers=[("content-type", kind), *headers], content=content
    )


@given(URLS, URLS)
def test_urls(text: str, base: str) -> None:
    start = canonical(base) or "http://a.test/x/y"
    url = canonical(text, start)
    assert all(link.url for link in links_from(start, [text]))
    if url is None:
        return
    assert url.isascii()
    assert not set("\0\t\r\n ") & set(url)
    assert canonical(url) == url
    assert url.startswith(origin_of(url))
    assert 0 <= port_of(url) <= 65535
    assert key_of(key_of(url)) == key_of(url)
    assert link_to(url).host == host_of(url)
    assert 1 <= len(set(patterns_of(url))) == len(patterns_of(url)) <= 4
    shape_trap(url)
    is_dated(url)
    Scope(Reach.ANY).refusal(url, host_of(url))
    text_fingerprint(text.encode("utf-8", "replace") * 5, url)


@given(mixed(ROBOTS), URLS)
def test_robots(body: bytes, text: str) -> None:
    rules = parse_robots(body, "gossamer")
    path = path_of(canonical(f"http://a.test/{text}") or "http://a.test/")
    decision = rules.decide(path)
    assert decision.is_allowed is rules.is_allowed(path)
    assert rules.is_allowed("/robots.txt")
    assert bool(decision.line_number) is bool(decision.line)
    assert rules.crawl_delay_s is None or 0 <= rules.crawl_delay_s <= 3600


@given(mixed(MARKUP), st.text(max_size=12), HEADERS, HEADERS)
def test_pages(content: bytes, charset: str, link: str, robots: str) -> None:
    headers = (("link", f"<{link}>; rel=next"), ("x-robots-tag", robots))
    document = parse_exchange(answer(f"text/html; charset={charset}", content, *headers), True, True)
    for text in (document.title, document.text, document.description, document.canonical, *document.hrefs):
        text.encode()
        assert "\0" not in text
    links_from("http://a.test/", document.hrefs)


@given(mixed(MARKUP | STYLES), st.text(max_size=12), URLS)
def test_what_pages_and_stylesheets_need(content: bytes, charset: str, text: str) -> None:
    content += text.encode("utf-8", "replace")
    page = PageSource(url="http://a.test/", content_type="text/html", content=content, header_charset=charset)
    for found in (needs_of_page(page, 9), needs_of_css(content, charset, "http://a.test/", 9)):
        if found is None:
            continue
        assert found.stylesheets <= len(found.links) <= min(9, found.found)
        assert all(canonical(link.url) == link.url for link in found.links)
        assert [link.id for link in found.links] == [requisite_id(url_id(link.url)) for link in found.links]


@given(mixed(XML), st.booleans(), st.booleans())
def test_sitemaps(content: bytes, is_packed: bool, allow_dtd: bool) -> None:
    found = parse_sitemap(gzip.compress(content) if is_packed else content, allow_dtd=allow_dtd)
    for entry in (*found.urls, *found.sitemaps):
        entry.loc.encode()
        assert urlsplit(entry.loc).scheme in ("http", "https", "")


@given(mixed(XML), st.text(max_size=12))
def test_feeds(content: bytes, charset: str) -> None:
    found = parse_feed(b"<rss>" + content, "http://a.test/feed", 1.7e9, charset)
    for entry in found.entries:
        entry.id.encode()
        assert urlsplit(entry.url).scheme in ("http", "https")
        assert 0 <= entry.published_at <= entry.changed_at < 1.71e9
    assert "\n" not in found.error


@given(st.text(st.sampled_from("0123456789-/.:+, TZapmGMTFebMay"), max_size=40))
def test_dates_of_feeds(text: str) -> None:
    assert 0 <= written_time(text, 1.7e9) < 1.71e9


@given(mixed(PDF))
def test_pdfs(content: bytes) -> None:
    assert all(href.lower().startswith("http") for href in pdf_links(content).hrefs)


@given(mixed(MARKUP | XML | PDF), st.text(max_size=20))
def test_any_type(content: bytes, kind: str) -> None:
    parse_exchange(answer(kind, content), True, True)


@given(
    mixed(
        st.sampled_from([b"WARC/1.1\r\n", b"WARC-Type: response\r\n", b"Content-Length: ", b"9" * 30, b"-1", b"\r\n"])
    )
)
def test_archives(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.warc.gz"
        for data in (content, gzip.compress(content), gzip.compress(content) + content):
            path.write_bytes(data)
            reader = ArchiveReader(path)
            for record in reader:
                with suppress(GossamerError):  # it is ours, and says what is wrong
                    record.http_parts()
            assert 0 <= reader.end <= len(data)
