from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.exchanges import Document
from gossamer.parse.html import html
from gossamer.parse.html.html import parse_html
from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.web import preset
from tests.amount import amount
from tests.support import lexbor as html_lexbor

PAGE = b"""<!doctype html><html lang="de-AT"><head>
<meta charset=utf-8><title>
  Ein   Titel </title><base href="/base/"><base href="/other/">
<link rel="Canonical" href=" /kanon "><link rel=alternate hreflang=en href=/en><link rel=next href=?p=2>
<link rel="alternate stylesheet" href=/no.css><link rel=stylesheet href=/no2.css>
<meta name=Description content=" Eine
 Seite "><meta property=og:description content=other><meta http-equiv=refresh content="5; URL='/neu'">
</head><body><p>Text <b>fett</b></p><p>Zwei</p>
<script>var no;</script><style>no{}</style><noscript>nein <a href=/noscript>x</a></noscript><template>tpl</template>
<a href="/a#x">A</a><a href="/a">A</a><a href=#top>top</a><a rel="me NoFollow" href=/bad>x</a><a rel=ugc href=/ugc>x</a>
<map><area href=/area></map><iframe src=/frame>inner</iframe><iframe src=about:blank></iframe>
<a href="mailto:x@y">m</a><a href="&#x68;ttp://e.test/?a=1&amp;b=2">e</a>
<ul><li>eins<li>zwei</ul></body></html>"""
HREFS = ["/kanon", "/en", "?p=2", "/neu", "/noscript", "/a", "/ugc", "/area", "/frame", "http://e.test/?a=1&b=2"]


@pytest.mark.parametrize("parse_html", [html.parse_html, html_lexbor.parse_html])
def test_a_page_is_read_whole(parse_html: Callable[[bytes, str], Document]) -> None:
    document = parse_html(PAGE, "")
    assert document.hrefs == HREFS
    assert document.title == "Ein Titel"
    assert document.description == "Eine Seite"
    assert (document.language, document.charset, document.canonical) == ("de", "utf-8", "/kanon")
    assert document.base == "/base/"
    assert (document.is_noindex, document.is_nofollow, document.is_noarchive) == (False, False, False)
    for word in ("no", "nein", "tpl", "inner", "Titel"):
        assert word not in document.text.split()
    assert "Text" in document.text


def test_blocks_stand_on_lines_of_their_own() -> None:
    lines = [line for line in parse_html(PAGE).text.splitlines() if line.strip()]
    assert lines[:2] == ["Text fett", "Zwei"]
    assert lines[-2:] == ["eins", "zwei"]


def test_text_is_left_out_if_it_is_not_wanted() -> None:
    assert parse_html(PAGE, want_text=False).text == ""


@pytest.mark.parametrize(
    ("meta", "noindex", "nofollow", "noarchive"),
    [
        (b"<meta name=robots content='NoIndex, nofollow'>", True, True, False),
        (b"<meta name=ROBOTS content=none>", True, True, False),
        (b"<meta name=gossamer content=noarchive>", False, False, True),
        (b"<meta name=robots content=nocache><meta name=gossamer content=noindex>", True, False, True),
        (b"<meta name=googlebot content=noindex>", False, False, False),
        (b"<meta name=robots content='index, follow'>", False, False, False),
    ],
)
def test_robots_metas_add_up(meta: bytes, noindex: bool, nofollow: bool, noarchive: bool) -> None:
    document = parse_html(meta + b"<a href=/x>x</a>")
    assert (document.is_noindex, document.is_nofollow, document.is_noarchive) == (noindex, nofollow, noarchive)
    assert document.hrefs == ([] if nofollow else ["/x"])


@pytest.mark.parametrize(
    ("markup", "base"),
    [
        (b"<base href='//evil.example/'>", "//evil.example/"),
        (b"<base href='javascript:x'><base href='http://no/'>", ""),
        (b"<base href=''><base href='http://no/'>", ""),
        (b"<base href='file:///c:/'>", ""),
        (b"<base target=x><base href=/b/>", "/b/"),
        (b"<body><p><base href=/late/>", "/late/"),
        (b"<base href='data:,x'>", ""),
        (b"<p>", ""),
    ],
)
def test_the_first_base_with_a_href_counts(markup: bytes, base: str) -> None:
    assert parse_html(markup).base == base


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/x", ["/x"]),
        ("0; URL = '/x' ", ["/x"]),
        ("3,/x", ["/x"]),
        ('.5;url="/x', ["/x"]),
        ("5", []),
        ("url=/x", []),
        ("0;url=javascript:x", []),
    ],
)
def test_meta_refresh_is_a_link(content: str, target: list[str]) -> None:
    quoted = content.replace('"', "&quot;")
    assert parse_html(f'<meta http-equiv=Refresh content="{quoted}">'.encode()).hrefs == target


