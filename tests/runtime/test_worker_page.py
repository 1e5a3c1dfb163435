"""What a worker reads in an answer, and that no answer takes it long."""

from __future__ import annotations

import time

import pytest

from gossamer.core.revisit.text_change import has_changed
from gossamer.core.url.href_memo import HrefMemo
from gossamer.fetch.http import Fetcher
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.parse.html.hrefs import MAX_HREFS
from gossamer.runtime.workers.answers import WorkerRules, read_answer
from gossamer.runtime.workers.page import MAX_TREE_BYTES
from gossamer.runtime.workers.worker import BIG_LEGACY_BYTES, Worker
from tests.runtime.test_channel import Hub

HREFS = b"".join(b"<a href=%d>" % number for number in range(MAX_HREFS))
ESCAPES = "http://a.test/" + "%41" * 1300 + "/"


def read(
    content: bytes, *headers: tuple[str, str], url: str = "http://a.test/", kind: FetchKind = FetchKind.PAGE
) -> Result:
    task = FetchTask(1, kind, url, b"", "a.test", ("127.0.0.1",), depth=0, hops=0, attempt=0, issued_at=0.0)
    exchange = Exchange(url, Outcome.OK, status=200, headers=[("content-type", "text/html"), *headers], content=content)
    return read_answer(task, exchange, WorkerRules(), HrefMemo())


def read_quickly(
    content: bytes, *headers: tuple[str, str], url: str = "http://a.test/", kind: FetchKind = FetchKind.PAGE
) -> Result:
    begun = time.process_time()
    result = read(content, *headers, url=url, kind=kind)
    assert time.process_time() - begun < 1
    return result


def test_a_long_link_header_is_read_at_once() -> None:
    assert read_quickly(b"<p>", ("link", "<" * 16_384)).links == []
    assert read_quickly(b"<p>", ("link", '<a>;rel="' * 1_800)).links == []


def test_links_of_a_header_are_added_once_to_many_hrefs() -> None:
    value = ", ".join(f"<{name}>;rel=next" for name in (5, *(f"n{number}" for number in range(900))))
    result = read_quickly(b"".join(b"<a href=%d>" % number for number in range(360_000)), ("link", value))
    assert result.links_found == 360_900


def test_a_long_base_of_escapes_limits_the_links_that_are_resolved() -> None:
    for result in (read_quickly(b'<base href="%s">' % ESCAPES.encode() + HREFS), read_quickly(HREFS, url=ESCAPES)):
        assert result.links_found == MAX_HREFS
        assert len(result.links) == 251
        assert result.error == f"links: the first 251 of {MAX_HREFS} were examined"


def test_of_more_hrefs_than_are_examined_the_result_says_so() -> None:
    result = read_quickly(HREFS + b"<a href=more>")
    assert (len(result.links), result.links_found) == (MAX_HREFS, MAX_HREFS + 1)
    assert result.error == f"links: the first {MAX_HREFS} of {MAX_HREFS + 1} were examined"


@pytest.mark.parametrize("base", ["http://a.test/a/folder/", "http://a.test/" + "%D0%9F" * 30 + "/"])
def test_all_links_of_an_ordinary_page_are_examined(base: str) -> None:
    content = b'<base href="%s">' % base.encode() + b"".join(b"<a href=%d>" % number for number in range(4000))
    result = read_quickly(content)
    assert (len(result.links), result.error) == (4000, "")


def test_a_sitemap_at_a_long_address_is_resolved_in_part() -> None:
    entries = b"".join(b"<url><loc>%d</loc><lastmod>2020</lastmod></url>" % number for number in range(20_000))
    result = read_quickly(b"<urlset>" + entries + b"</urlset>", url=ESCAPES, kind=FetchKind.SITEMAP)
    assert (result.links_found, len(result.links), len(result.lastmods)) == (20_000, 251, 251)
    assert result.error == "entries: the first 251 of 20000 were examined"


@pytest.mark.parametrize(
    ("header", "text", "charset", "is_off_the_loop"),
    [
        ("text/html", "中", "gb18030", True),
        ("text/html; charset=gbk", "中", "gbk", True),
        ("text/html", "中", "utf-8", False),
        ("text/html; charset=UTF-8", "é", "latin-1", False),
        ("text/html; charset=gb18030", "x", "ascii", False),
    ],
)
def test_pages_whose_charset_may_need_tables_are_read_in_a_thread(
    header: str, text: str, charset: str, is_off_the_loop: bool
) -> None:
    def page(chars: int) -> Exchange:
        content = (text * chars).encode(charset)
        return Exchange("http://a.test/", Outcome.OK, status=200, headers=[("content-type", header)], content=content)

    fetcher = Fetcher(FetchLimits(), Identity("Gossamer"), AddressPolicy(), time.time)
    worker = Worker(WorkerRules(), fetcher, (), lambda _: None, Hub())
    assert worker._is_slow(page(BIG_LEGACY_BYTES + 1)) == is_off_the_loop
    assert not worker._is_slow(page(1000))


