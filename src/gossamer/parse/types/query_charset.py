"""The queries of links on pages in a legacy charset.

On a page in GBK a link with `?q=中` means the bytes of GBK, not those of UTF-8, and the server behind it often knows no
other (URL Standard 4.4, "query state"; Encoding Standard 14, encoders for legacy charsets). Characters that the
charset does not have are sent as `&#NNN;`, escaped. Only the query is concerned: paths are UTF-8 everywhere.

The tables are the WHATWG's: they are made from turbohtml's decoders, once per charset (9 ms), and only if a link needs
one. Everything else costs 1 µs per page that is not in UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from gossamer.parse.html.hrefs import MAX_HREFS
from gossamer.parse.types.charset import decode_legacy

# Encoding Standard 4.3, "output encoding": what cannot be sent back is UTF-8.
_SENT_AS_UTF8 = frozenset({"", "utf-8", "utf-16le", "utf-16be", "replacement"})
_ESCAPED_ASCII = frozenset(b"\"#<>'")  # URL Standard 1.3: the special-query set, besides controls and blank
_BYTES_ESCAPED = tuple(
    f"%{byte:02X}" if byte <= 0x20 or byte > 0x7E or byte in _ESCAPED_ASCII else chr(byte) for byte in range(256)
)
_MAX_ESCAPES = 1 << 16  # remembered per charset
_UNDEFINED = "\N{REPLACEMENT CHARACTER}"

# Encoding Standard: what the encoders do besides inverting their index.
_JAPANESE_EXTRA = {0xA5: b"\\", 0x203E: b"~"}
_MINUS = 0x2212
_WIDE_MINUS = 0xFF0D
_HALF_WIDTH = range(0xFF61, 0xFFA0)  # katakana
_LAST_IN_BIG5 = frozenset((0x2550, 0x255E, 0x2561, 0x256A, 0x5341, 0x5345))
_OUTSIDE_GB18030 = {0xE5E5: b"", 0xE7C7: b"\x81\x35\xf4\x37"}
_FULL_WIDTH = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコ"
    "サシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)


def encode_queries(hrefs: list[str], charset: str) -> list[str]:
    """Return the hrefs of a page with their queries in its charset (a WHATWG name, in lower case)."""
    if charset in _SENT_AS_UTF8 or "".join(hrefs).isascii():
        return hrefs
    # Those behind are counted, but not examined.
    return [*(encode_query(href, charset) for href in hrefs[:MAX_HREFS]), *hrefs[MAX_HREFS:]]


def encode_query(href: str, charset: str) -> str:
    """Return a href with its query in a charset. It must not have a fragment."""
    path, mark, query = href.partition("?")
    if query.isascii() or charset in _SENT_AS_UTF8:
        return href
    if charset == "iso-2022-jp":
        return path + mark + _in_iso_2022_jp(query)
    return path + mark + query.translate(_escapes(charset))


class _Escapes(dict[int, str]):
    """From code points to their escaped bytes."""

    def __init__(self, charset: str) -> None:
        super().__init__()
        self._charset = charset
        self._encoded = _encoder(charset)

    def __missing__(self, point: int) -> str:
        if point < 0x80:
            raise LookupError  # it is left as it is
        encoded = self._encoded.get(point, b"")
        if not encoded and self._charset in ("gbk", "gb18030"):
            encoded = _beyond_index(point)
        is_unknown = not encoded or (len(encoded) == 4 and self._charset == "gbk")
        escaped = _unknown(point) if is_unknown else _escaped(encoded)
        if len(self) < _MAX_ESCAPES:
            self[point] = escaped
        return escaped


def _beyond_index(point: int) -> bytes:
    """Return what gb18030 has besides its index: four bytes by a formula, and 18 private characters of old."""
    if point in _OUTSIDE_GB18030:
        return _OUTSIDE_GB18030[point]
    return chr(point).encode("gb18030")  # Python has the old index, which is the same beyond the new one


@lru_cache(maxsize=64)
def _escapes(charset: str) -> _Escapes:
    return _Escapes(charset)


def _escaped(encoded: bytes) -> str:
    return "".join([_BYTES_ESCAPED[byte] for byte in encoded])


def _unknown(point: int) -> str:
    return f"%26%23{point}%3B"


def _encoder(charset: str) -> dict[int, bytes]:
    """Return the bytes of every code point beyond ASCII that a charset has."""
    table: dict[int, bytes] = {}
    sequences = list(_sequences(charset))
    # In one call, as lines: no decoder consumes a line feed, also not after half a character.
    lines = decode_legacy(b"\n".join(sequences), charset).split("\n")
    for encoded, decoded in zip(sequences, lines, strict=True):
        if len(decoded) != 1 or decoded == _UNDEFINED or decoded.isascii():
            continue
        point = ord(decoded)
        if point not in table or (charset == "big5" and point in _LAST_IN_BIG5):
            table[point] = encoded
    if charset in ("shift_jis", "euc-jp"):
        table |= _JAPANESE_EXTRA
        table[_MINUS] = table[_WIDE_MINUS]
    elif charset == "gbk":
        table[0x20AC] = b"\x80"
    return table


def _sequences(charset: str) -> Iterator[bytes]:
    """Yield the sequences that an encoder may emit, in the order of the charset's index."""
    high = range(0xA1, 0xFF)
    match charset:
        case "gbk" | "gb18030":
            yield from _pairs(range(0x81, 0xFF), (*range(0x40, 0x7F), *range(0x80, 0xFF)))
        case "big5":  # without the Hong Kong supplement
            yield from _pairs(high, (*range(0x40, 0x7F), *high))
        case "euc-kr":
            yield from _pairs(range(0x81, 0xFF), range(0x41, 0xFF))
        case "euc-jp":
            yield from _pairs((0x8E,), range(0xA1, 0xE0))
            yield from _pairs(high, high)
        case "shift_jis":  # without NEC's second copy of IBM's extensions and the private characters
            yield from (bytes([byte]) for byte in (0x80, *range(0xA1, 0xE0)))
            leads = (*range(0x81, 0xA0), *range(0xE0, 0xED), *range(0xFA, 0xFD))
            yield from _pairs(leads, (*range(0x40, 0x7F), *range(0x80, 0xFD)))
        case _:
            yield from (bytes([byte]) for byte in range(0x80, 0x100))


