"""What else does a page need to be shown: images, scripts, stylesheets, media, fonts? And what does a stylesheet name?

For checks of links, from the archived bytes, and for crawls that fetch requisites (`needs_of_page`, `needs_of_css`).
What scripts load is not found, and frames are pages: links lead to them. Linear in the size of the page or stylesheet,
of which at most `MAX_CSS_CHARS` are read; at most `MAX_REQUISITES` per page, each URL once per kind of element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import turbohtml
from msgspec import Struct
from msgspec.structs import replace
from turbohtml import Element, Namespace, Text

from gossamer.core.links.requisite import MAX_ROOM, requisites_from
from gossamer.core.url.forms import canonical
from gossamer.model.records import Requisites
from gossamer.parse.html.hrefs import clean_hrefs, max_examined
from gossamer.parse.html.markup import document_of
from gossamer.parse.html.tree import load_tree, read_markup
from gossamer.parse.text.article import PageSource
from gossamer.parse.types.charset import decode_text
from gossamer.parse.types.query_charset import encode_query

MAX_REQUISITES = MAX_ROOM
MAX_CSS_CHARS = 500_000  # of one style element, attribute or file
CSS = "text/css"
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
# A namespace is a name, and nothing to fetch.
_CSS_URL = re.compile(
    rf"""@namespace\b[^;{{}}]*|(@import\s+)?url\(\s*{_QUOTED}|((?:[^\s"'()\\]|\\.)+))\s*\)|(@import)\s+{_QUOTED})""",
    re.IGNORECASE,
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)  # one that does not end is read once, not from each beginning
_SPACE = " \t\n\r\f"


class Requisite(Struct, frozen=True, gc=False):
    """Something that a page needs, resolved."""

    url: str
    element: str  # img, script, link, css, …


class _Named(Struct, frozen=True, gc=False):
    """A URL that a page needs, as in the page."""

    element: str
    href: str
    is_stylesheet: bool = False


def requisites_of(page: PageSource) -> list[Requisite]:
    """Return what an HTML page needs, in document order; other types need nothing."""
    found: dict[Requisite, None] = {}
    base, named = _read(page)
    for each in named:
        url = canonical(each.href, base)
        if url is not None:
            found[Requisite(url, each.element)] = None
    return list(found)


def needs_of_page(page: PageSource, limit: int) -> Requisites | None:
    """Return what an HTML page needs, up to a limit; None if that is nothing."""
    base, named = _read(page)
    return _needs(base, [(each.href, each.is_stylesheet) for each in named], limit)


def needs_of_css(content: bytes, charset: str, url: str, limit: int) -> Requisites | None:
    """Return what a stylesheet names, up to a limit; None if that is nothing."""
    text = decode_text(content[: 4 * MAX_CSS_CHARS], charset)[0]
    return _needs(url, list(islice(_css_references(text), MAX_REQUISITES)), limit)


def _needs(base: str, named: list[tuple[str, bool]], limit: int) -> Requisites | None:
    """Resolve what is named, stylesheets first; of very many against a base that takes long, only the first."""
    examined = max_examined(base, MAX_REQUISITES)
    imported = clean_hrefs(href for href, is_stylesheet in named if is_stylesheet)
    shown = clean_hrefs(href for href, is_stylesheet in named if not is_stylesheet)
    sheets = requisites_from(base, imported[:examined])
    known = {link.id for link in sheets}
    others = requisites_from(base, shown[: max(0, examined - len(imported))])
    links = sheets + [link for link in others if link.id not in known]
    left_out = max(0, len(imported) + len(shown) - examined)
    return Requisites(links[:limit], min(limit, len(sheets)), len(links) + left_out) if links else None


def _read(page: PageSource) -> tuple[str, list[_Named]]:
    """Return the base of a page's URLs, and what it needs, in document order."""
    if page.content_type not in ("text/html", "application/xhtml+xml"):
        return page.url, []
    tree = load_tree(page.content, page.header_charset)
    said = document_of(read_markup(tree), page.robots_token)
    base = (canonical(said.base, page.url) if said.base else None) or page.url
    named = list(islice(_hrefs(tree), MAX_REQUISITES))
    return base, [each if each.href.isascii() else _encoded(each, said.charset) for each in named]


def _encoded(named: _Named, charset: str) -> _Named:
    return replace(named, href=encode_query(named.href.partition("#")[0], charset))


def _hrefs(tree: turbohtml.Document) -> Iterator[_Named]:
    """Yield what a page needs, as on the page."""
    for element in tree.select(_WITH_SOURCE):
        for named in _of_element(element):
            cleaned = named.href.strip(_SPACE)
            if cleaned and cleaned[0] != "#":
                yield named if cleaned == named.href else replace(named, href=cleaned)


def _of_element(element: Element) -> Iterator[_Named]:
    tag = element.tag
    is_html = element.namespace is Namespace.HTML
    for name in (_SOURCES if is_html else _IN_SVG).get(tag, ()):
        yield _Named(tag, element.attr(name) or "")
    if style := element.attr("style"):
        yield from (_Named("css", href, is_import) for href, is_import in _css_references(style))
    if tag == "style":
        yield from (_Named("css", href, is_import) for href, is_import in _css_references(_own_text(element)))
    if not is_html:
        return
    if tag == "link":
        yield from _of_link(element)
    if tag == "input" and (element.attr("type") or "").lower() == "image":
        yield _Named(tag, element.attr("src") or "")
    if tag in ("img", "source", "link"):
        srcset = element.attr("srcset" if tag != "link" else "imagesrcset") or ""
        yield from (_Named(tag, href) for href in srcset_urls(srcset))


def _own_text(element: Element) -> str:
    """Return the text of an element without that of elements within it, which in svg and math may be nested at will."""
    return "".join(child.text for child in element.children if isinstance(child, Text))


def _of_link(element: Element) -> Iterator[_Named]:
    rels = (element.attr("rel") or "").lower().split()
    if not _SHOWN_RELS.isdisjoint(rels):
        is_preloaded = "preload" in rels and (element.attr("as") or "").lower() == "style"
        yield _Named("link", element.attr("href") or "", "stylesheet" in rels or is_preloaded)


def srcset_urls(text: str) -> Iterator[str]:
    """Yield the URLs of a `srcset`: a URL ends at white space, descriptors at a comma outside of parentheses."""
    at = 0
    end = len(text)
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
    return (href for href, _ in _css_references(text))


def _css_references(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the URLs in a stylesheet or a style attribute, and whether each is that of another stylesheet."""
    for match in _CSS_URL.finditer(_CSS_COMMENT.sub(" ", text[:MAX_CSS_CHARS])):
        before, double, single, bare, imported, *quoted = match.groups()
        href = double or single or bare or next(filter(None, quoted), "")
        href = (_CSS_ESCAPE.sub(_unescaped, href) if "\\" in href else href).strip(_SPACE)
        if href and href[0] != "#":
            yield href, bool(before or imported)


def _unescaped(match: re.Match[str]) -> str:
    number = int(match[1], 16) if match[1] else 0
    if not match[1]:
        return "" if match[2] == "\n" else match[2]
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
