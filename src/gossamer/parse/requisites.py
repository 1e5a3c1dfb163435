"""What else does a page need to be shown: images, scripts, stylesheets, media, fonts?

For checks of links, from the archived bytes; a crawl does not fetch them. What scripts load, and what stylesheets in
files of their own refer to, is not found. Linear in the size of the page; at most `MAX_REQUISITES` per page, each URL
once per kind of element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import turbohtml
from msgspec import Struct
from turbohtml import Element, Namespace

from gossamer.core.url import canonical
from gossamer.parse.article import PageSource
from gossamer.parse.html_tree import load_tree, read_markup
from gossamer.parse.markup import document_of
from gossamer.parse.query_charset import encode_query

MAX_REQUISITES = 5_000
_MAX_CSS_CHARS = 500_000  # of one style element or attribute
_WITH_SOURCE = "img, script, source, video, audio, track, embed, input, object, image, use, link, body, [style], style"
_SOURCES = {  # by tag: the attributes with one URL each
    "img": ("src",),
    "script": ("src",),
    "source": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "body": ("background",),
}
_IN_SVG = {"image": ("href", "xlink:href"), "use": ("href", "xlink:href"), "script": ("href", "xlink:href")}
_SHOWN_RELS = frozenset({"stylesheet", "icon", "apple-touch-icon", "manifest", "mask-icon", "preload", "modulepreload"})
_QUOTED = r"""(?:"([^"\n]*)"|'([^'\n]*)'"""
_CSS_URL = re.compile(rf"""url\(\s*{_QUOTED}|([^\s"'()]+))\s*\)|@import\s+{_QUOTED})""", re.IGNORECASE)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)  # one that does not end is read once, not from each beginning
_SPACE = " \t\n\r\f"


class Requisite(Struct, frozen=True, gc=False):
    """Something that a page needs, resolved."""

    url: str
    element: str  # img, script, link, css, …


def requisites_of(page: PageSource) -> list[Requisite]:
    """Return what an HTML page needs, in document order; other types need nothing."""
    if page.content_type not in ("text/html", "application/xhtml+xml"):
        return []
    tree = load_tree(page.content, page.header_charset)
    said = document_of(read_markup(tree), page.robots_token)
    base = (canonical(said.base, page.url) if said.base else None) or page.url
    found: dict[Requisite, None] = {}
    for element, href in islice(_hrefs(tree), MAX_REQUISITES):
        url = canonical(href if href.isascii() else encode_query(href.partition("#")[0], said.charset), base)
        if url is not None:
            found[Requisite(url, element)] = None
    return list(found)


def _hrefs(tree: turbohtml.Document) -> Iterator[tuple[str, str]]:
    """Yield the name of an element and the URL that it needs, as on the page."""
    for element in tree.select(_WITH_SOURCE):
        for name, href in _of_element(element):
            cleaned = href.strip(_SPACE)
            if cleaned and cleaned[0] != "#":
                yield name, cleaned


def _of_element(element: Element) -> Iterator[tuple[str, str]]:
    tag, is_html = element.tag, element.namespace is Namespace.HTML
    for name in (_SOURCES if is_html else _IN_SVG).get(tag, ()):
        yield tag, element.attr(name) or ""
    if style := element.attr("style"):
        yield from (("css", href) for href in css_urls(style))
    if tag == "style":
        yield from (("css", href) for href in css_urls(element.text))
    if not is_html:
        return
    if tag == "link" and not _SHOWN_RELS.isdisjoint((element.attr("rel") or "").lower().split()):
        yield tag, element.attr("href") or ""
    if tag == "input" and (element.attr("type") or "").lower() == "image":
        yield tag, element.attr("src") or ""
    if tag in ("img", "source", "link"):
        srcset = element.attr("srcset" if tag != "link" else "imagesrcset") or ""
        yield from ((tag, href) for href in srcset_urls(srcset))


def srcset_urls(text: str) -> Iterator[str]:
    """Yield the URLs of a `srcset`: a URL ends at white space, descriptors at a comma outside of parentheses."""
    at, end = 0, len(text)
    while at < end:
        while at < end and text[at] in _SPACE + ",":
            at += 1
        start = at
        while at < end and text[at] not in _SPACE:
            at += 1
        url = text[start:at]
        if url.rstrip(",") != url:
            url = url.rstrip(",")
        else:
            depth = 0
            while at < end and (text[at] != "," or depth):
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
        if url:
            yield url


def css_urls(text: str) -> Iterator[str]:
    """Yield the URLs in a stylesheet or a style attribute."""
    for match in _CSS_URL.finditer(_CSS_COMMENT.sub(" ", text[:_MAX_CSS_CHARS])):
        yield next(filter(None, match.groups()), "")
