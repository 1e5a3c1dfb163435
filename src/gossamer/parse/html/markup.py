"""Turns the markup of a page into a document.

`Markup` is what an HTML parser must return, as it is on the page; `document_of` makes a
`Document` of it. So a parser is an adapter of three functions (load a tree, read its
markup, its visible text), and all parsers return equal documents for equal trees.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct, field

from gossamer.foundation.expressions import expression
from gossamer.model.exchanges import Document
from gossamer.parse.html.hrefs import MAX_HREF_CHARS, clean_href, clean_hrefs, has_followed_scheme, trim
from gossamer.parse.types.directives import NO_DIRECTIVES, ROBOTS_TOKEN, directives_of, meta_words

TITLE_CHARS = 300
DESCRIPTION_CHARS = 500

_FOLLOWED_RELS = frozenset({"canonical", "alternate", "next", "prev"})
_LANGUAGE = expression(r"\s*([A-Za-z]{2,8})(?![A-Za-z0-9])")
# HTML "shared declarative refresh steps": a time, then a separator, then optionally `url=` and quotes.
_REFRESH = r"""(?is)\s*[0-9.]+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))"""
_CONTROLS = expression(r"[\x00-\x1f\x7f-\x9f]+")


class Markup(Struct):
    """What was read from a tree, uncleaned. Absent attributes are empty strings."""

    hrefs: list[str] = field(default_factory=list)  # of a, area, frame, iframe; cleaned; without nofollow
    links: list[tuple[str, str]] = field(default_factory=list)  # rel and href of `link`
    metas: list[tuple[str, str]] = field(default_factory=list)  # name or property or http-equiv, and content
    bases: list[str] = field(default_factory=list)  # with a href
    title: str = ""
    language: str = ""
    charset: str = ""
    nofollow_links: int = 0


def document_of(markup: Markup, token: str = ROBOTS_TOKEN) -> Document:
    canonical, link_hrefs = _link_elements(markup.links)
    ours = ("robots", token)
    names: dict[str, str] = {}
    words: list[str] = []
    for name, content in markup.metas:
        key = name.strip().lower()
        if key in ours:
            words += meta_words(content)
        names.setdefault(key, content)
    asked = directives_of(words) if words else NO_DIRECTIVES
    if "refresh" in names:
        link_hrefs.append(_refresh_target(names["refresh"]))
    return Document(
        content_type="text/html",
        charset=markup.charset,
        language=primary_language(markup.language) or primary_language(names.get("content-language", "")),
        title=one_line(markup.title, TITLE_CHARS),
        description=one_line(names.get("description") or names.get("og:description", ""), DESCRIPTION_CHARS),
        canonical=canonical,
        hrefs=[] if asked.is_nofollow else _all_hrefs(link_hrefs, markup.hrefs),
        base=_base_of(markup.bases[0]) if markup.bases else "",
        is_noindex=asked.is_noindex,
        is_nofollow=asked.is_nofollow,
        is_noarchive=asked.is_noarchive,
        nofollow_links=markup.nofollow_links + (len(markup.hrefs) if asked.is_nofollow else 0),
    )


def _all_hrefs(raw: list[str], cleaned: list[str]) -> list[str]:
    if not raw:
        return cleaned
    first = dict.fromkeys(clean_hrefs(raw))
    # One by one: a table of 360,000 hrefs is made in one call, for which other threads would wait 40 ms.
    return [*first, *[href for href in cleaned if href not in first]]


def one_line(text: str, limit: int) -> str:
    """Return text on one line, without control characters, cut to `limit` characters."""
    if not text:
        return ""
    # Cut before as well: a title of megabytes need not be processed whole.
    line = " ".join(text[: limit * 8].split())
    if not line.isprintable():
        line = " ".join(_CONTROLS.sub(" ", line).split())
    return line[:limit].rstrip()


def primary_language(tag: str) -> str:
    """Return the primary subtag of a language tag, in lower case."""
    if not tag:
        return ""
    match = _LANGUAGE.match(tag)
    return match[1].lower() if match else ""


def _link_elements(links: list[tuple[str, str]]) -> tuple[str, list[str]]:
    """Return the canonical href and the hrefs to follow of `link` elements."""
    canonical = ""
    hrefs = []
    for rel, href in links:
        is_followed, is_canonical = _meaning_of(rel)
        if is_followed:
            hrefs.append(href)
            if is_canonical and not canonical:
                canonical = clean_href(href)
    return canonical, hrefs


@lru_cache(maxsize=1024)
def _meaning_of(rel: str) -> tuple[bool, bool]:
    """Return whether a link of this relation is followed, and whether it is the canonical page."""
    words = rel.lower().split()
    is_followed = not ("nofollow" in words or "stylesheet" in words or _FOLLOWED_RELS.isdisjoint(words))
    return is_followed, is_followed and "canonical" in words


def _refresh_target(content: str) -> str:
    """Return the target of a meta refresh, or the empty string."""
    match = re.match(_REFRESH, content[:MAX_HREF_CHARS])
    return next(filter(None, match.groups()), "") if match else ""


def _base_of(href: str) -> str:
    """Return the base that the first `base` element of a page sets; empty if it is the page's own address.

    HTML Standard 4.2.3: data: and javascript: set none, and later elements do not count. Nor do schemes that a crawler
    does not fetch: with `file:` as the base every relative link would be lost.
    """
    base = trim(href)
    return base if has_followed_scheme(base) else ""
