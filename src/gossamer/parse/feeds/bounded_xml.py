"""XML from strangers, within limits: the elements and texts that a reader of sitemaps or feeds is called with.

Entities of the document are never expanded, and nothing is ever opened. A document type with an internal subset is
refused, so a billion laughs is an error after 100 bytes. Caps: 50 MiB decoded, 256 levels, and on what only a hostile
file has many of, each of which takes time or memory in expat: elements, different names, attributes, characters of one
tag, references and line ends, comments. They bound a file to about half a second. Bytes become text here too, gzipped
or not, so that no encoding that a document names can reach a Python codec.
"""

from __future__ import annotations

import codecs
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from html.entities import html5
from xml.parsers import expat

from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.parse.types.charset import decode_in_pieces

MAX_DECODED_BYTES = 50 * 1024 * 1024
MAX_DEPTH = 256
MAX_ELEMENTS = 610_000  # 0.5 to 1 µs each; a full sitemap with links to 9 translations has as many
MAX_NAMES = 1000  # of elements and attributes: expat never forgets one
MAX_ATTRIBUTES = 100  # of one element
MAX_ALL_ATTRIBUTES = 2_000_000  # 0.2 µs each; 50 MiB of links to translations have 1,400,000
MAX_MARKS = 5_000_000  # references and line ends, 0.03 µs each; 50 MiB of nothing but parameters have 3,300,000
MAX_TAG_BYTES = 512 * 1024  # of a tag or comment, which expat stores until its end, and reads again with each piece
MAX_OTHERS = 1_000_000  # comments, processing instructions and the like

_MAX_MEMBERS = 1000  # each starts a decoder
_INPUT_BYTES = 64 * 1024  # inflated at a time: what follows the end of a member is copied
_STALLED_BYTES = 1 << 20  # of input with less output than that: empty blocks
_GZIP = b"\x1f\x8b"
_STEP_BYTES = 1 << 18
_XML_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:\-]{1,40})[\"']")

Fail = Callable[[str], None]


class StopParsingError(Exception):
    """A cap was reached or the document is refused; the message is one line for people."""


