"""Is an answer a feed? By its type, or by the root of its XML."""

from __future__ import annotations

from gossamer.foundation.expressions import expression

RSS = "application/rss+xml"
ATOM = "application/atom+xml"
FEED_TYPES = frozenset({RSS, ATOM})
_DECLARED = {RSS: RSS, "application/x-rss+xml": RSS, "text/rss+xml": RSS, ATOM: ATOM, "text/atom+xml": ATOM}
_MAY_BE_FEEDS = frozenset({"text/xml", "application/xml", "application/rdf+xml", "text/html", "text/plain"})
_DOCTYPES = (b"<!doctype html", b"<!DOCTYPE html")  # as most pages begin
_HEAD_BYTES = 2048
# The root behind declaration, comments and DOCTYPE: up to 1.5 µs, for a page that does not begin as most do.
_ROOT = expression(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<(?:\?[^>]*+>|!--[^-]*+(?:-(?!->)[^-]*+)*-->|!DOCTYPE[^>]*+>)\s*+){0,20}"
    rb"<(?:(rss)|(?:[A-Za-z]\w{0,15}:)?(feed)|rdf:(RDF))[\s>]"
)
_RSS_IN_RDF = (b"purl.org/rss/", b"netscape.com/rdf/", b"purl.org/net/rss")
_ATOM_NAMES = (b"w3.org/2005/Atom", b"purl.org/atom/")


def feed_type(kind: str, content: bytes) -> str:
    """Return the type of a feed, by the answer's (sniffed) type or its root; empty if it is none."""
    if kind in _DECLARED:
        return _DECLARED[kind]
    if kind not in _MAY_BE_FEEDS or content.startswith(_DOCTYPES):
        return ""
    if content[:20].lstrip()[:14].lower() == _DOCTYPES[0]:
        return ""
    head = content[:_HEAD_BYTES]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head.decode("utf-16", "ignore").encode()
    root = _ROOT.match(head)
    if root is None:
        return ""
    if root[1]:
        return RSS
    if root[2]:
        return ATOM if any(name in head for name in _ATOM_NAMES) else ""
    return RSS if any(name in head for name in _RSS_IN_RDF) else ""
