from __future__ import annotations

import gzip
import time
import tracemalloc
from collections.abc import Callable

import pytest

from gossamer.parse.feeds.sitemap import MAX_ENTRIES, MAX_LOC_CHARS, parse_sitemap


def urlset(*locs: str) -> bytes:
    entries = "".join(f"<url><loc>{loc}</loc><lastmod>2024-05-06</lastmod></url>" for loc in locs)
    return (
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()
    )


def test_entries_come_with_their_dates() -> None:
    found = parse_sitemap(urlset("http://a.test/1", "http://a.test/2?a=1&amp;b=2"))
    assert [(entry.loc, entry.lastmod) for entry in found.urls] == [
        ("http://a.test/1", "2024-05-06"),
        ("http://a.test/2?a=1&b=2", "2024-05-06"),
    ]
    assert found.is_complete
    assert found.error == ""


def test_the_first_date_counts_and_a_url_that_is_too_long_is_dropped() -> None:
    entries = urlset("http://a.test/1", "http://a.test/" + "x" * MAX_LOC_CHARS)
    found = parse_sitemap(entries.replace(b"</lastmod>", b"</lastmod><lastmod>2020-01-01</lastmod>"))
    assert [(entry.loc, entry.lastmod) for entry in found.urls] == [("http://a.test/1", "2024-05-06")]


def test_s01_an_index_lists_sitemaps_and_follows_none() -> None:
    found = parse_sitemap(b"<sitemapindex><sitemap><loc>http://a.test/self.xml</loc></sitemap></sitemapindex>")
    assert [entry.loc for entry in found.sitemaps] == ["http://a.test/self.xml"]
    assert found.urls == []


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY l0 "lol">'
    + b"".join(b'<!ENTITY l%d "%s">' % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 10))
    + b"]><urlset><url><loc>http://a.test/&l9;</loc></url></urlset>"
)
XXE = (
    b'<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY %% p SYSTEM "http://127.0.0.1:9/d">%s]>'
    b"<urlset><url><loc>http://a.test/1</loc></url><url><loc>http://a.test/&x;</loc></url></urlset>"
)


@pytest.mark.parametrize("allow_dtd", [False, True])
def test_s02_entities_are_never_expanded(allow_dtd: bool) -> None:
    found = parse_sitemap(LAUGHS, allow_dtd=allow_dtd)
    assert found.urls == []
    assert "refused" in found.error


def test_s02_nor_in_attributes() -> None:
    feed = LAUGHS.replace(
        b"<urlset><url><loc>http://a.test/&l9;</loc></url></urlset>", b'<feed><entry><link href="&l9;"/></entry></feed>'
    )
    assert parse_sitemap(feed, allow_dtd=True).urls == []


@pytest.mark.parametrize("parameter", [b"", b"%p;"])
def test_s03_nothing_is_opened(parameter: bytes) -> None:
    assert parse_sitemap(XXE % parameter).urls == []
    found = parse_sitemap(XXE % parameter, allow_dtd=True)
    assert all("root:" not in entry.loc for entry in found.urls)


def test_s04_a_gzip_bomb_stops_at_the_cap() -> None:
    bomb = gzip.compress(urlset("http://a.test/1")[:-9] + b" " * 120_000_000, 1)
    found = parse_sitemap(bomb)
    assert [entry.loc for entry in found.urls] == ["http://a.test/1"]
    assert not found.is_complete
    assert "longer" in found.error


def test_s04_no_more_entries_than_the_standard_allows() -> None:
    found = parse_sitemap(urlset(*(f"http://a.test/{i}" for i in range(MAX_ENTRIES + 10))))
    assert len(found.urls) == MAX_ENTRIES
    assert not found.is_complete


def test_s05_entries_of_other_schemes_are_dropped() -> None:
    found = parse_sitemap(urlset("file:///etc/passwd", "javascript:x", "http://other.test/", "/relative"))
    assert [entry.loc for entry in found.urls] == ["http://other.test/", "/relative"]


def test_s06_deep_nesting_is_an_error() -> None:
    started = time.process_time()
    found = parse_sitemap(b"<a>" * 100_000)
    assert "levels" in found.error
    assert time.process_time() - started < 1


