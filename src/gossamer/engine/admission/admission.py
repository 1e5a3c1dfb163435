"""How links become queued URLs.

What is offered is screened (`core/links/intake`), admitted by the ledger if it is new, and passed to the
frontier: in this order, so that the ledger contains whatever the frontier has. Links to a shard that is
not owned go to the outbox instead.

Was a URL seen before? Most links were, so four layers answer, each cheaper than the next; only the last one decides:

    worker   `core/url/href_memo`      hrefs of pages nearby: they are not even resolved, and nothing is sent
    hub      `core/links/intake`       URLs decided recently, by seed rules: they are not screened
             `backends/local/bloom`    "no" is certain; "yes" is wrong once in a thousand, and looked up
             `QueueStore.admit`        the exact set: pending changes of the ledger, then what is committed

The first two remember decisions, refusals too. So only what would be decided in the same way again may get there,
wherever it is found: `Offered.is_final` says so to the worker, and the intake does not remember what depends on the
page or is held back. What waits (`holding`, `introduced_links`, `link_backlog`, reserves of `core/links/first_pass`)
was not admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.catalog import record_of
from gossamer.core.ledger.tables import LINK_META
from gossamer.core.links.intake import Intake, LinkContext, Refused, Screened
from gossamer.core.revisit.hints import HintKind
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import current, host_id, shard_of
from gossamer.engine.admission.domain_rooms import DomainRooms
from gossamer.engine.admission.holding import Holding
from gossamer.engine.admission.introduced_links import IntroducedLinks
from gossamer.engine.admission.queue_tails import QueueTails
from gossamer.engine.admission.submitters import add_submitter
from gossamer.engine.cluster.link_messages import LinkMessage, NodeMessage, context_of, link_of, message_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.revisit.due_urls import FULL_FETCH_EVERY
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.engine.rules import CrawlRules
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.model.records import FetchKind, HostId, HostRecord, Link, QueuedUrl, Source, UrlId, UrlState
from gossamer.model.state import CrawlState, HoldRule, LinkMeta

if TYPE_CHECKING:
    from gossamer.engine.cluster.rehoming import Rehoming
    from gossamer.ports import FrontierStore

BEFORE_PAGES = 1 << 30  # more than any priority within a host


class Offered(Struct, frozen=True):
    new: Sequence[QueuedUrl] = ()
    refused: Sequence[Refused] = ()
    held: Sequence[Refused] = ()
    capped: int = 0  # links over the limit for one page
    is_final: bool = False  # whether each link would be decided the same way if it were offered again


NOTHING_OFFERED = Offered()


class Admission:
    def __init__(
        self,
        rules: CrawlRules,
        frontier: Frontier,
        intake: Intake,
        ledger: FrontierStore,
        *,
        hosts: HostDirectory,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._rules = rules
        self._frontier = frontier
        self._intake = intake
        self._ledger = ledger
        self._hosts = hosts
        self._rooms = DomainRooms(ledger, rules.max_hosts_per_domain)
        self.holding = Holding(intake, ledger, emitter, state, self._rooms)
        self.introduced = IntroducedLinks(frontier, intake, ledger, state)
        self._events = emitter
        self.tails = QueueTails() if rules.max_queued is not None else None
        self._foreign = intake.foreign
        self._outbox: dict[int, NodeMessage] = {}  # to shards that are not owned
        self._state = state
        self.rehoming: Rehoming | None = None  # if a rule for regions names a country
        self.homes: Mapping[str, str] = {}  # see `Regions`
        self.revisits: Revisits | None = None  # if known pages are fetched again: dates in sitemaps are hints

    def own(self, shard: int, now: float) -> None:
        """Admit links to a shard again; those that waited for it are offered now."""
        self._foreign.discard(shard)
        message = self._outbox.get(shard)
        if message is not None and not (
            message.homes or message.ranks or message.requisites
        ):  # those arrive like any other
            del self._outbox[shard]
            self.receive(message.links, now)

    def receive(self, messages: Iterable[LinkMessage], now: float) -> None:
        """Offer links that were found by another owner, or before the shard was owned."""
        for message in messages:
            link = link_of(message)
            if message.submitter:
                add_submitter(self._ledger, link.id, message.submitter)
            self._intake.forget_link(link.url, message.seed)  # whoever found it has only judged the URL
            if message.source is Source.NOTICE and self.revisits is not None:
                self.revisits.notice(link.id, now)
            self.offer([link], context_of(message), now, {link.id: message.lastmod} if message.lastmod else None)

    def owns(self, link: Link) -> bool:
        return shard_of(link.id) not in self._foreign

    def owns_host(self, url: str) -> bool:
        return shard_of(host_id(host_of(url))) not in self._foreign

    def message_to(self, url: str) -> NodeMessage:
        """Return what goes to the owner of a URL's shard with the next commit."""
        host = host_of(url)
        return self._outgoing(shard_of(host_id(host)), host)

    def _outgoing(self, shard: int, host: str) -> NodeMessage:
        message = self._outbox.get(shard)
        if message is None:
            message = self._outbox[shard] = NodeMessage()
        if self.homes and (domain := registrable_domain(host)) in self.homes:
            message.homes[domain] = self.homes[domain]
        return message

    def take_outbox(self) -> dict[int, NodeMessage]:
        """Remove and return what goes to shards that are not owned."""
        outbox = self._outbox
        self._outbox = {}
        return outbox

    def load_host(self, host: HostRecord) -> None:
        """Record that a host of a shard that was taken has a queue."""
        if self.tails is not None:
            self.tails.add(host.name)

    def disown(self, shards: Collection[int]) -> None:
        """Put links to shards into the outbox from now on: they have another owner."""
        self._foreign.update(shards)
        if self.tails is not None:
            self.tails.forget(shards)

    def offer(
        self, links: Sequence[Link], context: LinkContext, now: float, lastmods: Mapping[UrlId, str] | None = None
    ) -> Offered:
        """Screen links, admit what is new, and pass it to the frontier."""
        if self.homes or current().has_assigned:
            links, lastmods = self._identified(links, lastmods)
        if lastmods and self.revisits is not None:
            kind = HintKind.SITEMAP if context.source is Source.SITEMAP else HintKind.FEED
            self.revisits.hint(links, lastmods, kind, now)
        if not self.introduced.is_empty:
            links = self.introduced.hold_at_once(links, context, lastmods)
        screened = self._intake.screen(links, context, now)
        if self._foreign:
            screened.candidates = self._send_foreign(screened.candidates, context, lastmods)
        if screened.held:
            self._hold(screened, context, now, lastmods)
        screened.candidates = self._with_dates(screened.candidates, context, lastmods)
        if screened.refused:
            self._state.totals.excluded += len(screened.refused)
            self._events.excluded(screened.refused, context.depth, now)
        strangers = [url for url in screened.candidates if not self._frontier.has_host(url.host)]
        if strangers:
            dropped_before = self._state.totals.held_dropped
            screened.candidates = self._without_held_back(strangers, screened.candidates, context, now, lastmods)
            screened.is_final &= self._state.totals.held_dropped == dropped_before
        new = self._admit(screened.candidates, now) if screened.candidates else []
        if self._intake.metas:
            self._store_metas(new)
        if screened.dated:
            self._intake.withdraw_dated(screened, new)
        if new:
            self._show_rules(new, context)
        return Offered(new, screened.refused, screened.held, screened.capped, screened.is_final)

    def _show_rules(self, new: Sequence[QueuedUrl], context: LinkContext) -> None:
        """Show new URLs to the rules that watch what pages lead to, and that held some of them back until now."""
        if context.source is Source.LINK and context.found_on:
            self._intake.traps.record_links(context.found_on, host_of(context.found_on), new)
        if self.holding.has_links:  # it was also found where no rule holds it back
            for url in new:
                self.holding.drop_queued(url)
                if self._rooms.is_waiting(url.host):
                    self.holding.release(url.host, HoldRule.HOSTS_PER_DOMAIN)

    def _hold(self, screened: Screened, context: LinkContext, now: float, lastmods: Mapping[UrlId, str] | None) -> None:
        """Store what rules hold back, but for samples, which are queued."""
        kept = self.holding.hold(screened.held, context, now, lastmods)
        screened.candidates += [self._intake.sample(link, context, now) for link in kept.samples]
        if not kept.is_complete:
            screened.is_final = False  # what there was no room for may be held when it is found again

    def attach(self, url_id: UrlId, meta: bytes) -> None:
        """Attach metadata to a URL of the next offer; it is stored if that is new."""
        self._intake.metas[url_id] = meta

    def _store_metas(self, new: Sequence[QueuedUrl]) -> None:
        """Store what hooks attached to links that are queued now: in the commit that queues them."""
        metas = self._intake.metas
        self._intake.metas = {}
        for url in new:
            if url.id in metas:
                self._ledger.put_record(LINK_META, LinkMeta(url.id, metas[url.id]))

    def _with_dates(
        self, candidates: list[QueuedUrl], context: LinkContext, lastmods: Mapping[UrlId, str] | None
    ) -> list[QueuedUrl]:
        """Return candidates with the dates that a sitemap or a feed gives for them."""
        if context.source is Source.SITEMAP:
            return [self._from_sitemap(url, lastmods or {}) for url in candidates]
        if lastmods:  # of a feed
            return [replace(url, lastmod=lastmods.get(url.id, "")) for url in candidates]
        return candidates

    @staticmethod
    def _identified(
        links: Sequence[Link], lastmods: Mapping[UrlId, str] | None
    ) -> tuple[Sequence[Link], Mapping[UrlId, str] | None]:
        """Return links with the ids that they have here.

        A worker process knows neither the homes of domains nor the hosts that do not have the first of their ids.
        """
        stale = {link.url: host_id(link.host) + link.id[8:] for link in links if link.id[:8] != host_id(link.host)}
        if not stale:
            return links, lastmods
        fresh = [replace(link, id=stale.get(link.url, link.id)) for link in links]
        if lastmods:
            lastmods = {new.id: lastmods[old.id] for old, new in zip(links, fresh, strict=True) if old.id in lastmods}
        return fresh, lastmods

    def offer_held(self, now: float) -> None:
        """Offer a slice of the links that were held back and may be queued now."""
        for held in self.holding.take_due():
            context = LinkContext(
                held.depth, held.source, held.parent, held.hops, held.kind, seed=held.seed, held_by=held.rule
            )
            self.offer([Link(held.url, held.id, host_of(held.url))], context, now, {held.id: held.lastmod})

    def offer_introduced(self, now: float) -> None:
        """Offer a batch of links to new hosts that waited."""
        due = self.introduced.take_due()
        if due is not None:
            links, context, lastmods = due
            self.offer(links, context, now, lastmods)
            self.introduced.make_due_if_earned(context.found_on)

    def hold(self, links: Sequence[Link], context: LinkContext, rule: HoldRule, now: float) -> None:
        self.holding.hold([Refused(link, rule) for link in links], context, now)

    def _admit(self, candidates: list[QueuedUrl], now: float) -> list[QueuedUrl]:
        new = self._ledger.admit(candidates)
        if self._rules.cooldown_s and len(new) < len(candidates):
            new = new + self._cooled(candidates, new, now)
        self._intake.record_admitted(new, candidates)
        self._state.totals.urls_seen += len(new)
        self.enqueue(new, now)
        return new

    def _send_foreign(
        self, candidates: Sequence[QueuedUrl], context: LinkContext, lastmods: Mapping[UrlId, str] | None
    ) -> list[QueuedUrl]:
        """Put links to shards that are not owned into the outbox; return the others."""
        own: list[QueuedUrl] = []
        for url in candidates:
            shard = shard_of(url.id)
            if shard in self._foreign:
                link = Link(url.url, url.id, url.host)
                message = message_of(link, context, (lastmods or {}).get(url.id, ""))
                outgoing = self._outgoing(shard, url.host)
                outgoing.links.append(message)
                if context.source is Source.SEED and (rank := self._hosts.ranks.given_to(url.host)) is not None:
                    outgoing.ranks.append(rank)
            else:
                own.append(url)
        return own

    def _from_sitemap(self, url: QueuedUrl, lastmods: Mapping[UrlId, str]) -> QueuedUrl:
        """Return a sitemap or an entry of one with its date and priority: before all pages if the rules require it."""
        priority = url.priority - BEFORE_PAGES if self._rules.reads_sitemaps_first else url.priority
        return replace(url, priority=priority, lastmod=lastmods.get(url.id, ""))

    def _without_held_back(
        self,
        strangers: list[QueuedUrl],
        candidates: list[QueuedUrl],
        context: LinkContext,
        now: float,
        lastmods: Mapping[UrlId, str] | None,
    ) -> list[QueuedUrl]:
        """Hold back URLs of new hosts that cannot be accepted now; return the candidates without them."""
        new_hosts = self._new_hosts(strangers)
        if new_hosts and current().has_assigned:
            strangers = self._with_host_ids(strangers)
            candidates = self._with_host_ids(candidates)
        crowded: set[UrlId] = set()
        if new_hosts and context.source is not Source.SEED:
            new = [url for url in strangers if url.host in new_hosts]
            is_named_by_own = self._is_named_by_own(context)
            crowded = self._crowded(new, is_named_by_own)
            self._hosts.introduced = frozenset(url.host for url in new if not is_named_by_own(url.host))
            if crowded:
                self._hold_crowded([url for url in new if url.id in crowded], is_named_by_own, context, now, lastmods)
                candidates = [url for url in candidates if url.id not in crowded]
        if new_hosts:
            new = [url for url in strangers if url.host in new_hosts and url.id not in crowded]
            held = self.introduced.hold_excess(new, context, lastmods)
            if held:
                candidates = [url for url in candidates if url.id not in held]
        return candidates

    def _new_hosts(self, strangers: list[QueuedUrl]) -> set[str]:
        """Return the hosts that are in memory neither nor in the ledger; each has an id of its own from now on."""
        taken: dict[HostId, str] = {}
        known: set[str] = set()
        for url in strangers:
            name = url.host
            if name not in known:
                known.add(name)
                if not self._hosts.knows(name):
                    taken[self._hosts.identify(name, taken)] = name
        return set(taken.values())

    @staticmethod
    def _with_host_ids(urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        """Return URLs with the ids that their hosts have now."""
        return [
            url if url.id[:8] == host_id(url.host) else replace(url, id=host_id(url.host) + url.id[8:]) for url in urls
        ]

    def refused_strangers(self, urls: Sequence[QueuedUrl], found_on: str) -> list[tuple[QueuedUrl, str]]:
        """Return the requisites of new hosts that cannot be accepted, with the rule: none is held back."""
        strangers = [url for url in urls if not self._frontier.has_host(url.host)]
        if not strangers:
            return []
        new_hosts = self._new_hosts(strangers)
        new = [url for url in strangers if url.host in new_hosts]
        named_by = registrable_domain(host_of(found_on)) if found_on else ""
        crowded = self._crowded(new, lambda host: named_by in ("", registrable_domain(host)))
        refused = dict.fromkeys(crowded, HoldRule.HOSTS_PER_DOMAIN.value)
        new = [url for url in new if url.id not in refused]
        if new and found_on:
            refused |= self.introduced.refuse_excess(new, found_on)
        return [(url, refused[url.id]) for url in strangers if url.id in refused]

    def admit_requisites(self, urls: Sequence[QueuedUrl], now: float) -> list[QueuedUrl]:
        new = self._ledger.admit(self._with_host_ids(urls) if current().has_assigned else list(urls))
        self.enqueue(new, now)
        return new

    def _is_named_by_own(self, context: LinkContext) -> Callable[[str], bool]:
        """Return a function that says whether what names a host is of its own domain; a seed or a robots.txt is."""
        page = context.found_on
        if not page and context.parent:
            row = self._ledger.look_up(context.parent)
            page = "" if row is None else row.url
        named_by = registrable_domain(host_of(page)) if page else ""
        return lambda host: named_by in ("", registrable_domain(host))

    def _crowded(self, new: Sequence[QueuedUrl], is_named_by_own: Callable[[str], bool]) -> set[UrlId]:
        """Return the URLs of new hosts for which their domain has no room: see `domain_rooms`."""
        rooms: dict[str, int] = {}
        accepted: set[str] = set()
        crowded: set[UrlId] = set()
        for url in new:
            name = registrable_domain(url.host)
            if name == url.host or url.host in accepted:
                continue
            if name not in rooms:
                rooms[name] = self._rooms.room(name, is_own=is_named_by_own(url.host))
            if rooms[name] > 0:
                rooms[name] -= 1
                accepted.add(url.host)
            else:
                crowded.add(url.id)
        return crowded

    def _hold_crowded(
        self,
        urls: Sequence[QueuedUrl],
        is_named_by_own: Callable[[str], bool],
        context: LinkContext,
        now: float,
        lastmods: Mapping[UrlId, str] | None,
    ) -> None:
        """Hold back URLs of new hosts for which their domain has no room."""
        held: list[Refused] = []
        dropped: list[Refused] = []
        for url in urls:
            is_own = is_named_by_own(url.host)
            has_place = self._rooms.has_place_in_line(url.host, is_own=is_own)
            if has_place:
                self._rooms.add(url.host, is_own=is_own)
            one = Refused(Link(url.url, url.id, url.host), HoldRule.HOSTS_PER_DOMAIN)
            (held if has_place else dropped).append(one)
        self.holding.hold(held, context, now, lastmods)
        self._state.totals.held_dropped += len(dropped)
        self._events.excluded(dropped, context.depth, now)
        self._intake.forget_unqueued(url.host for url in urls)
        for url in urls:
            self._intake.forget_link(url.url, context.seed)

    def _cooled(self, candidates: Sequence[QueuedUrl], new: Sequence[QueuedUrl], now: float) -> list[QueuedUrl]:
        """Queue again what was fetched longer ago than its time to live."""
        fresh = {url.id for url in new}
        again: list[QueuedUrl] = []
        for url in candidates:
            record = None if url.id in fresh else self._ledger.look_up(url.id)
            if record is None or record.state is UrlState.QUEUED:
                continue
            if now - record.fetched_at < self._rules.cooldown_s:
                self._events.cooling(url, self._rules.cooldown_s - (now - record.fetched_at), now)
                continue
            retried = replace(url, seed=record.seed)
            if (record.visits + 1) % FULL_FETCH_EVERY:
                retried = replace(retried, etag=record.etag, last_modified=record.last_modified)
            self._ledger.requeue(retried, record)
            again.append(retried)
        return again

    def requeue(self, url: QueuedUrl, now: float) -> None:
        """Queue a known URL again, after all that has arrived so far."""
        again = replace(url, seq=self._intake.next_arrival())
        self._ledger.requeue(again, record_of(again))
        self._intake.record_admitted([again])
        self.enqueue([again], now)

    def enqueue(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Pass queued URLs to the frontier; those of hosts that stay out of memory are only counted."""
        for url in urls:
            if not self._frontier.has_host(url.host):
                self._hosts.bring_in(url.host, now)
        if self.tails is not None:
            for url in urls:
                self.tails.add(url.host, (url.priority, url.seq))
        # Read before: adding a URL can swap its host out at once.
        records = {url.host: self._frontier.record_of(url.host) for url in urls}
        if urls and urls[0].kind is FetchKind.REQUISITE:  # then all are
            for url in urls:
                if (record := records[url.host]) is not None:
                    self._frontier.counts.enqueue_requisites(record, 1)
        self._frontier.add(urls, now)
        for record in records.values():
            if record is not None:
                self._ledger.put_host(record)
        self._hosts.count_swapped_out([url for url in urls if records[url.host] is None], now)
