"""How much of a host is spam, and what follows: it is demoted, or links to it are held back.

Called for every page: 0.2 µs if nothing is suspicious. What speaks for spam in a page is found by its worker
(`core/spam/page.py`); here pages of a host with one template are found, pages are counted per host and per domain
(table `spam`), and `core/spam/hosts.py` decides. A decision about a host is stored as a `Quarantine`, so that the
operator lists and releases it like those of traps (`gossamer traps`); a host that was released is never judged again.

A demoted host stands behind all others (`FrontierLimits.demoted_hosts`), and so do links from it to other hosts.
Memory: at most `MAX_TALLIES` tallies, of hosts with spam or templates; others are read again from the ledger.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.ledger.tables import QUARANTINES, SPAM, spam_key
from gossamer.core.links.intake import Intake
from gossamer.core.spam.hosts import (
    MAX_SAMPLES,
    MIN_TEMPLATE_PAGES,
    Level,
    SpamUse,
    count_template,
    farm_level,
    has_made_name,
    judge_host,
)
from gossamer.core.spam.page import doorway, with_signal
from gossamer.core.traps.quarantine import SPAM_PATTERN, Quarantine
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.records import HostRecord, QueuedUrl, Result, SpamVerdict, UrlRecord
from gossamer.model.state import CrawlState, SpamTally

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

MAX_TALLIES = 10_000


class SpamWatch(ShardMemory):
    """Counts spam per host, and decides what follows."""

    def __init__(
        self,
        use: SpamUse,
        intake: Intake,
        demoted: set[str],
        ledger: FrontierStore,
        *,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._is_off = use is SpamUse.OFF
        self._highest = Level.QUARANTINED if use is SpamUse.QUARANTINE else Level.DEMOTED
        self._traps = intake.traps
        self._traps.holds_spam = use is SpamUse.QUARANTINE
        self._demoted = demoted
        self._ledger = ledger
        self._events = emitter
        self._state = state
        self._tallies: OrderedDict[bytes, SpamTally] = OrderedDict()  # by key
        self._changed: set[bytes] = set()

    # -- what survives a restart, and the loss of a shard -----------------------------------------

    def load(self, shard: int | None) -> None:
        if self._is_off:
            return
        for decided in self._ledger.records(QUARANTINES, shard):
            if decided.pattern == SPAM_PATTERN and not decided.is_released:
                self._demoted.add(decided.host)

    def save(self) -> None:
        """Add the tallies that changed to the ledger's pending changes."""
        for key in self._changed:
            self._ledger.put_record(SPAM, self._tallies[key])
        self._changed.clear()

    def forget(self, shards: Collection[int]) -> None:
        for key in [key for key in self._tallies if shard_of(key) in shards]:
            del self._tallies[key]
        self._demoted -= {host for host in self._demoted if shard_of(host_id(host)) in shards}

    # -- facts ------------------------------------------------------------------------------------

    def record_page(
        self, url: QueuedUrl, result: Result, host: HostRecord, now: float, before: UrlRecord | None = None
    ) -> Result:
        """Record a page before its row is written; return its result with what is known here. `before` is its row."""
        if result.spam is None and not result.template:
            known = self._tallies.get(url.id[:8] + b"h")
            if known is None or not known.spam:
                return result
        if self._is_off:
            return replace(result, spam=None, spam_reason="")
        is_first = before is None or not before.visits
        own = self._tally(host.name, is_domain=False)
        if result.template:
            result = self._with_template(own, result, is_first=is_first)
        if result.spam is not None:
            self._state.totals.spam_pages += is_first
            self._events.spam_page(url, result, now)
        if is_first and (result.spam is not None or own.spam):
            self._count(own, url, result, host)
        if result.spam is not None:
            domain = self._tally(host.domain, is_domain=True)
            self._decide(own, domain, now)
            self._decide_siblings(domain, now)
        return result

    def _with_template(self, own: SpamTally, result: Result, *, is_first: bool) -> Result:
        before = count_template(own.templates, result.template) if is_first else own.templates.get(result.template, 0)
        self._changed.add(spam_key(own.name, is_domain=False))
        if before < MIN_TEMPLATE_PAGES:
            return result
        signal = doorway(before)
        reason = "; ".join(filter(None, (result.spam_reason, signal.reason)))
        return replace(result, spam=with_signal(result.spam, signal), spam_reason=reason)

    def _count(self, own: SpamTally, url: QueuedUrl, result: Result, host: HostRecord) -> None:
        own.seen += 1
        own.near += bool(result.duplicate_of or result.near_duplicate_of)
        own.pages = max(host.pages, own.seen)
        self._changed.add(spam_key(own.name, is_domain=False))
        if result.spam is None:
            return
        _add_spam(own, url.url, result.spam)
        domain = self._tally(host.domain, is_domain=True)
        record = self._ledger.domain(host.domain)
        _add_spam(domain, url.url, result.spam)
        domain.pages = max(record.pages if record is not None else 0, domain.spam)
        if own.spam == 1:
            domain.hosts += 1
            domain.made += has_made_name(host.name, host.domain)
        self._changed.add(spam_key(host.domain, is_domain=True))

    def _tally(self, name: str, *, is_domain: bool) -> SpamTally:
        key = spam_key(name, is_domain=is_domain)
        tally = self._tallies.get(key)
        if tally is None:
            stored = self._ledger.record(SPAM, key)
            tally = self._tallies[key] = stored or SpamTally(name, is_domain, signals={}, templates={}, samples=[])
            if len(self._tallies) > MAX_TALLIES:
                self.save()
                self._tallies.popitem(last=False)
        else:
            self._tallies.move_to_end(key)
        return tally

    # -- decisions --------------------------------------------------------------------------------

    def _decide_siblings(self, domain: SpamTally, now: float) -> None:
        """Decide about hosts of a farm that were crawled before it was known to be one: once per level."""
        level = farm_level(domain)
        if level <= domain.level:
            return
        domain.level = level
        self._changed.add(spam_key(domain.name, is_domain=True))
        self.save()
        for tally in list(self._ledger.records(SPAM, shard_of(host_id(domain.name)))):
            if not tally.is_domain and registrable_domain(tally.name) == domain.name:
                self._decide(tally, domain, now)

    def _decide(self, own: SpamTally, domain: SpamTally, now: float) -> None:
        verdict = judge_host(own, domain)
        level = min(verdict.level, self._highest)
        known = self._traps.of_spam(own.name)
        if level <= _level_of(known) or (known is not None and known.is_released):
            return
        decided = Quarantine(
            own.name,
            SPAM_PATTERN,
            now,
            own.pages,
            own.pages - own.spam,
            list(own.samples),
            held=known.held if known is not None else 0,
            reason=verdict.reason,
            demotes_only=level is Level.DEMOTED,
        )
        self._state.totals.spam_hosts += known is None
        self._traps.load(decided)
        self._ledger.put_record(QUARANTINES, decided)
        self._demoted.add(own.name)
        self._events.spam_host(decided, now)


def _level_of(decided: Quarantine | None) -> Level:
    if decided is None:
        return Level.NONE
    return Level.DEMOTED if decided.demotes_only else Level.QUARANTINED


def _add_spam(tally: SpamTally, url: str, verdict: SpamVerdict) -> None:
    tally.spam += 1
    for name in verdict.signals:
        tally.signals[name] = tally.signals.get(name, 0) + 1
    if len(tally.samples) < MAX_SAMPLES:
        tally.samples.append(url)
