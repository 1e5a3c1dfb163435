"""Which encoding are these bytes in, and what is their text?

Only WHATWG labels count: a label is looked up in turbohtml's table, never in Python's
codecs, so `zip`, `rot13`, `idna` or `utf-7` are unknown here. Order: byte order mark,
header, the document's own declaration, the content. The decoded text contains no lone
surrogates and can always be written as UTF-8.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module

from gossamer.expressions import expression

_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
# A declaration without a comment or odd markup before it: what the prescan of the HTML standard would find.
_PLAIN_META = expression(
    rb"""(?:\s*<(?:!doctype|\?xml|html|head|link|title>[^<]{0,200}</title|meta(?![^<>]*charset))[^<>]*>){0,9}"""
    rb"""\s*<meta (?:charset=["']?|http-equiv="content-type" content="text/html; ?charset=)"""
    rb"""(utf-8|iso-8859-1|windows-1252)["']?\s*/?>"""
)
_COMMON = {"utf-8": "utf-8", "utf8": "utf-8", "iso-8859-1": "windows-1252", "windows-1252": "windows-1252"}
# The last plain declaration with everything before it, and what it declares: pages of a site begin the same way.
_latest_start = [(b'<!doctype html><html><head><meta charset="utf-8">', "utf-8")]
META_BYTES = 1024  # where a page may declare its charset, by the HTML standard
_DETECT_BYTES = 65536  # a charset can be detected long before that
_LATE_META_BYTES = 131_072  # where a late declaration is looked for: by a parser that takes 0.2 µs per byte


@lru_cache(maxsize=1024)
def canonical_charset(label: str) -> str:
    """Return the WHATWG name, in lower case, of a label; empty if the label is unknown."""
    if "\0" in label:  # the table is searched as a C string, which would end here
        return ""
    known = _COMMON.get(label.strip().lower())
    if known is not None:
        return known
    import turbohtml  # 20 ms, which most crawls of UTF-8 pages do without

    try:
        return (turbohtml.parse(b"", encoding=label).encoding or "").lower()
    except (LookupError, ValueError):
        return ""


def declared_charset(content: bytes | bytearray, header_label: str) -> str:
    """Return the charset that overrides the document's own declaration: by its shape, or by the header; else empty.

    A byte order mark is left to the parser, where it wins over everything.
    """
    # Markup in UTF-16 without a mark, whatever the header claims: "<" next to a NUL is no ASCII-compatible text.
    if content[1:2] == b"\0" == content[3:4] and content[:1] == b"<":
        return "utf-16le"
    if content[:1] == b"\0" == content[2:3] and content[1:2] == b"<":
        return "utf-16be"
    return canonical_charset(header_label) if header_label else ""


def decode_text(content: bytes | bytearray, label: str) -> tuple[str, str]:
    """Decode bytes that are not HTML; return the text and the charset's WHATWG name."""
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return decode_legacy(content[len(mark) :], name), name
    name = declared_charset(content, label)
    if name:
        return decode_legacy(content, name), name
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        name = _detected(content)
        return decode_legacy(content, name), name


def decode_in_pieces(content: bytes, label: str, max_bytes: int) -> Iterator[str]:
    """Yield the text that `decode_text` returns, from up to so many bytes at a time.

    A single character outside of Latin 1 doubles the memory of a text, and one that few know quadruples it. A piece
    ends where no character of its charset can go on; if there is no such place, in the middle of one. So only text that
    is broken there, or has neither markup nor line ends, can differ.
    """
    at = 0
    name = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "")
    if name:
        at = 3 if name == "utf-8" else 2
    else:
        name = declared_charset(content, label) or ("utf-8" if _is_utf8(content) else _detected(content))
    while at < len(content):
        end = at + max_bytes
        if end < len(content):
            end = _end_of_piece(content, at, end, name)
        yield decode_legacy(content[at:end], name)
        if name == "replacement":
            return
        at = end


