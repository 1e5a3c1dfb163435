"""What a site answers to a request: pages, redirects, robots.txt, sitemaps, pictures.

Pure: the same plan, port, host and target result in the same answer in every process, so it
is used by the socket server and by crawls in virtual time. Invariants: a copy's body is
byte for byte that of its original; the ETag changes if and only if the body does.
Costs: 40-60 µs per page of 10 KB, 3 µs for small answers. Caches are bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from gzip import compress
from random import Random
from urllib.parse import urlsplit

from msgspec import Struct

from gossamer.sim.web.assets import asset, head_of_pages, pictures_of, requisites_of
from gossamer.sim.web.links import body_hrefs, nav_hrefs, nofollow_hrefs
from gossamer.sim.web.paths import PageCard, PathKind, PlanKey, SitePath, card_of, is_chained, redirect_status, route
from gossamer.sim.web.spread import mix, step
from gossamer.sim.web.web import Health, RobotsKind, Site, SitemapKind, WebPlan

# The words on the pages: titles, paragraphs, anchor texts.
#
# A pool of paragraphs in three invented languages is made once from the seed (30 ms); a page is a selection of them,
# and the gaps of each are filled with a word that the page chooses. Without gaps the pages of a large host would be
# combinations of a closed set, which a crawler rightly takes for a trap. Invariants: the same seed results in the same
# bytes; everything is valid UTF-8 without characters that HTML would need escaped.

LANGUAGES = ("en", "de", "fr")
PARAGRAPHS = 256  # per language; a power of two, so that a choice is a mask
ANCHORS = 256
PARAGRAPH_BYTES = 900  # about
WORDS = 1024  # that fill gaps; a power of two
GAP = b"_"
_GAP_BYTES = 7  # that filling one adds, on average
_GAP_EVERY = 8  # words: more than half of all runs of five words then contain one
_SYLLABLES = {
    "en": "ta ren sol mi ver dan cor li pre ston wa ble ing ter na quo th sha ker low",
    "de": "ge schen ver ung lich bau mei stra ße zü ger ön heit ab kun land er fähr tis zer",
    "fr": "é cou lé tion mar vi eux re pas sé ment là bou que ri ère çon fil ou ne",
}


class TextPool(Struct, frozen=True):
    """Ready-made pieces of text in one language."""

    language: str
    paragraphs: tuple[bytes, ...]  # with gaps
    words: tuple[bytes, ...]  # for the gaps of a paragraph
    anchors: tuple[str, ...]  # two or three words
    headings: tuple[str, ...]


def _vocabulary(draw: Random, syllables: list[str]) -> list[str]:
    return ["".join(draw.choices(syllables, k=1 + n % 4)) for n in range(1200)]


def _paragraph(draw: Random, words: list[str], n: int) -> bytes:
    sentences = []
    size = 0
    wanted = PARAGRAPH_BYTES * (50 + n * 100 // PARAGRAPHS) // 100
    while size < wanted:
        chosen = draw.choices(words, k=draw.randint(6, 22))
        chosen[_GAP_EVERY // 2 :: _GAP_EVERY] = [GAP.decode()] * len(chosen[_GAP_EVERY // 2 :: _GAP_EVERY])
        sentence = " ".join(chosen).capitalize() + "."
        sentences.append(sentence)
        size += len(sentence.encode()) + 1 + _GAP_BYTES * sentence.count(GAP.decode())
    return f"<p>{' '.join(sentences)}</p>\n".encode()


@lru_cache(maxsize=8)
def pools(seed: int) -> tuple[TextPool, ...]:
    """One pool per language, in the order of LANGUAGES."""
    made = []
    for language in LANGUAGES:
        # One generator per language and web, not per page: 10 ms each, once.
        draw = Random(f"{seed} {language}")
        words = _vocabulary(draw, _SYLLABLES[language].split())
        made.append(
            TextPool(
                language=language,
                paragraphs=tuple(_paragraph(draw, words, n) for n in range(PARAGRAPHS)),
                words=tuple(word.encode() for word in words[:WORDS]),
                anchors=tuple(" ".join(draw.choices(words, k=2 + n % 2)) for n in range(ANCHORS)),
                headings=tuple(" ".join(draw.choices(words, k=3 + n % 4)).capitalize() for n in range(ANCHORS)),
            )
        )
    return tuple(made)


_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_XML = "application/xml"
# The size of a page without its paragraphs: head, navigation and about 30 links.
_FRAME_BYTES = 3_300
_FIRST_DATE = 1_600_000_000
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


class WebAnswer(Struct, frozen=True, gc=False):
    """An HTTP answer; empty strings are headers that are omitted."""

    status: int
    content_type: str = _TEXT
    body: bytes = b""
    location: str = ""
    etag: str = ""
    last_modified: str = ""
    encoding: str = ""
    retry_after_s: int | str = 0  # a text is sent as it is


_NO_SUCH_HOST = WebAnswer(404, body=b"no such host in this web\n")
_NOT_FOUND = WebAnswer(404, _HTML, b"<!DOCTYPE html><title>404</title><h1>Not found</h1>\n")
_GONE = WebAnswer(410, _HTML, b"<!DOCTYPE html><title>410</title><h1>Gone</h1>\n")
_SERVER_ERROR = WebAnswer(500, body=b"out of order\n")
_ROBOTS_DOWN = WebAnswer(503, body=b"try later\n")
TOO_SOON = WebAnswer(429, body=b"slow down\n", retry_after_s=1)


class SyntheticWeb:
    """A plan on a port: looks sites up and answers for them. Has bounded caches and the epoch."""

    def __init__(self, plan: WebPlan, port: int) -> None:
        self.plan = plan
        self.port = port
        self.epoch = 0  # raising it changes the changing pages
        self.key = PlanKey(plan)
        self._pools = pools(plan.seed)
        self._sites: dict[str, Site | None] = {}

    def site(self, name: str) -> Site | None:
        """The site of a host name in lower case, without port; None if there is none."""
        try:
            return self._sites[name]
        except KeyError:
            if len(self._sites) > 100_000:
                self._sites.clear()
            return self._sites.setdefault(name, self.plan.site(name))

    def route(self, site: Site, target: str) -> SitePath:
        return route(self.key, site, target)

    def card(self, site: Site, number: int) -> PageCard:
        """What is known about a page without rendering it."""
        return card_of(self.key, site, number)

    def hrefs(self, site: Site, number: int) -> list[str]:
        """All links of a page as in its HTML; without nofollow ones."""
        return [*nav_hrefs(self.key, site), *body_hrefs(self.key, site, self.card(site, number).content, self.port)]

    def url(self, site: Site, number: int) -> str:
        return f"http://{site.name}:{self.port}{self.card(site, number).path}"

    def requisites(self, urls: Iterable[str]) -> frozenset[str]:
        """All that some pages need to be shown, as URLs."""
        places = (
            (parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else ""))
            for parts in map(urlsplit, urls)
        )
        sites = ((self.site(host), target) for host, target in places)
        known = ((site, self.route(site, target).number) for site, target in sites if site is not None)
        pages = ((site.name, self.card(site, number).content) for site, number in known)
        return requisites_of(self.plan, pages, self.port)

    def answer(
        self,
        host: str,
        target: str,
        *,
        if_none_match: str = "",
        if_modified_since: str = "",
        accepts_gzip: bool = False,
    ) -> WebAnswer:
        """What the host (lower case, without port) answers. A CLOSED host is handled by the server."""
        site = self.site(host)
        if site is None:
            return _NO_SUCH_HOST
        if site.health is Health.ERRING:
            return _SERVER_ERROR
        resource = self.route(site, target)
        if resource.kind is PathKind.PAGE:
            return self._page(site, resource.number, if_none_match, if_modified_since, accepts_gzip)
        return self._other(site, resource)

    def version(self, card: PageCard) -> int:
        """How often a page's text has changed; 0 for those that never do."""
        return self.epoch if (card.chance >> 4 & 0xFFF) < self.plan.changing * 0x1000 else 0

    def redirect_target(self, site: Site, resource: SitePath) -> str:
        """Where a redirect leads: a path, or a URL on another host; "" if the resource is no redirect."""
        card = self.card(site, resource.number)
        if resource.kind is PathKind.GO and card.href != card.path:
            return f"/hop/{resource.number}" if is_chained(card.chance) else card.path
        if resource.kind is PathKind.HOP and card.href != card.path:
            return card.path
        if resource.kind is PathKind.AWAY:
            rank = mix(card.chance, "away") % self.plan.host_count
            return f"http://{self.plan.host_name_at(rank)}:{self.port}/"
        return ""

    def sitemap_pages(self, site: Site) -> range:
        """The numbers of the pages that the site's sitemap lists."""
        return range(0 if site.sitemap is SitemapKind.NONE else min(site.pages, 50_000))

    def _other(self, site: Site, resource: SitePath) -> WebAnswer:
        kind = resource.kind
        if kind in (PathKind.GO, PathKind.HOP, PathKind.AWAY):
            location = self.redirect_target(site, resource)
            status = redirect_status(self.card(site, resource.number).chance)
            return WebAnswer(status, body=b"moved\n", location=location) if location else _NOT_FOUND
        if kind is PathKind.ROBOTS:
            return self._robots(site)
        if kind is PathKind.PRIVATE:
            return WebAnswer(200, _HTML, b"<!DOCTYPE html><title>Private</title><p>Who let you in?\n")
        if kind is PathKind.IMAGE:
            return WebAnswer(200, "image/png", _PNG)
        if kind is PathKind.ASSET:
            content_type, text = asset(resource.number)
            return WebAnswer(200, content_type, text.encode() or _PNG)
        if kind is PathKind.DOCUMENT:
            return WebAnswer(200, "application/pdf", _pdf(f"http://{site.name}:{self.port}/"))
        if kind is PathKind.GONE:
            return _GONE
        if kind in (PathKind.SITEMAP, PathKind.SITEMAP_INDEX, PathKind.SITEMAP_GZIP):
            return self._sitemap(site, kind)
        return _NOT_FOUND

    def _robots(self, site: Site) -> WebAnswer:
        if site.health is Health.ROBOTS_DOWN:
            return _ROBOTS_DOWN
        if site.robots is RobotsKind.MISSING:
            return _NOT_FOUND
        lines = ["# " + site.name, "User-agent: badbot", "Disallow: /", "", "User-agent: *"]
        if site.robots is RobotsKind.RULES:
            lines += ["Disallow: /private/", "Allow: /private/open/", "Disallow: /search"]
        else:
            lines.append("Disallow:")
        if site.crawl_delay_s:
            lines.append(f"Crawl-delay: {site.crawl_delay_s:g}")
        if site.sitemap is not SitemapKind.NONE:
            name = "sitemap.xml" if site.sitemap is SitemapKind.PLAIN else "sitemap-index.xml"
            lines += ["", f"Sitemap: http://{site.name}:{self.port}/{name}"]
        return WebAnswer(200, body="\n".join([*lines, ""]).encode())

    def _sitemap(self, site: Site, kind: PathKind) -> WebAnswer:
        origin = f"http://{site.name}:{self.port}"
        head = '<?xml version="1.0" encoding="UTF-8"?>\n'
        space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        if kind is PathKind.SITEMAP_INDEX:
            location = f"<sitemap><loc>{origin}/sitemap-pages.xml.gz</loc></sitemap>"
            return WebAnswer(200, _XML, f"{head}<sitemapindex {space}>{location}</sitemapindex>\n".encode())
        paths = (self.card(site, number).path.replace("&", "&amp;") for number in self.sitemap_pages(site))
        entries = "\n".join(f"<url><loc>{origin}{path}</loc><lastmod>2024-05-01</lastmod></url>" for path in paths)
        body = f"{head}<urlset {space}>\n{entries}\n</urlset>\n".encode()
        if kind is PathKind.SITEMAP_GZIP:
            return WebAnswer(200, "application/gzip", compress(body, 1, mtime=0))
        return WebAnswer(200, _XML, body)

    def _page(
        self, site: Site, number: int, if_none_match: str, if_modified_since: str, accepts_gzip: bool
    ) -> WebAnswer:
        content = self.card(site, number).content
        card = self.card(site, content)
        version = self.version(card)
        etag = f'"{card.chance:016x}-{version}"'
        changed = _http_date((card.chance >> 24 & 0x3FF) + version)
        # RFC 9110 13.1.3: If-Modified-Since counts only if there is no If-None-Match.
        if etag in if_none_match if if_none_match else if_modified_since == changed:
            return WebAnswer(304, _HTML, etag=etag, last_modified=changed)
        body = self._render(site, content, version)
        if accepts_gzip and site.is_compressed:
            packer = zlib.compressobj(1, zlib.DEFLATED, 31)
            body = packer.compress(body) + packer.flush()
            return WebAnswer(200, _HTML, body, etag=etag, last_modified=changed, encoding="gzip")
        return WebAnswer(200, _HTML, body, etag=etag, last_modified=changed)

    def _render(self, site: Site, number: int, version: int) -> bytes:
        pool = self._pools[site.seed % len(self._pools)]
        card = self.card(site, number)
        chance = card.chance
        title = f"{pool.headings[chance >> 5 & 255]} {number}"
        frame = _frame(self.key, site, pool)
        head = (
            f"{title}{frame.after_title}{pool.headings[chance >> 13 & 255]}{frame.after_description}<h1>{title}</h1>\n"
        )
        links = self._links(site, number, pool, chance)
        text_chance = self.card(site, card.text).chance
        if version:
            text_chance = mix(text_chance, f"version {version}")
        text = _paragraphs(pool, text_chance, self.plan.page_bytes)
        pictures = pictures_of(self.plan, number, self.port) if self.plan.styled else ""
        return b"".join((frame.start, head.encode(), *text, links.encode(), pictures.encode(), frame.end))

    def _links(self, site: Site, number: int, pool: TextPool, chance: int) -> str:
        """The list of links. `&` is the only character of our hrefs that must be escaped in HTML."""
        anchors = pool.anchors
        place = chance & 0x7F
        parts = [
            f'<li><a href="{href}">{anchors[place + n & 255]}</a></li>\n'
            for n, href in enumerate(body_hrefs(self.key, site, number, self.port))
        ]
        parts += [f'<li><a rel="nofollow" href="{href}">staff</a></li>\n' for href in nofollow_hrefs(site, number)]
        return "<ul>\n" + "".join(parts).replace("&", "&amp;") + "</ul>\n"


