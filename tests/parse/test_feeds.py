from __future__ import annotations

import gzip
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from gossamer.parse.feeds.feed_type import ATOM, RSS, feed_type
from gossamer.parse.feeds.feeds import MAX_FEED_BYTES, MAX_FEED_ENTRIES, ParsedEntry, ParsedFeed, parse_feed

NOW = datetime(2024, 6, 1, tzinfo=UTC).timestamp()
URL = "https://news.test/feeds/all.xml"
FEB_5 = datetime(2024, 2, 5, 12, tzinfo=UTC).timestamp()
FEB_6 = datetime(2024, 2, 6, tzinfo=UTC).timestamp()


def parse(content: bytes | str, charset: str = "") -> ParsedFeed:
    return parse_feed(content.encode() if isinstance(content, str) else content, URL, NOW, charset)


def urls(content: bytes | str, charset: str = "") -> list[str]:
    return [entry.url for entry in parse(content, charset).entries]


def rss(*items: str) -> str:
    return (
        "<rss version='2.0'><channel><title>t</title><link>https://news.test/</link>"
        + "".join(items)
        + "</channel></rss>"
    )


def item(inner: str) -> str:
    return f"<item>{inner}</item>"


def atom(inner: str, attributes: str = "") -> str:
    return f"<feed xmlns='http://www.w3.org/2005/Atom' {attributes}><title>t</title>{inner}</feed>"


EXPECTED = [
    ParsedEntry("https://news.test/a", FEB_5, FEB_5, "1"),
    ParsedEntry("https://news.test/b", FEB_6, FEB_6, "2"),
]
SAMPLES = {
    "rss 2.0": rss(
        item(
            "<link>https://news.test/a</link><guid isPermaLink='false'>1</guid>"
            "<pubDate>Mon, 05 Feb 2024 12:00:00 GMT</pubDate>"
        ),
        item("<guid isPermaLink='false'>2</guid><link>https://news.test/b</link><pubDate>6 Feb 2024</pubDate>"),
    ),
    "rss 0.91": (
        '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" '
        '"http://my.netscape.test/rss-0.91.dtd"><rss version="0.91"><channel><link>https://news.test/</link>'
        "<image><url>https://news.test/i.png</url><link>https://news.test/</link></image>"
        "<item><title>x</title><link>https://news.test/a</link><guid isPermaLink='false'>1</guid>"
        "<pubDate>Mon, 05 Feb 2024 12:00:00 GMT</pubDate></item><item><link>https://news.test/b</link>"
        "<guid isPermaLink='false'>2</guid><pubDate>Tue, 06 Feb 2024 00:00 GMT</pubDate></item>"
        "</channel></rss>"
    ),
    "rss 1.0": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://news.test/"><items><rdf:Seq>'
        '<rdf:li rdf:resource="https://news.test/zzz"/></rdf:Seq></items></channel>'
        '<item rdf:about="https://news.test/a"><id>1</id><dc:date>2024-02-05T12:00Z</dc:date></item>'
        '<item rdf:about="urn:x"><id>2</id><link> https://news.test/b </link>'
        "<dc:date>2024-02-06</dc:date></item></rdf:RDF>"
    ),
    "atom": atom(
        "<link rel='self' href='https://news.test/feed'/><entry><id>1</id><link href='https://news.test/a'/>"
        "<published>2024-02-05T12:00:00Z</published></entry><entry><id>2</id><link rel='self' href='/self'/>"
        "<link rel='alternate' type='application/pdf' href='/b.pdf'/><link rel='alternate' type='text/html' href='/b'/>"
        "<published>2024-02-06T01:00:00+01:00</published><source><id>9</id><link href='/source'/></source></entry>"
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_of_feed_lists_its_pages_with_dates(name: str) -> None:
    feed = parse(SAMPLES[name])
    assert feed.entries == EXPECTED
    assert (feed.is_complete, feed.error) == (True, "")
    assert feed.kind == {"rss 1.0": "rdf", "atom": "atom"}.get(name, "rss")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_feed_may_be_gzipped_or_in_another_encoding(name: str) -> None:
    text = SAMPLES[name].removeprefix('<?xml version="1.0"?>')
    assert parse(gzip.compress(text.encode(), mtime=0)).entries == EXPECTED
    assert parse(text.encode("utf-16")).entries == EXPECTED
    assert parse(b"\xef\xbb\xbf" + text.encode()).entries == EXPECTED
    assert parse(b'<?xml version="1.0" encoding="iso-8859-1"?>' + text.encode()).entries == EXPECTED


def test_the_later_time_is_that_of_the_change() -> None:
    entry = atom(
        "<entry><link href='/a'/><updated>2024-02-06</updated><published>2024-02-05T12:00:00Z</published></entry>"
        "<entry><link href='/b'/><updated>2024-02-01</updated><published>2024-02-05T12:00:00Z</published></entry>"
        "<entry><link href='/c'/><updated>never</updated></entry>"
    )
    found = parse(entry).entries
    assert [(each.changed_at, each.published_at) for each in found] == [(FEB_6, FEB_5), (FEB_5, FEB_5), (0.0, 0.0)]


def test_what_is_within_other_elements_of_an_entry_is_not_its_own() -> None:
    source = "<source><id>9</id><link href='/source'/><updated>2024-02-06</updated></source>"
    entry = atom(f"<entry>{source}<id>1</id><link href='/a'/><updated>2024-02-05T12:00:00Z</updated></entry>")
    assert parse(entry).entries == [ParsedEntry("https://news.test/a", FEB_5, 0.0, "1")]


def test_relative_links_are_resolved() -> None:
    assert urls(rss(item("<link>../a?b=1#c</link>"), item("<link>//other.test/b</link>"), item("<link>c</link>"))) == [
        "https://news.test/a?b=1",
        "https://other.test/b",
        "https://news.test/feeds/c",
    ]


def test_xml_base_counts_within_its_element() -> None:
    text = atom(
        "<entry xml:base='b/'><link href='1'/></entry><entry><link href='2'/></entry>"
        "<entry><link xml:base='https://c.test/x/' href='3'/></entry>"
        "<entry xml:base='javascript:x'><link href='4'/></entry>",
        "xml:base='https://a.test/x/'",
    )
    assert urls(text) == ["https://a.test/x/b/1", "https://a.test/x/2", "https://c.test/x/3", "https://a.test/x/4"]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<guid>https://news.test/g</guid>", ["https://news.test/g"]),
        ("<guid isPermaLink='true'>https://news.test/g</guid><link/>", ["https://news.test/g"]),
        ("<guid isPermaLink='false'>https://news.test/g</guid>", []),
        ("<guid>tag:news.test,2024:1</guid>", []),
        ("<title>no link at all</title>", []),
        ("<link>javascript:alert(1)</link>", []),
        ("<link>mailto:a@news.test</link><guid>https://news.test/g</guid>", ["https://news.test/g"]),
        ("<link>http://[bad</link>", []),
        ("<link>\n  https://news.test/\n a\n</link>", ["https://news.test/%20a"]),
        ("<link><![CDATA[https://news.test/?a=1&b=2]]></link>", ["https://news.test/?a=1&b=2"]),
        ("<link>https://news.test/?a=1&amp;b=2</link>", ["https://news.test/?a=1&b=2"]),
        ("<link>https://proxy.test/1</link><x:origLink xmlns:x='u'>https://news.test/o</x:origLink>", ["https://news.test/o"]),
        ("<a:link xmlns:a='u' rel='self' href='/self'/><link>/l</link>", ["https://news.test/l"]),
        ("<comments>/c</comments><enclosure url='/e.mp3'/><link>/l</link>", ["https://news.test/l"]),
        ("<link>https://user:pw@news.test/p</link>", ["https://news.test/p"]),
    ],
)  # fmt: skip
def test_the_url_of_an_item(inner: str, expected: list[str]) -> None:
    assert urls(rss(item(inner))) == expected


