"""Links that a rule holds back: stored in the ledger, and offered again when the rule allows it.

| rule         | a link waits until                                                                             |
|--------------|------------------------------------------------------------------------------------------------|
| `first_pass` | the first pass is over (only if the crawl continues then)                                      |
| `calendar`   | earlier dated pages of its host proved to bring new content (`core/traps/calendar`)                  |
| `quarantine` | its pattern says something new or grows no more, nothing else is left and the budget of its     |
|              | pattern allows it, or the operator has released it (`core/traps/watch`)                         |
| `hosts_per_domain` | its domain has room for its host (`domain_rooms`)                                         |
| `spam`       | the operator has released its host in the same way, or spam has no such consequences any more  |

Rows and counts are changes of the ledger like all others: they survive a kill and move with their shard. What may be
offered is worked off in slices of `SLICE` links, one per turn, in order of key. A host may have `MAX_URLS` links and
`MAX_BYTES` held, and one answer may add `MAX_OFFER_BYTES`; beyond that a link is dropped and counted, and it may be
held when it is found again.
Memory: a record per host with held links. A link that is held costs one look-up, also if it is held already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.ledger.candidates import find_id
from gossamer.core.ledger.tables import HELD, HELD_COUNTS, QUARANTINES, held_key, held_prefix
from gossamer.core.links.intake import Intake, LinkContext, Refused
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import current, host_id, shard_of
from gossamer.engine.admission.domain_rooms import DomainRooms
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.events import EventName
from gossamer.model.figures import add_count
from gossamer.model.records import HostRecord, Link, QueuedUrl, UrlId
from gossamer.model.state import CrawlState, HeldUrl, HoldRule, HostHeld

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

SLICE = 100
MAX_URLS = 20_000
MAX_BYTES = 8 << 20
MAX_OFFER_BYTES = 1 << 20  # of one answer, or of a slice of its links: 2,000 of 500 characters
_ROW_BYTES = 64  # of a row, besides its URL
_FIRST_PASS = HoldRule.FIRST_PASS
_CALENDAR = HoldRule.CALENDAR
_QUARANTINE = HoldRule.QUARANTINE
_SPAM = HoldRule.SPAM
_HOSTS_PER_DOMAIN = HoldRule.HOSTS_PER_DOMAIN


class Kept(Struct):
    """What became of links that a rule holds back."""

    is_complete: bool = True  # there was room for all of them
    samples: list[Link] = []  # of patterns in quarantine: they are to be queued all the same


class _Release(Struct):
    """The links of a host that are being offered, and how far that has got."""

    host: str
    rule: HoldRule
    after: bytes = b""


class Holding(ShardMemory):
    def __init__(
        self,
        intake: Intake,
        ledger: FrontierStore,
        emitter: EventEmitter,
        state: CrawlState,
        rooms: DomainRooms,
    ) -> None:
        self.rooms = rooms
        self._intake = intake
        self._ledger = ledger
        self._events = emitter
        self._state = state
        self._hosts: dict[str, HostHeld] = {}
        self._changed: set[str] = set()
        self.due: deque[_Release] = deque()
        self._due_names: set[tuple[str, HoldRule]] = set()

    @property
    def has_links(self) -> bool:
        return bool(self._hosts)

    @property
    def is_incomplete(self) -> bool:
        """Whether links are held back, or were dropped, in the shards of this node: their counts move with them."""
        return any(held.urls or held.dropped for held in self._hosts.values())

    # -- what survives a restart, and the loss of a shard -----------------------------------------

    def load(self, shard: int | None) -> None:
        """Restore the counts of an earlier run or owner; what may be offered since then is due."""
        for held in self._ledger.records(HELD_COUNTS, shard):
            self._hosts[held.host] = held
            if _HOSTS_PER_DOMAIN.value in held.urls:
                self.rooms.add(held.host, is_own=True)  # if others name it, it is found out when it is offered
            for rule in HoldRule:
                self.release(held.host, rule)

    def save(self) -> None:
        """Add the counts that changed to the ledger's pending changes."""
        for host in self._changed:
            held = self._hosts[host]
            if held.urls or held.dropped:
                self._ledger.put_record(HELD_COUNTS, held)
            else:
                self._ledger.remove_record(HELD_COUNTS, host_id(host))
                del self._hosts[host]
        self._changed.clear()

    def forget(self, shards: Collection[int]) -> None:
        for host in [name for name in self._hosts if shard_of(host_id(name)) in shards]:
            del self._hosts[host]
        self.rooms.forget(shards)
        self.due = deque(each for each in self.due if each.host in self._hosts)
        self._due_names = {(each.host, each.rule) for each in self.due}

    # -- holding ----------------------------------------------------------------------------------

    def hold(
        self, links: Sequence[Refused], context: LinkContext, now: float, lastmods: Mapping[UrlId, str] | None = None
    ) -> Kept:
        """Store links that are held back and not known; return whether there was room for all, and which to queue."""
        kept = Kept()
        left = MAX_OFFER_BYTES
        for refused in links:
            link = refused.link
            rule = HoldRule(refused.rule)
            url_id = self._held_id(link, rule)
            if url_id is None:
                continue
            if rule is not _FIRST_PASS and self._ledger.find(link.id, link.url)[1]:
                continue
            if rule is _QUARANTINE and self._intake.traps.record_held(link.url, link.host):
                kept.samples.append(link)
                continue
            held = self._host(link.host)
            size = len(link.url) + _ROW_BYTES
            left -= size
            if sum(held.urls.values()) >= MAX_URLS or held.bytes + size > MAX_BYTES or left < 0:
                held.dropped += 1
                self._state.totals.held_dropped += 1
                kept.is_complete = False
                continue
            lastmod = (lastmods or {}).get(link.id, "")
            self._put(_held_url(replace(link, id=url_id), rule, context, now, lastmod), held, size)
            if rule is not _FIRST_PASS:  # most links of a first pass are held: no event for each
                self._events.excluded((refused,), context.depth, now)
        return kept

    def _held_id(self, link: Link, rule: HoldRule) -> UrlId | None:
        """Return the id under which a link is stored, no other URL's; None if it is held already."""

        def held_at(url_id: UrlId) -> str | None:
            held = self._ledger.record(HELD, held_key(url_id, rule))
            return None if held is None else held.url

        url_id, is_held = find_id(current(), link.id, link.url, held_at, is_requisite=False)
        return None if is_held else url_id

    def hold_queued(self, urls: Sequence[QueuedUrl], now: float) -> None:
        """Store URLs of a pattern in quarantine that were queued: as many as there are."""
        for url in urls:
            held = HeldUrl(
                url.url,
                url.id,
                _QUARANTINE,
                url.depth,
                url.source,
                url.kind,
                url.parent,
                url.hops,
                now,
                url.lastmod,
                url.seed,
            )
            self._intake.forget_link(url.url, url.seed)
            self._put(held, self._host(url.host), len(url.url) + _ROW_BYTES)

    def _put(self, one: HeldUrl, held: HostHeld, size: int) -> None:
        self._ledger.put_record(HELD, one)
        self._count(held, one.rule, 1, size)
        if one.rule is _QUARANTINE or one.rule is _SPAM:
            self._count_quarantined(one, 1)

    def _host(self, host: str) -> HostHeld:
        held = self._hosts.get(host)
        if held is None:
            held = self._hosts[host] = HostHeld(host, {})
        self._changed.add(host)
        return held

    def _count(self, held: HostHeld, rule: HoldRule, urls: int, size: int) -> None:
        self._changed.add(held.host)
        held.bytes += size
        add_count(held.urls, rule.value, urls)
        if rule is _HOSTS_PER_DOMAIN and not held.urls.get(rule.value):
            self.rooms.remove(held.host)
        self._state.totals.count_held(rule.value, urls)

    def count_quarantined(self, urls: int) -> None:
        """Count queued URLs that a quarantine made dead letters, or that were queued again (a negative number)."""
        self._state.totals.count_held(_QUARANTINE.value, urls)

    def _count_quarantined(self, one: HeldUrl, count: int) -> None:
        quarantine = self._intake.traps.count_moved(one.url, host_of(one.url), count, is_spam=one.rule is _SPAM)
        if quarantine is not None:
            self._ledger.put_record(QUARANTINES, quarantine)

    # -- releasing --------------------------------------------------------------------------------

    def release(self, host: str, rule: HoldRule) -> None:
        """Offer the links of a host that a rule held back, if the rule allows some of them now."""
        held = self._hosts.get(host)
        if held is None or rule.value not in held.urls or (host, rule) in self._due_names:
            return
        if self._allows(host, rule):
            self._due_names.add((host, rule))
            self.due.append(_Release(host, rule))

    def count_contact(self, record: HostRecord) -> None:
        """Count a host for its domain after a request to it; if it gives its place back, others are offered."""
        for host in self.rooms.count_contact(record):
            self.release(host, _HOSTS_PER_DOMAIN)

    def release_first_pass(self) -> None:
        """Offer all that the first pass held back: it is over."""
        for host in self._hosts:
            self.release(host, _FIRST_PASS)

    def _allows(self, host: str, rule: HoldRule) -> int:
        """Return how many links of a host a rule allows now."""
        if rule is _CALENDAR:
            return self._intake.dates.room(host)
        if rule is _QUARANTINE:
            traps = self._intake.traps
            is_free = traps.has_released(host) or self._hosts[host].urls.get(rule.value, 0) > traps.held_of(host)
            return SLICE if is_free else traps.granted(host)
        if rule is _HOSTS_PER_DOMAIN:
            return SLICE if self.rooms.may_offer(host) else 0
        if rule is _SPAM:
            return 0 if self._intake.traps.is_held_as_spam(host) else SLICE
        return SLICE if self._intake.first_pass is None else 0

    def take_due(self) -> list[HeldUrl]:
        """Remove and return a slice of the links that may be offered now."""
        if not self.due:
            return []
        release = self.due.popleft()
        host = release.host
        rule = release.rule
        # Links of other patterns lie between those of a pattern that is released, so a whole slice is read.
        room = self._allows(host, rule)
        count = min(SLICE, room) if rule is not _QUARANTINE else SLICE if room else 0
        found = self._ledger.first_records(HELD, held_prefix(host_id(host), rule), release.after, count)
        if count and len(found) == count:
            release.after = held_key(found[-1].id, rule)
            self.due.append(release)
        else:
            self._due_names.discard((host, rule))
        if rule is _QUARANTINE:
            is_all = len(found) < count
            found = [one for one in found if self._intake.traps.may_offer(one.url, host)]
            if is_all:
                self._intake.traps.end_grants(host)
        for one in found:
            self.drop(one)
        return found

    def warn_of_left_out(self, now: float) -> None:
        """Emit a warning for each rule that holds links back, and for links and URLs that there was no room for."""
        totals = self._state.totals
        for rule, urls in sorted(totals.held.items()):
            self._events.emit(EventName.WARNING, now, reason="held_back", rule=rule, links=urls)
        if totals.held_dropped:
            self._events.emit(EventName.WARNING, now, reason="held_back_beyond_cap", links=totals.held_dropped)
        if totals.evicted:
            self._events.emit(EventName.WARNING, now, reason="evicted", rule="max_queued", links=totals.evicted)

    def drop(self, one: HeldUrl) -> None:
        """Remove a held link: it is offered, or queued in another way."""
        self._ledger.remove_record(HELD, held_key(one.id, one.rule))
        self._count(self._host(host_of(one.url)), one.rule, -1, -len(one.url) - _ROW_BYTES)
        if one.rule is _QUARANTINE or one.rule is _SPAM:
            self._count_quarantined(one, -1)

    def drop_queued(self, url: QueuedUrl) -> None:
        """Remove a link that was queued in another way: as a seed, or since it was found where no rule held it back."""
        for rule in list(self._hosts[url.host].urls) if url.host in self._hosts else ():
            held = self._ledger.record(HELD, held_key(url.id, HoldRule(rule)))
            if held is not None:
                self.drop(held)


def _held_url(link: Link, rule: HoldRule, context: LinkContext, now: float, lastmod: str) -> HeldUrl:
    return HeldUrl(
        link.url,
        link.id,
        rule,
        context.depth,
        context.source,
        context.kind,
        context.parent,
        context.hops,
        now,
        lastmod,
        context.seed,
    )
