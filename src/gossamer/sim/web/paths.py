"""Which path a page has, and which resource a path leads to.

A page is a number k below `site.pages`; 0 is the home page and page p is the parent of
pages 8p+1 … 8p+8, so that every page can be reached from the home page. Invariants:
`route(site, path_of(page))` is that page; utm_ parameters never change the resource;
only leaves are hidden (listed in the sitemap, linked from nowhere) or copies (the same
body as the previous leaf), so that neither makes other pages unreachable.
Cost: 2 µs per new page, 0.1 µs per known one.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from gossamer.sim.web.assets import asset_number
from gossamer.sim.web.spread import mix
from gossamer.sim.web.web import RobotsKind, Site, SitemapKind, WebPlan

BRANCHES = 8
_WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor"),
    *("inlet", "juniper", "kelp", "lagoon", "meadow", "north", "orchard", "prairie"),
)
_STATUSES = (301, 302, 307, 308)
_PAGE = re.compile(
    r"/(?:articles/|p/|shop/item\?id=|th%C3%A8mes/|docs/[a-z]+/|private/open/)(\d{1,9})(?:[./&-].*)?", re.ASCII
)
_OTHER = re.compile(r"/(go|hop|away|missing|gone|private|img|files)/(\d{1,9})(?:\.png|\.pdf)?", re.ASCII)
_TRACKING = re.compile(r"([?&])utm_[a-z]+=[^&]*(&|$)")


class PathKind(StrEnum):
    PAGE = "page"
    GO = "go"  # redirect to the page with that number, or to HOP
    HOP = "hop"  # redirect to the page with that number
    AWAY = "away"  # redirect to another host
    MISSING = "missing"  # 404
    GONE = "gone"  # 410
    PRIVATE = "private"  # forbidden by robots.txt, answers 200 if it is requested nevertheless
    IMAGE = "img"
    ASSET = "assets"  # what pages of a styled web need
    DOCUMENT = "files"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    SITEMAP_INDEX = "sitemap_index"
    SITEMAP_GZIP = "sitemap_gzip"


class SitePath(Struct, frozen=True, gc=False):
    kind: PathKind
    number: int = 0


class PageCard(Struct, frozen=True, gc=False):
    """What is known about a page without rendering it."""

    path: str
    href: str  # how others link to it: its path, or /go/k if it can only be reached by a redirect
    chance: int  # 64 bits of its own
    content: int  # the page whose body it has: itself, or the previous leaf
    text: int  # the page whose paragraphs it has: as `content`, or a near duplicate's source
    is_hidden: bool
    is_leaf: bool


_NOT_FOUND = SitePath(PathKind.MISSING)
_FIXED = {
    "/": SitePath(PathKind.PAGE),
    "/robots.txt": SitePath(PathKind.ROBOTS),
    "/search": SitePath(PathKind.PRIVATE),
}
_SITEMAPS = {
    SitemapKind.NONE: {},
    SitemapKind.PLAIN: {"/sitemap.xml": SitePath(PathKind.SITEMAP)},
    SitemapKind.INDEX: {
        "/sitemap-index.xml": SitePath(PathKind.SITEMAP_INDEX),
        "/sitemap-pages.xml.gz": SitePath(PathKind.SITEMAP_GZIP),
    },
}


def path_of(site: Site, number: int, chance: int) -> str:
    """The path (with its query) of a page."""
    if number == 0:
        return "/"
    style = chance & 15
    one = _WORDS[chance >> 4 & 15]
    two = _WORDS[chance >> 8 & 15]
    if style < 6:
        return f"/articles/{number}/{one}-{two}-{_WORDS[chance >> 12 & 15]}"
    if style < 11:
        return f"/p/{number}.html"
    if style < 13:
        return f"/docs/{one}/{number}/"
    if style == 13:
        return f"/shop/item?id={number}&view=full"
    # RFC 9309 2.2.2: the longest rule wins, so /private/open/ is allowed if /private/ is not.
    if style == 14 and site.robots is RobotsKind.RULES:
        return f"/private/open/{number}.html"
    return f"/th%C3%A8mes/{number}-{one}"


def _is_leaf(site: Site, number: int) -> bool:
    return number > 0 and BRANCHES * number + 1 >= site.pages


def _is_copy(plan: WebPlan, site: Site, number: int, chance: int, fraction: float) -> bool:
    """Whether a leaf repeats the previous leaf; the original is never itself a copy."""
    if not _is_leaf(site, number - 1) or number % 2:
        return False
    return (chance >> 40 & 0xFFFF) < 2 * fraction * 0x10000


@lru_cache(maxsize=1 << 16)
def card_of(plan_key: PlanKey, site: Site, number: int) -> PageCard:
    plan = plan_key.plan
    chance = mix(site.seed, f"page {number}")
    path = path_of(site, number, chance)
    is_leaf = _is_leaf(site, number)
    content = text = number
    if _is_copy(plan, site, number, chance, plan.duplicates):
        content = text = number - 1
    elif _is_copy(plan, site, number, chance, plan.duplicates + plan.near_duplicates):
        text = number - 1
    is_moved = number > 0 and (chance >> 16 & 0xFFF) < plan.redirects * 0x1000
    is_hidden = is_leaf and site.sitemap is not SitemapKind.NONE and (chance >> 28 & 0xFFF) < plan.sitemap_only * 0x1000
    href = f"/go/{number}" if is_moved else path
    return PageCard(path, href, chance, content, text, is_hidden, is_leaf)


class PlanKey:
    """A plan compared by identity: hashing its forty fields for each link would cost more than the link."""

    __slots__ = ("plan",)

    def __init__(self, plan: WebPlan) -> None:
        self.plan = plan


def without_tracking(target: str) -> str:
    """The path and query without utm_ parameters."""
    if "utm_" not in target:
        return target
    while (shorter := _TRACKING.sub(lambda m: m[1] if m[2] else "", target, count=1)) != target:
        target = shorter
    return target


def route(key: PlanKey, site: Site, target: str) -> SitePath:
    """The resource of a request target (path and query) of the site."""
    target = without_tracking(target)
    fixed = _FIXED.get(target.partition("?")[0] if target.startswith("/search?") else target)
    if fixed is not None:
        return fixed
    match = _PAGE.fullmatch(target)
    if match is not None:
        number = int(match[1])
        is_known = 0 < number < site.pages and card_of(key, site, number).path == target
        return SitePath(PathKind.PAGE, number) if is_known else _NOT_FOUND
    match = _OTHER.fullmatch(target)
    if match is None and key.plan.styled and (asset := asset_number(target)) is not None:
        return SitePath(PathKind.ASSET, asset)
    if match is None:
        return _SITEMAPS[site.sitemap].get(target, _NOT_FOUND)
    resource = SitePath(PathKind(match[1]), int(match[2]))
    return resource if resource.number < site.pages else _NOT_FOUND


def redirect_status(chance: int) -> int:
    """301, 302, 307 or 308."""
    return _STATUSES[chance >> 60 & 3]


def is_chained(chance: int) -> bool:
    """Whether the redirect to a page takes two hops."""
    return chance >> 57 & 3 == 0
