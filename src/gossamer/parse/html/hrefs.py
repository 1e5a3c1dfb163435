"""Which of the hrefs on a page can be followed?

Hrefs are returned as on the page, but trimmed as the URL standard does, without fragment,
each once, in the order of their first appearance. Dropped: empty ones (the page itself),
schemes other than http and https, and what is too long to be a URL. Nothing is resolved
here. About 0.2 µs per anchor; repeated hrefs are checked first, since that is cheapest.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.foundation.expressions import expression

MAX_HREFS = 20_000  # examined per page, of which 1,000 new ones may be queued
MAX_HREF_CHARS = 16_384  # twice the maximum URL limit of a crawl; a link of a megabyte is dropped here

# Resolving a href takes the longer the longer its base is: 2 ns per character, 300 per escape, 100 per dot segment.
# A page pays with 10 bytes per href, so that a base of 4,000 escapes and 20,000 hrefs would take 8 s. This is 0.1 s.
_RESOLVED_CHARS = 50_000_000
_ESCAPE_CHARS = 150
_DOT_CHARS = 50
# Each link is queued, held back or refused with the whole base in its URL. On average over `limit` links that many
# characters of it are written; nearly all pages have shorter URLs, or fewer links.
_BASE_CHARS = 250
ALWAYS_EXAMINED = 80  # whatever the base, which has at most 4,096 characters (`core.url`), all of them escapes

_C0_OR_SPACE = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE = str.maketrans("", "", "\t\n\r")
_SCHEME = expression(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_FOLLOWED_SCHEMES = frozenset({"http", "https"})


def clean_hrefs(raw: Iterable[str]) -> list[str]:
    kept: dict[str, None] = {}
    for text in dict.fromkeys(raw):
        href, mark, _ = text.partition("#")
        cleaned = href
        # `isprintable` is false for every C0 control, and cheaper than a search.
        if not href.isprintable() or href[:1] == " " or href[-1:] == " ":
            cleaned = _with_escaped_tail(href) if mark else trim(href)
        if not cleaned or len(cleaned) > MAX_HREF_CHARS:
            continue
        if ":" in cleaned and not has_followed_scheme(cleaned):
            continue
        kept[cleaned] = None
    return list(kept)


def clean_href(raw: str) -> str:
    """Return one href cleaned, or the empty string if it cannot be followed."""
    return next(iter(clean_hrefs([raw])), "")


def max_examined(base: str, limit: int = MAX_HREFS) -> int:
    """Return how many hrefs of one page are resolved against a base."""
    cost = len(base) + _ESCAPE_CHARS * base.count("%") + _DOT_CHARS * base.count("/.")
    return min(limit, _RESOLVED_CHARS // cost, limit * _BASE_CHARS // len(base))


def trim(text: str) -> str:
    """Remove what the URL parser of the WHATWG ignores: C0 and space around, tabs and newlines within."""
    return text.strip(_C0_OR_SPACE).translate(_TAB_OR_NEWLINE)


def _with_escaped_tail(href: str) -> str:
    """Trim what precedes a fragment: a URL parser escapes blanks and controls at its end, which are within the URL."""
    cleaned = href.lstrip(_C0_OR_SPACE).translate(_TAB_OR_NEWLINE)
    plain = cleaned.rstrip(_C0_OR_SPACE)
    return plain + "".join(f"%{ord(char):02X}" for char in cleaned[len(plain) :])


def has_followed_scheme(href: str) -> bool:
    """Whether a trimmed href is relative, or http or https."""
    scheme = _SCHEME.match(href)
    return scheme is None or scheme[1].lower() in _FOLLOWED_SCHEMES
