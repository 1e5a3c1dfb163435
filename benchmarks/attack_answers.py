"""Random hostile answers, each from a seed: robots.txt, pages, sitemaps, stylesheets, PDF files, in any content coding.

What makes a parser slow is seldom random bytes: it is a short piece that repeats, or a beginning that is never closed.
So a body is a few parts, each a piece of one to five fragments of its format, repeated up to the limit of the wire;
a header is made in the same way. The same seed makes the same answer.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import zstandard
from msgspec import Struct

from gossamer.model.records import FetchKind

MAX_BYTES = {
    FetchKind.PAGE: 5_000_000,
    FetchKind.ROBOTS: 1 << 20,
    FetchKind.SITEMAP: 50_000_000,
    FetchKind.REQUISITE: 5_000_000,
}
MAX_MADE_BYTES = 60_000_000  # decoded; what exceeds a limit must be cut by it
MAX_HEADER_BYTES = 64_000

ROBOTS = (
    *("User-agent: *\n", "User-agent: gossamer\n", "Disallow: ", "Allow:", "Sitemap: http://a.test/", "Crawl-delay: 9"),
    *("*", "$", "/", "a", "*a", "*ab", "%41", "%e9", "é", "\n", "\r", "\0", "#", " ", ":", "?", "Disallow: /*a*a*b$\n"),
)
MARKUP = (
    *("<a href=", '<a href="', "'", '"', ">", "<", "</a>", "<div>", "</div>", "<p>", "<b>", "<i>", "<table><tr><td>"),
    *(
        "<!--",
        "-->",
        "<![CDATA[",
        "<?",
        "</",
        "<svg>",
        "<math>",
        "<title>",
        "<script>",
        "<style>",
        "<template>",
        "<select>",
    ),
    *(
        "<textarea>",
        "<plaintext>",
        "<frameset>",
        "<base href=/a/%41>",
        "<meta name=robots content=",
        "<noscript>",
        "<form>",
    ),
    *(
        "&amp;",
        "&",
        "&#x41;",
        "&#",
        "&notin;",
        "x",
        "word ",
        "a b c ",
        " ",
        "\n",
        "\0",
        "\t",
        "é",
        "日本",
        "=",
        "a=1 ",
        "/",
    ),
    *(
        "../",
        "./",
        "%41",
        "%",
        "?q=1&",
        "#f",
        "http://b.test/",
        "//c.test/",
        "javascript:",
        ":",
        "<link rel=canonical href=/>",
    ),
    *(
        "</script",
        "<font>",
        "<nobr>",
        "<a>",
        "<option>",
        "<li>",
        "<dd>",
        "<ruby><rt>",
        "<object>",
        "<img src=x srcset=y 1x,",
    ),
)
XML = (
    *(
        "<urlset>",
        "<sitemapindex>",
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        "http://a.test/",
        "<lastmod>2020-01-01</lastmod>",
    ),
    *(
        "<a>",
        "</a>",
        "<b/>",
        "<x:y xmlns:x='u'>",
        " a='1'",
        "<c a='1' ",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?pi ",
        "?>",
    ),
    *(
        "<!DOCTYPE u [",
        "<!ENTITY e 'x'>",
        "<!ENTITY % p 'y'>",
        "&e;",
        "&amp;",
        "&#65;",
        "&",
        "]>",
        "<",
        ">",
        "x",
        "\n",
        "é",
    ),
    *(
        "<url><loc>http://a.test/1</loc></url>",
        "<sitemap><loc>http://a.test/s</loc></sitemap>",
        "xmlns='u' ",
        "%41",
        "../",
        "<d a='' b='' c='' e='' f='' g='' h='' i='' j='' k='' l='' m=''/>",
        "<d a='&lt;&lt;&lt;&lt;'/>",
        "\r\n",
    ),
)
CSS = (
    *(
        "@import ",
        "@import url(",
        "url(",
        "url('",
        "'",
        '"',
        ")",
        "(",
        "{",
        "}",
        ";",
        "/*",
        "*/",
        "\\",
        "\\41 ",
        "a",
        " ",
    ),
    *(
        "@media x{",
        "@font-face{src:",
        "image-set(",
        "\n",
        "é",
        "http://a.test/",
        "../",
        "%41",
        "background:",
        ":",
        ",",
        "-",
    ),
)
PDF = (
    *(
        "/URI (",
        "/URI <",
        "(",
        ")",
        "\\(",
        "\\",
        "<",
        ">",
        "68747470",
        "http://a.test/",
        "stream\n",
        "endstream\n",
        "obj\n",
    ),
    *(
        "/Type /ObjStm",
        "/FlateDecode",
        "<</Type /ObjStm /Filter /FlateDecode>>\nstream\n",
        "/Length 10",
        "\n",
        " ",
        "\0",
    ),
    *("https://b.test/x", "www.c.test", "[", "]", "/Filter [", "/ASCII85Decode", "~>", "endobj\n", "xref\n", "%%EOF\n"),
)
HEADER = (
    *("<", ">", "</a>", ";", ",", " ", "rel=", '"', "next", "canonical", '<a>; rel="next"', "=", "\\", "noindex", ":"),
    *("unavailable_after: ", "a", "é", "\t", "url=", "0;", "charset=", "text/html;", "%41", "../", "2020-01-01"),
)
FRAGMENTS = {FetchKind.ROBOTS: ROBOTS, FetchKind.SITEMAP: XML, FetchKind.REQUISITE: CSS}
KINDS = {FetchKind.PAGE: 5, FetchKind.ROBOTS: 2, FetchKind.SITEMAP: 3, FetchKind.REQUISITE: 1}  # and how often
CHARSETS = ("utf-8", "utf-8", "utf-8", "latin-1", "shift_jis", "utf-16-le", "gb18030")
HEADERS = (
    "link",
    "x-robots-tag",
    "refresh",
    "content-type",
    "content-language",
    "retry-after",
    "etag",
    "last-modified",
)
TYPES = (
    "text/html",
    "text/html; charset=gbk",
    "text/html; charset=shift_jis",
    "text/html; charset=iso-2022-jp",
    "text/html; charset=utf-16",
    "text/css",
    "text/xml",
    "application/xhtml+xml",
    "text/plain",
    "application/rss+xml",
    "image/svg+xml",
    "",
)


class Answer(Struct, frozen=True):
    """What a server sends."""

    seed: int
    kind: FetchKind
    headers: list[tuple[str, str]]
    body: bytes  # on the wire
    paths: list[str]  # that a robots.txt is asked about
    made_of: str  # for people

    @property
    def head(self) -> bytes:
        """The head of the answer, as on the wire."""
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"

    @property
    def codings(self) -> str:
        """The content codings."""
        return ",".join(value for name, value in self.headers if name == "content-encoding")


def answer_of(seed: int) -> Answer:
    """Return the answer of a seed."""
    source = random.Random(seed)
    kind = source.choices(list(KINDS), list(KINDS.values()))[0]
    is_pdf = kind is FetchKind.PAGE and source.random() < 0.2
    fragments = PDF if is_pdf else FRAGMENTS.get(kind, MARKUP)
    content, made_of = _body(source, fragments, MAX_BYTES[kind])
    if is_pdf:
        content = b"%PDF-1.7\n" + _packed_streams(source, content)
    coding = source.choice(("", "", *CODINGS))
    body = CODINGS[coding](content) if coding else content
    headers = [(name, _header(source)) for name in HEADERS if source.random() < 0.25]
    headers.append(("content-type", "application/pdf" if is_pdf else source.choice(TYPES)))
    if coding:
        headers.append(("content-encoding", coding.partition(":")[0]))
    paths = ["/" + _text(source, ROBOTS, 2000) for _ in range(20)]
    return Answer(seed, kind, headers, body[: MAX_BYTES[kind]], paths, f"{coding or 'no coding'}, {made_of}")


def _body(source: random.Random, fragments: tuple[str, ...], max_bytes: int) -> tuple[bytes, str]:
    """Return a body of a few repeated pieces, and what it is made of."""
    total = min(MAX_MADE_BYTES, int(max_bytes * 10 ** source.uniform(-3, 0.1)))
    count = source.choice((1, 1, 2, 3))
    charset = source.choice(CHARSETS)
    parts, made_of = [], []
    for _ in range(count):
        piece = "".join(source.choices(fragments, k=source.randint(1, 5)))
        is_numbered = source.random() < 0.3
        data = piece.encode(charset, "replace")
        times = max(1, total // count // (len(data) + 7 * is_numbered))
        if is_numbered:  # each a little different from the others: names, hrefs
            data = b"".join(b"%s%x" % (data, number) for number in range(min(times, 2_000_000)))
        else:
            data *= times
        parts.append(data)
        made_of.append(f"{piece!r}{' numbered' if is_numbered else ''} x {times:,}")
    head = "".join(source.choices(fragments, k=source.randint(0, 3))).encode()
    return head + b"".join(parts), f"{charset}: " + ", ".join(made_of)


def _packed_streams(source: random.Random, content: bytes) -> bytes:
    """Return the content as it is, or in object streams that are compressed."""
    if source.random() < 0.5:
        return content
    stream = zlib.compress(content, 6)
    part = b"1 0 obj\n<</Type /ObjStm /Filter /FlateDecode>>\nstream\n" + stream + b"\nendstream\nendobj\n"
    return part * max(1, source.randint(1, 4_900_000) // len(part))


def _text(source: random.Random, fragments: tuple[str, ...], max_chars: int) -> str:
    piece = "".join(source.choices(fragments, k=source.randint(1, 4)))
    return (piece * (1 + max_chars // len(piece)))[: source.randint(1, max_chars)]


def _header(source: random.Random) -> str:
    return _text(source, HEADER, int(MAX_HEADER_BYTES * 10 ** source.uniform(-3, 0)))


def _members(content: bytes) -> bytes:
    part = -(-len(content) // 990) or 1
    return b"".join(gzip.compress(content[at : at + part], 1) for at in range(0, len(content), part))


def _empty_blocks(content: bytes) -> bytes:
    """Return a zstd frame of as many empty blocks as bytes fit in the answer."""
    return b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3) * (len(content) // 3) + b"\x01\x00\x00"


def _brotli(content: bytes) -> bytes:
    packed: bytes = brotli.compress(content, quality=3)
    return packed


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: gzip.compress(content, 1),
    "gzip:members": _members,
    "deflate": lambda content: zlib.compress(content, 1),
    "br": _brotli,
    "zstd": lambda content: zstandard.compress(content, 1),
    "zstd:empty blocks": _empty_blocks,
    "gzip, gzip": lambda content: gzip.compress(gzip.compress(content, 1), 1),
}
