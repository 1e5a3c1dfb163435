"""Parses an answer: selects the parser by the sniffed type and adds the facts in the headers.

Content that could not be decoded is not parsed. A page with `nofollow`, in its markup or by
X-Robots-Tag, has no hrefs. Costs what the parser costs, plus 3 µs.
"""

from __future__ import annotations

import re

from gossamer.core.content.mime import MimeType, combined_mime_type
from gossamer.core.content.pdf_type import PDF, is_pdf
from gossamer.model.exchanges import Document, Exchange
from gossamer.parse.feeds.feed_type import feed_type
from gossamer.parse.html.hrefs import clean_href, clean_hrefs
from gossamer.parse.html.html import parse_html
from gossamer.parse.html.markup import TITLE_CHARS, one_line
from gossamer.parse.types.charset import decode_text
from gossamer.parse.types.directives import ROBOTS_TOKEN, directives_of, header_words
from gossamer.parse.types.sniff import HTML, XHTML, sniff_type

# A target has no "<": otherwise each of 16,000 would be read to the end of the header, in 2 s.
_LINK_HEADER = r'<([^<>]*+)>([^,<"]*+(?:"[^"]*+"[^,<"]*+)*)'
_LINK_CHARS = 16_384
_LINK_REL = r'(?i);\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))'


def parse_exchange(
    exchange: Exchange, want_text: bool, want_pdf_links: bool, *, want_deep_pdf: bool = False, token: str = ROBOTS_TOKEN
) -> Document:
    """Return the contents of the answer. A deep look into a PDF takes long: not on the event loop."""
    declared = declared_type(exchange)
    if not exchange.is_decoded:
        document = Document(content_type=declared.essence)
    else:
        document = _parse_content(declared, exchange, want_text=want_text, token=token)
        if document.content_type == PDF and want_pdf_links:
            _read_pdf(document, exchange.content, is_deep=want_deep_pdf)
    _apply_headers(document, exchange, token)
    return document


def may_be_pdf(exchange: Exchange) -> bool:
    """Return whether an answer will be parsed as a PDF."""
    kind = sniff_type(declared_type(exchange).essence, exchange.content)
    return is_pdf(kind, exchange.content, exchange.url)


def declared_type(exchange: Exchange) -> MimeType:
    return combined_mime_type(tuple(exchange.all_values("content-type")))


def _parse_content(declared: MimeType, exchange: Exchange, *, want_text: bool, token: str) -> Document:
    content = exchange.content
    kind = sniff_type(declared.essence, content)
    if feed_type(kind, content):
        return _feed_document(kind, exchange, declared.charset)
    if kind in (HTML, XHTML):
        document = parse_html(content, declared.charset, want_text=want_text, token=token)
        document.content_type = kind
        return document
    document = Document(content_type=PDF if is_pdf(kind, content, exchange.url) else kind)
    if kind.endswith(("/xml", "+xml")):
        # Sitemaps that a page links to.
        from gossamer.parse.feeds.sitemap import parse_sitemap

        found = parse_sitemap(content)
        document.hrefs = clean_hrefs([entry.loc for entry in (*found.sitemaps, *found.urls)])
        if not found.is_complete:
            document.problem = f"xml: {found.error}"
    elif kind.startswith("text/") and want_text:
        text, document.charset = decode_text(content, declared.charset)
        document.visible = text.encode()
        # Splitting to count the words exactly takes 50 µs per page; counting the spaces between them, 2.
        document.words = text.count(" ") + text.count("\n") + bool(text)
    return document


def _feed_document(kind: str, exchange: Exchange, charset: str) -> Document:
    """Return the entries of a feed as links, the newest first, with their dates."""
    from gossamer.parse.feeds.feeds import parse_feed

    feed = parse_feed(exchange.content, exchange.url, exchange.finished_at, charset)
    document = Document(content_type=feed.content_type or kind, interval_s=feed.interval_s)
    entries = feed.newest_first()
    document.hrefs = [entry.url for entry in entries]
    document.dates = {entry.url: entry.lastmod for entry in entries if entry.changed_at}
    if not feed.is_complete:
        document.problem = f"feed: {feed.error}"
    return document


def _read_pdf(document: Document, content: bytes, *, is_deep: bool) -> None:
    from gossamer.parse.pdf.pdf import pdf_links

    found = pdf_links(content)
    document.hrefs = found.hrefs
    document.problem = found.problem
    if is_deep:
        from gossamer.parse.pdf.deep import read_deep

        deep = read_deep(content)
        document.title = one_line(deep.title, TITLE_CHARS)
        document.visible = deep.text.encode()
        document.words = len(deep.text.split())
        document.hrefs = list(dict.fromkeys([*found.hrefs, *deep.hrefs]))
        document.problem = "; ".join(filter(None, (found.problem, deep.problem)))


def _apply_headers(document: Document, exchange: Exchange, token: str) -> None:
    """Add the directives of X-Robots-Tag and the links of Link."""
    named = exchange.named
    if "link" in named:
        _apply_links(document, exchange.all_values("link"))
    if "x-robots-tag" in named:
        asked = directives_of(header_words(exchange.all_values("x-robots-tag"), token))
        document.is_noindex |= asked.is_noindex
        document.is_nofollow |= asked.is_nofollow
        document.is_noarchive |= asked.is_noarchive
    if document.is_nofollow:
        document.nofollow_links += len(document.hrefs)
        document.hrefs = []
        document.dates = {}


def _apply_links(document: Document, values: list[str]) -> None:
    """Add the canonical and next pages of Link headers (RFC 8288)."""
    hrefs: list[str] = []
    text = ", ".join(values)
    if len(text) > _LINK_CHARS:
        document.problem = document.problem or f"Link headers: the first {_LINK_CHARS} characters were read"
    for target, parameters in re.findall(_LINK_HEADER, text[:_LINK_CHARS]):
        rel = re.search(_LINK_REL, parameters)
        words = (rel[1] or rel[2]).lower().split() if rel else []
        href = clean_href(target)
        if not href or not {"canonical", "next", "prev", "alternate"}.intersection(words):
            continue
        if "canonical" in words and not document.canonical:
            document.canonical = href
        hrefs.append(href)
    if hrefs:
        more = dict.fromkeys(hrefs)
        for href in document.hrefs:  # as in `markup._all_hrefs`
            more.pop(href, None)
        document.hrefs = [*document.hrefs, *more]