def test_sketch_and_freshness_are_read_only_if_pages_are_fetched_again() -> None:
    task = FetchTask(1, FetchKind.PAGE, "http://a.test/", b"", "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)
    headers = [("content-type", "text/html"), ("cache-control", "max-age=60")]
    page = b"<title>Name</title><p>Words of a page, %s"
    exchanges = [
        Exchange(task.url, Outcome.OK, status=200, headers=headers, content=page % end) for end in (b"1", b"2")
    ]
    plain = read_answer(task, exchanges[0], WorkerRules())
    assert (plain.sketch, plain.fresh_s) == (b"", 0)
    first, second = (read_answer(task, exchange, WorkerRules(sketches=True)) for exchange in exchanges)
    assert first.sketch == second.sketch != b""
    assert first.content_hash != second.content_hash
    assert first.fresh_s == 60
    unchanged = Exchange(task.url, Outcome.NOT_MODIFIED, status=304, headers=headers)
    assert read_answer(task, unchanged, WorkerRules(sketches=True)).fresh_s == 60


FEED = b"""<rss><channel><ttl>30</ttl><lastBuildDate>%b</lastBuildDate>
<item><link>/old</link><pubDate>Mon, 5 Feb 2024 12:00:00 +0100</pubDate></item>
<item><link>/new</link><pubDate>2024-02-06</pubDate></item>%b</channel></rss>"""


@pytest.mark.parametrize("kind", [FetchKind.PAGE, FetchKind.SITEMAP])
def test_a_feed_has_links_dates_and_its_own_interval(kind: FetchKind) -> None:
    task = FetchTask(1, kind, "http://a.test/feed", b"", "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)

    def read_feed(content: bytes) -> Result:
        headers = [("content-type", "text/xml"), ("cache-control", "max-age=9")]
        exchange = Exchange(task.url, Outcome.OK, status=200, headers=headers, content=content)
        return read_answer(task, exchange, WorkerRules(sketches=True))

    result = read_feed(FEED % (b"1 Jan 2024", b""))
    assert (result.outcome, result.content_type, result.fresh_s) == (Outcome.OK, "application/rss+xml", 1800)
    assert [link.url for link in result.links] == ["http://a.test/new", "http://a.test/old"]
    assert [result.lastmods[link.id] for link in result.links] == ["2024-02-06T00:00:00Z", "2024-02-05T11:00:00Z"]
    assert not has_changed(result.sketch, read_feed(FEED % (b"2 Jan 2024", b"")).sketch)
    assert has_changed(result.sketch, read_feed(FEED % (b"2 Jan 2024", b"<item><link>/c</link></item>")).sketch)


def test_a_feed_with_nofollow_leads_nowhere() -> None:
    result = read(FEED % (b"", b""), ("x-robots-tag", "nofollow"))
    assert (result.content_type, result.links, result.lastmods) == ("application/rss+xml", [], {})


@pytest.mark.parametrize("header", ["text/html", "text/xml", "application/rss+xml", "text/plain", ""])
def test_a_long_feed_is_read_off_the_loop_whatever_its_type(header: str) -> None:
    def feed(items: int) -> Exchange:
        content = b"<?xml version='1.0'?><rss>" + b"<item><link>/a</link></item>" * items
        return Exchange("http://a.test/", Outcome.OK, status=200, headers=[("content-type", header)], content=content)

    fetcher = Fetcher(FetchLimits(), Identity("Gossamer"), AddressPolicy(), time.time)
    worker = Worker(WorkerRules(), fetcher, (), lambda _: None, Hub())
    assert worker._is_slow(feed(200))
    assert not worker._is_slow(feed(50))
    page = Exchange("http://a.test/", Outcome.OK, headers=[("content-type", "text/html")], content=b"<p>" + b"x" * 9000)
    assert not worker._is_slow(page)


def test_only_the_beginning_of_a_very_large_page_is_read_into_a_tree() -> None:
    task = FetchTask(1, FetchKind.PAGE, "http://a.test/", b"", "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)
    rules = WorkerRules(max_requisites=10, reads_anchors=True)

    def read_page_of(size: int) -> Result:
        content = b"<a href=/1>One</a><img src=/1.png>" + b"x" * size + b"<a href=/2>Two</a><img src=/2.png>"
        headers = [("content-type", "text/html")]
        return read_answer(task, Exchange(task.url, Outcome.OK, status=200, headers=headers, content=content), rules)

    for size, found in ((1000, 2), (MAX_TREE_BYTES, 1)):
        result = read_page_of(size)
        assert result.requisites is not None
        assert len(result.requisites.links) == len(result.anchors) == found
        assert len(result.links) == 2, "links do not need a tree"
        assert bool(result.error) is (found == 1)
    assert "the first 1500000 of 1500068 bytes were read" in result.error
