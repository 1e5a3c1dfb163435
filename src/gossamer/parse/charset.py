"""Which encoding are these bytes in, and what do they say?

Only WHATWG labels count: a label is looked up in turbohtml's table, never in Python's
codecs, so `zip`, `rot13`, `idna` or `utf-7` name nothing here. Order: byte order mark,
header, the document's own declaration, the content. Text that comes out holds no lone
surrogates and can always be written as UTF-8.
"""

from __future__ import annotations

from functools import lru_cache

import turbohtml
from turbohtml.detect import detect

_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_DETECT_BYTES = 65536  # a charset shows itself long before that


@lru_cache(maxsize=1024)
def canonical_charset(label: str) -> str:
    """Return the WHATWG name, in lower case, of a label; empty where the label means nothing."""
    if "\0" in label:  # the table is searched as a C string, which would end here
        return ""
    try:
        return (turbohtml.parse(b"", encoding=label).encoding or "").lower()
    except (LookupError, ValueError):
        return ""


def declared_charset(content: bytes | bytearray, header_label: str) -> str:
    """Return the charset that is beyond the document's own say: by its shape, or by the header; else empty.

    A byte order mark is left to the parser, which lets it win over everything.
    """
    # Markup in UTF-16 without a mark, whatever the header claims: "<" beside a NUL is no ASCII-compatible text.
    if content[1:2] == b"\0" == content[3:4] and content[:1] == b"<":
        return "utf-16le"
    if content[:1] == b"\0" == content[2:3] and content[1:2] == b"<":
        return "utf-16be"
    return canonical_charset(header_label) if header_label else ""


def decode_text(content: bytes | bytearray, label: str) -> tuple[str, str]:
    """Decode bytes that are not HTML; return the text and the charset's WHATWG name."""
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _decode(content[len(mark) :], name), name
    name = declared_charset(content, label)
    if name:
        return _decode(content, name), name
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        name = (detect(bytes(content[:_DETECT_BYTES])).encoding or "windows-1252").lower()
        return _decode(content, name), name


def decode_html(content: bytes, header_label: str) -> tuple[str, str]:
    """Decode a page for a parser that cannot do it itself; its meta elements have their say."""
    label = declared_charset(content, header_label) or None
    name = (turbohtml.parse(content, encoding=label, detect_encoding=True).encoding or "windows-1252").lower()
    return decode_text(content, name)


def _decode(content: bytes | bytearray, name: str) -> str:
    """Decode by a name from the WHATWG table."""
    if name == "utf-8":
        return content.decode("utf-8", "replace")
    if name == "replacement":
        return "\N{REPLACEMENT CHARACTER}" if content else ""
    # turbohtml.detect registers its decoders as codecs of this prefix; no other codec bears it.
    return content.decode(f"whatwg-{name}", "replace")