@pytest.mark.parametrize("name", ["rot13", "zip", "idna", "utf-7", "koi8-r", "UTF-8", "x-none"])
def test_an_encoding_in_the_xml_declaration_cannot_reach_python_codecs(name: str) -> None:
    content = urlset("http://a.test/1").replace(b'version="1.0"', f'version="1.0" encoding="{name}"'.encode())
    assert [entry.loc for entry in parse_sitemap(content).urls] == ["http://a.test/1"]


def test_utf16_and_broken_ends_are_read_as_far_as_they_go() -> None:
    whole = urlset("http://a.test/1", "http://a.test/2").decode()
    assert len(parse_sitemap(whole.encode("utf-16")).urls) == 2
    cut = parse_sitemap(whole[: whole.index("/2<") + 1].encode())
    assert [entry.loc for entry in cut.urls] == ["http://a.test/1"]
    assert not cut.is_complete
    within = parse_sitemap(whole[: whole.index("</loc>", whole.index("/2<")) + 2].encode())
    assert [entry.loc for entry in within.urls] == ["http://a.test/1", "http://a.test/2"]
    torn = parse_sitemap(gzip.compress(whole.encode() * 50)[:-20])
    assert torn.urls
    assert not torn.is_complete


def locs(content: bytes) -> list[str]:
    return [entry.loc for entry in parse_sitemap(content).urls]


@pytest.mark.parametrize(
    "content",
    [
        b"http://a.test/1\nhttp://a.test/2\n",
        b"\xef\xbb\xbfhttp://a.test/1\r\nhttp://a.test/2",
        b"  http://a.test/1  \n\n# comment\nno url\nhttp://a.test/2\n",
        b"\n \n<?xml version='1.0'?><urlset><url><loc>http://a.test/1</loc></url><url><loc>\n http://a.test/2\xc2\xa0\n"
        b"</loc></url></urlset>",
        b"<urlset xmlns='http://elsewhere.test/'><url><loc>http://a.test/1</loc></url>"
        b"<url><loc>http://a.test/2</loc></url></urlset>",
        b"<s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'><s:url><s:loc>http://a.test/1</s:loc></s:url>"
        b"<s:url><s:loc><![CDATA[http://a.test/2]]></s:loc></s:url></s:urlset>",
        b"<urlset><url><loc>http://a.test/<b>1</b></loc></url><url><loc>http://a.test/2</loc></url></urlset>",
        b"<urlset><url><loc>http://a.test/1</loc><image><loc>http://a.test/i.png</loc></image></url>"
        b"<url><priority>1</priority></url><url><loc/></url><url><loc>http://a.test/2</loc></url></urlset>",
        b"<rss version='2.0'><channel><link>http://a.test/</link><item><link>http://a.test/1</link></item><item>"
        b"<title>t</title><guid>http://a.test/2</guid></item></channel></rss>",
        b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='http://a.test/1'/></entry>"
        b"<entry><link href='http://a.test/2'/></entry></feed>",
        gzip.compress(b"http://a.test/1\nhttp://a.test/2", mtime=0),
        gzip.compress(urlset("http://a.test/1", "http://a.test/2"), mtime=0),
    ],
)
def test_every_kind_of_sitemap_lists_its_pages(content: bytes) -> None:
    assert locs(content) == ["http://a.test/1", "http://a.test/2"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html><body><a href='http://a.test/1'>x</a></body></html>",
        b"just words",
        b"\x89PNG\r\n\x1a\n",
        b"<urlset>",
    ],
)
def test_what_is_no_sitemap_lists_nothing(content: bytes) -> None:
    found = parse_sitemap(content)
    assert (found.urls, found.sitemaps) == ([], [])