def test_an_entry_without_an_id_has_its_url_as_one() -> None:
    assert parse(rss(item("<link>/a</link>"))).entries[0].id == "https://news.test/a"


def test_a_page_that_is_announced_twice_is_listed_once_with_its_latest_date() -> None:
    text = rss(*(item(f"<link>/a</link><pubDate>{day} Feb 2024</pubDate>") for day in (4, 6, 5)))
    assert [entry.changed_at for entry in parse(text).entries] == [FEB_6]


BROKEN = {
    "entities of HTML": rss(item("<title>caf&eacute;&nbsp;</title><link>/a</link>"), item("<link>/b&nbsp;c</link>")),
    "bare ampersands": rss(item("<title>A & B</title><link>/a?x=1&y=2</link>"), item("<link>/b</link>")),
    "control characters": rss(item("<title>a\x0bb&#0;&#x1f;</title><link>/a</link>"), item("<link>/b</link>")),
    "text before the document": "\n\nWarning in line 3\n<?xml version='1.0'?>" + rss(item("<link>/a</link>")),
    "declaration without a meaning": "<?xml version='7.0' encoding='klingon' x?>" + rss(item("<link>/a</link>")),
    "undeclared prefix": rss(item("<dc:date>2024-02-05</dc:date><x:y>1</x:y><link>/a</link>")),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_commonly_wrong_is_no_error(name: str) -> None:
    feed = parse(BROKEN[name])
    assert feed.error == ""
    assert feed.is_complete
    assert feed.entries[0].url.startswith("https://news.test/a")
    assert len(feed.entries) == BROKEN[name].count("<item>")


def test_cleaning_leaves_cdata_and_good_references_alone() -> None:
    text = rss(
        item("<title>A & B</title><link><![CDATA[/a?x=1&y=2]]></link>"), item("<link>/b?x=1&#38;y=&amp;z&q</link>")
    )
    assert urls(text) == ["https://news.test/a?x=1&y=2", "https://news.test/b?x=1&y=&z&q"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (rss(item("<link>/café</link>")).encode("latin-1"), "caf%C3%A9"),
        (b"<?xml version='1.0' encoding='utf-8'?>" + rss(item("<link>/café</link>")).encode("latin-1"), "caf%C3%A9"),
        (b"<?xml version='1.0' encoding='iso-8859-1'?>" + rss(item("<link>/café</link>")).encode(), "caf%C3%A9"),
        (b"<?xml version='1.0' encoding='koi8-r'?>" + rss(item("<link>/да</link>")).encode("koi8-r"), "%D0%B4%D0%B0"),
        (b"<?xml version='1.0' encoding='zip'?>" + rss(item("<link>/café</link>")).encode(), "caf%C3%A9"),
    ],
)
def test_a_wrong_charset_is_found_out(content: bytes, expected: str) -> None:
    assert urls(content) == [f"https://news.test/{expected}"]


