"""Which URLs does a sitemap list? urlset, sitemapindex, RSS, Atom, plain text; each also gzipped.

Entities are never expanded, and nothing is ever opened. A document type with an internal
subset is refused, so a billion laughs is an error after 100 bytes. Caps: 50 MiB decoded,
50,000 entries (sitemaps.org), 256 levels; and on what only a hostile file has many of, each of which
takes time or memory in expat: elements, different names, attributes of one element, characters
of one tag, comments. What was read before an error or a cap is returned, and `is_complete` is False.
Relative entries are returned as they are; scope and cross-submission are checked by the caller.
About 6 µs per entry: 0.3 s for a full one, so large ones are parsed outside the event loop.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator
from xml.parsers import expat

from isal import isal_zlib
from isal.igzip_lib import IsalError
from msgspec import Struct

from gossamer.parse.charset import decode_text
from gossamer.parse.hrefs import has_followed_scheme, trim

MAX_DECODED_BYTES = 50 * 1024 * 1024
MAX_ENTRIES = 50_000
MAX_DEPTH = 256
MAX_LOC_CHARS = 16_384

MAX_ELEMENTS = 1_000_000  # 1.5 µs each; a full sitemap in 20 languages has as many
MAX_NAMES = 1000  # of elements and attributes: expat never forgets one
MAX_ATTRIBUTES = 100  # of one element
MAX_TAG_BYTES = 512 * 1024  # of a tag or comment, which expat stores until its end, and reads again with each piece
MAX_LINES = 200_000  # of a list of URLs, without blank ones
MAX_OTHERS = 1_000_000  # comments, processing instructions and the like

_MAX_MEMBERS = 1000  # each starts a decoder
_INPUT_BYTES = 64 * 1024  # inflated at a time: what follows the end of a member is copied
_STALLED_BYTES = 1 << 20  # of input with less output than that: empty blocks
_GZIP = b"\x1f\x8b"
_CHUNK_CHARS = 1 << 18
_STEP_BYTES = 1 << 18
_MAX_TEXT_PIECES = 64
_XML_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:\-]{1,40})[\"']")
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_URL_LINE = re.compile(r"(?:https?://\S++|[A-Za-z0-9\-]++(?:\.[A-Za-z0-9\-]++)++(?::\d+)?/\S*+)", re.IGNORECASE)
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
        self.is_complete, self.error = False, self.error or reason


class _StopParsingError(Exception):
    """A cap was reached or the document is refused; the message is the contents' error."""


def parse_sitemap(content: bytes, *, allow_dtd: bool = False) -> SitemapContents:
    """Return what a sitemap lists, as far as it can be parsed.

    With `allow_dtd` an internal subset is skipped; entities that it defines are still never expanded.
    """
    contents = SitemapContents()
    pieces = _inflated(content, contents) if content.startswith(_GZIP) else _capped(content, contents)
    head = next(pieces, b"")
    declared = _XML_DECLARED.search(head, 0, 512)
    label = declared[1].decode("ascii") if declared else ""
    if _is_utf8_xml(head, label):
        # The usual case, one piece at a time: 50 MB take 3 MB.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        texts = itertools.chain((decode(piece) for piece in itertools.chain([head], pieces)), (decode(b"", True),))
        _SitemapReader(contents, allow_dtd=allow_dtd).read(texts)
        return contents
    text = decode_text(b"".join([head, *pieces]), label)[0].lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        chunks = (text[start : start + _CHUNK_CHARS] for start in range(0, len(text), _CHUNK_CHARS))
        _SitemapReader(contents, allow_dtd=allow_dtd).read(chunks)
    else:
        _read_lines(text, contents)
    return contents


def _is_utf8_xml(head: bytes, label: str) -> bool:
    """Whether the first piece of a file is XML in UTF-8 that needs no preparation."""
    if not head.startswith(b"<") or head[1:2] == b"\0" or label.lower() not in ("", "utf-8", "utf8"):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character that is cut at the end is no fault
    except UnicodeDecodeError:
        return False
    return True


def _capped(content: bytes, contents: SitemapContents) -> Iterator[bytes]:
    """Yield a plain file in pieces, up to the cap."""
    for start in range(0, min(len(content), MAX_DECODED_BYTES), _STEP_BYTES):
        yield content[start : min(start + _STEP_BYTES, MAX_DECODED_BYTES)]
    if len(content) > MAX_DECODED_BYTES:
        contents.fail(f"longer than {MAX_DECODED_BYTES} bytes")


def _inflated(content: bytes, contents: SitemapContents) -> Iterator[bytes]:
    """Inflate gzip, member by member, up to the cap; of a broken end as much as possible."""
    at = size = 0
    view = memoryview(content)
    for _ in range(_MAX_MEMBERS):
        if content[at : at + 2] != _GZIP:
            return
        member = isal_zlib.decompressobj(31)
        try:
            while not member.eof:
                end = min(at + _INPUT_BYTES, len(content))
                piece = member.decompress(view[at:end], min(MAX_DECODED_BYTES - size, _STEP_BYTES))
                at = end - len(member.unconsumed_tail) - len(member.unused_data)
                size += len(piece)
                yield piece
                if size >= MAX_DECODED_BYTES:
                    contents.fail(f"longer than {MAX_DECODED_BYTES} bytes")
                    return
                if not piece and not member.eof and (end == len(content) or at > _STALLED_BYTES + size):
                    contents.fail("gzip is cut off" if end == len(content) else "gzip of next to nothing")
                    return
        except IsalError as error:  # type: ignore[misc]  # the stub declares the class as an instance
            contents.fail(f"broken gzip: {error}")
            return
    contents.fail(f"more than {_MAX_MEMBERS} gzip members")


