"""Which pages a perfect crawler would find.

A breadth-first walk over the links of the pages, resolved as a browser resolves them, within
the scope, the robots rules and the sites that work. It uses nothing of our crawler's code, so
the two can be compared.
Cost: about 70 µs per page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urljoin, urlsplit

from msgspec import Struct, field

from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.paths import PathKind, SitePath
from gossamer.sim.web.web import Site

Scope = Literal["host", "domain", "any"]


class Truth(Struct, frozen=True):
    """What can be found, as plain URLs: no fragment, no utm_ parameters, host in lower case."""

    pages: frozenset[str]  # HTML pages that answer 200
    documents: frozenset[str]  # PDFs
    redirects: int
    broken: int  # links that end in 404 or 410


class _Walk(Struct):
    web: SyntheticWeb
    scope: Scope
    places: frozenset[str]
    sitemaps: bool
    max_depth: int
    queue: deque[tuple[Site, SitePath, int]] = field(default_factory=deque)
    seen: set[tuple[str, PathKind, int]] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    met: set[tuple[str, str]] = field(default_factory=set)
    found: dict[PathKind, set[str]] = field(default_factory=dict)

    def offer(self, host: str, target: str, depth: int, *, is_redirect: bool = False) -> None:
        """Queue a URL if it is new, in scope and on a site that works."""
        # Depth never decreases in a breadth-first walk, so a link found before adds nothing.
        if depth > self.max_depth or (host, target) in self.met:
            return
        self.met.add((host, target))
        site = self.web.site(host)
        if site is None or not site.is_available or not self.is_in_scope(site):
            return
        resource = self.web.route(site, target)
        self._greet(site)
        kind = PathKind.PRIVATE if site.is_disallowed(target) else resource.kind
        identity = (host, kind, resource.number)
        if identity in self.seen:
            return
        self.seen.add(identity)
        self.found.setdefault(kind, set()).add(f"http://{host}:{self.web.port}{target}")
        if kind is not PathKind.PRIVATE:
            (self.queue.appendleft if is_redirect else self.queue.append)((site, resource, depth))

    def is_in_scope(self, site: Site) -> bool:
        """Whether the crawl may go to this site."""
        return self.scope == "any" or (site.domain if self.scope == "domain" else site.name) in self.places

    def _greet(self, site: Site) -> None:
        """Queue the sitemap of a site that is found for the first time; what it lists has depth 0."""
        if not self.sitemaps or site.name in self.hosts:
            return
        self.hosts.add(site.name)
        for number in self.web.sitemap_pages(site):
            self.offer(site.name, self.web.card(site, number).path, 0)

    def visit(self, site: Site, resource: SitePath, depth: int) -> None:
        if resource.kind is PathKind.PAGE:
            path = self.web.card(site, resource.number).path
            for href in self.web.hrefs(site, resource.number):
                self._follow(site, path, href, depth + 1)
        elif location := self.web.redirect_target(site, resource):
            self._follow(site, "/", location, depth, is_redirect=True)

    def _follow(self, site: Site, path: str, href: str, depth: int, *, is_redirect: bool = False) -> None:
        place = resolve(site.name, self.web.port, path, href)
        if place is not None:
            self.offer(*place, depth, is_redirect=is_redirect)


def resolve(host: str, port: int, path: str, href: str) -> tuple[str, str] | None:
    """Host and request target that a link on a page leads to; None if it is not http on our port."""
    # Nine links of ten are plain: urljoin and urlsplit would take 12 µs for each.
    if "#" not in href and "/../" not in href:
        if href.startswith("/") and not href.startswith("//"):
            return host, href
        if href.startswith("http://"):
            authority, _, rest = href[7:].partition("/")
            name, _, number = authority.partition(":")
            return (name.lower(), "/" + rest) if number == str(port) else None
    parts = urlsplit(urljoin(f"http://{host}:{port}{path}", href))
    if parts.scheme != "http" or parts.hostname is None or parts.port != port:
        return None
    return parts.hostname, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def find_truth(
    web: SyntheticWeb,
    seeds: Iterable[str],
    scope: Scope = "domain",
    *,
    sitemaps: bool = True,
    max_depth: int | None = None,
) -> Truth:
    """All that can be found from the seeds. A redirect adds no depth; a sitemap's pages have depth 0."""
    starts = [place for seed in seeds if (place := resolve("", web.port, "/", seed)) is not None]
    sites = [site for host, _ in starts if (site := web.site(host)) is not None]
    places = frozenset(site.domain if scope == "domain" else site.name for site in sites)
    walk = _Walk(web, scope, places, sitemaps, 2**31 if max_depth is None else max_depth)
    for host, target in starts:
        walk.offer(host, target, 0)
    while walk.queue:
        walk.visit(*walk.queue.popleft())
    return _as_truth(web, walk)


def _as_truth(web: SyntheticWeb, walk: _Walk) -> Truth:
    pages = {_plain_url(web, host, number) for host, kind, number in walk.seen if kind is PathKind.PAGE}
    counts = {kind: len(urls) for kind, urls in walk.found.items()}
    return Truth(
        pages=frozenset(pages),
        documents=frozenset(walk.found.get(PathKind.DOCUMENT, ())),
        redirects=sum(counts.get(kind, 0) for kind in (PathKind.GO, PathKind.HOP, PathKind.AWAY)),
        broken=counts.get(PathKind.MISSING, 0) + counts.get(PathKind.GONE, 0),
    )


def _plain_url(web: SyntheticWeb, host: str, number: int) -> str:
    site = web.site(host)
    assert site is not None, host
    return web.url(site, number)