def test_the_charset_of_the_header_counts() -> None:
    assert urls(rss(item("<link>/да</link>")).encode("koi8-r"), "koi8-r") == ["https://news.test/%D0%B4%D0%B0"]
    assert urls(rss(item("<link>/a</link>")), "nonsense") == ["https://news.test/a"]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_truncated_feed_has_the_entries_before_the_cut(name: str) -> None:
    content = SAMPLES[name].encode()
    first_end = content.index(b"</entry>" if name == "atom" else b"</item>")
    known = {entry.url for entry in EXPECTED} | {"https://news.test/b.pdf"}  # before its better link was read
    for cut in range(len(content)):
        feed = parse(content[:cut])
        assert not feed.is_complete
        assert feed.error
        assert {entry.url for entry in feed.entries} <= known  # no URL is cut
        assert len(feed.entries) >= (cut > first_end)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a feed"),
        (b"just words", "not a feed"),
        (b'{"version": "https://jsonfeed.org/version/1"}', "not a feed"),
        (b"<!DOCTYPE html><html><body><item><link>/a</link></item></body></html>", "its root is 'html'"),
        (b"<?xml version='1.0'?><urlset><url><loc>/a</loc></url></urlset>", "its root is 'urlset'"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not a feed"),
        (b"<?xml version='1.0'?>", "no element"),
    ],
)
def test_what_is_no_feed_says_so(content: bytes, reason: str) -> None:
    feed = parse(content)
    assert (feed.entries, feed.is_complete) == ([], False)
    assert reason in feed.error
    assert "\n" not in feed.error


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<ttl>60</ttl>", 3600),
        ("<ttl> 1 </ttl>", 300),
        ("<ttl>99999999</ttl>", 2_592_000),
        ("<ttl>inf</ttl>", 2_592_000),
        ("<ttl>nan</ttl>", 0),
        ("<ttl>-5</ttl>", 0),
        ("<ttl>often</ttl>", 0),
        ("<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>", 1800),
        ("<sy:updatePeriod> Daily </sy:updatePeriod>", 86_400),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency>", 0),
        ("", 0),
    ],
)
def test_how_often_the_feed_wants_to_be_fetched(inner: str, expected: int) -> None:
    assert parse(rss(inner)).interval_s == expected


def numbered(pattern: str, count: int) -> str:
    return "".join(pattern % number for number in range(count))


