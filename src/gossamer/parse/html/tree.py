"""Parses an HTML page into turbohtml's tree.

For exports, which need the structure of a page (`parse.article`); a crawl parses pages by `parse.html`,
without a tree. Linear in the size of the page, however deeply it is nested. Returned strings contain no
lone surrogates, because the tree is made from bytes by WHATWG decoders.

Templates are no part of a page and are removed, except declarative shadow roots, which are shown. What an element
of svg or math says counts only if it is an anchor.
"""

from __future__ import annotations

import turbohtml
from turbohtml import Element, Namespace

from gossamer.parse.html.hrefs import clean_hrefs
from gossamer.parse.html.markup import Markup
from gossamer.parse.types.charset import declared_charset

_TARGETS = "a[href], a[xlink\\:href], area[href], iframe[src], frame[src]"
_FRAMES = frozenset({"iframe", "frame"})
_META_KEYS = ("name", "property", "http-equiv")
_SHADOW_MODES = frozenset({"open", "closed"})


def load_tree(content: bytes, header_charset: str) -> turbohtml.Document:
    """Return the tree of a page without its templates; a charset label that the WHATWG does not know counts as none."""
    charset = declared_charset(content, header_charset) or None
    # Look-ups do not reach links within a shadow root; links that stay in its template are found.
    tree = turbohtml.parse(
        content, encoding=charset, detect_encoding=True, positions=False, allow_declarative_shadow_roots=False
    )
    for template in tree.find_all("template"):
        if template.namespace is Namespace.HTML and not _is_shadow_root(template):
            template.decompose()
    return tree


def read_markup(tree: turbohtml.Document) -> Markup:
    """Return the parts of a tree that a crawler reads."""
    root = tree.root
    return Markup(
        hrefs=clean_hrefs(_targets(tree)),
        links=[(link.attr("rel") or "", link.attr("href") or "") for link in _of_page(tree, "link")],
        metas=_metas(tree),
        bases=[base.attr("href") or "" for base in _of_page(tree, "base") if base.attr("href") is not None],
        title=next((title.text for title in _of_page(tree, "title")), ""),
        language=(root.attr("lang") or "") if root is not None else "",
        charset=(tree.encoding or "").lower(),
    )


def _is_shadow_root(template: Element) -> bool:
    """Return whether a template is shown as the contents of its parent."""
    return (template.attr("shadowrootmode") or "").lower() in _SHADOW_MODES


def _of_page(tree: turbohtml.Document, tag: str) -> list[Element]:
    """Return the elements of HTML with a tag, without those of shadow trees, which mean nothing for the page."""
    return [one for one in tree.find_all(tag) if one.namespace is Namespace.HTML and not _is_in_shadow_tree(one)]


def _is_in_shadow_tree(element: Element) -> bool:
    template = element.closest("template")
    return template is not None and template.namespace is Namespace.HTML


def _targets(tree: turbohtml.Document) -> list[str]:
    """Return the targets of anchors, areas and frames in document order."""
    targets = []
    for element in tree.select(_TARGETS):
        is_html = element.namespace is Namespace.HTML
        if "nofollow" in (element.attr("rel") or "").lower().split() or not (is_html or element.tag == "a"):
            continue
        href = element.attr("src" if element.tag in _FRAMES else "href")
        if href is None and not is_html:
            href = element.attr("xlink:href")
        targets.append(href or "")
    return targets


def _metas(tree: turbohtml.Document) -> list[tuple[str, str]]:
    """Return the name and the content of every meta element that has both."""
    found = []
    for meta in _of_page(tree, "meta"):
        content = meta.attr("content")
        if content:
            name = next(filter(None, map(meta.attr, _META_KEYS)), "")
            found.append((name, content))
    return found