def numbered(pattern: bytes, count: int) -> bytes:
    return b"".join(pattern % number for number in range(count))


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "attributes": (
        lambda: b"<urlset " + numbered(b'a%d=">" ', 1_000_000),
        "a tag or comment of more than 524288 bytes",
    ),
    "attributes of one element": (lambda: b"<urlset " + numbered(b'a%d="" ', 200) + b">", "100 attributes"),
    "names of attributes": (lambda: b"<urlset>" + numbered(b'<a a%d=""/>', 1_000_000), "1000 different names"),
    "names": (lambda: b"<urlset>" + numbered(b"<a%d/>", 1_000_000), "1000 different names"),
    "elements": (lambda: b"<urlset>" + b"<a/>" * 12_000_000, "610000 elements"),
    "attributes of all elements": (
        lambda: b"<urlset>" + (b"<a " + numbered(b"a%d='' ", 50) + b"/>") * 130_000,
        "2000000 attributes",
    ),
    "references": (lambda: b"<urlset>" + (b"<a b='" + b"&lt;" * 20 + b"'/>") * 500_000, "references"),
    "line ends": (lambda: b"<urlset><url><loc>" + b"\r\n\r" * 16_000_000, "references and line ends"),
    "comments": (lambda: b"<urlset>" + b"<!---->" * 7_000_000, "1000000 comments"),
    "instructions": (lambda: b"<urlset>" + b"<?a?>" * 10_000_000, "1000000 comments"),
    "a comment": (lambda: b"<urlset><!--" + b"<" * 48_000_000, "a tag or comment of more than 524288 bytes"),
    "entities": (lambda: b'<!DOCTYPE a SYSTEM "x"><urlset>' + b"&a;" * 16_000_000, "1000000 comments"),
    "empty lines": (lambda: b"a" + b"\n" * 48_000_000, "neither XML nor a list of URLs"),
    "bad lines": (lambda: b"a.a.a\n" * 8_000_000, "200000 lines"),
    "empty gzip blocks": (
        lambda: b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\0\0\0\xff\xff" * 9_000_000,
        "gzip of next to nothing",
    ),
    "gzip members": (lambda: gzip.compress(b"") * 2_000_000, "1000 gzip members"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_cut_before_it_takes_long(name: str) -> None:
    make, reason = HOSTILE[name]
    content = make()
    begun = time.process_time()
    found = parse_sitemap(content)
    assert time.process_time() - begun < 3  # 10 s and 1 GB for the worst of them; 0.6 s now
    assert not found.is_complete
    assert reason in found.error


def test_entries_before_a_cut_are_kept_and_long_texts_are_no_cut() -> None:
    start = urlset("http://a.test/1")[:-9]
    found = parse_sitemap(
        start + b"<a>" + b"x" * 200_000 + b"</a>" + b"y" * 200_000 + b"<url><loc>http://a.test/2</loc></url>"
    )
    assert [entry.loc for entry in found.urls] == ["http://a.test/1", "http://a.test/2"]
    assert parse_sitemap(start + numbered(b"<a%d/>", 2000)).urls == parse_sitemap(start).urls


def test_a_full_sitemap_that_is_cut_within_one_entry_more_is_no_exception() -> None:
    content = urlset(*(f"http://a.test/{number}" for number in range(50_000)))[:-9] + b"<url><loc>http://a.test/x</loc>"
    found = parse_sitemap(content)
    assert len(found.urls) == 50_000
    assert not found.is_complete


def test_a_full_sitemap_with_translations_is_read_to_its_end() -> None:
    link = b'<xhtml:link rel="alternate" hreflang="x" href="https://a.test/%d/?a=1&amp;b=2&amp;c=3"/>\n'
    entry = b"<url><loc>https://a.test/%d</loc>\n" + link * 9 + b"<lastmod/></url>\n"
    urls = b"".join(entry % ((number,) * 10) for number in range(50_000))
    contents = parse_sitemap(b"<urlset>" + urls + b"</urlset>")
    assert (len(contents.urls), contents.error) == (50_000, "")


@pytest.mark.parametrize("charset", ["gb18030", "shift_jis", "iso2022_jp", "utf-16"])
@pytest.mark.parametrize("line", ["<url>", "http://a.test/"])
def test_a_large_file_in_another_charset_takes_little_memory(charset: str, line: str) -> None:
    content = ("\n".join([line + "日本語", *[line] * 1_000_000])).encode(charset)
    tracemalloc.start()
    try:
        parse_sitemap(content)
        assert tracemalloc.get_traced_memory()[1] < 0.5 * len(content) + 20_000_000
    finally:
        tracemalloc.stop()


def test_lines_are_read_across_pieces() -> None:
    urls = [f"http://a.test/{number}/{'x' * (number % 300)}é" for number in range(5_000)]
    content = "\r\n".join(["a comment", *urls, "http://a.test/" + "y" * 600_000, "http://a.test/last"]).encode("cp1252")
    assert [entry.loc for entry in parse_sitemap(content).urls] == [*urls, "http://a.test/last"]