def test_language_may_come_from_a_meta_and_nonsense_is_none() -> None:
    assert parse_html(b"<meta http-equiv=content-language content='FR, en'>").language == "fr"
    assert parse_html(b"<html lang='*'>").language == ""
    assert parse_html(b"<html lang='en_US'>").language == "en"


def test_the_title_is_one_line_without_controls_and_short() -> None:
    hostile = b"<title>\x1b[2J\x1b]0;pwn\x07 <script>alert(1)</script>\r\n\tx \xc2\x9b</title>"
    assert parse_html(hostile).title == "[2J ]0;pwn <script>alert(1)</script> x"
    assert len(parse_html(b"<title>" + b"word " * 1000).title) <= 300
    assert parse_html(b"<svg><title>tooltip</title></svg>").title == ""


@pytest.mark.parametrize("tag", [b"<title/>", b"<style/>", b"<script/>", b"<title>x</title>", b"<style>a{}</style>"])
@pytest.mark.parametrize("root", [b"svg", b"math"])
def test_an_icon_hides_nothing(tag: bytes, root: bytes) -> None:
    page = b"<header><a href=/1><%s>%s<path d=z /></%s></a></header><a href=/2>x</a>" % (root, tag, root)
    assert parse_html(page).hrefs == ["/1", "/2"]


def test_svg_has_links_of_its_own() -> None:
    markup = b"<svg><a xlink:href=/1><path/></a><a href=/2 xlink:href=/no></a></svg><a xlink:href=/no>x</a>"
    assert parse_html(markup).hrefs == ["/1", "/2"]


def test_templates_are_no_part_of_the_page() -> None:
    markup = b"<template><base href=/no/><title>no</title><meta name=robots content=none><a href={{url}}></template>"
    document = parse_html(markup + b"<a href=/yes>x</a>")
    assert (document.hrefs, document.base, document.title) == (["/yes"], "", "")
    shown = parse_html(b"<template shadowrootmode=open><a href=/shown>x</a><base href=/no/></template>")
    assert (shown.hrefs, shown.base) == (["/shown"], "")


def test_base_and_title_of_svg_do_not_count() -> None:
    document = parse_html(b"<svg><base href=/no/><title>no</title><desc>no</desc></svg><title>yes</title>seen")
    assert (document.base, document.title, document.text) == ("", "yes", "seen")


def test_a_blank_before_the_fragment_stays() -> None:
    assert parse_html(b'<a href="b?d #e">x</a><link rel=next href="c #e">').hrefs == ["c%20", "b?d%20"]


# --- the hostile catalogue -----------------------------------------------------------------------------------------


def test_h01_many_links_take_linear_time() -> None:
    few = _seconds(b"".join(b"<a href=/p%d>x</a>" % i for i in range(10_000)))
    many = _seconds(b"".join(b"<a href=/p%d>x</a>" % i for i in range(100_000)))
    assert many < max(few, 0.01) * 40


@pytest.mark.parametrize(
    "tag", [b"<div>", b"<b>", b"<table><tr><td>", b"<noscript>", b"<a href=/y>", b"<svg>", b"<ul><li>"]
)
def test_h02_deep_nesting_neither_crashes_nor_crawls(tag: bytes) -> None:
    started = time.process_time()
    document = parse_html(tag * 200_000 + b"<a href=/x>deep</a>")
    assert ("/x" in document.hrefs) is (tag != b"<noscript>")
    assert time.process_time() - started < 2


