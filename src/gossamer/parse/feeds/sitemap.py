"""Which URLs does a sitemap list? urlset, sitemapindex, RSS, Atom, plain text; each also gzipped.

XML is read within the limits of `bounded_xml`; 50,000 entries (sitemaps.org) and 200,000 lines are the caps here. What
was read before an error or a cap is returned, and `is_complete` is False. Relative entries are returned as they are;
scope and cross-submission are checked by the caller. About 6 µs per entry: 0.3 s for a full one, so large ones are
parsed outside the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec import Struct

from gossamer.parse.feeds.bounded_xml import BoundedXml, StopParsingError, texts_of
from gossamer.parse.html.hrefs import has_followed_scheme, trim

MAX_ENTRIES = 50_000
MAX_LOC_CHARS = 16_384
MAX_LINES = 200_000  # of a list of URLs, without blank ones

_MAX_TEXT_PIECES = 64
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# RFC 1035 2.3.4: a name has at most 127 labels.
_URL_LINE = re.compile(r"https?://\S++|[A-Za-z0-9\-]++(?:\.[A-Za-z0-9\-]++){1,126}(?::\d+)?/\S*+", re.IGNORECASE)
# An entry's tag depends on the root: <url> within an RSS <image> is a picture.
_FEED_ENTRIES = {"rss": frozenset({"item"}), "RDF": frozenset({"item"}), "feed": frozenset({"entry"})}
_SITEMAP_ENTRIES = frozenset({"url", "sitemap"})
_DATE_TAGS = frozenset({"lastmod", "pubDate", "date", "updated", "published"})
_LOC_TAGS = frozenset({"loc", "link", "guid"})


class SitemapUrl(Struct, frozen=True, gc=False):
    """An entry: its URL, and when it last changed according to the sitemap."""

    loc: str
    lastmod: str = ""


class SitemapContents(Struct):
    """What a sitemap lists. `error` is one line for people, empty if there is none."""

    urls: list[SitemapUrl] = []
    sitemaps: list[SitemapUrl] = []
    is_complete: bool = True
    error: str = ""

    def fail(self, reason: str) -> None:
        """Record that not all of it was read; the first reason counts."""
        self.is_complete = False
        self.error = self.error or reason


def parse_sitemap(content: bytes, *, allow_dtd: bool = False) -> SitemapContents:
    """Return what a sitemap lists, as far as it can be parsed.

    With `allow_dtd` an internal subset is skipped; entities that it defines are still never expanded.
    """
    contents = SitemapContents()
    texts = texts_of(content, contents.fail)
    first = next(filter(None, texts), "")
    if first.startswith("<"):
        _SitemapReader(contents, allow_dtd=allow_dtd).read(chain([first], texts))
    else:
        _read_lines(_lines(chain([first], texts)), contents)
    return contents


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in pieces, without empty ones; of one that is too long the beginning."""
    rest = ""
    for text in texts:
        line = None
        for found in _LINE.finditer(rest + text):
            if line is not None:
                yield line[0]
            line = found
        rest = ""
        if line is not None and line.end() < len(line.string):
            yield line[0]
        elif line is not None:
            rest = line[0][: MAX_LOC_CHARS + 1]
    if rest:
        yield rest


def _read_lines(lines: Iterable[str], contents: SitemapContents) -> None:
    """Read a sitemap with one URL per line; other lines are skipped."""
    for number, line in enumerate(lines):
        if number == MAX_LINES:
            contents.fail(f"more than {MAX_LINES} lines")
            return
        loc = line.strip()
        if len(loc) > MAX_LOC_CHARS or "/" not in loc or not _URL_LINE.fullmatch(loc):
            continue
        if len(contents.urls) >= MAX_ENTRIES:
            contents.fail(f"more than {MAX_ENTRIES} entries")
            return
        contents.urls.append(SitemapUrl(loc if "://" in loc else f"http://{loc}"))
    if not contents.urls:
        contents.fail("neither XML nor a list of URLs")


class _SitemapReader(BoundedXml):
    """Reads a sitemap. Namespaces are ignored: half of the sitemaps on the web have none or a wrong one."""

    def __init__(self, contents: SitemapContents, *, allow_dtd: bool) -> None:
        super().__init__(contents.fail, allow_dtd=allow_dtd)
        self._contents = contents
        self._entry_tags = _SITEMAP_ENTRIES
        self._entry_tag = ""  # of the current entry
        self._entry_depth = 0
        self._field = ""  # the current loc or date element
        self._field_depth = 0
        self._text: list[str] = []  # of the field, or directly of the entry
        self._locs: list[str] = []
        self._date = ""
        self._guid = ""

    def add_text(self, text: str) -> None:
        # What is longer is neither URL nor date; what other elements of an entry contain (priority, titles) is neither.
        if len(self._text) < _MAX_TEXT_PIECES and (self._field or self.depth == self._entry_depth):
            self._text.append(text)

    def break_off(self, follows: bytes) -> None:
        """Add the entry in which the file breaks off, unless it breaks off within the URL."""
        if self._field in _LOC_TAGS and follows == b"</":
            self._close_field()
        if self._entry_tag:
            self._text.clear()
            self._close_entry()

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if self._field:
            return  # markup within a field counts as its text
        if self.depth == 1:
            self._entry_tags = _FEED_ENTRIES.get(tag, _SITEMAP_ENTRIES)
        elif not self._entry_tag:
            if tag in self._entry_tags:
                self._entry_tag = tag
                self._entry_depth = self.depth
                self._text.clear()
        elif self.depth == self._entry_depth + 1:
            self._start_field(tag, attributes)

    def _start_field(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "link" and self._entry_tag == "entry":
            if attributes.get("rel", "alternate") == "alternate" and not self._locs:
                self._locs.append(attributes.get("href", ""))
        elif tag in _LOC_TAGS or tag in _DATE_TAGS:
            self._field = tag
            self._field_depth = self.depth
            self._text.clear()

    def end_element(self) -> None:
        if self._field:
            if self.depth == self._field_depth:
                self._close_field()
        elif self._entry_tag and self.depth == self._entry_depth:
            self._close_entry()

    def _close_field(self) -> None:
        value = "".join(self._text).strip()
        self._text.clear()
        field = self._field
        self._field = ""
        if field in _DATE_TAGS:
            self._date = self._date or value[:64]
        elif field != "guid":
            self._locs.append(value)
        elif value.lower().startswith(("http://", "https://")):
            self._guid = value

    def _close_entry(self) -> None:
        # An entry without <loc> may be its own text, an item without <link> its guid (both seen in the wild).
        locs = self._locs or [self._guid or "".join(self._text).strip()]
        listed = self._contents.sitemaps if self._entry_tag == "sitemap" else self._contents.urls
        for loc in map(trim, locs):
            if not loc or len(loc) > MAX_LOC_CHARS or not has_followed_scheme(loc):
                continue
            if len(self._contents.urls) + len(self._contents.sitemaps) >= MAX_ENTRIES:
                raise StopParsingError(f"more than {MAX_ENTRIES} entries")
            listed.append(SitemapUrl(loc, self._date))
        self._entry_tag = self._date = self._guid = ""
        self._locs = []
        self._text.clear()
