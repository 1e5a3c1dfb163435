"""What do the anchors of a page say about its links, and which of its links are no anchors?

The text and `rel` of anchors cost the tree of the page, about 1 ms: they are read only if something decides about links
by them. The other links are found by the parser of the crawl, so that nothing that a crawl follows is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from gossamer.core.url.forms import canonical
from gossamer.model.records import Anchor, Link, UrlId
from gossamer.parse.html.hrefs import ALWAYS_EXAMINED, max_examined
from gossamer.parse.html.html import parse_html
from gossamer.parse.html.markup import document_of
from gossamer.parse.html.tree import load_tree, read_markup
from gossamer.parse.text.article import PageSource, outlinks

_HTML = frozenset({"text/html", "application/xhtml+xml"})


def anchors_of(links: Iterable[Link], content: bytes, header_charset: str, url: str) -> dict[UrlId, Anchor]:
    """Return text and `rel` of those links of an HTML page that are anchors; of several, the first with a text."""
    tree = load_tree(content, header_charset)
    document = document_of(read_markup(tree), "")
    base = (canonical(document.base, url) if document.base else None) or url
    found: dict[str, Anchor] = {}
    for link in outlinks(tree, base, document):
        if link.url not in found or (link.text and not found[link.url].text):
            found[link.url] = Anchor(link.text, link.rel)
    return {link.id: found[link.url] for link in links if link.url in found}


class OtherLinks(Struct):
    """Links of a page that are no anchors."""

    urls: list[str] = []  # canonical, alternate, next, prev, and a refresh
    malformed: list[str] = []  # no URLs at all: as on the page


def other_links(page: PageSource, anchors: Collection[str]) -> OtherLinks:
    """Return the links of a page that are not among its anchors, which are given as URLs."""
    if page.content_type not in _HTML:
        return OtherLinks()
    document = parse_html(page.content, page.header_charset, want_text=False, token=page.robots_token)
    base = (canonical(document.base, page.url) if document.base else None) or page.url
    found: dict[str, None] = {}
    malformed: list[str] = []
    for href in document.hrefs[: max(ALWAYS_EXAMINED, max_examined(base))]:
        url = canonical(href, base)
        if url is None:
            malformed.append(href)
        elif url not in anchors:
            found[url] = None
    return OtherLinks(list(found), malformed)
