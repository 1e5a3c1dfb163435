"""What a page needs to be shown, by which element."""

from __future__ import annotations

import time

import pytest

from gossamer.parse.article import PageSource
from gossamer.parse.requisites import MAX_REQUISITES, css_urls, requisites_of, srcset_urls

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


@pytest.mark.parametrize("unit", ["/*", 'url("', "url('", "url(", "@import ", "/* url(", "url(a"])
def test_hostile_styles_take_linear_time(unit: str) -> None:
    began = time.process_time()
    list(css_urls(unit * 100_000))
    list(srcset_urls(unit * 100_000))
    assert time.process_time() - began < 3


def test_the_number_is_bounded() -> None:
    assert len(needed("".join(f"<img src=/{number}>" for number in range(MAX_REQUISITES + 10)))) == MAX_REQUISITES
