"""Scans the markup of a page. In Python, for machines without the compiled `_scan`.

The tokenizer is turbohtml's, by the WHATWG's rules; there is no tree, but `parse.foreign` knows what belongs to
svg and math. What is collected:

- the first title, the language of `html`, every `base` with a href, `meta` and `link`; of HTML only, and
  neither in templates nor in shadow trees;
- the targets of anchors (also those of svg), areas and frames, cleaned (`parse.hrefs`), each once; anchors and areas
  with nofollow are counted instead. Templates have none, unless they are declarative shadow roots, which are shown;
- the visible text: words with one space between them, a new line wherever a block begins or ends.
  Scripts, styles, frames, templates, <noscript> and the descriptions in svg have no visible text; links within
  <noscript> count;
- the parts that a style of their own, or `hidden`, hides (`parse.hiding`): how, and where they begin and end in the
  text and in the list of targets. They are part of both. Parts within templates and <noscript> do not count.

`_scan.c` does the same twenty times as fast; a test compares the two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from turbohtml import Token, Tokenizer, TokenType

from gossamer.parse.html.foreign import OpenElements
from gossamer.parse.html.hiding import HiddenParts, Position
from gossamer.parse.html.hrefs import clean_hrefs

Hidden = list[tuple[int, int, int, int, int]]  # how; the part in the text, in bytes; the part in the list of targets
Scan = tuple[str, str, list[str], list[tuple[str, str]], list[tuple[str, str]], list[str], int, bytes, int, Hidden]

_SPACES = re.compile("[ \\t\\n\\f\\r]+")
_LINE_END = re.compile("\\r\\n?")
_CDATA = "<![CDATA["
_CHUNK_CHARS = 16_384  # passed to the tokenizer at a time: what starting it anew within svg can cost
_BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr legend li listing main menu nav ol optgroup p pre "
    "search section summary table tbody tfoot thead tr ul".split()
)
_CELLS = frozenset({"td", "th", "option"})
_RAW = frozenset("iframe title textarea script style noembed noframes xmp plaintext noscript".split())
_NO_GAP, _BLANK, _NEW_LINE = range(3)


def scan(content: bytes, wants_text: bool) -> Scan | None:
    """Return title, language, bases, metas, links, hrefs, nofollow count, text, words, hidden; None if not UTF-8."""
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
        self._open = OpenElements()
        self._hidden = HiddenParts(self._position)
        self._in_noscript = False

    def _position(self) -> Position:
        """Return how many bytes of text, and how many targets, were read."""
        return len("".join(self._pieces).encode()), len(clean_hrefs(self._hrefs))

    def scan(self, source: str) -> Scan:
        self._read(_LINE_END.sub("\n", source), is_nested=False)
        self._hidden.close()
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
            self._hidden.parts,
        )

    def _read(self, source: str, *, is_nested: bool) -> None:
        raw = ""  # the element of HTML whose contents are not markup
        tokens = _Tokens(source)
        for token in tokens:
            if token.type is TokenType.START_TAG:
                tag = token.tag or ""
                is_html = self._start(tag, token)
                raw = tag if is_html and tag in _RAW else ""
                if not is_html and tag in _RAW:
                    tokens.restart_behind(token)
            elif token.type is TokenType.END_TAG:
                self._end(token.tag or "", raw)
                raw = ""
            elif token.type is TokenType.TEXT:
                self._read_text(raw, token.data or "", is_nested=is_nested)
            elif token.type is TokenType.COMMENT and self._open.is_within_foreign:
                self._read_cdata(tokens, token)

    def _read_cdata(self, tokens: _Tokens, comment: Token) -> None:
        """Read a CDATA section, which the tokenizer takes for a comment, as it would be in HTML."""
        if comment.source is not None and comment.source.startswith(_CDATA):
            self._read_text("", tokens.cdata(comment), is_nested=False)

    def _start(self, tag: str, token: Token) -> bool:
        """Process a start tag; return whether it is one of HTML."""
        attributes = dict(reversed(token.attrs or []))  # the first of equal names counts
        if self._open.start_foreign(tag, attributes, is_self_closing=token.self_closing):
            if tag == "a" and not self._open.templates:
                self._add_anchor(attributes.get("href", attributes.get("xlink:href")), attributes.get("rel", ""))
            return False
        if not self._open.templates:
            if not self._in_noscript:
                self._hidden.start(tag, attributes)
            self._collect(tag, token)
        if tag in _BLOCKS or tag in ("xmp", "plaintext"):
            self._gap = _NEW_LINE
        elif tag in _CELLS:
            self._gap = max(self._gap, _BLANK)
        elif tag == "title":
            is_shown = not self._open.templates and not self._open.shadows
            self._is_first_title = self._title is None and is_shown
            if self._is_first_title:
                self._title = ""
        self._open.start_html(tag, attributes, is_self_closing=token.self_closing)
        return True

    def _end(self, tag: str, raw: str) -> None:
        if raw:  # its end tag: of HTML, whatever is around
            if raw == "xmp":
                self._gap = _NEW_LINE
        elif self._open.end(tag):
            if not self._open.templates and not self._in_noscript:
                self._hidden.end(tag)
            if tag in _BLOCKS:
                self._gap = _NEW_LINE
            elif tag in _CELLS:
                self._gap = max(self._gap, _BLANK)

    def _read_text(self, raw: str, text: str, *, is_nested: bool) -> None:
        if raw == "title":
            if self._is_first_title:
                self._title = text
        elif raw == "noscript":
            if not is_nested:
                wants_text = self._wants_text
                self._wants_text = False
                outer = self._open
                self._open = self._open.inside_noscript()
                self._in_noscript = True
                self._read(text, is_nested=True)
                self._in_noscript = False
                self._wants_text = wants_text
                self._open = outer
        elif raw in ("", "textarea", "xmp", "plaintext") and self._wants_text and not self._open.is_hidden:
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
        if tag in ("a", "area"):
            self._add_anchor(token.attr("href"), token.attr("rel") or "")
        elif tag in ("frame", "iframe"):
            self._hrefs.append(token.attr("src") or "")
        elif not self._open.shadows:  # within a shadow tree the others mean nothing for the page
            self._collect_metadata(tag, token)

    def _collect_metadata(self, tag: str, token: Token) -> None:
        match tag:
            case "link":
                self._links.append((token.attr("rel") or "", token.attr("href") or ""))
            case "meta":
                content = token.attr("content")
                if content:
                    keys = map(token.attr, ("name", "property", "http-equiv"))
                    self._metas.append((next(filter(None, keys), ""), content))
            case "base":
                href = token.attr("href")
                if href is not None:
                    self._bases.append(href)
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


class _Tokens:
    """The tokens of a text. Within svg and math the tokenizer, which knows no tree, must be started anew."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._line_ends = [match.start() for match in re.finditer("\n", source)]
        self._start: int | None = 0  # where to start (again)

    def __iter__(self) -> Iterator[Token]:
        while self._start is not None:
            start = self._start
            self._start = None
            self._origin = start
            for token in _tokens_from(self._source, start):
                yield token
                if self._start is not None:
                    break

    def restart_behind(self, token: Token) -> None:
        """Read what follows a token as markup."""
        self._start = self._position(token) + len(token.source or "")

    def cdata(self, comment: Token) -> str:
        """Return the text of the CDATA section that begins with a token, and continue behind it."""
        start = self._position(comment) + len(_CDATA)
        end = self._source.find("]]>", start)
        self._start = end + 3 if end >= 0 else len(self._source)
        return self._source[start : end if end >= 0 else None]

    def _position(self, token: Token) -> int:
        if token.line == 1:
            return self._origin + token.col
        first_line = bisect_right(self._line_ends, self._origin - 1)
        return self._line_ends[first_line + token.line - 2] + 1 + token.col


def _tokens_from(source: str, start: int) -> Iterator[Token]:
    tokenizer = Tokenizer(capture_source=True)
    for position in range(start, len(source), _CHUNK_CHARS):
        yield from tokenizer.feed(source[position : position + _CHUNK_CHARS])
    yield from tokenizer.close()
