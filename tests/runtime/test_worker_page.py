"""What a worker reads in an answer, and that no answer takes it long."""

from __future__ import annotations

import time

import pytest

from gossamer.core.href_memo import HrefMemo
from gossamer.fetch.guard import AddressPolicy
from gossamer.fetch.http import Fetcher
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.parse.hrefs import MAX_HREFS
from gossamer.records import Exchange, Order, OrderKind, Outcome, Result
from gossamer.runtime.worker import BIG_LEGACY_BYTES, Worker, WorkerRules, read_answer
from tests.runtime.test_channel import Hub

HREFS = b"".join(b"<a href=%d>" % number for number in range(MAX_HREFS))
ESCAPES = "http://a.test/" + "%41" * 1300 + "/"


def read(
    content: bytes, *headers: tuple[str, str], url: str = "http://a.test/", kind: OrderKind = OrderKind.PAGE
) -> Result:
    order = Order(1, kind, url, b"", "a.test", ("127.0.0.1",), depth=0, hops=0, attempt=0, ordered_at=0.0)
    exchange = Exchange(url, Outcome.OK, status=200, headers=[("content-type", "text/html"), *headers], content=content)
    return read_answer(order, exchange, WorkerRules(), HrefMemo())


def read_quickly(
    content: bytes, *headers: tuple[str, str], url: str = "http://a.test/", kind: OrderKind = OrderKind.PAGE
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
    result = read_quickly(b"<urlset>" + entries + b"</urlset>", url=ESCAPES, kind=OrderKind.SITEMAP)
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
