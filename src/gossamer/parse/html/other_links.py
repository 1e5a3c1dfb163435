"""Which links of a page are not anchors, and which are no URLs at all?

The first are those of its head that a crawl follows: canonical, alternate, next, prev, and a refresh. By the parser of
the crawl, so that nothing it follows is left out.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from gossamer.core.url.forms import canonical
from gossamer.parse.html.hrefs import ALWAYS_EXAMINED, max_examined
from gossamer.parse.html.html import parse_html
from gossamer.parse.text.article import PageSource

_HTML = frozenset({"text/html", "application/xhtml+xml"})


class OtherLinks(Struct):
    """What was found."""

    urls: list[str] = []
    malformed: list[str] = []  # as on the page


def other_links(page: PageSource, anchors: Collection[str]) -> OtherLinks:
    """Return the links of a page that are not among its anchors, which are resolved, and those that are no URLs."""
    if page.content_type not in _HTML:
        return OtherLinks()
    said = parse_html(page.content, page.header_charset, want_text=False, token=page.robots_token)
    base = (canonical(said.base, page.url) if said.base else None) or page.url
    found: dict[str, None] = {}
    malformed: list[str] = []
    for href in said.hrefs[: max(ALWAYS_EXAMINED, max_examined(base))]:
        url = canonical(href, base)
        if url is None:
            malformed.append(href)
        elif url not in anchors:
            found[url] = None
    return OtherLinks(list(found), malformed)