class BoundedXml(ABC):
    """Reads a document; the methods that are not private are called as it goes. `depth` is 1 in the root."""

    def __init__(self, fail: Fail, *, allow_dtd: bool = False, html_entities: bool = False) -> None:
        self._fail = fail
        self._allow_dtd = allow_dtd
        self._html_entities = html_entities  # `&nbsp;` and the like, which XML does not know, become text
        self._elements = self._attributes = self._others = 0
        self._names: set[str] = set()
        self._tags: dict[str, str] = {}  # names of elements without their prefixes
        self.depth = 0

    @abstractmethod
    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins; its name is without the prefix."""

    @abstractmethod
    def end_element(self) -> None:
        """The element at the current depth ends."""

    @abstractmethod
    def add_text(self, text: str) -> None:
        """A piece of text follows."""

    @abstractmethod
    def break_off(self, follows: bytes) -> None:
        """The document is broken here, before these bytes; what was read so far may be used."""

    def read(self, texts: Iterable[str]) -> None:
        # The text is passed as UTF-8, so that no encoding named in the document can reach a Python codec.
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.add_text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.DefaultHandler = self._other  # with a default handler expat leaves entities in content unexpanded
        if self._html_entities:
            # As if there were a document type elsewhere: what it might define is then no error.
            parser.UseForeignDTD(True)
            parser.SkippedEntityHandler = self._skipped
        before = 0
        last = b""
        marks = 0
        try:
            for text in filter(None, texts):
                before = before + len(last)
                last = text.encode()
                parser.Parse(last, False)
                marks += sum(map(last.count, (b"&", b"\n", b"\r")))
                if marks > MAX_MARKS:
                    raise StopParsingError(f"more than {MAX_MARKS} references and line ends")
                if before + len(last) - parser.CurrentByteIndex > MAX_TAG_BYTES:
                    raise StopParsingError(f"a tag or comment of more than {MAX_TAG_BYTES} bytes")
            parser.Parse("", True)
        except StopParsingError as stop:
            self._fail(str(stop))
        except expat.ExpatError as error:
            self._fail(f"not well-formed XML: {error}")
            with suppress(StopParsingError):
                self.break_off(last[max(0, parser.ErrorByteIndex - before) :][:2])

    def _skipped(self, name: str, _is_parameter: int) -> None:
        self._other("")
        self.add_text(html5.get(f"{name};", ""))

    def _other(self, _data: str) -> None:
        self._others += 1
        if self._others > MAX_OTHERS:
            raise StopParsingError(f"more than {MAX_OTHERS} comments and the like")

    def _count(self, name: str, attributes: dict[str, str]) -> None:
        if len(attributes) > MAX_ATTRIBUTES:
            raise StopParsingError(f"more than {MAX_ATTRIBUTES} attributes of an element")
        self._attributes += len(attributes)
        if self._attributes > MAX_ALL_ATTRIBUTES:
            raise StopParsingError(f"more than {MAX_ALL_ATTRIBUTES} attributes")
        self._names.add(name)
        self._names.update(attributes)
        if len(self._names) > MAX_NAMES:
            raise StopParsingError(f"more than {MAX_NAMES} different names")

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset and not self._allow_dtd:
            raise StopParsingError("document type with an internal subset is refused")

    def _entity(self, _name: str, _is_parameter: int, value: str | None, *_rest: object) -> None:
        if value is not None:  # an internal entity, which could be expanded within an attribute
            raise StopParsingError("entity declarations are refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self._elements += 1
        tag = self._tags.get(name)
        if attributes or tag is None:
            self._count(name, attributes)
            tag = self._tags[name] = name.rpartition(":")[2]
        if self._elements > MAX_ELEMENTS:
            raise StopParsingError(f"more than {MAX_ELEMENTS} elements")
        if self.depth > MAX_DEPTH:
            raise StopParsingError(f"more than {MAX_DEPTH} levels")
        self.start_element(tag, attributes)

    def _end(self, _name: str) -> None:
        self.end_element()
        self.depth -= 1


def texts_of(content: bytes, fail: Fail, max_bytes: int = MAX_DECODED_BYTES) -> Iterator[str]:
    """Yield the text of a file in pieces, inflated if it is gzipped, decoded as it declares or by its bytes."""
    pieces = pieces_of(content, fail, max_bytes)
    head = next(pieces, b"")
    label = declared_label(head)
    if _is_utf8_xml(head, label):
        # The usual case, one piece at a time: 50 MB take 3 MB.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        yield from (decode(piece) for piece in itertools.chain([head], pieces))
        yield decode(b"", True)
        return
    if content.startswith(_GZIP):
        content = b"".join([head, *pieces])
    elif len(content) > max_bytes:
        fail(f"longer than {max_bytes} bytes")
        content = content[:max_bytes]
    is_begun = False
    for text in decode_in_pieces(content, label, _STEP_BYTES):
        begun = text if is_begun else text.lstrip("\ufeff \t\r\n")
        is_begun = is_begun or bool(begun)
        yield begun


def pieces_of(content: bytes, fail: Fail, max_bytes: int = MAX_DECODED_BYTES) -> Iterator[bytes]:
    """Yield a file in pieces, inflated if it is gzipped, up to the cap."""
    return _inflated(content, fail, max_bytes) if content.startswith(_GZIP) else _capped(content, fail, max_bytes)


def declared_label(head: bytes) -> str:
    """Return the encoding that a document declares; empty if it declares none."""
    declared = _XML_DECLARED.search(head, 0, 512)
    return declared[1].decode("ascii") if declared else ""


def _is_utf8_xml(head: bytes, label: str) -> bool:
    """Whether the first piece of a file is XML in UTF-8 that needs no preparation."""
    if not head.startswith(b"<") or head[1:2] == b"\0" or label.lower() not in ("", "utf-8", "utf8"):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character that is cut at the end is no fault
    except UnicodeDecodeError:
        return False
    return True


def _capped(content: bytes, fail: Fail, max_bytes: int) -> Iterator[bytes]:
    """Yield a plain file in pieces, up to the cap."""
    for start in range(0, min(len(content), max_bytes), _STEP_BYTES):
        yield content[start : min(start + _STEP_BYTES, max_bytes)]
    if len(content) > max_bytes:
        fail(f"longer than {max_bytes} bytes")


def _inflated(content: bytes, fail: Fail, max_bytes: int) -> Iterator[bytes]:
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
                piece = member.decompress(view[at:end], min(max_bytes - size, _STEP_BYTES))
                at = end - len(member.unconsumed_tail) - len(member.unused_data)
                size += len(piece)
                yield piece
                if size >= max_bytes:
                    fail(f"longer than {max_bytes} bytes")
                    return
                if not piece and not member.eof and (end == len(content) or at > _STALLED_BYTES + size):
                    fail("gzip is cut off" if end == len(content) else "gzip of next to nothing")
                    return
        except IsalError as error:  # type: ignore[misc]  # the stub declares the class as an instance
            fail(f"broken gzip: {error}")
            return
    fail(f"more than {_MAX_MEMBERS} gzip members")
