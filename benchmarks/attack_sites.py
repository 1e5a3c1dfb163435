"""The attacks: sites whose single answers are made to hold, bloat or fill a crawler.

Each stays below the limits of one answer on the wire, and took far more than its share of time, memory or disk in some
version of this program, or is the plainest form of an attack on a limit. An attack is a script per host name
(`tests.hostile.serving`); a host `name7.test` is served by the script of `name`. Bodies are made before the crawl.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from string import ascii_letters, digits

from msgspec import Struct
from tests.hostile.serving import ROBOTS, Call, Catalogue, Script, with_robots

MAX_PAGE_BYTES = 4_900_000  # less than the default of --max-bytes
_MULTIPLIER, _WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1  # of the hash of hrefs before it had a key
_URL_BYTES = (ascii_letters + digits + "-_~!$'()*+,;=@").encode()


class Attack(Struct, frozen=True):
    """One way to harm a crawler."""

    name: str
    what: str
    script: Callable[[], Script]  # makes the bodies, then returns what serves them
    hosts: int = 0  # 0: one, called by the name itself
    options: tuple[str, ...] = ()

    def seeds(self, port: int) -> list[str]:
        """Return where the attack begins."""
        names = [f"{self.name}{number}" for number in range(self.hosts)] or [self.name]
        return [f"http://{name}.test:{port}/" for name in names]


class Attacks(Catalogue):
    """Serves attacks: a name with a number is served by the script of the name."""

    def script_for(self, host: str) -> Script | None:
        """Return the script of a host."""
        return super().script_for(host) or self.scripts.get(host.removesuffix(".test").split(".")[-1].rstrip(digits))


def pages(answers: Mapping[str, bytes], other: bytes = b"") -> Script:
    """Return a script that sends whole answers by path; the rest of the paths get `other`, or a short page."""
    rest = other or html("<p>a page of the attack")

    async def script(call: Call) -> None:
        await call.send(answers.get(call.path, rest if call.path != ROBOTS else MISSING))

    return with_robots(script)


def answer(body: bytes, kind: str, *headers: str) -> bytes:
    """Return a whole answer."""
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def html(body: str, *headers: str) -> bytes:
    """Return a page."""
    return answer(body.encode(), "text/html; charset=utf-8", *headers)


def links_to(paths: Iterator[str]) -> str:
    """Return anchors."""
    return "".join(f'<a href="{path}">x</a>' for path in paths)


MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


# -- robots.txt -------------------------------------------------------------------------------------


def many_robots_lines() -> Script:
    """Serve 104,800 rules that all are tried on every path."""
    text = b"User-agent: *\n" + b"Allow:*ab\n" * 104_800
    robots = answer(gzip.compress(text), "text/plain", "Content-Encoding: gzip")
    front = html(links_to(f"/{'a' * 1500}{number}" for number in range(400)))
    return pages({ROBOTS: robots, "/": front})


def long_robots_line() -> Script:
    """Serve one rule of a megabyte that denies 300 links: whoever records the rule with each of them writes 300 MB."""
    robots = answer(b"User-agent: *\nDisallow: /x" + b"*" * 1_000_000 + b"\n", "text/plain")
    return pages({ROBOTS: robots, "/": html(links_to(f"/x{number}" for number in range(300)))})


def robots_in_latin() -> Script:
    """Serve rules of bytes that are no UTF-8, each of which has to be escaped."""
    rules = b"".join(b"Disallow: /%x%s\n" % (number, b"\xe9" * 230) for number in range(2_000))
    front = html(links_to(f"/x{number}" for number in range(300)))
    return pages({ROBOTS: answer(b"User-agent: *\n" + rules, "text/plain"), "/": front})


def big_rule_sets() -> Script:
    """Serve as many different rules as fit in a robots.txt, other ones at each of many hosts."""

    rules = b"User-agent: *\n" + b"".join(b"Disallow: /HOST-NAME/%x*z$\n" % number for number in range(17_000))

    async def script(call: Call) -> None:
        if call.path == ROBOTS:
            await call.send(answer(rules.replace(b"HOST-NAME", call.host.encode()), "text/plain"))
        else:
            await call.send(html(links_to(f"/{number}" for number in range(20))))

    return with_robots(script)


# -- headers and framing ----------------------------------------------------------------------------


def quadratic_link_header() -> Script:
    """Serve pages with a Link header of 16 KB in which a search begins anew at every character."""
    header = "Link: " + "<" * 8000 + '<a>;"' * 1600
    other = html("<p>x", header)
    return pages({"/": html(links_to(f"/{number}" for number in range(100)), header)}, other)


def many_link_entries() -> Script:
    """Serve 1,000 Link entries and 360,000 hrefs on one page."""
    header = "Link: " + ", ".join(f'</l{number}>; rel="next"' for number in range(1000))
    anchors = "".join(f"<a href={number:x}>" for number in range(360_000))
    return pages({"/": html(anchors[:MAX_PAGE_BYTES], header[:60_000])})


def chunk_extensions() -> Script:
    """Serve chunks of one byte with extensions of 8 KB, without end."""

    async def script(call: Call) -> None:
        chunk = b"1;" + b"x" * 8000 + b"\r\na\r\n"
        await call.flood(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n", chunk * 8)

    return script


def endless_headers() -> Script:
    """Serve headers without end."""

    async def script(call: Call) -> None:
        await call.flood(b"HTTP/1.1 200 OK\r\n", b"X-Header: " + b"x" * 50 + b"\r\n")

    return script


def endless_trailers() -> Script:
    """Serve trailers without end."""

    async def script(call: Call) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n<p>x\r\n0\r\n"
        await call.flood(head, b"X-Trailer: " + b"x" * 50 + b"\r\n")

    return script


# -- pages ------------------------------------------------------------------------------------------


def base_of_escapes() -> Script:
    """Serve a base of escapes, against which 20,000 hrefs are resolved."""
    anchors = "".join(f"<a href=p{number}>" for number in range(20_000))
    return pages({"/": html(f'<base href="/{"%41" * 1300}/">{anchors}')})


def colliding_hrefs() -> Script:
    """Serve 30,000 hrefs that a hash without a key puts into one place."""
    return pages({"/": html("".join(f'<a href="{href}">' for href in colliding(30_000)))})


@cache
def colliding(count: int) -> tuple[str, ...]:
    """Return hrefs of 15 bytes whose multiplicative hash agrees in the bits that choose their place.

    Eight bytes are mixed into the hash; the low 48 bits of what it is then, and of the last six bytes, decide the
    place. So the last six are those that cancel the difference, as far as they are bytes of a URL.
    """
    allowed, source = frozenset(_URL_BYTES), random.Random(1)
    found: list[str] = []
    wanted = _mixed(b"/example") ^ int.from_bytes(b"hrefs1", "big")
    while len(found) < count:
        first = b"/" + bytes(source.choices(_URL_BYTES, k=7))
        last = ((_mixed(first) ^ wanted) & ((1 << 48) - 1)).to_bytes(6, "big")
        if allowed.issuperset(last):
            found += [(first + bytes([free]) + last).decode() for free in _URL_BYTES]
    return tuple(found[:count])


def _mixed(first: bytes) -> int:
    """Return the hash of an href of 15 bytes after its first eight."""
    mixed = ((15 ^ int.from_bytes(first, "little")) * _MULTIPLIER) & _WORD
    return mixed ^ mixed >> 32


def endless_domains() -> Script:
    """Serve pages that each link to 900 domains that nobody has seen."""

    async def script(call: Call) -> None:
        number = zlib.crc32(call.host.encode()) % 1_000_000
        hosts = (f"http://farm{number * 900 + each}.test:{call.port}/" for each in range(900))
        await call.send(html(links_to(hosts)) if call.path != ROBOTS else MISSING)

    return with_robots(script)


# -- codings ----------------------------------------------------------------------------------------


def gzip_members() -> Script:
    """Serve 999 gzip members, each of which grows a thousandfold."""
    body = gzip.compress(bytes(1_000_000), 9) * 999
    return pages({"/": answer(body, "text/html", "Content-Encoding: gzip")})


def zstd_empty_blocks() -> Script:
    """Serve a sitemap of 16 million empty zstd blocks: 48 MB that decode to nothing."""
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3) * 16_000_000 + b"\x01\x00\x00"
    return sitemap(frame, "zstd")


# -- sitemaps and documents -------------------------------------------------------------------------


def packed_sitemap(text: str) -> Script:
    """Return a script that serves a sitemap with gzip."""
    return sitemap(gzip.compress(text.encode(), 6), "gzip")


def sitemap(body: bytes, coding: str) -> Script:
    """Return a script that serves a sitemap."""
    served = answer(body, "application/xml", f"Content-Encoding: {coding}")

    async def script(call: Call) -> None:
        if call.path == ROBOTS:
            await call.send(answer(f"Sitemap: {call.url('/sitemap.xml')}\n".encode(), "text/plain"))
        else:
            await call.send(served if call.path == "/sitemap.xml" else html("<p>x"))

    return with_robots(script)


def sitemap_of_hosts() -> Script:
    """Serve a sitemap of 25,000 subdomains."""
    urls = "".join(f"<url><loc>http://h{number}.subhosts.test/</loc></url>" for number in range(25_000))
    return packed_sitemap(f"<urlset>{urls}</urlset>")


def sitemap_attributes() -> Script:
    """Serve a sitemap whose one element has four million attributes."""
    return packed_sitemap("<urlset><url " + " ".join(f'a{number:x}="1"' for number in range(4_000_000)) + "/></urlset>")


def sitemap_names() -> Script:
    """Serve a sitemap of four million elements, each with a name of its own."""
    return packed_sitemap("<urlset>" + "".join(f"<e{number:x}/>" for number in range(4_000_000)) + "</urlset>")


def sitemap_of_attributes() -> Script:
    """Serve a sitemap of 500,000 elements with 12 attributes each."""
    return packed_sitemap("<urlset>" + ("<a " + " ".join(f'a{number:x}=""' for number in range(12)) + "/>") * 500_000)


def sitemap_of_rare_characters() -> Script:
    """Serve a sitemap of 48 MB in GB 18030, with a character that makes each of the text take four bytes."""
    text = "<urlset><url><loc>\U0001f600" + "<a/>x" * 9_600_000
    return sitemap(gzip.compress(text.encode("gb18030"), 6), "gzip")


def sitemap_of_noise() -> Script:
    """Serve a sitemap of 48 MB that cannot be compressed."""
    return sitemap(random.Random(1).randbytes(48_000_000), "identity")


def sitemap_entities() -> Script:
    """Serve a sitemap that declares a million entities, and uses those that grow."""
    grown = (f'<!ENTITY e{number:x} "&e{number - 1:x};&e{number - 1:x};">' for number in range(1, 1000))
    declared = '<!ENTITY e0 "http://entities.test/">' + "".join(grown)
    more = "".join(f'<!ENTITY m{number:x} "x">' for number in range(1_000_000))
    return packed_sitemap(f"<!DOCTYPE urlset [{declared}{more}]><urlset><url><loc>&e3e7;</loc></url></urlset>")


def pdf_streams() -> Script:
    """Serve PDF files of object streams that grow a thousandfold, with strings that do not end."""
    stream = zlib.compress(b"/URI (" + b"(" * 4_000_000, 9)
    part = b"1 0 obj\n<</Type /ObjStm /Filter /FlateDecode>>\nstream\n" + stream + b"\nendstream\nendobj\n"
    body = b"%PDF-1.7\n" + part * min(4096, MAX_PAGE_BYTES // len(part))
    front = html(links_to(f"/{number}.pdf" for number in range(5)))
    return pages({"/": front}, answer(body, "application/pdf"))


ATTACKS = (
    Attack("lines", "robots.txt of 104,800 rules, gzipped, and 400 links", many_robots_lines),
    Attack("line", "robots.txt with a rule of 1 MB, and 300 links that it denies", long_robots_line),
    Attack("latin", "robots.txt of 460,000 bytes to escape, and 300 links", robots_in_latin),
    Attack("rules", "150 hosts with large sets of rules, `--memory 512M`", big_rule_sets, 150, ("--memory", "512M")),
    Attack("linkheader", "100 pages with a `Link` header of 16 KB", quadratic_link_header),
    Attack("entries", "1,000 `Link` entries and 360,000 hrefs", many_link_entries),
    Attack("base", "a base of 1,300 escapes and 20,000 hrefs", base_of_escapes),
    Attack("colliding", "30,000 colliding hrefs", colliding_hrefs),
    Attack("farm", "endless domains, 900 new ones per page", endless_domains, 0, ("--scope", "any")),
    Attack("members", "999 gzip members", gzip_members),
    Attack("zstd", "16 million empty zstd blocks", zstd_empty_blocks),
    Attack("subhosts", "sitemap of 25,000 subdomains", sitemap_of_hosts),
    Attack("attributes", "sitemap with 4 million attributes", sitemap_attributes),
    Attack("names", "sitemap with 4 million element names", sitemap_names),
    Attack("elements", "sitemap of 500,000 elements with 12 attributes", sitemap_of_attributes),
    Attack("rare", "sitemap of 48 MB with a rare character", sitemap_of_rare_characters),
    Attack("noise", "sitemap of 48 MB that cannot be compressed", sitemap_of_noise),
    Attack("entities", "sitemap with a million entities", sitemap_entities),
    Attack("pdf", "PDF object streams", pdf_streams),
    Attack("chunks", "chunk extensions without end", chunk_extensions),
    Attack("headers", "headers without end", endless_headers),
    Attack("trailers", "trailers without end", endless_trailers),
)