def _pairs(leads: Iterable[int], trails: Iterable[int]) -> Iterator[bytes]:
    last = tuple(trails)
    return (bytes((lead, trail)) for lead in leads for trail in last)


def _in_iso_2022_jp(query: str) -> str:
    """Encode with the switches between character sets that this charset has (Encoding Standard 12.2.2)."""
    to_ascii = b"\x1b(B"
    to_roman = b"\x1b(J"
    to_jis = b"\x1b$B"
    table = _jis_x_0208()
    out: list[str] = []
    state = to_ascii
    for char in query:
        point = ord(char)
        if point in _HALF_WIDTH:
            point = ord(_FULL_WIDTH[point - _HALF_WIDTH.start])
        encoded = table.get(point, b"")
        wanted = to_ascii
        if point < 0x80:
            is_roman = state == to_roman and char not in "\\~"
            wanted = to_roman if is_roman else to_ascii
            encoded = char.encode()
        elif point in _JAPANESE_EXTRA:
            wanted = to_roman
            encoded = _JAPANESE_EXTRA[point]
        elif encoded:
            wanted = to_jis
        elif state == to_roman:
            wanted = to_roman
        if wanted != state:
            out.append(_escaped(wanted))
            state = wanted
        out.append(_escaped(encoded) if encoded else _unknown(point))
    return "".join(out) + (_escaped(to_ascii) if state != to_ascii else "")


@lru_cache(maxsize=1)
def _jis_x_0208() -> dict[int, bytes]:
    return {
        point: bytes(byte & 0x7F for byte in encoded)
        for point, encoded in _encoder("euc-jp").items()
        if len(encoded) == 2 and encoded[0] != 0x8E
    }
