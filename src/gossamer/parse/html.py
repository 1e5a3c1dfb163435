"""What does an HTML page hold? The adapter over turbohtml.

Three functions: `load_tree`, `read_markup`, `visible_text`; `parse_html` is all of them.
Linear in the size of the page, however deep it nests. Strings that come out are free of
lone surrogates, because the tree is made from bytes by WHATWG decoders.

Cost for 26 KB (python3-doc, 75 links), CPython 3.11: tree 134 µs, markup 37, document 16,
text 48. What was tried for links: `Node.links()` 46, XPath `//a/@href` 19 but without rel and
with another walk for every other tag. `find_all` by tag makes an index of all tags once (17),
after which a look-up costs 0.1 and `attr` 0.12 an element; `find` walks the page (11) each time.
"""

from __future__ import annotations

import turbohtml
from turbohtml import Namespace, PlainText

from gossamer.parse.charset import declared_charset, html_as_utf8, html_charset
from gossamer.parse.hrefs import clean_hrefs
from gossamer.parse.markup import Markup, document_of
from gossamer.parse.scan import scan
from gossamer.records import Document

_ANCHORS = 'a[href]:not([rel~="nofollow" i])'
_ANCHORS_AND_FRAMES = f'{_ANCHORS}, area[href]:not([rel~="nofollow" i]), iframe[src], frame[src]'
_FRAMES = frozenset({"iframe", "frame"})
_META_KEYS = ("name", "property", "http-equiv")
_TEXT_LAYOUT = PlainText(layout="strict", bullet="", table_cell_separator=" ")


def parse_html(content: bytes, header_charset: str = "", *, want_text: bool = True) -> Document:
    """Return links, facts and, where wanted, the text of a page."""
    charset = html_charset(content, header_charset)
    text = html_as_utf8(content, charset)
    found = scan(text, want_text) or scan(text.decode("utf-8", "replace").encode(), want_text)
    assert found is not None
    title, language, bases, metas, links, hrefs, nofollow_links, visible, words = found
    document = document_of(
        Markup(
            hrefs=hrefs,
            links=links,
            metas=metas,
            bases=bases,
            title=title,
            language=language,
            charset=charset,
            nofollow_links=nofollow_links,
        )
    )
    document.text, document.words = visible, words
    return document


def load_tree(content: bytes, header_charset: str) -> turbohtml.Document:
    """Return the tree of a page; a charset label that the WHATWG does not know counts as none."""
    charset = declared_charset(content, header_charset) or None
    # Within a shadow root links are out of reach of look-ups; left in its template they are found.
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


def visible_text(tree: turbohtml.Document) -> str:
    """Return what a reader sees, blocks on lines of their own. Changes the tree: read the markup first."""
    # Scripts, styles and templates are never rendered; these two are, by a parser that runs no scripts.
    if tree.find_all("noscript") or tree.find_all("iframe"):
        tree.remove("noscript, iframe")
    return tree.to_text(_TEXT_LAYOUT)


def _anchors(tree: turbohtml.Document) -> list[str]:
    """Return the targets of anchors, areas and frames in document order."""
    # Frames and areas are rare: where there are none, a page is spared the tag of every anchor.
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
