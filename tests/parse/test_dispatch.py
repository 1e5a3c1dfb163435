from __future__ import annotations

import gzip
import random

import pytest

from gossamer.model.exchanges import Document, Exchange
from gossamer.model.records import Outcome
from gossamer.parse.dispatch import parse_exchange


def read(content: bytes, *headers: tuple[str, str], is_decoded: bool = True, want_pdf: bool = True) -> Document:
    exchange = Exchange("http://a.test/", Outcome.OK, headers=list(headers), content=content, is_decoded=is_decoded)
    return parse_exchange(exchange, want_text=True, want_pdf_links=want_pdf)


HTML = ("content-type", "text/html; charset=utf-8")
LINK = b"<a href=/x>words</a>"


def test_html_is_parsed_by_its_header_or_without_one() -> None:
    assert read(LINK, HTML).hrefs == ["/x"]
    assert read(LINK, HTML).content_type == "text/html"
    assert read(b"<html>" + LINK).hrefs == ["/x"]
    assert read(b"<html>" + LINK, ("content-type", "application/xhtml+xml")).content_type == "application/xhtml+xml"


def test_content_that_could_not_be_decoded_is_not_parsed() -> None:
    document = read(LINK, HTML, ("x-robots-tag", "noindex"), is_decoded=False)
    assert (document.content_type, document.hrefs, document.text) == ("text/html", [], "")
    assert document.is_noindex


def test_h13_binary_under_text_html_is_not_parsed() -> None:
    binary = b"\x80" + random.Random(1).randbytes(200_000) + LINK
    document = read(binary, ("content-type", "text/html"))
    assert (document.content_type, document.hrefs, document.text) == ("application/octet-stream", [], "")
    assert read(gzip.compress(LINK), ("content-type", "text/html")).content_type == "application/gzip"


def test_pdf_gives_links_if_they_are_wanted() -> None:
    pdf = b"%PDF-1.4 /URI (http://b.test/)"
    assert read(pdf, ("content-type", "application/pdf")).hrefs == ["http://b.test/"]
    assert read(pdf, ("content-type", "text/html")).content_type == "application/pdf"
    assert read(pdf, ("content-type", "application/pdf"), want_pdf=False).hrefs == []


def test_a_pdf_of_no_specific_type_is_known_by_its_start_or_its_name() -> None:
    binary = [("content-type", "application/octet-stream")]
    pdf = b"%PDF-1.4 /URI (http://b.test/)"
    assert read(b"\r\n" + pdf, *binary).hrefs == ["http://b.test/"]
    assert read(b"x" + pdf, *binary).content_type == "application/octet-stream"
    named = Exchange("http://a.test/x.PDF?v=1", Outcome.OK, headers=binary, content=b"x" + pdf)
    assert parse_exchange(named, want_text=True, want_pdf_links=True).hrefs == ["http://b.test/"]
    assert read(pdf, ("content-type", "application/x-pdf")).content_type == "application/pdf"


def test_text_is_text_and_feeds_are_links() -> None:
    plain = read("caf\u00e9 <a href=/no>".encode("latin-1"), ("content-type", "text/plain; charset=latin1"))
    assert (plain.text, plain.charset, plain.hrefs) == ("caf\u00e9 <a href=/no>", "windows-1252", [])
    feed = b"<rss><channel><item><link>http://b.test/1</link></item></channel></rss>"
    assert read(feed, ("content-type", "application/rss+xml")).hrefs == ["http://b.test/1"]


@pytest.mark.parametrize(
    ("values", "noindex", "nofollow", "noarchive"),
    [
        (["noindex"], True, False, False),
        (["NONE"], True, True, False),
        (["gossamer: nofollow, noarchive"], False, True, True),
        (["otherbot: noindex, nofollow"], False, False, False),
        (["otherbot: noindex", "nofollow"], False, True, False),
        (["otherbot: noindex, gossamer: nofollow"], False, True, False),
        (["unavailable_after: 25 Jun 2010 15:00:00 GMT, noindex"], True, False, False),
        (["max-snippet: 5, nocache"], False, False, True),
    ],
)
def test_x_robots_tag_for_all_or_for_us_binds(
    values: list[str], noindex: bool, nofollow: bool, noarchive: bool
) -> None:
    document = read(LINK, HTML, *(("x-robots-tag", value) for value in values))
    assert (document.is_noindex, document.is_nofollow, document.is_noarchive) == (noindex, nofollow, noarchive)
    assert document.hrefs == ([] if nofollow else ["/x"])


def test_link_headers_add_canonical_and_next() -> None:
    value = '</c>; rel="canonical", </n>; title="a, b"; rel=next, </s.css>; rel=stylesheet, <javascript:x>; rel=next'
    document = read(LINK, HTML, ("link", value))
    assert (document.canonical, document.hrefs) == ("/c", ["/x", "/c", "/n"])
    assert read(b"<link rel=canonical href=/own>", HTML, ("link", "</c>; rel=canonical")).canonical == "/own"


def test_directives_for_one_robot_bind_the_one_that_is_named() -> None:
    markup = b'<meta name="name2" content="nofollow"><a href=/x>x</a>'
    exchange = Exchange(
        "http://a.test/", Outcome.OK, headers=[HTML, ("x-robots-tag", "name2: noindex")], content=markup
    )
    named = parse_exchange(exchange, want_text=True, want_pdf_links=True, token="name2")
    assert (named.is_nofollow, named.is_noindex, named.hrefs) == (True, True, [])
    other = parse_exchange(exchange, want_text=True, want_pdf_links=True)
    assert (other.is_nofollow, other.is_noindex, other.hrefs) == (False, False, ["/x"])


def test_what_is_left_out_of_a_feed_or_of_link_headers_is_the_problem_of_the_page() -> None:
    feed = b"<rss><channel><item><link>http://b.test/1</link></item>" + b"".join(b"<a%d/>" % n for n in range(2000))
    document = read(feed, ("content-type", "application/rss+xml"))
    assert (document.hrefs, document.problem) == (["http://b.test/1"], "feed: more than 1000 different names")
    document = read(LINK, HTML, ("link", "</n>; rel=next, " + "x" * 20_000))
    assert (document.hrefs, document.problem) == (["/x", "/n"], "Link headers: the first 16384 characters were read")
    assert read(LINK, HTML, ("link", "</n>; rel=next")).problem == ""
