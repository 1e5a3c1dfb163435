"""What a page needs to be shown, by which element."""

from __future__ import annotations

import time

import pytest

from gossamer.parse.html.requisites import (
    MAX_CSS_CHARS,
    MAX_REQUISITES,
    css_urls,
    needs_of_css,
    needs_of_page,
    requisites_of,
    srcset_urls,
)
from gossamer.parse.text.article import PageSource

PAGE = "https://a.test/dir/page"


def needed(body: str, charset: str = "utf-8", content_type: str = "text/html") -> list[tuple[str, str]]:
    source = PageSource(url=PAGE, content_type=content_type, content=body.encode(charset), header_charset=charset)
    return [(each.element, each.url.removeprefix("https://a.test")) for each in requisites_of(source)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<img src=i.png>", [("img", "/dir/i.png")]),
        ('<img src=/a srcset="/b 1x, /c 2x">', [("img", "/a"), ("img", "/b"), ("img", "/c")]),
        ("<picture><source srcset=/b><img></picture>", [("source", "/b")]),
        ("<script src=/x.js></script><script>var a='/no.js'</script>", [("script", "/x.js")]),
        ("<link rel='Alternate StyleSheet' href=/s.css>", [("link", "/s.css")]),
        ("<link rel='shortcut icon' href=/f.ico><link rel=canonical href=/page>", [("link", "/f.ico")]),
        ("<link rel=preload as=image imagesrcset='/p 1x'>", [("link", "/p")]),
        ("<video src=/v poster=/p><track src=/t></video>", [("video", "/v"), ("video", "/p"), ("track", "/t")]),
        ("<audio><source src=/a.ogg></audio>", [("source", "/a.ogg")]),
        ("<input type=IMAGE src=/i><input src=/no><object data=/o></object><embed src=/e>",
         [("input", "/i"), ("object", "/o"), ("embed", "/e")]),
        ("<p style='background: url( \"/q.png\" )'>", [("css", "/q.png")]),
        ("<style>@import '/i'; b { x: url(/u) } /* url(/no) */</style>", [("css", "/i"), ("css", "/u")]),
        ("<svg><style>a{b:url(/u)}<g>c{b:url(/no)}</g>d{b:url(/v)}</style></svg>", [("css", "/u"), ("css", "/v")]),
        ("<svg><image xlink:href=/s /><use href='#a'/><use href='/d#a'/></svg>", [("image", "/s"), ("use", "/d")]),
        ("<base href=/other/><img src=i.png>", [("img", "/other/i.png")]),
        ("<img src='data:image/png;base64,AAAA'><img src=''><img>", []),
        ("<!-- <img src=/no> --><template><img src=/no></template>", []),
        ("<img src=/a><img src=/a>", [("img", "/a")]),
    ],
)  # fmt: skip
def test_what_a_page_needs_is_found_with_its_element(body: str, expected: list[tuple[str, str]]) -> None:
    assert needed(body) == expected


def test_a_query_is_encoded_in_the_charset_of_the_page() -> None:
    assert needed("<meta charset=latin-1><img src='/i?q=\u00e9'>", "latin-1") == [("img", "/i?q=%E9")]


def test_only_html_needs_anything() -> None:
    assert needed("<img src=/a>", content_type="text/plain") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a, /b", ["/a", "/b"]),
        ("/a 480w,/b 2x ,, /c", ["/a", "/b", "/c"]),
        ("/a,b 1x", ["/a,b"]),
        ("/a (x, y) 1x, /b", ["/a", "/b"]),
        (" , ", []),
        ("", []),
    ],
)
def test_srcset_is_split_as_browsers_do(text: str, expected: list[str]) -> None:
    assert list(srcset_urls(text)) == expected


@pytest.mark.parametrize(
    "unit",
    [
        "/*",
        'url("',
        "url('",
        "url(",
        "@import ",
        "/* url(",
        "url(a",
        "@import url(",
        "@namespace ",
        "url(\\",
        "@import\t",
    ],
)
def test_hostile_styles_take_linear_time(unit: str) -> None:
    began = time.process_time()
    list(css_urls(unit * 100_000))
    list(srcset_urls(unit * 100_000))
    assert time.process_time() - began < 3