LONG_BASE = "xml:base='https://news.test/" + "%41" * 1300 + "/'"
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "too many entries": (lambda: rss(numbered("<item><link>/%d</link></item>", 100_000)).encode(), "5000 entries"),
    "empty entries": (lambda: rss("<item/>" * 1_400_000).encode(), "610000 elements"),
    "too long": (lambda: rss(" " * 30_000_000).encode(), f"longer than {MAX_FEED_BYTES} bytes"),
    "gzip bomb": (lambda: gzip.compress(rss(" " * 30_000_000).encode(), mtime=0), f"longer than {MAX_FEED_BYTES}"),
    "levels": (lambda: rss("<a>" * 3_000_000).encode(), "256 levels"),
    "levels with bases": (lambda: rss("<a xml:base='x/'>" * 500_000).encode(), "256 levels"),
    "bases": (lambda: atom("<a xml:base='x'/>" * 400_000, LONG_BASE).encode(), "resolved against a long base"),
    "links to one page": (lambda: atom(item("<link>x</link>") * 200_000, LONG_BASE).encode(), "resolved"),
    "names": (lambda: rss(numbered("<a%d/>", 500_000)).encode(), "1000 different names"),
    "unknown entities": (lambda: rss("<item><link>" + "&a;" * 3_000_000).encode(), "1000000 comments"),
    "billion laughs": (
        lambda: b'<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss><item><link>&b;</link></item></rss>',
        "internal subset is refused",
    ),
    "external entity": (lambda: b'<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]><rss>&a;</rss>', "refused"),
    "a long tag": (lambda: b"<rss " + b"a" * 9_000_000, "a tag or comment of more than 524288 bytes"),
    "open CDATA": (lambda: rss("& <![CDATA[" * 800_000).encode(), "not well-formed"),
    "ampersands": (lambda: rss("&" * 9_000_000 + "<b>").encode(), "not well-formed"),
    "a long link": (lambda: rss(item("<link>/" + "a" * 9_000_000 + "</link>"), "<b>").encode(), "not well-formed"),
    "a long date": (lambda: rss(item("<pubDate>" + "1 Feb " * 1_500_000 + "</pubDate>"), "<b>").encode(), "not well"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_feed_is_cut_before_it_takes_long(name: str) -> None:
    make, reason = HOSTILE[name]
    content = make()
    begun = time.process_time()
    feed = parse(content)
    assert time.process_time() - begun < 5  # under 2 s on a free core
    assert not feed.is_complete
    assert reason in feed.error
    assert len(feed.entries) <= MAX_FEED_ENTRIES


@pytest.mark.parametrize("name", ["gzip bomb", "unknown entities", "ampersands", "a long link"])
def test_a_hostile_feed_takes_little_memory(name: str) -> None:
    content = HOSTILE[name][0]()
    tracemalloc.start()
    try:
        parse(content)
        assert tracemalloc.get_traced_memory()[1] < 12 * MAX_FEED_BYTES
    finally:
        tracemalloc.stop()


def test_long_links_are_dropped_and_their_neighbours_kept() -> None:
    assert urls(rss(item("<link>/" + "a" * 20_000 + "</link>"), item("<link>/b</link>"))) == ["https://news.test/b"]


def test_no_external_document_type_is_opened() -> None:
    text = "<!DOCTYPE rss SYSTEM 'file:///etc/passwd'>" + rss(item("<link>/a</link>"))
    assert urls(text) == ["https://news.test/a"]


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("application/rss+xml", "", RSS),
        ("application/x-rss+xml", "", RSS),
        ("application/atom+xml", "<html>", ATOM),
        ("text/xml", SAMPLES["rss 2.0"], RSS),
        ("text/xml", SAMPLES["rss 0.91"], RSS),
        ("application/rdf+xml", SAMPLES["rss 1.0"], RSS),
        ("application/rdf+xml", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>", ""),
        ("application/xml", SAMPLES["atom"], ATOM),
        ("application/xml", "<a:feed xmlns:a='http://www.w3.org/2005/Atom'>", ATOM),
        ("application/xml", "<feed xmlns='urn:cattle'>", ""),
        ("text/html", "\ufeff \n<?xml version='1.0'?><?xml-stylesheet x?><!-- > --><rss version='2.0'>", RSS),
        ("text/plain", "<rss>", RSS),
        ("text/html", "<!DOCTYPE html><html><rss>", ""),
        ("text/html", "<p>How to write <rss>", ""),
        ("text/html", "<rssreader>", ""),
        ("application/octet-stream", "<rss>", ""),
        ("application/xml", "<urlset><rss>", ""),
        ("application/xml", "<!--" * 5000, ""),
    ],
)
def test_a_feed_is_known_by_its_type_or_its_root(kind: str, content: str, expected: str) -> None:
    assert feed_type(kind, content.encode()) == expected


def test_a_feed_in_utf_16_is_known_by_its_root() -> None:
    assert feed_type("text/xml", SAMPLES["atom"].encode("utf-16")) == ATOM


def test_entries_are_sorted_and_have_the_dates_of_a_sitemap() -> None:
    feed = parse(SAMPLES["rss 2.0"].replace("</channel>", "<item><link>/undated</link></item></channel>"))
    assert feed.content_type == RSS
    assert [(entry.url, entry.lastmod) for entry in feed.newest_first()] == [
        ("https://news.test/b", "2024-02-06T00:00:00Z"),
        ("https://news.test/a", "2024-02-05T12:00:00Z"),
        ("https://news.test/undated", ""),
    ]
