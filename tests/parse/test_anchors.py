"""Links of a page that are no anchors, or no URLs."""

from __future__ import annotations

import pytest

from gossamer.parse.html.anchors import other_links
from gossamer.parse.text.article import PageSource

PAGE = "https://a.test/dir/page"


@pytest.mark.parametrize(
    ("body", "urls", "malformed"),
    [
        ("<link rel=canonical href=/c><link rel=alternate href=x><link rel=stylesheet href=/s>", ["/c", "/dir/x"], []),
        ("<meta http-equiv=refresh content='3; url=/next'>", ["/next"], []),
        ("<a href=/known>x</a><link rel=next href=/known>", [], []),
        ("<a href='http://'>x</a><a href='http://[::bad/'>y</a>", [], ["http://", "http://[::bad/"]),
        ("<a href='http://a b/'>x</a><a href='http://a:99999/'>y</a>", [], ["http://a b/", "http://a:99999/"]),
        ("<a href='mailto:a@b.test'>x</a><a href='tel:1'>y</a><a href=''>z</a><a href='#x'>w</a>", [], []),
        ("<base href=/other/><link rel=prev href=x>", ["/other/x"], []),
    ],
)
def test_other_links_are_found(body: str, urls: list[str], malformed: list[str]) -> None:
    source = PageSource(url=PAGE, content_type="text/html", content=body.encode())
    found = other_links(source, {"https://a.test/known"})
    assert [url.removeprefix("https://a.test") for url in found.urls] == urls
    assert found.malformed == malformed


def test_only_html_has_links() -> None:
    source = PageSource(url=PAGE, content_type="text/plain", content=b"<link rel=next href=/x>")
    assert other_links(source, set()).urls == []
