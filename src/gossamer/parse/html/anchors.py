"""The text and `rel` of each link of a page.

Costs the tree of the page, about 1 ms: read only if somebody decides about links by it. Of several anchors with the
same URL the first with a text counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.core.url.forms import canonical
from gossamer.model.records import Anchor, Link, UrlId
from gossamer.parse.html.markup import document_of
from gossamer.parse.html.tree import load_tree, read_markup
from gossamer.parse.text.article import outlinks


def anchors_of(links: Iterable[Link], content: bytes, header_charset: str, url: str) -> dict[UrlId, Anchor]:
    """Return what an HTML page says about some of its links, by their ids."""
    tree = load_tree(content, header_charset)
    said = document_of(read_markup(tree), "")
    base = (canonical(said.base, url) if said.base else None) or url
    found: dict[str, Anchor] = {}
    for link in outlinks(tree, base, said):
        if link.url not in found or (link.text and not found[link.url].text):
            found[link.url] = Anchor(link.text, link.rel)
    return {link.id: found[link.url] for link in links if link.url in found}
