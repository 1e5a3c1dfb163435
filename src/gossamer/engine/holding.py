"""Links that a rule holds back: stored in the ledger, and offered again when the rule allows it.

| rule         | a link waits until                                                                             |
|--------------|------------------------------------------------------------------------------------------------|
| `first_pass` | the first pass is over (only if the crawl continues then)                                      |
| `calendar`   | earlier dated pages of its host proved to bring new content (`core/calendar`)                  |
| `quarantine` | the operator has released its pattern (`gossamer traps`), for the run after that               |
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

from msgspec import Struct

from gossamer.core.identity import host_id, shard_of
from gossamer.core.intake import Intake, LinkContext, Refused
from gossamer.core.tables import HELD, HELD_COUNTS, QUARANTINES, held_key, held_prefix
from gossamer.core.url import host_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.shard_memory import ShardMemory
from gossamer.events import EventName
from gossamer.figures import add_count
from gossamer.ports import RecordStore
from gossamer.records import UrlId
from gossamer.state import CrawlState, HeldUrl, HoldRule, HostHeld

SLICE = 100
MAX_URLS = 20_000
MAX_BYTES = 8 << 20
MAX_OFFER_BYTES = 1 << 20  # of one answer, or of a slice of its links: 2,000 of 500 characters
_ROW_BYTES = 64  # of a row, besides its URL
_FIRST_PASS, _CALENDAR, _QUARANTINE = HoldRule.FIRST_PASS, HoldRule.CALENDAR, HoldRule.QUARANTINE
_SPAM = HoldRule.SPAM


class _Release(Struct):
    """The links of a host that are being offered, and how far that has got."""

    host: str
    rule: HoldRule
    after: bytes = b""


class Holding(ShardMemory):
    """The links that are held back."""

    def __init__(
        self,
        intake: Intake,
        ledger: RecordStore,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
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
        """Whether any links are held back."""
        return bool(self._hosts)

    # -- what survives a restart, and the loss of a shard -----------------------------------------

    def load(self, shard: int | None) -> None:
        """Restore the counts of an earlier run or owner; what may be offered since then is due."""
        for held in self._ledger.records(HELD_COUNTS, shard):
            self._hosts[held.host] = held
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
        """Forget the hosts of shards."""
        for host in [name for name in self._hosts if shard_of(host_id(name)) in shards]:
            del self._hosts[host]
        self.due = deque(each for each in self.due if each.host in self._hosts)
        self._due_names = {(each.host, each.rule) for each in self.due}

    # -- holding ----------------------------------------------------------------------------------

    def hold(
        self, links: Sequence[Refused], context: LinkContext, now: float, lastmods: Mapping[UrlId, str] | None = None
    ) -> bool:
        """Store links that are held back; return whether there was room for all of them."""
        has_room, left = True, MAX_OFFER_BYTES
        for refused in links:
            link, rule = refused.link, HoldRule(refused.rule)
            if self._ledger.record(HELD, held_key(link.id, rule)) is not None:
                continue
            held = self._host(link.host)
            size = len(link.url) + _ROW_BYTES
            left -= size
            if sum(held.urls.values()) >= MAX_URLS or held.bytes + size > MAX_BYTES or left < 0:
                held.dropped += 1
                self._state.totals.held_dropped += 1
                has_room = False
                continue
            self._ledger.put_record(
                HELD,
                HeldUrl(
                    link.url,
                    link.id,
                    rule,
                    context.depth,
                    context.source,
                    context.kind,
                    context.parent,
                    context.hops,
                    now,
                    (lastmods or {}).get(link.id, ""),
                    context.seed,
                ),
            )
            self._count(held, rule, 1, size)
            if rule is _QUARANTINE or rule is _SPAM:
                self._count_quarantined(link.url, link.host)
            if rule is not _FIRST_PASS:  # most links of a first pass are held: no event for each
                self._events.excluded((refused,), context.depth, now)
        return has_room

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
        self._state.totals.count_held(rule.value, urls)

    def count_quarantined(self, urls: int) -> None:
        """Count queued URLs that a quarantine made dead letters, or that were queued again (a negative number)."""
        self._state.totals.count_held(_QUARANTINE.value, urls)

    def _count_quarantined(self, url: str, host: str) -> None:
        quarantine = self._intake.novelty.count_held(url, host)
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

    def release_first_pass(self) -> None:
        """Offer all that the first pass held back: it is over."""
        for host in self._hosts:
            self.release(host, _FIRST_PASS)

    def _allows(self, host: str, rule: HoldRule) -> int:
        """Return how many links of a host a rule allows now."""
        if rule is _CALENDAR:
            return self._intake.dates.room(host)
        if rule is _QUARANTINE:
            return SLICE if self._intake.novelty.has_released(host) else 0
        if rule is _SPAM:
            return 0 if self._intake.novelty.is_held_as_spam(host) else SLICE
        return SLICE if self._intake.first_pass is None else 0

    def take_due(self) -> list[HeldUrl]:
        """Remove and return a slice of the links that may be offered now."""
        if not self.due:
            return []
        release = self.due.popleft()
        host, rule = release.host, release.rule
        count = min(SLICE, self._allows(host, rule))
        found = self._ledger.first_records(HELD, held_prefix(host_id(host), rule), release.after, count)
        if count and len(found) == count:
            release.after = held_key(found[-1].id, rule)
            self.due.append(release)
        else:
            self._due_names.discard((host, rule))
        if rule is _QUARANTINE:  # another pattern may still hold it
            found = [one for one in found if self._intake.novelty.refusal(one.url, host) is None]
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

    def drop_queued(self, url_id: UrlId) -> None:
        """Remove a link that was queued in another way: as a seed, a reserve, or the target of a redirect."""
        for rule in HoldRule:
            held = self._ledger.record(HELD, held_key(url_id, rule))
            if held is not None:
                self.drop(held)