def _read_lines(text: str, contents: SitemapContents) -> None:
    """Read a sitemap with one URL per line; other lines are skipped."""
    for number, line in enumerate(_LINE.finditer(text)):
        if number == MAX_LINES:
            contents.fail(f"more than {MAX_LINES} lines")
            return
        loc = line[0].strip()
        if len(loc) > MAX_LOC_CHARS or "/" not in loc or not _URL_LINE.fullmatch(loc):
            continue
        if len(contents.urls) >= MAX_ENTRIES:
            contents.fail(f"more than {MAX_ENTRIES} entries")
            return
        contents.urls.append(SitemapUrl(loc if "://" in loc else f"http://{loc}"))
    if not contents.urls:
        contents.fail("neither XML nor a list of URLs")


class _SitemapReader:
    """Expat's callbacks. Namespaces are ignored: half of the sitemaps on the web have none or a wrong one."""

    def __init__(self, contents: SitemapContents, *, allow_dtd: bool) -> None:
        self._contents = contents
        self._allow_dtd = allow_dtd
        self._depth = 0
        self._entry_tags = _SITEMAP_ENTRIES
        self._entry_tag = ""  # of the current entry
        self._entry_depth = 0
        self._field = ""  # the current loc or date element
        self._field_depth = 0
        self._text: list[str] = []  # of the field, or directly of the entry
        self._locs: list[str] = []
        self._date = ""
        self._guid = ""
        self._elements = self._others = 0
        self._names: set[str] = set()

    def read(self, texts: Iterable[str]) -> None:
        """Parse the pieces of a text, filling the contents."""
        # The text is passed as UTF-8, so that no encoding named in the document can reach a Python codec.
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.DefaultHandler = self._other  # with a default handler expat leaves entities in content unexpanded
        before, last = 0, b""
        try:
            for text in filter(None, texts):
                before, last = before + len(last), text.encode()
                parser.Parse(last, False)
                if before + len(last) - parser.CurrentByteIndex > MAX_TAG_BYTES:
                    raise _StopParsingError(f"a tag or comment of more than {MAX_TAG_BYTES} bytes")
            parser.Parse("", True)
        except _StopParsingError as stop:
            self._contents.fail(str(stop))
        except expat.ExpatError as error:
            self._contents.fail(f"not well-formed XML: {error}")
            self._add_cut_entry(last[max(0, parser.ErrorByteIndex - before) :][:2])

    def _other(self, _data: str) -> None:
        self._others += 1
        if self._others > MAX_OTHERS:
            raise _StopParsingError(f"more than {MAX_OTHERS} comments and the like")

    def _count(self, name: str, attributes: dict[str, str]) -> None:
        """Count an element with a new name, or with attributes."""
        if len(attributes) > MAX_ATTRIBUTES:
            raise _StopParsingError(f"more than {MAX_ATTRIBUTES} attributes of an element")
        self._names.add(name)
        self._names.update(attributes)
        if len(self._names) > MAX_NAMES:
            raise _StopParsingError(f"more than {MAX_NAMES} different names")

    def _characters(self, text: str) -> None:
        # What is longer is neither URL nor date; what other elements of an entry contain (priority, titles) is neither.
        if len(self._text) < _MAX_TEXT_PIECES and (self._field or self._depth == self._entry_depth):
            self._text.append(text)

    def _add_cut_entry(self, follows: bytes) -> None:
        """Add the entry in which the file breaks off, unless it breaks off within the URL."""
        if self._field in _LOC_TAGS and follows == b"</":
            self._close_field()
        if self._entry_tag:
            self._text.clear()
            self._close_entry()

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset and not self._allow_dtd:
            raise _StopParsingError("document type with an internal subset is refused")

    def _entity(self, _name: str, _is_parameter: int, value: str | None, *_rest: object) -> None:
        if value is not None:  # an internal entity, which could be expanded within an attribute
            raise _StopParsingError("entity declarations are refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if attributes or name not in self._names:
            self._count(name, attributes)
        if self._elements > MAX_ELEMENTS:
            raise _StopParsingError(f"more than {MAX_ELEMENTS} elements")
        if self._depth > MAX_DEPTH:
            raise _StopParsingError(f"more than {MAX_DEPTH} levels")
        if self._field:
            return  # markup within a field counts as its text
        tag = name.rpartition(":")[2]
        if self._depth == 1:
            self._entry_tags = _FEED_ENTRIES.get(tag, _SITEMAP_ENTRIES)
        elif not self._entry_tag:
            if tag in self._entry_tags:
                self._entry_tag, self._entry_depth = tag, self._depth
                self._text.clear()
        elif self._depth == self._entry_depth + 1:
            self._start_field(tag, attributes)

    def _start_field(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "link" and self._entry_tag == "entry":
            if attributes.get("rel", "alternate") == "alternate" and not self._locs:
                self._locs.append(attributes.get("href", ""))
        elif tag in _LOC_TAGS or tag in _DATE_TAGS:
            self._field, self._field_depth = tag, self._depth
            self._text.clear()

    def _end(self, _name: str) -> None:
        if self._field:
            if self._depth == self._field_depth:
                self._close_field()
        elif self._entry_tag and self._depth == self._entry_depth:
            self._close_entry()
        self._depth -= 1

    def _close_field(self) -> None:
        value = "".join(self._text).strip()
        self._text.clear()
        field, self._field = self._field, ""
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
                raise _StopParsingError(f"more than {MAX_ENTRIES} entries")
            listed.append(SitemapUrl(loc, self._date))
        self._entry_tag = self._date = self._guid = ""
        self._locs = []
        self._text.clear()
