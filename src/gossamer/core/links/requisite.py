"""What a page needs to be shown (its *requisites*): which identity and which place in the queue do they have?

A requisite is a URL of its own in the ledger, whether the same URL is a page or not: its id is that of the page with
the bits of the key's hash inverted. So both can be known, queued and fetched independently of each other, every store
keeps them apart without knowing of it, and both belong to the same host, and shard.

Requisites come before all pages and sitemaps of their host: what was fetched is complete soon. Their priority also says
how many requisites a stylesheet may name itself, its *room*: what a page may need is divided among its stylesheets, so
that all of them together, however deep they import each other, name no more than the limit for one page.

A requisite is *foreign* if a page of another domain names it, or what such a page names: a stylesheet, a redirect. It
is requested without credentials, or anybody's page could have us request what only the operator may. The priority says
that too; foreign ones come after the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import link_to, links_from
from gossamer.model.records import FetchKind, HostRecord, Link, QueuedUrl, Source, UrlId, UrlRecord

MAX_ROOM = 5_000  # also the most that is looked for in one page or stylesheet
# More than a sitemap that is read before all pages is ahead of them. What an older version queued has this priority.
_FOREIGN = (1 << 30) + 1
_OWN = _FOREIGN + 8192  # more than any room ahead of them
_INVERTED = bytes(255 - byte for byte in range(256))


def requisite_id(page: UrlId) -> UrlId:
    """Return the id that a URL has as a requisite; of that, the id that it has as a page."""
    return page[:8] + page[8:].translate(_INVERTED)


def requisite_to(url: str) -> Link:
    link = link_to(url)
    return Link(url, requisite_id(link.id), link.host)


def requisites_from(base: str, hrefs: list[str]) -> list[Link]:
    """Resolve what a page or stylesheet names, in order, each URL once."""
    return [Link(link.url, requisite_id(link.id), link.host) for link in links_from(base, hrefs)]


def priority_with(room: int, *, is_foreign: bool) -> int:
    """Return the priority of a requisite that may name this many itself."""
    return -(_FOREIGN if is_foreign else _OWN) - min(room, MAX_ROOM)


def is_foreign(url: QueuedUrl | UrlRecord) -> bool:
    """Return whether a requisite is requested without credentials, because another domain names it."""
    return url.priority > -_OWN


def is_foreign_to(link: Link, page: QueuedUrl) -> bool:
    """Return whether what a page, stylesheet or redirect names is foreign."""
    if is_requisite(page) and is_foreign(page):
        return True
    return link.host != page.host and registrable_domain(link.host) != registrable_domain(page.host)


def room_of(url: QueuedUrl) -> int:
    """Return how many requisites a queued one may name itself."""
    return max(0, -url.priority - (_FOREIGN if is_foreign(url) else _OWN))


def room_for_each(room: int, named: int, stylesheets: int) -> int:
    """Return how many requisites each of the stylesheets may name of which a page or stylesheet names some."""
    return max(0, room - named) // stylesheets if stylesheets else 0


def is_requisite(url: QueuedUrl) -> bool:
    return url.kind is FetchKind.REQUISITE


def queued_requisite(link: Link, page: QueuedUrl, room: int, seq: int, now: float) -> QueuedUrl:
    """Return a requisite as it is queued; `page` is the page, stylesheet or redirect that names it."""
    return QueuedUrl(
        url=link.url,
        id=link.id,
        host=link.host,
        priority=priority_with(room, is_foreign=is_foreign_to(link, page)),
        seq=seq,
        depth=page.depth,
        kind=FetchKind.REQUISITE,
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
    return sum(url.kind is FetchKind.REQUISITE for url in urls)


def queued_pages(host: HostRecord) -> int:
    """Return how much of what is queued at a host is no requisite."""
    return host.queued - host.requisites
