"""Twice the input takes about twice the time, for every reader and every shape that is known to hurt one."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable

import pytest

from gossamer.core.content.written_dates import written_time
from gossamer.core.robots.rules import parse_robots
from gossamer.core.traps.shapes import is_dated, shape_trap
from gossamer.core.url.forms import canonical, key_of, links_from
from gossamer.core.url.href_memo import HrefMemo
from gossamer.fetch.body import decode
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.plain.transfer import PlainTransfer
from gossamer.fetch.transfer import FetchRequest
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome
from gossamer.parse.feeds.feeds import parse_feed
from gossamer.parse.feeds.sitemap import parse_sitemap
from gossamer.parse.html.html import parse_html
from gossamer.parse.pdf.pdf import pdf_links
from gossamer.parse.text.fingerprint import text_fingerprint
from gossamer.runtime.workers.answers import WorkerRules, read_answer

pytestmark = pytest.mark.timed

Reader = Callable[[int], object]

SHAPES: dict[str, Reader] = {
    "url of dots": lambda n: canonical("http://a.test/" + "../" * min(n, 1300)),
    "key of escapes": lambda n: key_of("http://a.test/?" + "%41&" * n),
    "many links": lambda n: links_from("http://a.test/", [f"/{k}" for k in range(n)]),
    "repeated segments": lambda n: shape_trap("http://a.test" + "/a" * n),
    "dates": lambda n: is_dated("http://a.test/?year=2020" + "&y=2020" * n),
    "robots rules": lambda n: parse_robots(b"User-agent: *\n" + b"Disallow: /a*b*c\n" * n, "gossamer").is_allowed(
        "/a" * 99
    ),
    "robots stars": lambda n: parse_robots(b"User-agent: *\nDisallow: /" + b"*a" * 50, "gossamer").is_allowed(
        "/" + "a" * n
    ),
    "open tags": lambda n: parse_html(b"<div>" * n),
    "open formatting": lambda n: parse_html(b"<b><p>" * n),
    "open tables": lambda n: parse_html(b"<table><tr><td>" * n),
    "attributes": lambda n: parse_html(b"<a " + b"".join(b"a%d=x " % k for k in range(n)) + b">"),
    "same attributes": lambda n: parse_html(b"<a " + b"href=x " * n + b">"),
    "unclosed comment": lambda n: parse_html(b"<!--" * n),
    "entities": lambda n: parse_html(b"&amp&lt;&#x41;" * n),
    "anchors": lambda n: parse_html(b"<a href=x>" * n),
    "links": lambda n: parse_html(b"<link rel=next href=x>" * n),
    "bases": lambda n: parse_html(b"<base href=x>" * n),
    "pdf parentheses": lambda n: pdf_links(b"/URI (" * n),
    "pdf nested": lambda n: pdf_links(b"/URI (" + b"(" * n),
    "pdf escapes": lambda n: pdf_links(b"/URI (" + b"\\" * n),
    "pdf streams": lambda n: pdf_links(b"/ObjStm stream\nx\x9c" * n),
    "sitemap entries": lambda n: parse_sitemap(b"<urlset>" + b"<url><loc>http://a.test/</loc></url>" * n),
    "sitemap nesting": lambda n: parse_sitemap(b"<urlset>" + b"<url>" * n),
    "sitemap text": lambda n: parse_sitemap(b"<urlset><url><loc>" + b"x&amp;" * n),
    "sitemap lines": lambda n: parse_sitemap(b"http://a.test/\n" * n),
    "feed entries": lambda n: parse_feed(b"<rss>" + b"<item><link>/a</link></item>" * n, "http://a.test/", 0.0),
    "feed nesting": lambda n: parse_feed(b"<rss>" + b"<item>" * n, "http://a.test/", 0.0),
    "feed ampersands": lambda n: parse_feed(b"<rss><item><link>" + b"& " * n, "http://a.test/", 0.0),
    "feed sections": lambda n: parse_feed(b"<rss>&" + b"<![CDATA[" * n, "http://a.test/", 0.0),
    "feed entities": lambda n: parse_feed(b"<rss><item><link>" + b"&nbsp;" * n, "http://a.test/", 0.0),
    "feed date": lambda n: written_time("Mon, 1 Feb " * n, 0.0),
    "fingerprint": lambda n: text_fingerprint(b"path and more " * n, "http://a.test/path/and/more?x=path"),
}


def numbered(pattern: bytes, count: int) -> bytes:
    return b"".join(pattern % number for number in range(count))


def page(
    content: bytes, *headers: tuple[str, str], url: str = "http://a.test/", rules: WorkerRules | None = None
) -> object:
    """Read an answer as a worker does: everything that is read in a page."""
    task = FetchTask(1, FetchKind.PAGE, url, b"", "a.test", ("127.0.0.1",), depth=0, hops=0, attempt=0, issued_at=0.0)
    headers = headers or (("content-type", "text/html"),)
    exchange = Exchange(url, Outcome.OK, status=200, headers=list(headers), content=content)
    return read_answer(task, exchange, rules or WorkerRules(), HrefMemo())


def xml(content: bytes) -> object:
    return page(content, ("content-type", "application/xml"))


def needs(content: bytes) -> object:
    return page(content, rules=WorkerRules(max_requisites=500, reads_anchors=True))


def header(name: str, value: str) -> object:
    return page(b"<p>", ("content-type", "text/html"), (name, value))


ANSWERS: dict[str, Reader] = {
    "nested styles": lambda n: needs(b"<math><title>x<style>" * n),
    "styles": lambda n: needs(b"<style>a{b:url(x)}</style>" * n),
    "an open style": lambda n: needs(b"<style>" + b"@import url('/* " * n),
    "nested anchors": lambda n: needs(b"<svg><a href=x>word" * n),
    "srcset": lambda n: needs(b"<img srcset='" + b"x 1x(," * n + b"'>"),
    "words": lambda n: page(b"lorem ipsum 12 " * n),
    "one word": lambda n: page(b"x" * 20 * n),
    "words of another script": lambda n: page("Привет, мир ".encode() * n),
    "signs": lambda n: page("中文".encode() * n),
    "broken UTF-8": lambda n: page(b"\xff\xfe\xfd<a href=x>" * n),
    "bytes without a charset": lambda n: page(b"<p>" + bytes(range(0xA0, 0x100)) * n),
    "a late charset": lambda n: page(b"<p>charset " * n + b"\xe9"),
    "UTF-16": lambda n: page(("<a href=x>" * n).encode("utf-16")),
    "NUL": lambda n: page(b"a\0b " * n),
    "carriage returns in a value": lambda n: page(b"<a href='" + b"\r\n&amp;" * n + b"'>"),
    "queries in GBK": lambda n: page(b"<meta charset=gbk>" + numbered(b"<a href='?%d&#x1F600;'>", n)),
    "a query in ISO-2022-JP": lambda n: page(b"<meta charset=iso-2022-jp><a href='?" + b"&#x4e2d;a" * n + b"'>"),
    "svg": lambda n: page(b"<svg><g><title><p>" * n),
    "math": lambda n: page(b"<math><mi><mglyph>" * n),
    "templates": lambda n: page(b"<svg><template>" * n),
    "noscript": lambda n: page(b"<noscript><a href=x></noscript>" * n),
    "unclosed noscript": lambda n: page(b"<noscript>" * n),
    "CDATA": lambda n: page(b"<svg>" + b"<![CDATA[]" * n),
    "unknown references": lambda n: page(b"&aaaaaaaaaaaaaaaaaaaaaaaaa" * n),
    "long references": lambda n: page(b"&#" + b"0" * 20 * n),
    "scripts": lambda n: page(b"<script><!--<script>" * n),
    "robots words": lambda n: page(b"<meta name=robots content='" + b"a," * n + b"'>"),
    "refresh": lambda n: page(b"<meta http-equiv=refresh content='0" + b" ;" * n + b"'>"),
    "metas": lambda n: page(numbered(b"<meta name=a%d content=b>", n)),
    "rels": lambda n: page(numbered(b"<link rel='next a%d' href=x>", n)),
    "a title": lambda n: page(b"<title>" + b" &amp;" * n + b"</title>"),
    "a language": lambda n: page(b"<html lang='" + b" " * 10 * n + b"'>"),
    "hosts": lambda n: page(numbered(b"<a href='http://h%d.test/'>", n)),
    "international hosts": lambda n: page(numbered(b"<a href='http://xn--%d.test/'>", n)),
    "blanks before a fragment": lambda n: page(b"<a href='x" + b" " * 20 * n + b"#'>"),
    "tabs": lambda n: page(b"<a href='x" + b"\t" * 20 * n + b"'>"),
    "long hrefs": lambda n: page(numbered(b"<a href='/%d" + b"%%41" * 60 + b"'>", n // 10)),
    "a long base": lambda n: page(b"<base href='/" + b"%41" * 1300 + b"/'>" + numbered(b"<a href=%d>", n)),
    "a long address": lambda n: page(numbered(b"<a href=%d>", n), url="http://a.test/" + "/." * 1500 + "/"),
    "plain text": lambda n: page(b"http://a.test/ \xe9 " * n, ("content-type", "text/plain")),
    "XML attributes": lambda n: xml(b"<rss " + numbered(b"a%d='' ", n) + b">"),
    "XML names": lambda n: xml(b"<rss>" + numbered(b"<a%d/>", n)),
    "XML comments": lambda n: xml(b"<rss>" + b"<!---->" * n),
    "an XML comment": lambda n: xml(b"<rss><!--" + b"<" * 20 * n),
    "XML references": lambda n: xml(b'<!DOCTYPE a SYSTEM "x"><rss>' + b"&a;" * n),
    "feed entries": lambda n: xml(b"<rss>" + b"<item><link>http://a.test/</link></item>" * n),
    "Link header": lambda n: header("link", "<" * n),
    "Link header with quotes": lambda n: header("link", '<a>;a="' * n),
    "X-Robots-Tag": lambda n: header("x-robots-tag", "a:b," * n),
    "Content-Type": lambda n: page(b"<p>", ("content-type", "text/html;" + "a;" * n)),
    "Content-Type in quotes": lambda n: page(b"<p>", ("content-type", 'text/html;a="' + "\\" * n)),
    "deflate blocks": lambda n: decode(b"\0\0\0\xff\xff" * 20 * n + b"\x03\0", "deflate", 50_000_000),
    "gzip members": lambda n: decode(gzip.compress(b"x") * n, "gzip", 50_000_000),
    "zstd blocks": lambda n: decode(b"\x28\xb5\x2f\xfd\0\x58" + bytes(30 * n) + b"\1\0\0", "zstd", 50_000_000),
    "brotli blocks": lambda n: decode(b"\x0c" + b"\x06" * 50 * n + b"\x03", "br", 50_000_000),
    "chunks": lambda n: fed(b"1\r\nx\r\n" * n),
    "chunk extensions": lambda n: fed(b"1;%b\r\nx\r\n" % (b"e" * 1000) * (n // 10)),
    "zeros of a chunk": lambda n: fed(b"%b1\r\nx\r\n" % (b"0" * 1000) * (n // 10)),
}


def fed(chunks: bytes) -> object:
    """Read a chunked body as it arrives, in pieces of 1,000 bytes."""
    transfer = PlainTransfer(FetchLimits(), AddressPolicy(), time.time)
    transfer.prepare(FetchRequest("http://a.test/", ()), ["127.0.0.1"], lambda _: None, None)
    transfer.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for at in range(0, len(chunks), 1000):
        if transfer.feed(chunks[at : at + 1000]):
            break
    return transfer.chunks


SHAPES |= ANSWERS
MIN_S = 0.01
GROWTH = 8.0  # for four times the input: quadratic would be 16
TRIES = 5  # a busy machine spoils a try (caches, new memory), never all of them


def cpu_s(reader: Reader, count: int) -> float:
    started = time.thread_time()
    reader(count)
    return time.thread_time() - started


def growth_of(reader: Reader) -> float:
    """Return how much longer four times the input takes, by the best of a few tries."""
    count = 250
    while cpu_s(reader, count) < MIN_S and count < 60_000:
        count *= 2
    growth = float("inf")
    for _ in range(TRIES):
        growth = min(growth, cpu_s(reader, 4 * count) / max(min(cpu_s(reader, count) for _ in range(3)), MIN_S / 2))
        if growth < GROWTH:
            break
    return growth


@pytest.mark.parametrize("name", SHAPES)
def test_time_grows_with_the_input(name: str) -> None:
    assert growth_of(SHAPES[name]) < GROWTH


def test_a_reader_that_is_quadratic_is_found() -> None:
    assert growth_of(lambda n: [0 for _ in range(n // 10) for _ in range(n)]) > GROWTH