class _Frame(Struct, frozen=True):
    """The parts that all pages of a site share."""

    start: bytes
    after_title: str
    after_description: str
    end: bytes


@lru_cache(maxsize=1 << 13)
def _frame(key: PlanKey, site: Site, pool: TextPool) -> _Frame:
    nav = "".join(
        f'<a href="{href.replace("&", "&amp;")}">{pool.anchors[n]}</a> ' for n, href in enumerate(nav_hrefs(key, site))
    )
    needed = head_of_pages() if key.plan.styled else ""
    return _Frame(
        start=f'<!DOCTYPE html>\n<html lang="{pool.language}">\n<head>\n<meta charset="utf-8">\n<title>'.encode(),
        after_title='</title>\n<meta name="description" content="',
        after_description=f'">\n{needed}</head>\n<body id="top">\n<nav>{nav}</nav>\n<main>\n',
        end=f'<img src="/img/0.png" alt="">\n</main>\n<footer>{site.name}</footer>\n</body>\n</html>\n'.encode(),
    )


def _paragraphs(pool: TextPool, chance: int, page_bytes: int) -> list[bytes]:
    """Between half and one and a half times the wanted size, a heading before every third paragraph."""
    wanted = max(0, page_bytes - _FRAME_BYTES)
    mean_count = wanted / PARAGRAPH_BYTES
    count = max(1, round(mean_count * (0.5 + (chance >> 48) / 0x10000)))
    state = mix(chance, "text")
    parts = []
    for n in range(count):
        state = step(state)
        if n % 3 == 2:
            parts.append(f"<h2>{pool.headings[state >> 40 & 255]}</h2>\n".encode())
        parts.append(pool.paragraphs[state >> 50 & 255].replace(GAP, pool.words[state >> 20 & 1023]))
    return parts


@lru_cache(maxsize=1024)
def _http_date(day: int) -> str:
    return formatdate(_FIRST_DATE + day * 86_400, usegmt=True)


def _pdf(link: str) -> bytes:
    """A minimal PDF with one link annotation, readable from its raw bytes."""
    return (
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Annots[4 0 R]>>endobj\n"
        f"4 0 obj<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI({link})>>>>endobj\n"
        "trailer<</Root 1 0 R>>\n%%EOF\n"
    ).encode()
