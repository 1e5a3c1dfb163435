"""Parses an HTML page by selectolax (Lexbor), as an alternative to `html_tree`.

The same three functions and the same documents, so that the parsers can be compared and
exchanged. Known differences: Lexbor omits the contents of templates, and its time is
quadratic in the depth of a page (537 KB of `<div>`: 3 s), so it must not be used on the open
web without a limit on depth. selectolax is a dependency of the tests only, hence the late import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.model.exchanges import Document
from gossamer.parse.html.hrefs import clean_hrefs
from gossamer.parse.html.markup import Markup, document_of
from gossamer.parse.types.charset import decode_html
from gossamer.parse.types.query_charset import encode_queries, encode_query

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_TARGETS = "a, area[href], iframe[src], frame[src]"
_FRAMES = frozenset({"iframe", "frame"})
_FOREIGN = frozenset({"svg", "math"})
_INTEGRATION_POINTS = frozenset("foreignobject desc title annotation-xml mi mo mn ms mtext".split())
_META_KEYS = ("name", "property", "http-equiv")
_UNSEEN = ["script", "style", "noscript", "template", "iframe", "title"]


def parse_html(content: bytes, header_charset: str = "", *, want_text: bool = True) -> Document:
    """Return links, metadata and, if wanted, the text of a page."""
    tree, charset = load_tree(content, header_charset)
    markup = read_markup(tree)
    markup.charset = charset
    document = document_of(markup)
    document.hrefs = encode_queries(document.hrefs, charset)
    document.canonical = encode_query(document.canonical, charset)
    if want_text:
        document.visible = visible_text(tree).encode()
    return document


def load_tree(content: bytes, header_charset: str) -> tuple[LexborHTMLParser, str]:
    """Return the tree of a page and its charset."""
    from selectolax.lexbor import LexborHTMLParser

    text, charset = decode_html(content, header_charset)
    return LexborHTMLParser(text), charset


def read_markup(tree: LexborHTMLParser) -> Markup:
    """Return the parts of a tree that a crawler reads."""
    return Markup(
        hrefs=clean_hrefs(filter(None, map(_target, tree.css(_TARGETS)))),
        links=[(_attribute(node, "rel"), _attribute(node, "href")) for node in tree.css("link") if _is_html(node)],
        metas=[(_first_attribute(node), _attribute(node, "content")) for node in tree.css("meta[content]")],
        bases=[_attribute(node, "href") for node in tree.css("base[href]") if _is_html(node)],
        title=next((node.text() for node in tree.css("title") if _is_html(node)), ""),
        language=_attribute(tree.root, "lang") if tree.root is not None else "",
    )


def visible_text(tree: LexborHTMLParser) -> str:
    """Return the visible text. Changes the tree: read the markup first."""
    tree.strip_tags(_UNSEEN)
    return tree.body.text(separator="\n", strip=True) if tree.body is not None else ""


def _attribute(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""


def _first_attribute(node: LexborNode) -> str:
    return next(filter(None, (_attribute(node, key) for key in _META_KEYS)), "")


def _target(node: LexborNode) -> str:
    """Return the target of an anchor, area or frame; empty if it is not to be followed."""
    if "nofollow" in _attribute(node, "rel").lower().split():
        return ""
    if node.tag in _FRAMES or node.tag == "area":
        return _attribute(node, "src" if node.tag in _FRAMES else "href") if _is_html(node) else ""
    is_by_xlink = "href" not in node.attributes and not _is_html(node)
    return _attribute(node, "xlink:href" if is_by_xlink else "href")


def _is_html(node: LexborNode) -> bool:
    """Return whether an element is one of HTML, by what is around it: Lexbor's nodes do not say."""
    around = node.parent
    while around is not None:
        name = (around.tag or "").lower()
        if name in _FOREIGN:
            return False
        if name in _INTEGRATION_POINTS:
            return True
        around = around.parent
    return True
