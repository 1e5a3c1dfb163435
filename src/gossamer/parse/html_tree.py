"""Parses an HTML page into turbohtml's tree.

For exports, which need the structure of a page (`parse.article`); a crawl parses pages by `parse.html`,
without a tree. Linear in the size of the page, however deeply it is nested. Returned strings contain no
lone surrogates, because the tree is made from bytes by WHATWG decoders.

Cost for 26 KB (python3-doc, 75 links), CPython 3.11: tree 134 µs, markup 37. What was tried for
links: `Node.links()` 46, XPath `//a/@href` 19 but without rel and with another walk for every other
tag. `find_all` by tag makes an index of all tags once (17), after which a look-up costs 0.1 and
`attr` 0.12 per element; `find` walks the page (11) each time.
"""

from __future__ import annotations

import turbohtml
from turbohtml import Namespace

from gossamer.parse.charset import declared_charset
from gossamer.parse.hrefs import clean_hrefs
from gossamer.parse.markup import Markup

_ANCHORS = 'a[href]:not([rel~="nofollow" i])'
_ANCHORS_AND_FRAMES = f'{_ANCHORS}, area[href]:not([rel~="nofollow" i]), iframe[src], frame[src]'
_FRAMES = frozenset({"iframe", "frame"})
_META_KEYS = ("name", "property", "http-equiv")


def load_tree(content: bytes, header_charset: str) -> turbohtml.Document:
    """Return the tree of a page; a charset label that the WHATWG does not know counts as none."""
    charset = declared_charset(content, header_charset) or None
    # Look-ups do not reach links within a shadow root; links that stay in its template are found.
    return turbohtml.parse(
        content, encoding=charset, detect_encoding=True, positions=False, allow_declarative_shadow_roots=False
    )


def read_markup(tree: turbohtml.Document) -> Markup:
    """Return the parts of a tree that a crawler reads."""
    find = tree.find_all
    root = tree.root
    return Markup(
        hrefs=clean_hrefs(_anchors(tree)),
        links=[(link.attr("rel") or "", link.attr("href") or "") for link in find("link")],
        metas=_metas(tree),
        bases=[base.attr("href") or "" for base in find("base")],
        # A <title> within <svg> is a tooltip.
        title=next((title.text for title in find("title") if title.namespace is Namespace.HTML), ""),
        language=(root.attr("lang") or "") if root is not None else "",
        charset=(tree.encoding or "").lower(),
    )


def _anchors(tree: turbohtml.Document) -> list[str]:
    """Return the targets of anchors, areas and frames in document order."""
    # Frames and areas are rare: without any, the tag of every anchor need not be checked.
    if not (tree.find_all("iframe") or tree.find_all("area") or tree.find_all("frame")):
        return [anchor.attr("href") or "" for anchor in tree.select(_ANCHORS)]
    return [
        (element.attr("src") if element.tag in _FRAMES else element.attr("href")) or ""
        for element in tree.select(_ANCHORS_AND_FRAMES)
    ]


def _metas(tree: turbohtml.Document) -> list[tuple[str, str]]:
    """Return the name and the content of every meta element that has both."""
    found = []
    for meta in tree.find_all("meta"):
        content = meta.attr("content")
        if content:
            name = next(filter(None, map(meta.attr, _META_KEYS)), "")
            found.append((name, content))
    return found
