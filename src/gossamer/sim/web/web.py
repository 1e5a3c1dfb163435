"""Which hosts the synthetic web has, and how each of them behaves.

A `WebPlan` is a few numbers; a `Site` is computed from them when its name is first
looked up, so a web of a million hosts starts at once. Invariants:
- `pages` is exactly the number of HTML pages that answer 200, are allowed by robots.txt
  and can be reached from the home pages of all hosts (by links, redirects and sitemaps).
  Hosts that are out of order are additional and have none of them.
- Hosts have a *rank*: rank 0 has the most pages; the unavailable ones come last. From any
  one available host all others can be reached in about log_fanout(hosts) steps when
  `cross_links` > 0, since rank r links to ranks fanout*r + 0..fanout-1 (a de Bruijn graph).
- Every `x.test` is its own registrable domain, with its own address in 127.0.0.0/8.
Cost: about 10 µs per new site, none for the plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from gossamer.sim.web.spread import before, is_chosen, mix, owner_of, permute, share, unpermute

# Pages that an unavailable host pretends to have; they are not counted.
_PAGES_OF_A_BROKEN_HOST = 3
_LABELS = ("www", "blog", "shop", "news", "docs", "help", "dev", "forum")
_NAME = re.compile(r"(?:([a-z0-9]+)\.)?site-(\d{5,9})\.[a-z.]+")


class Health(StrEnum):
    WELL = "well"
    CLOSED = "closed"  # accepts every request and closes the connection
    ERRING = "erring"  # 500 to everything
    ROBOTS_DOWN = "robots_down"  # 503 to robots.txt, though its pages would answer


class RobotsKind(StrEnum):
    OPEN = "open"  # exists, and allows everything
    RULES = "rules"  # forbids /private/ except /private/open/, and /search
    MISSING = "missing"  # 404


class SitemapKind(StrEnum):
    """How a host lists its pages."""

    NONE = "none"
    PLAIN = "plain"  # /sitemap.xml
    INDEX = "index"  # /sitemap-index.xml, which names /sitemap-pages.xml.gz


class Site(Struct, frozen=True, eq=False):
    """A host of the synthetic web. Compared by identity, so that it is a cheap cache key."""

    name: str
    domain: str
    address: str
    rank: int
    seed: int
    pages: int
    health: Health
    robots: RobotsKind
    sitemap: SitemapKind
    crawl_delay_s: float  # 0 when robots.txt names none
    answer_delay_s: float
    strict_pace_s: float  # a request sooner than this after the last one is answered 429; 0 = never
    is_compressed: bool
    is_chunked: bool

    @property
    def is_available(self) -> bool:
        """Whether its pages may and can be fetched."""
        return self.health is Health.WELL

    def is_disallowed(self, path: str) -> bool:
        """Whether RFC 9309 forbids a crawler this path (robots.txt itself is always allowed)."""
        if path == "/robots.txt":
            return False
        # RFC 9309 2.3.1.4: a robots.txt that cannot be reached forbids everything.
        if self.health is not Health.WELL:
            return True
        if self.robots is not RobotsKind.RULES:
            return False
        return path.startswith("/search") or (path.startswith("/private/") and not path.startswith("/private/open/"))


class WebPlan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers that define a synthetic web. Fractions are exact shares of the hosts, or probabilities per page."""

    seed: int = 1
    domains: int = 100
    hosts: int = 0  # 0: one per domain; more: the rest are www., blog. … of few domains
    pages: int = 1000
    page_tail: float = 0.6  # 1: equally many pages on every host; towards 0: a few hosts have most
    host_tail: float = 0.5
    suffixes: tuple[str, ...] = ("test",)
    domains_per_address: int = 1
    dns_ttl_s: int = 300

    links: int = 30  # per page, on average
    cross_links: float = 0.15  # of the links, to other domains
    fanout: int = 3
    untidy_links: float = 0.15  # absolute, relative, with a fragment, with utm_ parameters …
    page_bytes: int = 10_000

    robots_rules: float = 0.4  # of the hosts, from here …
    robots_missing: float = 0.1
    crawl_delays: float = 0.0
    crawl_delay_s: float = 0.2
    sitemaps: float = 0.2
    slow: float = 0.0
    slow_s: float = 0.3
    strict: float = 0.0
    strict_pace_s: float = 0.1
    compressed: float = 0.2
    chunked: float = 0.1
    closed: float = 0.0
    erring: float = 0.0
    robots_down: float = 0.0  # … to here

    redirects: float = 0.04  # of the pages: found only by a redirect
    duplicates: float = 0.03
    near_duplicates: float = 0.02
    changing: float = 0.0  # their text changes when `SyntheticWeb.epoch` is raised
    sitemap_only: float = 0.05  # on hosts with a sitemap
    broken: float = 0.04  # pages with a link that ends in 404 or 410
    documents: float = 0.02  # pages with a link to a PDF
    styled: bool = False  # pages need a stylesheet, a script and pictures

    def __post_init__(self) -> None:
        if self.domains < 1 or 0 < self.hosts < self.domains:
            raise ValueError(f"plan of the web: domains={self.domains}, hosts={self.hosts}; hosts must be >= domains")
        if self.available_hosts < 1 or self.pages < self.available_hosts:
            raise ValueError(f"plan of the web: pages={self.pages}; must be >= hosts that work={self.available_hosts}")

    # -- hosts ---------------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        return self.hosts or self.domains

    @property
    def available_hosts(self) -> int:
        """Host names with pages that may and can be fetched: the ranks below this."""
        return self.host_count - sum(count for _, count in self._unavailable())

    def _unavailable(self) -> tuple[tuple[Health, int], ...]:
        shares = ((Health.CLOSED, self.closed), (Health.ERRING, self.erring), (Health.ROBOTS_DOWN, self.robots_down))
        return tuple((health, round(fraction * self.host_count)) for health, fraction in shares)

    def domain_name(self, domain: int) -> str:
        return f"site-{domain:05d}.{self.suffixes[domain % len(self.suffixes)]}"

    def address(self, domain: int) -> str:
        """The address of a domain: 127.(1..254).(1..254).(1..254), distinct for the first 16 million."""
        place = domain // self.domains_per_address
        return f"127.{1 + place // 64516 % 254}.{1 + place // 254 % 254}.{1 + place % 254}"

    def host_name(self, index: int) -> str:
        """The name of the host with this index: first the bare domains, then the extra hosts."""
        domain, slot = self._place_of(index)
        return self.domain_name(domain) if slot == 0 else f"{_label(slot)}.{self.domain_name(domain)}"

    def host_name_at(self, rank: int) -> str:
        return self.host_name(unpermute(rank, self.host_count, self.seed, "rank"))

    def sibling_name(self, site: Site) -> str:
        """The next host of the same domain, in a ring; the site's own name if it is alone."""
        index = self.index_of(site.name)
        domain, slot = self._place_of(index if index is not None else 0)
        _, count = self._extras(domain)
        slot = (slot + 1) % (count + 1)
        return self.domain_name(domain) if slot == 0 else f"{_label(slot)}.{self.domain_name(domain)}"

    def _extras(self, domain: int) -> tuple[int, int]:
        """The first extra host of a domain, and how many it has."""
        total = self.host_count - self.domains
        rank = permute(domain, self.domains, self.seed, "extras")
        first = self.domains + before(total, self.domains, self.host_tail, rank)
        return first, share(total, self.domains, self.host_tail, rank)

    def _place_of(self, index: int) -> tuple[int, int]:
        if index < self.domains:
            return index, 0
        total = self.host_count - self.domains
        rank = owner_of(index - self.domains, total, self.domains, self.host_tail)
        domain = unpermute(rank, self.domains, self.seed, "extras")
        return domain, index - self._extras(domain)[0] + 1

    def index_of(self, name: str) -> int | None:
        """The index of a host by its name in lower case; None if this web has no such host."""
        match = _NAME.fullmatch(name)
        if match is None or (domain := int(match[2])) >= self.domains:
            return None
        index = domain
        if match[1] is not None:
            slot = _slot(match[1])
            first, count = self._extras(domain)
            if not 1 <= slot <= count:
                return None
            index = first + slot - 1
        return index if self.host_name(index) == name else None

    def pages_at(self, rank: int) -> int:
        available = self.available_hosts
        if rank >= available:
            return _PAGES_OF_A_BROKEN_HOST
        return 1 + share(self.pages - available, available, self.page_tail, rank)

    def site(self, name: str) -> Site | None:
        """The site of a host by its name in lower case; None if this web has no such host."""
        index = self.index_of(name)
        if index is None:
            return None
        domain, _ = self._place_of(index)
        rank = permute(index, self.host_count, self.seed, "rank")
        robots = self._robots(rank)
        has_robots = robots is not RobotsKind.MISSING
        return Site(
            name=name,
            domain=self.domain_name(domain),
            address=self.address(domain),
            rank=rank,
            seed=mix(self.seed, name),
            pages=self.pages_at(rank),
            health=self._health(rank),
            robots=robots,
            sitemap=self._sitemap(rank) if has_robots else SitemapKind.NONE,
            crawl_delay_s=self.crawl_delay_s if has_robots and self._is(rank, "delay", self.crawl_delays) else 0.0,
            answer_delay_s=self.slow_s if self._is(rank, "slow", self.slow) else 0.0,
            strict_pace_s=self.strict_pace_s if self._is(rank, "strict", self.strict) else 0.0,
            is_compressed=self._is(rank, "compressed", self.compressed),
            is_chunked=self._is(rank, "chunked", self.chunked),
        )

    def _is(self, rank: int, trait: str, fraction: float) -> bool:
        available = self.available_hosts
        return rank < available and is_chosen(rank, available, fraction, self.seed, trait)

    def _health(self, rank: int) -> Health:
        last = self.available_hosts
        if rank < last:
            return Health.WELL
        for health, count in self._unavailable():
            last += count
            if rank < last:
                return health
        raise AssertionError(f"rank {rank} of {self.host_count}")

    def _robots(self, rank: int) -> RobotsKind:
        if self._is(rank, "robots", self.robots_missing):
            return RobotsKind.MISSING
        # The same draw, cut at two points, so that both shares are exact.
        return (
            RobotsKind.RULES if self._is(rank, "robots", self.robots_missing + self.robots_rules) else RobotsKind.OPEN
        )

    def _sitemap(self, rank: int) -> SitemapKind:
        if not self._is(rank, "sitemap", self.sitemaps):
            return SitemapKind.NONE
        return SitemapKind.INDEX if self._is(rank, "sitemap", self.sitemaps / 2) else SitemapKind.PLAIN

    # -- URLs ----------------------------------------------------------------------------

    def seeds(self, port: int, count: int | None = None) -> list[str]:
        """Home pages of the first `count` hosts, bare domains first; of all hosts if None."""
        last = self.host_count if count is None else min(count, self.host_count)
        return [f"http://{self.host_name(index)}:{port}/" for index in range(last)]