def _end_of_piece(content: bytes, at: int, end: int, name: str) -> int:
    """Return where a piece that may end at an offset can end: no charset but these has the bytes of `<` in others."""
    if name.startswith("utf-16"):
        end -= (end - at) & 1
        high_byte = content[end - 1] if name == "utf-16le" else content[end - 2]
        return end - 2 * (0xD8 <= high_byte < 0xDC)  # the first half of a pair
    if name == "iso-2022-jp":
        found = content.rfind(b"\x1b", at + 1, end)
    else:
        found = max(content.rfind(mark, at + 1, end) for mark in (b"<", b"\n", b"\r"))
    if found <= at and name == "utf-8":
        found = end - next((back for back in range(4) if content[end - back] & 0xC0 != 0x80), 0)
    return found if found > at else end


def _is_utf8(content: bytes) -> bool:
    if content.isascii():
        return True
    decode = getincrementaldecoder("utf-8")().decode
    try:
        for at in range(0, len(content), _DETECT_BYTES):
            decode(content[at : at + _DETECT_BYTES])
        decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _detected(content: bytes | bytearray) -> str:
    from turbohtml.detect import detect

    return (detect(bytes(content[:_DETECT_BYTES])).encoding or "windows-1252").lower()


def html_charset(content: bytes, header_label: str) -> str:
    """Return the charset of a page: by its mark, its header, its meta elements, or its content."""
    start, known = _latest_start[0]
    if not header_label and content.startswith(start):  # 0.2 µs
        return known
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return name
    return (
        declared_charset(content, header_label) or _meta_charset(content[:META_BYTES]) or _charset_by_content(content)
    )


def _meta_charset(head: bytes) -> str:
    """Return the charset that the first bytes of a page declare; empty if there is none, or the default one."""
    lower = head.lower()
    if b"charset" not in lower:
        return ""
    plain = _PLAIN_META.match(lower)
    if plain is not None:  # 2 µs instead of 12
        charset = canonical_charset(plain[1].decode())
        # What follows cannot change it: neither mark nor form of UTF-16 (already excluded), nor another meta.
        _latest_start[0] = head[: plain.end()], charset
        return charset
    import turbohtml

    name = (turbohtml.parse(head, detect_encoding=False).encoding or "").lower()
    return "" if name == "windows-1252" else name  # also returned if nothing is declared


def _charset_by_content(content: bytes) -> str:
    """Return the charset by a late declaration, as browsers accept it, or by the shape of the bytes."""
    if b"charset" not in content.lower():
        if content.isascii():
            return "windows-1252"
        try:
            content.decode()
            return "utf-8"
        except UnicodeDecodeError:
            pass
    import turbohtml

    return (turbohtml.parse(_start(content), detect_encoding=True).encoding or "windows-1252").lower()


def _start(content: bytes) -> bytes:
    """Return the start of a page, without a part of a character in UTF-8 at its end."""
    end = _LATE_META_BYTES
    while end < len(content) and content[end] & 0xC0 == 0x80 and end > _LATE_META_BYTES - 4:
        end -= 1
    return content[:end]


def html_as_utf8(content: bytes, charset: str) -> bytes:
    """Return the bytes of a page in UTF-8, without a mark. Broken sequences may be left in what claims to be UTF-8."""
    if charset == "utf-8":
        return content[3:] if content.startswith(_BYTE_ORDER_MARKS[0][0]) else content
    if charset == "windows-1252" and content.isascii():
        return content
    return decode_text(content, charset)[0].encode()


def decode_html(content: bytes, header_label: str) -> tuple[str, str]:
    """Decode a page for a parser that cannot do it itself; its meta elements are considered."""
    return decode_text(content, html_charset(content, header_label))


def decode_legacy(content: bytes | bytearray, name: str) -> str:
    """Decode by a name from the WHATWG table, in lower case."""
    if name == "utf-8":
        return content.decode("utf-8", "replace")
    if name == "replacement":
        return "\N{REPLACEMENT CHARACTER}" if content else ""
    # turbohtml.detect registers its decoders as codecs with this prefix; no other codec has it.
    import_module("turbohtml.detect")
    return content.decode(f"whatwg-{name}", "replace")
