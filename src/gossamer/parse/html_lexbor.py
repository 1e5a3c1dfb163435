"""Parses an HTML page by selectolax (Lexbor), as an alternative to `html_tree`.

The same three functions and the same documents, so that the parsers can be compared and
exchanged. Known differences: Lexbor omits the contents of templates, and its time is
quadratic in the depth of a page (537 KB of `<div>`: 3 s), so it must not be used on the open
web without a limit on depth. selectolax is a dependency of the tests only, hence the late import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.parse.charset import decode_html
from gossamer.parse.hrefs import clean_hrefs
from gossamer.parse.markup import Markup, document_of
from gossamer.records import Document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_LINKS = 'a[href]:not([rel~="nofollow" i]), area[href]:not([rel~="nofollow" i]), iframe[src], frame[src]'
_META_KEYS = ("name", "property", "http-equiv")
_UNSEEN = ["script", "style", "noscript", "template", "iframe", "title"]


def parse_html(content: bytes, header_charset: str = "", *, want_text: bool = True) -> Document:
    """Return links, metadata and, if wanted, the text of a page."""
    tree, charset = load_tree(content, header_charset)
    markup = read_markup(tree)
    markup.charset = charset
    document = document_of(markup)
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
        hrefs=clean_hrefs(
            _attribute(node, "src" if node.tag in ("iframe", "frame") else "href") for node in tree.css(_LINKS)
        ),
        links=[(_attribute(node, "rel"), _attribute(node, "href")) for node in tree.css("link")],
        metas=[(_first_attribute(node), _attribute(node, "content")) for node in tree.css("meta[content]")],
        bases=[_attribute(node, "href") for node in tree.css("base")],
        title=next((node.text() for node in tree.css("head > title, body > title")), ""),
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
