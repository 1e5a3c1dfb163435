"""The type of content, whatever its header claims.

WHATWG mimesniff in spirit: the declared type decides unless the first kilobyte shows that
it cannot be true. Binary content is never called HTML, and nothing is made HTML that was
declared as something else. Reads at most 1 KiB; a page that starts with a tag costs 0.5 µs.
"""

from __future__ import annotations

import re

from gossamer.core.content.pdf_type import BINARY, PDF

HTML = "text/html"
XHTML = "application/xhtml+xml"
TEXT = "text/plain"
XML = "text/xml"

_SNIFFED_BYTES = 1024
_UNKNOWN = frozenset({"", "*/*", "unknown/unknown", "application/unknown"})
_HTML_TYPES = frozenset({HTML, XHTML})
_XML_TYPES = frozenset({XML, "application/xml"})

_STARTS_WITH_TAG = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<[!?/A-Za-z]")
# mimesniff 7.1: the tags that make unlabelled content HTML.
_HTML_START = (
    rb"(?i)(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B"
    rb"|BODY|BR|P)[ >\t\n\x0c\r]|(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<!--"
)
_XML_START = rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<\?xml"
_FIRST_ELEMENT = rb"<(?:[\w.\-]+:)?([A-Za-z_][\w.\-]*)"
_UTF16_MARKUP = rb"\xff\xfe|\xfe\xff|<\0[^\0]\0|\0<\0[^\0]"
# mimesniff 3: bytes that do not occur in text.
_BINARY_BYTES = bytes([*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])

_SIGNATURES = (
    (b"%PDF-", PDF),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"OggS\0", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x7fELF", BINARY),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"%!PS-Adobe-", "application/postscript"),
)


def sniff_type(declared: str, content: bytes) -> str:
    """Return the type of `content`, given the essence of its declared type (empty if there is none)."""
    if declared in _HTML_TYPES:
        if _STARTS_WITH_TAG.match(content):
            return declared
        return _binary_type(content[:_SNIFFED_BYTES]) or declared
    if declared in _UNKNOWN:
        return _unlabelled_type(content[:_SNIFFED_BYTES])
    if declared in _XML_TYPES:
        root = re.search(_FIRST_ELEMENT, content[:_SNIFFED_BYTES])
        return XHTML if root is not None and root[1].lower() == b"html" else declared
    if declared == TEXT:
        # Old servers declare text/plain for anything that they do not know (mimesniff 7.2).
        return _binary_type(content[:_SNIFFED_BYTES]) or declared
    return declared


def _unlabelled_type(head: bytes) -> str:
    """Return the type of content without a declared one."""
    if re.match(_HTML_START, head):
        return HTML
    if re.match(_XML_START, head):
        return sniff_type(XML, head)
    return _binary_type(head) or TEXT


def _binary_type(head: bytes) -> str:
    """Return the type of content that is not text, or the empty string."""
    if re.match(_UTF16_MARKUP, head):
        return ""
    for signature, kind in _SIGNATURES:
        if head.startswith(signature) and (len(signature) > 2 or _binary_share(head) > 0):
            return kind
    if head[8:12] == b"WEBP" and head[:4] == b"RIFF":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return "video/mp4"
    # A tenth of random bytes are such; far fewer in a page with stray NULs.
    return BINARY if _binary_share(head) > 0.03 else ""


def _binary_share(head: bytes) -> float:
    """Return the share of bytes that do not occur in text."""
    return 1 - len(head.translate(None, _BINARY_BYTES)) / len(head) if head else 0.0
