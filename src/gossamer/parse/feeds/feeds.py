"""Which pages does a feed announce, and when did they change? RSS 0.90 to 2.0 (and RDF), Atom; each also gzipped.

XML is read within the limits of `bounded_xml`, and of 10 MiB and 5,000 entries. Feeds are written by programs that do
not know XML, so what is commonly wrong with them is no error here: entities of HTML, bare ampersands, control
characters, text before the document, a wrong declaration, a charset that is not the declared one. If a feed cannot be
read as it is, it is cleaned and read once more. What was read before an error or a cap is returned, and `is_complete`
is False.

URLs are absolute, in canonical form, each once: relative ones are resolved against `xml:base` and the feed's own URL.
If an entry has no link, its guid or id serves if that is a URL. About 30 µs per entry.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from operator import attrgetter

from msgspec import Struct

from gossamer.core.content.written_dates import written_time
from gossamer.core.url.forms import canonical
from gossamer.parse.feeds.bounded_xml import BoundedXml, StopParsingError, declared_label, pieces_of
from gossamer.parse.feeds.feed_type import ATOM, RSS
from gossamer.parse.html.hrefs import has_followed_scheme, trim
from gossamer.parse.types.charset import canonical_charset, decode_text

MAX_FEED_BYTES = 10 * 1024 * 1024
MAX_FEED_ENTRIES = 5000
MAX_URL_CHARS = 16_384
MIN_INTERVAL_S = 300
MAX_INTERVAL_S = 30 * 86_400

_MAX_JUNK_CHARS = 4096  # before the document
_MAX_ID_CHARS = 512
# As for the links of a page (`hrefs`): what is resolved against a base costs as much as so many characters of it.
_MAX_RESOLVED_CHARS = 50_000_000
_ESCAPE_CHARS = 150
_DOT_CHARS = 50
_MAX_AMPERSANDS = 100_000  # replaced in a row: each becomes five characters
_ROOTS = {"rss": "rss", "RDF": "rdf", "rdf": "rdf", "feed": "atom", "channel": "rss"}
_START = re.compile(r"<(?:\?xml|!--|!DOCTYPE|(?:[A-Za-z][\w.\-]{0,20}:)?(?:rss|rdf|feed|channel)[\s>])", re.IGNORECASE)
_DECLARATION = re.compile(r"<\?xml\s[^<>]{0,500}\?>")
_ENTRIES = frozenset({"item", "entry"})
_CHANGED = frozenset({"updated", "modified"})
_PUBLISHED = frozenset({"pubDate", "published", "date", "issued", "created"})
_FIELDS = _CHANGED | _PUBLISHED | {"link", "guid", "id", "origLink"}
_CHANNEL_FIELDS = frozenset({"ttl", "updatePeriod", "updateFrequency"})
_PERIODS_S = {"hourly": 3600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000, "yearly": 31_536_000}
_NO_PAGES = frozenset({"self", "edit", "edit-media", "replies", "enclosure", "hub", "next", "prev", "license", "via"})
# By preference: the URL before a service rewrote it, the page of the entry, other links, ids that are URLs.
_ORIGINAL, _ALTERNATE, _LINK, _ID = range(4)

_AMPERSAND = re.compile(r"&(?!(?:[A-Za-z][A-Za-z0-9]{0,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});)")
_REFERENCE = re.compile(r"&#(?:[xX]([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_CDATA = "<![CDATA["
_CDATA_END = "]]>"
_TYPES = {"rss": RSS, "rdf": RSS, "atom": ATOM}


class ParsedEntry(Struct, frozen=True, gc=False):
    """A page that a feed announces; times are seconds of the epoch, 0 if they are not known."""

    url: str
    changed_at: float = 0.0  # the later of both
    published_at: float = 0.0
    id: str = ""  # as the feed gives it, else the URL

    @property
    def lastmod(self) -> str:
        """The time of the change as a sitemap has it; empty if it is not known."""
        return (
            datetime.fromtimestamp(int(self.changed_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if self.changed_at else ""
        )


class ParsedFeed(Struct):
    """What a feed announces. `error` is one line for people, empty if there is none."""

    kind: str = ""  # rss, rdf, atom
    entries: list[ParsedEntry] = []
    interval_s: int = 0  # how often the feed wants to be fetched; 0 if it does not say
    is_complete: bool = True
    error: str = ""

    @property
    def content_type(self) -> str:
        """The type by its root, whatever was declared; empty if it is no feed."""
        return _TYPES.get(self.kind, "")

    def newest_first(self) -> list[ParsedEntry]:
        """Return the entries, those without a date last."""
        return sorted(self.entries, key=attrgetter("changed_at"), reverse=True)

    def fail(self, reason: str) -> None:
        """Record that not all of it was read; the first reason counts."""
        self.is_complete = False
        self.error = self.error or reason


def parse_feed(content: bytes, url: str, now: float, charset: str = "") -> ParsedFeed:
    """Return what a feed at a URL announces, as far as it can be parsed; `charset` is that of the header."""
    feed = ParsedFeed()
    text = _text(b"".join(pieces_of(content, feed.fail, MAX_FEED_BYTES)), charset)
    start = _START.search(text, 0, _MAX_JUNK_CHARS)
    if start is None:
        feed.fail("not a feed: expected XML with rss, RDF or feed as its root")
        return feed
    text = _DECLARATION.sub("", text[start.start() :], count=1)
    first = _FeedReader(url, now)
    first.read([text])
    chosen = first
    if first.is_broken:
        second = _FeedReader(url, now)
        second.read([_cleaned(text)])
        chosen = second if len(second.entries) >= len(first.entries) else first
    found = chosen.finished()
    if feed.error:  # of the bytes; it comes before those of the text
        found.is_complete = False
        found.error = feed.error
    return found


def _text(content: bytes, header: str) -> str:
    """Decode a feed: by its bytes if what is declared cannot be right."""
    label = canonical_charset(header) or declared_label(content[:512])
    try:
        # Text that is valid UTF-8 is UTF-8 whatever it claims, unless it is ASCII in shape (UTF-7, ISO-2022).
        text = content.decode("utf-8")
        if not content.isascii() and "\0" not in text[:4]:
            return text.removeprefix("\ufeff")
    except UnicodeDecodeError:
        if canonical_charset(label) == "utf-8":
            label = ""
    return decode_text(content, label)[0].removeprefix("\ufeff")


def _cleaned(text: str) -> str:
    """Return a text without what XML forbids; CDATA sections keep their ampersands. Linear."""
    text = _ILLEGAL.sub("", text)
    parts: list[str] = []
    at = 0
    while at < len(text):
        start = text.find(_CDATA, at)
        end = text.find(_CDATA_END, start) if start >= 0 else -1
        if end < 0:
            start = end = len(text)
        parts.append(_REFERENCE.sub(_legal_reference, _AMPERSAND.sub("&amp;", text[at:start], count=_MAX_AMPERSANDS)))
        parts.append(text[start : end + len(_CDATA_END)])
        at = end + len(_CDATA_END)
    return "".join(parts)


def _legal_reference(found: re.Match[str]) -> str:
    number = int(found[1], 16) if found[1] else int(found[2])
    is_legal = number in (9, 10, 13) or 0x20 <= number < 0xD800 or 0xE000 <= number < 0x110000
    return found[0] if is_legal and number not in (0xFFFE, 0xFFFF) else ""


class _Entry(Struct):
    depth: int
    about: str = ""
    urls: dict[int, str] = {}  # by preference
    id: str = ""
    changed_at: float = 0.0
    published_at: float = 0.0


class _FeedReader(BoundedXml):
    """Reads a feed. Prefixes of names are ignored: feeds mix vocabularies, and declare wrong ones."""

    def __init__(self, url: str, now: float) -> None:
        self.feed = ParsedFeed()
        super().__init__(self.feed.fail, html_entities=True)
        self._now = now
        self._bases = [(0, url)]  # with the depth of the element that set it
        self._entry: _Entry | None = None
        self._field = ""
        self._field_depth = 0
        self._is_permanent = True
        self._text: list[str] = []
        self._chars = self._resolved_chars = 0
        self.entries: dict[str, ParsedEntry] = {}
        self._channel: dict[str, str] = {}
        self.is_broken = False

    def finished(self) -> ParsedFeed:
        self.feed.entries = list(self.entries.values())
        self.feed.interval_s = self._interval_s()
        if not self.feed.kind and not self.feed.error:
            self.feed.fail("not a feed: there is no element")
        return self.feed

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if self.depth == 1:
            self.feed.kind = _ROOTS.get(tag, "")
            if not self.feed.kind:
                raise StopParsingError(f"not a feed: its root is {tag[:40]!a}, expected rss, RDF or feed")
        base = attributes.get("xml:base") if attributes else None
        if base is not None and len(base) <= MAX_URL_CHARS:
            resolved = self._resolved(base)
            if resolved is not None:
                self._bases.append((self.depth, resolved))
        if self._field:
            return  # markup within a field counts as its text
        if self._entry is None:
            if tag in _ENTRIES and self.depth > 1:
                self._entry = _Entry(self.depth, about=attributes.get("rdf:about", ""))
            elif tag in _CHANNEL_FIELDS:
                self._start_field(tag, attributes)
        elif self.depth == self._entry.depth + 1 and tag in _FIELDS:
            if tag == "link" and "href" in attributes:
                self._add_link(self._entry, attributes)
            else:
                self._start_field(tag, attributes)

    def end_element(self) -> None:
        if self._field:
            if self.depth == self._field_depth:
                self._close_field()
        elif self._entry is not None and self.depth == self._entry.depth:
            self._close_entry(self._entry)
        if self._bases[-1][0] == self.depth:
            self._bases.pop()

    def add_text(self, text: str) -> None:
        if self._field and self._chars <= MAX_URL_CHARS:  # what is longer is neither URL nor date
            self._text.append(text)
            self._chars += len(text)

    def break_off(self, follows: bytes) -> None:
        """Add the entry in which the feed breaks off, unless it breaks off within its URL."""
        self.is_broken = True
        if self._field and follows == b"</":
            self._close_field()
        self._field = ""
        if self._entry is not None:
            self._close_entry(self._entry)

    def _start_field(self, tag: str, attributes: dict[str, str]) -> None:
        self._field = tag
        self._field_depth = self.depth
        self._chars = 0
        self._is_permanent = attributes.get("isPermaLink", "true").strip().lower() != "false"
        self._text.clear()

    def _close_field(self) -> None:
        value = "".join(self._text).strip()
        field = self._field
        self._field = ""
        entry = self._entry
        if entry is None:
            self._channel.setdefault(field, value[:40])
        elif field in _CHANGED:
            entry.changed_at = entry.changed_at or written_time(value, self._now)
        elif field in _PUBLISHED:
            entry.published_at = entry.published_at or written_time(value, self._now)
        elif field in ("guid", "id"):
            entry.id = entry.id or value[:_MAX_ID_CHARS]
            if self._is_permanent and value[:8].lower().startswith(("http://", "https://")):
                self._add_url(entry, value, _ID)
        else:
            self._add_url(entry, value, _ORIGINAL if field == "origLink" else _LINK)

    def _add_link(self, entry: _Entry, attributes: dict[str, str]) -> None:
        rel = attributes.get("rel", "alternate").strip().lower()
        if rel not in _NO_PAGES:
            is_page = rel == "alternate" and "html" in attributes.get("type", "html").lower()
            self._add_url(entry, attributes["href"], _ALTERNATE if is_page else _LINK)

    def _add_url(self, entry: _Entry, value: str, preference: int) -> None:
        """Add a URL of an entry, unless there is one of that preference or it cannot be fetched."""
        href = trim(value)
        if not href or len(href) > MAX_URL_CHARS or preference in entry.urls or not has_followed_scheme(href):
            return
        url = self._resolved(href)
        if url is not None:
            entry.urls[preference] = url

    def _resolved(self, href: str) -> str | None:
        """Resolve a URL; a base that is long or full of escapes makes that slow, and is paid for only once."""
        base = self._bases[-1][1]
        self._resolved_chars += len(base) + _ESCAPE_CHARS * base.count("%") + _DOT_CHARS * base.count("/.")
        if self._resolved_chars > _MAX_RESOLVED_CHARS:
            raise StopParsingError("too many URLs to be resolved against a long base")
        return canonical(href, base)

    def _close_entry(self, entry: _Entry) -> None:
        self._entry = None
        if not entry.urls and entry.about:
            self._add_url(entry, entry.about, _ID)
        if not entry.urls:
            return
        url = entry.urls[min(entry.urls)]
        changed_at = max(entry.changed_at, entry.published_at)
        known = self.entries.get(url)
        if known is not None and known.changed_at >= changed_at:
            return
        if known is None and len(self.entries) >= MAX_FEED_ENTRIES:
            raise StopParsingError(f"more than {MAX_FEED_ENTRIES} entries")
        self.entries[url] = ParsedEntry(url, changed_at, entry.published_at, entry.id or url)

    def _interval_s(self) -> int:
        """Return how often the feed wants to be fetched, within reason."""
        try:
            if "ttl" in self._channel:
                wanted = 60 * float(self._channel["ttl"])
            else:
                period = _PERIODS_S[self._channel.get("updatePeriod", "").lower()]
                wanted = period / float(self._channel.get("updateFrequency", "1"))
            return int(min(max(wanted, MIN_INTERVAL_S), MAX_INTERVAL_S)) if wanted > 0 else 0
        except (KeyError, ValueError, ZeroDivisionError):
            return 0
