"""Links to new hosts that wait, because pages of their page's domain and address led to very many hosts already.

`core/links/introductions` decides how many hosts the pages of a domain at an address may lead to. A link to one more
becomes neither a host nor a queued URL: links are stored in batches, as records of the ledger, and a batch is offered
when hosts that were found before it have answered, or when the crawl has nothing else to do; domains take turns. So
nothing is lost, and a farm of domains costs what its pages cost. A batch is written in the commit that finishes its
page and removed in the commit that queues its links. Memory: a key per batch. What waits is counted as held back, by
the rule `max_hosts_per_address`.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.tables import INTRODUCED, introduced_key
from gossamer.core.links.intake import Intake, LinkContext
from gossamer.core.links.introductions import Introducer, introducer_of
from gossamer.core.politeness.address_crowds import CROWDED
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, link_to, url_id
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.records import Link, QueuedUrl, Source, UrlId
from gossamer.model.state import CrawlState, IntroducedBatch

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

BATCH_LINKS = 100
_LIMITED = (Source.LINK, Source.SITEMAP)  # the others bring one URL per request


class IntroducedLinks(ShardMemory):
    """The batches that wait, by domain and address of their page; whose turn it is next is first."""

    def __init__(self, frontier: Frontier, intake: Intake, ledger: FrontierStore, state: CrawlState) -> None:
        self._frontier = frontier
        self._introductions = frontier.introductions
        self._intake = intake
        self._ledger = ledger
        self._state = state
        self._waiting: OrderedDict[Introducer, deque[bytes]] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    @property
    def is_due(self) -> bool:
        """Whether a batch may be offered now."""
        return bool(self._introductions.earned)

    def load(self, shard: int | None) -> None:
        """Continue with what an earlier run or owner left."""
        for batch in sorted(self._ledger.records(INTRODUCED, shard), key=lambda batch: batch.number):
            self._append(self._introducer_of(host_of(batch.found_on)), introduced_key(batch.parent, batch.number))

    def forget(self, shards: Collection[int]) -> None:
        """Forget the batches of shards: their next owner offers them."""
        for introducer, keys in list(self._waiting.items()):
            left = deque(key for key in keys if shard_of(key) not in shards)
            self._waiting[introducer] = left
            self._close_if_empty(introducer)

    # -- holding ----------------------------------------------------------------------------------

    def hold_excess(
        self, urls: Sequence[QueuedUrl], context: LinkContext, lastmods: Mapping[UrlId, str] | None
    ) -> set[UrlId]:
        """Count the hosts of URLs whose hosts are new; hold back those of too many hosts, and return them."""
        if not self._is_limited(context):
            return set()
        page_host = host_of(context.found_on)
        introducer = self._introducer_of(page_host)
        room = len(urls) if context.is_offered_again else self._introductions.room(introducer)
        hosts: set[str] = set()
        held: list[Link] = []
        is_elsewhere = _not_of_domain_of(page_host)
        for url in urls:
            if not is_elsewhere(url):
                continue
            if url.host not in hosts and len(hosts) >= room:
                held.append(Link(url.url, url.id, url.host))
            else:
                hosts.add(url.host)
        self._introductions.count(host_id(page_host), introducer, len(hosts))
        if held:
            self._store(held, introducer, context, lastmods or {})
        return {link.id for link in held}

    def refuse_excess(self, urls: Sequence[QueuedUrl], found_on: str) -> dict[UrlId, str]:
        """Count the new hosts of what a page needs; return what is at too many of them, with the rule."""
        page_host = host_of(found_on)
        introducer = self._introducer_of(page_host)
        is_elsewhere = _not_of_domain_of(page_host)
        room = self._introductions.room(introducer)
        elsewhere = [url for url in urls if is_elsewhere(url)]
        hosts = set(list(dict.fromkeys(url.host for url in elsewhere))[: max(0, room)])
        self._introductions.count(host_id(page_host), introducer, len(hosts))
        return {url.id: CROWDED for url in elsewhere if url.host not in hosts}

    def hold_at_once(
        self, links: Sequence[Link], context: LinkContext, lastmods: Mapping[UrlId, str] | None
    ) -> Sequence[Link]:
        """Hold back links to hosts that are not in memory if their page's domain may not lead to all; return the rest.

        It takes a quarter of the time, since their hosts are not looked up in the ledger: such pages come in numbers.
        """
        if context.is_offered_again or not self._is_limited(context):
            return links
        page_host = host_of(context.found_on)
        introducer = self._introducer_of(page_host)
        room = self._introductions.room(introducer)
        if not self._introductions.has_waiting(introducer.network) or room >= len(links):
            return links
        has_host = self._frontier.has_host
        is_elsewhere = _not_of_domain_of(page_host)
        strangers = [link for link in links if not has_host(link.host) and is_elsewhere(link)]
        first = set(list(dict.fromkeys(link.host for link in strangers))[: max(0, room)])
        held = self._intake.take_acceptable([link for link in strangers if link.host not in first], context)
        if not held:
            return links
        self._store(held, introducer, context, lastmods or {})
        gone = {link.id for link in held}
        return [link for link in links if link.id not in gone]

    def _is_limited(self, context: LinkContext) -> bool:
        """Return whether the links of a page count. Those of a page of another owner do, there."""
        if not context.found_on or context.source not in _LIMITED:
            return False
        return not self._intake.foreign or shard_of(_parent_of(context)) not in self._intake.foreign

    def _introducer_of(self, name: str) -> Introducer:
        record = self._frontier.record_of(name) or self._ledger.host(name)
        if record is None:
            return introducer_of(name, registrable_domain(name), ())
        return introducer_of(name, record.domain, record.addresses)

    def _store(
        self, links: Sequence[Link], introducer: Introducer, context: LinkContext, lastmods: Mapping[UrlId, str]
    ) -> None:
        parent = _parent_of(context)
        for first in range(0, len(links), BATCH_LINKS):
            some = links[first : first + BATCH_LINKS]
            batch = IntroducedBatch(
                parent,
                self._intake.next_arrival(),
                zlib.compress("\n".join([link.url for link in some]).encode(), 1),
                len(some),
                context.depth,
                context.source,
                context.kind,
                context.found_on,
                context.seed,
                {link.id: lastmods[link.id] for link in some if link.id in lastmods} if lastmods else {},
                context.submitter,
            )
            self._ledger.put_record(INTRODUCED, batch)
            self._append(introducer, introduced_key(parent, batch.number))
        self._state.totals.count_held(CROWDED, len(links))
        self._intake.forget_unqueued(link.host for link in links)

    def _append(self, introducer: Introducer, key: bytes) -> None:
        keys = self._waiting.get(introducer)
        if keys is None:
            keys = self._waiting[introducer] = deque()
            self._introductions.set_waiting(introducer, has_waiting=True)
        keys.append(key)

    def _close_if_empty(self, introducer: Introducer) -> None:
        if not self._waiting[introducer]:
            del self._waiting[introducer]
            self._introductions.set_waiting(introducer, has_waiting=False)

    # -- releasing --------------------------------------------------------------------------------

    def make_due(self) -> bool:
        """Have a batch offered that its domain has not earned, as nothing else is to be done; False if none waits."""
        if self._waiting:
            self._introductions.earned[next(iter(self._waiting))] = None
        return bool(self._waiting)

    def make_due_if_earned(self, page: str) -> None:
        """Have another batch offered if the domain of a page may lead to more hosts."""
        self._introductions.check(self._introducer_of(host_of(page)))

    def take_due(self) -> tuple[list[Link], LinkContext, Mapping[UrlId, str]] | None:
        """Remove and return the links of a batch that may be offered now."""
        introducer, _ = self._introductions.earned.popitem(last=False)
        keys = self._waiting.get(introducer)
        if keys:
            self._waiting.move_to_end(introducer)
        batch = self._ledger.record(INTRODUCED, keys.popleft()) if keys else None
        if batch is None:
            return None
        self._ledger.remove_record(INTRODUCED, introduced_key(batch.parent, batch.number))
        self._close_if_empty(introducer)
        self._state.totals.count_held(CROWDED, -batch.count)
        context = LinkContext(
            batch.depth,
            batch.source,
            batch.parent,
            kind=batch.kind,
            found_on=batch.found_on,
            seed=batch.seed,
            submitter=batch.submitter,
            is_offered_again=True,
        )
        return links_of(batch), context, batch.lastmods


def _parent_of(context: LinkContext) -> UrlId:
    """Return the page of links; sitemaps that a robots.txt lists have none but that."""
    return context.parent or url_id(context.found_on)


def _not_of_domain_of(host: str) -> Callable[[Link | QueuedUrl], bool]:
    """Return a function that says whether a link leads to another domain than a host's: hosts of one have a limit."""
    shard = shard_of(host_id(host))
    domain = registrable_domain(host)
    return lambda link: shard_of(link.id) != shard or registrable_domain(link.host) != domain  # most: 0.2 µs


def links_of(batch: IntroducedBatch, host: str = "") -> list[Link]:
    """Return the links of a batch, all or those that name a host."""
    urls = zlib.decompress(batch.urls).decode()
    return [link_to(url) for url in urls.split("\n") if host in url] if host in urls else []