def _label(slot: int) -> str:
    return _LABELS[slot - 1] if slot <= len(_LABELS) else f"h{slot}"


def _slot(label: str) -> int:
    if label in _LABELS:
        return _LABELS.index(label) + 1
    return int(label[1:]) if label[:1] == "h" and label[1:].isdecimal() and len(label) < 9 else 0


_PLAIN = WebPlan(
    domains=20,
    pages=500,
    untidy_links=0.0,
    robots_rules=0.0,
    robots_missing=0.0,
    sitemaps=0.0,
    compressed=0.0,
    chunked=0.0,
    redirects=0.0,
    duplicates=0.0,
    near_duplicates=0.0,
    broken=0.0,
    documents=0.0,
)

PRESETS: Mapping[str, WebPlan] = MappingProxyType(
    {
        # For `make crawl`: done in seconds, with some of everything that does not make a crawler wait.
        "small": WebPlan(domains=12, hosts=15, pages=400, page_tail=0.8, slow=0.07, slow_s=0.15, crawl_delays=0.07),
        # The politeness test: the largest host has about 90 pages, so that it takes 2 minutes at 1 s per request.
        "polite50": WebPlan(domains=50, pages=3000, page_tail=0.9, crawl_delays=0.1, slow=0.04, slow_s=0.1),
        # The first pass for breadth: 12 links of a page lead to other domains.
        "broad": WebPlan(domains=12_000, pages=36_000, page_tail=0.8, cross_links=0.4, fanout=8),
        # Nothing fails, nothing redirects, every robots.txt allows everything: for comparison with other crawlers.
        "plain": _PLAIN,
        # Pages need stylesheets, scripts and pictures, one of them of another host.
        "styled": WebPlan(domains=4, pages=40, page_tail=0.9, styled=True),
        # Every kind of trouble at once.
        "rough": WebPlan(
            domains=40,
            hosts=60,
            pages=1500,
            slow=0.05,
            strict=0.05,
            crawl_delays=0.1,
            closed=0.05,
            erring=0.05,
            robots_down=0.05,
            domains_per_address=2,
        ),
    }
)


def preset(name: str, **changes: object) -> WebPlan:
    """A named plan, with some of its numbers changed: preset("plain", pages=2000)."""
    if name not in PRESETS:
        raise ValueError(f"plan of the web: no preset {name!r}; there are {', '.join(PRESETS)}")
    plan: WebPlan = replace(PRESETS[name], **changes)
    return plan
