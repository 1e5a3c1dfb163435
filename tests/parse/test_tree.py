"""The scanners against trees that are built by the HTML Standard, on pages of the web's kind.

Links, base, title and nofollow are equal on every page; what differs on purpose is listed at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import Struct

from gossamer.model.exchanges import Document
from gossamer.parse.html import html, scan_python
from gossamer.parse.html import tree as html_tree
from gossamer.parse.html.markup import document_of
from gossamer.parse.html.scan import scan
from gossamer.parse.types.charset import html_as_utf8, html_charset
from gossamer.parse.types.query_charset import encode_queries
from tests.parse.pages import Page, mixed_parts, other_charsets, single_parts
from tests.support import lexbor as html_lexbor

MIXED_PAGES = 400


class Facts(Struct, frozen=True):
    """What must be equal."""

    hrefs: frozenset[str]
    base: str
    title: str
    is_nofollow: bool


def by_scanner(content: bytes) -> Facts:
    return facts_of(html.parse_html(content, want_text=False))


def by_tree(content: bytes) -> Facts:
    document = document_of(html_tree.read_markup(html_tree.load_tree(content, "")))
    document.hrefs = encode_queries(document.hrefs, document.charset)
    return facts_of(document)


def by_lexbor(content: bytes) -> Facts:
    return facts_of(html_lexbor.parse_html(content, want_text=False))


def facts_of(document: Document) -> Facts:
    return Facts(frozenset(document.hrefs), document.base, document.title, document.is_nofollow)


ALL_PAGES = [*single_parts(), *mixed_parts(MIXED_PAGES), *other_charsets()]


def test_there_are_enough_pages_with_enough_on_them() -> None:
    assert len(ALL_PAGES) > 600
    assert sum(len(by_tree(page.content).hrefs) for page in ALL_PAGES) > 5_000


@pytest.mark.parametrize("by_reference", [by_tree, by_lexbor])
def test_a_page_means_the_same_as_its_tree(by_reference: Callable[[bytes], Facts]) -> None:
    for page in ALL_PAGES:
        # Lexbor takes a declarative shadow root for a template, which is not shown.
        if by_reference is by_tree or "shadow root" not in page.parts:
            assert by_scanner(page.content) == by_reference(page.content), page.parts


def test_the_scanner_in_python_reads_the_same() -> None:
    for page in ALL_PAGES:
        text = html_as_utf8(page.content, html_charset(page.content, ""))
        assert scan(text, True) == scan_python.scan(text, True), page.parts


@pytest.mark.parametrize("page", list(single_parts()), ids=lambda page: page.parts[-1])
def test_what_follows_a_part_is_found(page: Page) -> None:
    """No icon, template or mistake hides the rest of a page."""
    behind = page.content + b"</template></svg><div><a href=/behind>x</a>"
    assert by_scanner(behind) == by_tree(behind)
    swallowed = ("plaintext", "unclosed", "script opened in script")
    assert "/behind" in by_scanner(behind).hrefs or page.parts[-1].startswith(swallowed) or by_tree(behind).is_nofollow


INTENDED = [
    # Frames and links that a browser drops for their position name pages of the site all the same.
    (b"<body><p><frame src=/frame>", {"/frame"}, set()),
    (b"<frameset><frame src=/frame></frameset><a href=/beside>x</a>", {"/frame", "/beside"}, {"/frame"}),
    # A <noscript> ends at its first end tag, as with scripts; without, a comment or svg can hide that.
    (b"<noscript><!-- </noscript><a href=/x>x</a> -->", {"/x"}, set()),
    (b"<noscript><svg><g></noscript><script>'<a href=/no>'</script>", set(), {"/no"}),
    # </foreignObject> ends it although <p> is open: a browser reads on as HTML, and <title/> hides the rest.
    (b"<svg><foreignObject><p>x</foreignObject><title/></svg><a href=/x>x</a>", {"/x"}, set()),
    # Elements that are unknown in HTML are not counted: the end tag does not end the <svg>, only the next block does.
    (b"<my-icon><svg></my-icon><style/><a href=/x>x</a>", {"/x"}, set()),
    # 128 open elements of svg are stored.
    (b"<svg>" * 128 + b"<foreignObject><title><a href=/x>", {"/x"}, set()),
    (b"<svg>" * 128 + b"<foreignObject><iframe src=/x>", set(), {"/x"}),
]


@pytest.mark.parametrize(("content", "ours", "trees"), INTENDED)
def test_what_differs_from_the_tree_is_known(content: bytes, ours: set[str], trees: set[str]) -> None:
    assert by_scanner(content).hrefs == frozenset(ours)
    assert by_tree(content).hrefs == frozenset(trees)
