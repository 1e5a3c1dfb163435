"""How links become queued URLs, and how queued URLs leave the queue unfetched.

What is offered is screened (`core/intake`), admitted by the ledger where it is new, and
handed to the frontier: in this order, so that the ledger knows whatever the frontier has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nlargest

from msgspec.structs import replace

from gossamer.core.catalog import record_of
from gossamer.core.domains import registrable_domain
from gossamer.core.frontier import Frontier
from gossamer.core.intake import Intake, LinkContext, Refused
from gossamer.core.url import host_id
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.host_directory import HostDirectory
from gossamer.engine.rules import CrawlRules
from gossamer.figures import Totals
from gossamer.ports import Ledger
from gossamer.records import HostRecord, Link, Outcome, QueuedUrl, Source, UrlId, UrlState

FULL_FETCH_EVERY = 10  # visits: a server may say "not modified" of what it changed
BEFORE_PAGES = 1 << 30  # more than any priority within a host


class Admission:
    """The way into the queue, and out of it."""

    def __init__(
        self,
        rules: CrawlRules,
        frontier: Frontier,
        intake: Intake,
        ledger: Ledger,
        *,
        hosts: HostDirectory,
        emitter: EventEmitter,
        totals: Totals,
    ) -> None:
        self._rules = rules
        self._frontier = frontier
        self._intake = intake
        self._ledger = ledger
        self._hosts = hosts
        self._events = emitter
        self._tally = totals
        self.links_final = False  # of the last offer: each link would be decided the same way, offered again

    def offer(
        self, links: Sequence[Link], context: LinkContext, now: float, lastmods: Mapping[UrlId, str] | None = None
    ) -> list[QueuedUrl]:
        """Screen links, admit what is new, and hand it to the frontier; return what was new."""
        screened = self._intake.screen(links, context, now)
        self.links_final = screened.is_final
        if context.source is Source.SITEMAP:
            screened.candidates = [self._from_sitemap(url, lastmods or {}) for url in screened.candidates]
        self._tally.excluded += len(screened.refused)
        for refused in screened.refused:
            self._events.excluded(refused, context.depth, now)
        if screened.capped:
            self._events.capped(context.parent, links[0].host, screened.capped, now)
        if context.source is not Source.SEED:
            self._leave_out_crowds(screened.candidates, context.depth, now)
        if not screened.candidates:
            return []
        new = self._ledger.admit(screened.candidates)
        if self._rules.cooldown_s and len(new) < len(screened.candidates):
            new = new + self._cooled(screened.candidates, new, now)
        self._intake.note_admitted(new, screened.candidates)
        self._tally.urls_seen += len(new)
        self._tally.next_seq = self._intake.next_seq
        self.take_in(new, now)
        if self._rules.max_queued is not None and self._frontier.queued > self._rules.max_queued:
            self._evict(self._rules.max_queued, now)
        return new

    def _from_sitemap(self, url: QueuedUrl, lastmods: Mapping[UrlId, str]) -> QueuedUrl:
        """Return a sitemap, or what one lists, with its date and in its place: before all pages where so wished."""
        priority = url.priority - BEFORE_PAGES if self._rules.reads_sitemaps_first else url.priority
        return replace(url, priority=priority, lastmod=lastmods.get(url.id, ""))

    def _leave_out_crowds(self, candidates: list[QueuedUrl], depth: int, now: float) -> None:
        """Leave out new hosts of a domain that has very many: a wildcard in the DNS makes hosts without end."""
        added: dict[str, set[str]] = {}
        strangers = [url for url in candidates if not self._frontier.knows(url.host)]
        crowded = [url for url in strangers if self._is_one_too_many(url, added)]
        for url in crowded:
            candidates.remove(url)
            self._events.excluded(Refused(Link(url.url, url.id, url.host), "hosts_per_domain"), depth, now)
        self._tally.excluded += len(crowded)

    def _is_one_too_many(self, url: QueuedUrl, added: dict[str, set[str]]) -> bool:
        name = registrable_domain(url.host)
        if name == url.host or self._ledger.host(url.host) is not None:
            return False
        domain = self._ledger.domain(name)
        names = added.setdefault(name, set())
        if url.host in names or (domain.hosts if domain else 0) + len(names) < self._rules.max_hosts_per_domain:
            names.add(url.host)
            return False
        return True

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
            retried = url
            if (record.visits + 1) % FULL_FETCH_EVERY:
                retried = replace(url, etag=record.etag, last_modified=record.last_modified)
            self._ledger.requeue(retried, record)
            again.append(retried)
        return again

    def take_in(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Hand queued URLs to the frontier; those of hosts that stay out of memory are only counted."""
        for url in urls:
            if not self._frontier.knows(url.host):
                self._hosts.bring_in(url.host, now)
        # Read before: taking a URL in can send its host to sleep at once.
        records = {url.host: self._frontier.record_of(url.host) for url in urls}
        self._frontier.add(urls, now)
        for record in records.values():
            if record is not None:
                self._ledger.put_host(record)
        self._hosts.count_swapped_out([url.host for url in urls if records[url.host] is None], now)

    def _evict(self, most: int, now: float) -> None:
        """Move the last URLs of the longest queues to the dead letters; a little more than needed, not every time."""
        over = self._frontier.queued - most + most // 100
        evicted = 1
        while over > 0 and evicted:  # what is in flight or asleep stays
            evicted = 0
            for record in nlargest(16, self._frontier.records(), key=lambda host: host.queued):
                evicted += self.evict_last(record, min(over - evicted, max(1, record.queued // 2)), now)
            over -= evicted

    def evict_last(self, record: HostRecord, count: int, now: float, outcome: Outcome = Outcome.EVICTED) -> int:
        """Move the last URLs of a host's queue to the dead letters; return how many."""
        last = self._ledger.last(host_id(record.name), count) if count > 0 else []
        if self._frontier.knows(record.name):
            gone = self._frontier.forget(record.name, last, now)
        else:
            gone = last
            record.queued -= len(gone)
            self._frontier.queued -= len(gone)
        for url in gone:
            row = record_of(url)
            row.state, row.outcome, row.fetched_at = UrlState.DEAD, outcome.value, now
            self._ledger.finish(url, row)
        self._tally.dead += len(gone)
        self._ledger.put_host(record)
        return len(gone)