def test_h03_nothing_comes_out_that_cannot_be_written() -> None:
    junk = b"\xc0\xaf\xed\xa0\x80\xff&#xd800;&#xdfff;"
    document = parse_html(b"<title>" + junk + b"</title><a href='/" + junk + b"'>" + junk + b"</a>", "utf-8")
    for value in (document.title, document.text, *document.hrefs):
        value.encode("utf-8")
    assert "\N{REPLACEMENT CHARACTER}" in document.title
    surrogates = b"\xff\xfe" + "<title>".encode("utf-16le") + b"\x00\xd8x\x00" + "</title>".encode("utf-16le")
    parse_html(surrogates).title.encode("utf-8")


def test_h04_nul_never_comes_out() -> None:
    document = parse_html(b"<ti\0tle>\0x</title>\0<title>a\0b</title><a h\0ref=/no href='/p\0q'>\0t\0</a>")
    for value in (document.title, document.text, *document.hrefs):
        assert "\0" not in value


def test_h07_links_that_are_not_http_are_dropped() -> None:
    schemes = ("javascript:x", "data:,x", "mailto:a@b", "tel:1", "blob:x", "about:blank", "ftp://x/", "ws://x/")
    page = "".join(f'<a href="{scheme}">x</a>' for scheme in schemes) + "<a href=/ok>x</a>"
    assert parse_html(page.encode()).hrefs == ["/ok"]


# --- one parser against the other ------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "<a href=/1>", "</a>", "<a href='/2' rel=nofollow>", "<p>", "</p>", "<b>", "</b>", "<table>", "<tr>", "<td>",
        "</table>", "<div>", "</div>", "<area href=/3>", "<iframe src=/4></iframe>", "<link rel=next href=/5>",
        "<meta name=robots content=noindex>", "<title>t</title>", "text ", "&amp;", "<!-- <a href=/no> -->",
        "<script>'<a href=/no2>'</script>", "<style>", "</style>", "<svg>", "</svg>", "<title/>", "<style/>",
        "<select>", "<option>", "<base href=/6>", "<a\nHREF = \"/7\" >", "<ul>", "<li>", "<form>", "<button>",
        "<textarea>", "</textarea>", "<",
        "<h1>", "</h1>", "<!doctype html>", "<html lang=en>", "<body>", "</body>", "</html>", "<math>", "<frameset>",
    ]
)  # fmt: skip


@settings(max_examples=amount(75, 300), deadline=None)
@given(st.lists(PIECES, max_size=25))
def test_no_link_of_the_tree_is_missed(pieces: list[str]) -> None:
    content = "".join(pieces).encode()
    ours, theirs = parse_html(content, want_text=False), html_lexbor.parse_html(content, want_text=False)
    # Without a tree more is found: what a browser drops for standing in the wrong place.
    assert set(theirs.hrefs) <= set(ours.hrefs)
    assert not theirs.is_noindex or ours.is_noindex


@settings(max_examples=amount(50, 200), deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "gbk", "utf-16", "shift_jis", "zip"]))
def test_any_bytes_give_a_document(content: bytes, charset: str) -> None:
    document = parse_html(content, charset)
    for value in (document.title, document.text, document.description, document.base, *document.hrefs):
        value.encode("utf-8")


def whole_pages() -> list[bytes]:
    """Return pages of the synthetic web, and of Python's documentation if it is installed."""
    web = SyntheticWeb(preset("small"), 8080)
    sites = [site for index in range(web.plan.host_count) if (site := web.site(web.plan.host_name(index)))]
    made = [
        web.answer(site.name, web.card(site, number).path) for site in sites for number in range(min(3, site.pages))
    ]
    installed = sorted(Path("/usr/share/doc/python3.11/html/library").glob("a*.html"))[:15]
    return [*(answer.body for answer in made if answer.body), *(path.read_bytes() for path in installed)]


def test_both_parsers_agree_on_whole_pages() -> None:
    pages = whole_pages()
    assert len(pages) > 15
    for content in pages:
        ours, theirs = parse_html(content), html_lexbor.parse_html(content)
        assert ours.hrefs == theirs.hrefs
        assert (ours.title, ours.description, ours.language) == (theirs.title, theirs.description, theirs.language)
        # White space and the numbers of lists differ; every letter is the same.
        assert "".join(filter(str.isalpha, ours.text)) == "".join(filter(str.isalpha, theirs.text))


def _seconds(content: bytes) -> float:
    started = time.process_time()
    parse_html(content)
    return time.process_time() - started
