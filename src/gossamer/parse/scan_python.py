"""Scans the markup of a page. In Python, for machines without the compiled `_scan`.

The tokenizer is turbohtml's, by the WHATWG's rules; there is no tree. What is collected:

- the first title outside of svg and math, the language of `html`, every `base`, `meta` and `link`;
- the targets of anchors, areas and frames, cleaned (`parse.hrefs`), each once; anchors and areas
  with nofollow are counted instead;
- the visible text: words with one space between them, a new line wherever a block begins or ends.
  Scripts, styles, frames, templates and <noscript> have no visible text; links within the last two count.

`_scan.c` does the same twenty times as fast; a test compares the two.
"""

from __future__ import annotations

import re

import turbohtml
from turbohtml import Token, TokenType

from gossamer.parse.hrefs import clean_hrefs

Scan = tuple[str, str, list[str], list[tuple[str, str]], list[tuple[str, str]], list[str], int, bytes, int]

_SPACES = re.compile("[ \\t\\n\\f\\r]+")
_BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr legend li listing main menu nav ol optgroup p pre "
    "search section summary table tbody tfoot thead tr ul".split()
)
_CELLS = frozenset({"td", "th", "option"})
_FOREIGN = frozenset({"svg", "math"})
_RAW = frozenset("iframe title textarea script style noembed noframes xmp plaintext noscript".split())
_NO_GAP, _BLANK, _NEW_LINE = range(3)


def scan(content: bytes, wants_text: bool) -> Scan | None:
    """Return title, language, bases, metas, links, hrefs, nofollow count, text and words; None if it is not UTF-8."""
    try:
        source = content.decode()
    except UnicodeDecodeError:
        return None
    return _Scanner(wants_text).scan(source)


class _Scanner:
    """One pass over one page."""

    def __init__(self, wants_text: bool) -> None:
        self._wants_text = wants_text
        self._title: str | None = None
        self._is_first_title = False
        self._lang: str | None = None
        self._bases: list[str] = []
        self._metas: list[tuple[str, str]] = []
        self._links: list[tuple[str, str]] = []
        self._hrefs: list[str] = []
        self._nofollow = 0
        self._pieces: list[str] = []
        self._words = 0
        self._gap = _NEW_LINE
        self._templates = 0
        self._foreign = 0

    def scan(self, source: str) -> Scan:
        self._read(source, is_nested=False)
        return (
            self._title or "",
            self._lang or "",
            self._bases,
            self._metas,
            self._links,
            clean_hrefs(self._hrefs),
            self._nofollow,
            "".join(self._pieces).encode(),
            self._words,
        )

    def _read(self, source: str, *, is_nested: bool) -> None:
        raw = ""  # the element whose contents are not markup
        for token in turbohtml.tokenize(source):
            if token.type is TokenType.START_TAG:
                tag = token.tag or ""
                self._start(tag, token)
                raw = tag if tag in _RAW else ""
            elif token.type is TokenType.END_TAG:
                self._end(token.tag or "", raw)
                raw = ""
            elif token.type is TokenType.TEXT:
                self._read_text(raw, token.data or "", is_nested=is_nested)

    def _start(self, tag: str, token: Token) -> None:
        self._collect(tag, token)
        if tag in _BLOCKS or tag in ("xmp", "plaintext"):
            self._gap = _NEW_LINE
        elif tag in _CELLS:
            self._gap = max(self._gap, _BLANK)
        elif tag == "template":
            self._templates += 1
        elif tag in _FOREIGN:
            self._foreign += not token.self_closing
        elif tag == "title":
            self._is_first_title = self._title is None and not self._foreign
            if self._is_first_title:
                self._title = ""

    def _end(self, tag: str, raw: str) -> None:
        if tag in _BLOCKS or raw == "xmp":
            self._gap = _NEW_LINE
        elif tag in _CELLS:
            self._gap = max(self._gap, _BLANK)
        elif tag == "template" and self._templates:
            self._templates -= 1
        elif tag in _FOREIGN and self._foreign:
            self._foreign -= 1

    def _read_text(self, raw: str, text: str, *, is_nested: bool) -> None:
        if raw == "title":
            if self._is_first_title:
                self._title = text
        elif raw == "noscript":
            if not is_nested:
                wants_text, self._wants_text = self._wants_text, False
                self._read(text, is_nested=True)
                self._wants_text = wants_text
        elif raw in ("", "textarea", "xmp", "plaintext") and self._wants_text and not self._templates:
            self._add_text(text if raw else text.replace("\0", ""))  # in raw text it has been replaced already

    def _add_text(self, text: str) -> None:
        for number, word in enumerate(_SPACES.split(text)):
            if number:
                self._gap = max(self._gap, _BLANK)
            if word:
                if self._gap:
                    if self._pieces:
                        self._pieces.append("\n" if self._gap == _NEW_LINE else " ")
                    self._words += 1
                    self._gap = _NO_GAP
                self._pieces.append(word)

    def _collect(self, tag: str, token: Token) -> None:
        match tag:
            case "a" | "area":
                self._add_anchor(token.attr("href"), token.attr("rel") or "")
            case "frame" | "iframe":
                self._hrefs.append(token.attr("src") or "")
            case "link":
                self._links.append((token.attr("rel") or "", token.attr("href") or ""))
            case "meta":
                content = token.attr("content")
                if content:
                    keys = map(token.attr, ("name", "property", "http-equiv"))
                    self._metas.append((next(filter(None, keys), ""), content))
            case "base":
                self._bases.append(token.attr("href") or "")
            case "html":
                if self._lang is None:
                    self._lang = token.attr("lang")
            case _:
                pass

    def _add_anchor(self, href: str | None, rel: str) -> None:
        if href is None:
            return
        if rel and "nofollow" in _SPACES.split(rel.lower()):
            self._nofollow += 1
        else:
            self._hrefs.append(href)
