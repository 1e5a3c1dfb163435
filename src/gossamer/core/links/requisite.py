"""What a page needs to be shown (its *requisites*): which identity and which place in the queue do they have?

A requisite is a URL of its own in the ledger, whether the same URL is a page or not: its id is that of the page with
the bits of the key's hash inverted. So both can be known, queued and fetched independently of each other, every store
keeps them apart without knowing of it, and both belong to the same host, and shard.

Requisites come before all pages and sitemaps of their host: what was fetched is complete soon. Their priority also says
how many requisites a stylesheet may name itself, its *room*: what a page may need is divided among its stylesheets, so
that all of them together, however deep they import each other, name no more than the limit for one page.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gossamer.core.url.forms import link_to, links_from
from gossamer.model.records import HostRecord, Link, OrderKind, QueuedUrl, Source, UrlId

MAX_ROOM = 5_000  # also the most that is looked for in one page or stylesheet
_BEFORE_SITEMAPS = (1 << 30) + 1  # more than a sitemap that is read before all pages is ahead of them
_INVERTED = bytes(255 - byte for byte in range(256))


def requisite_id(page: UrlId) -> UrlId:
    """Return the id that a URL has as a requisite; of that, the id that it has as a page."""
    return page[:8] + page[8:].translate(_INVERTED)


def requisite_to(url: str) -> Link:
    """Return a canonical URL as a link to a requisite."""
    link = link_to(url)
    return Link(url, requisite_id(link.id), link.host)


def requisites_from(base: str, hrefs: Iterable[str]) -> list[Link]:
    """Resolve what a page or stylesheet names, in order, each URL once."""
    return [Link(link.url, requisite_id(link.id), link.host) for link in links_from(base, hrefs)]


def priority_with(room: int) -> int:
    """Return the priority of a requisite that may name this many itself."""
    return -_BEFORE_SITEMAPS - min(room, MAX_ROOM)


def room_of(url: QueuedUrl) -> int:
    """Return how many requisites a queued one may name itself."""
    return max(0, -url.priority - _BEFORE_SITEMAPS)


def room_for_each(room: int, named: int, stylesheets: int) -> int:
    """Return how many requisites each of the stylesheets may name of which a page or stylesheet names some."""
    return max(0, room - named) // stylesheets if stylesheets else 0


def is_requisite(url: QueuedUrl) -> bool:
    """Return whether a queued URL is a requisite."""
    return url.kind is OrderKind.REQUISITE


def queued_requisite(link: Link, page: QueuedUrl, room: int, seq: int, now: float) -> QueuedUrl:
    """Return a requisite as it is queued; `page` is the page, stylesheet or redirect that names it."""
    return QueuedUrl(
        url=link.url,
        id=link.id,
        host=link.host,
        priority=priority_with(room),
        seq=seq,
        depth=page.depth,
        kind=OrderKind.REQUISITE,
        source=Source.LINK,
        parent=page.id,
        found_at=now,
        seed=page.seed,
    )


def redirected(link: Link, url: QueuedUrl, seq: int, now: float) -> QueuedUrl:
    """Return the target of a requisite's redirect as it is queued: with the room of that."""
    target = queued_requisite(link, url, room_of(url), seq, now)
    return replace(target, source=Source.REDIRECT, hops=url.hops + 1)


def count_requisites(urls: Iterable[QueuedUrl]) -> int:
    """Return how many of some queued URLs are requisites."""
    return sum(url.kind is OrderKind.REQUISITE for url in urls)


def queued_pages(host: HostRecord) -> int:
    """Return how much of what is queued at a host is no requisite."""
    return host.queued - host.requisites