def test_the_number_is_bounded() -> None:
    assert len(needed("".join(f"<img src=/{number}>" for number in range(MAX_REQUISITES + 10)))) == MAX_REQUISITES


# -- for crawls --------------------------------------------------------------------------------------


def paths(content: str, limit: int = 100) -> tuple[list[str], int, int] | None:
    found = needs_of_css(content.encode(), "", "https://a.test/css/s.css", limit)
    if found is None:
        return None
    return ([link.url.removeprefix("https://a.test") for link in found.links], found.stylesheets, found.found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a { background: url(i.png) }", (["/css/i.png"], 0, 1)),
        ("@import 'b.css'; @import url(c.css) screen;", (["/css/b.css", "/css/c.css"], 2, 2)),
        ("a { x: url(i.png) } @import 'b.css';", (["/css/b.css", "/css/i.png"], 1, 2)),
        ("@import url(b.css); a { x: url(b.css) }", (["/css/b.css"], 1, 1)),
        ("@font-face { src: url(f.woff2) format('woff2'), url(f.ttf) }", (["/css/f.woff2", "/css/f.ttf"], 0, 2)),
        ("@namespace svg url(http://www.w3.org/2000/svg); a { x: url(/i) }", (["/i"], 0, 1)),
        ("a { x: url('data:image/png;base64,AA==') } b { filter: url(#f) }", None),
        (r"a { x: url(a\(b\).png) } b { x: url('\41 b.png') }", (["/css/a(b).png", "/css/Ab.png"], 0, 2)),
        ("/* url(no.png) @import 'no.css'; */", None),
        ("", None),
    ],
)
def test_what_a_stylesheet_names_is_found_stylesheets_first(text: str, expected: object) -> None:
    assert paths(text) == expected


def test_what_is_beyond_the_limit_is_counted_and_stylesheets_are_kept() -> None:
    text = "".join(f"a {{ x: url({n}.png) }}" for n in range(5)) + "@import 'b.css'; @import 'c.css';"
    assert paths(text, 3) == (["/css/b.css", "/css/c.css", "/css/0.png"], 2, 7)
    assert paths(text, 1) == (["/css/b.css"], 1, 7)


def test_a_stylesheet_in_another_charset_is_read() -> None:
    content = "a { x: url(\u00e9.png) }"
    for charset in ("utf-8", "utf-16", "latin-1"):
        found = needs_of_css(content.encode(charset), "" if charset == "utf-16" else charset, PAGE, 9)
        assert found is not None
        assert found.links[0].url == "https://a.test/dir/%C3%A9.png"


def test_only_the_beginning_of_a_long_stylesheet_is_read() -> None:
    assert paths(" " * MAX_CSS_CHARS + "a { x: url(i) }") is None


def test_what_a_page_names_as_a_stylesheet_comes_first_and_counts_once() -> None:
    body = (
        "<img src=/i.png><link rel=preload as=style href=/a.css><link rel=stylesheet href=/a.css>"
        "<style>@import '/b.css'; a { x: url(/i.png) }</style><script src=/s.js></script>"
    )
    source = PageSource(url=PAGE, content_type="text/html", content=body.encode(), header_charset="utf-8")
    found = needs_of_page(source, 100)
    assert found is not None
    assert [link.url.removeprefix("https://a.test") for link in found.links] == ["/a.css", "/b.css", "/i.png", "/s.js"]
    assert (found.stylesheets, found.found) == (2, 4)
    assert needs_of_page(PageSource(url=PAGE, content_type="text/html", content=b"<p>none"), 100) is None


def test_very_many_against_a_base_that_takes_long_are_resolved_in_part() -> None:
    base = "<base href='https://a.test/" + "%C3%A9" * 600 + "/'>"
    body = base + "".join(f"<img src={number}>" for number in range(MAX_REQUISITES))
    source = PageSource(url=PAGE, content_type="text/html", content=body.encode(), header_charset="utf-8")
    began = time.process_time()
    found = needs_of_page(source, MAX_REQUISITES)
    assert time.process_time() - began < 1.0
    assert found is not None
    assert 0 < len(found.links) < MAX_REQUISITES
    assert found.found == MAX_REQUISITES
