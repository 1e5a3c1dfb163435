"""What do the pages of a host show about it? Traps, "not found" with 200, answers that are too large.

Called for every page; decides whether its links are followed and whether a pattern of URLs goes into
quarantine. A quarantine is written to the ledger with the changes it causes: what was queued
becomes dead letters with the outcome `quarantined`, so that `release_quarantine` can queue them again.
What decisions depend on (calendar counts, suspicions of a soft 404) is stored per host before each commit.
Costs 5 µs per page of a host with many pages, else 1 µs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf

from msgspec import Struct
from msgspec.structs import replace
from xxhash import xxh3_64_digest, xxh3_64_hexdigest

from gossamer.core.catalog import queued_from
from gossamer.core.counts import Counts
from gossamer.core.identity import host_id
from gossamer.core.intake import Intake
from gossamer.core.novelty import LANES, MIN_PAGES, PageMark, Quarantine, patterns_of
from gossamer.core.requisite import is_requisite
from gossamer.core.soft_not_found import SoftNotFound
from gossamer.core.tables import EVIDENCE, QUARANTINES
from gossamer.core.traps import is_dated
from gossamer.core.url import host_of, link_to, origin_of
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.holding import Holding
from gossamer.engine.removal import Removal
from gossamer.engine.shard_memory import ShardMemory
from gossamer.figures import Figures
from gossamer.ports import FrontierStore, Ledger
from gossamer.records import (
    HostRecord,
    Link,
    OrderKind,
    Outcome,
    QueuedUrl,
    QueuePosition,
    Result,
    Source,
    Truncation,
    UrlState,
)
from gossamer.state import ALL_PATTERNS, HoldRule, HostEvidence

OVERSIZE_ANSWERS = 3  # one or two may be exceptions
_BATCH = 1000
_LANE_BYTES = 4 * LANES  # of a MinHash signature
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK = Outcome.OK
_REDIRECT = Outcome.REDIRECT
_PAGE = OrderKind.PAGE
_PROBE = Source.PROBE
_LENGTH = Truncation.LENGTH


class NotFoundVerdict(Struct, frozen=True):
    """What a page showed: whether it is a "not found" with status 200, and a URL to probe its host with."""

    is_soft_404: bool = False
    probe: Link | None = None


NOTHING = NotFoundVerdict()


class Evidence(ShardMemory):
    """Watches what comes back."""

    def __init__(
        self,
        intake: Intake,
        ledger: FrontierStore,
        removal: Removal,
        holding: Holding,
        emitter: EventEmitter,
        *,
        is_on: bool = True,
    ) -> None:
        self._intake = intake
        self._ledger = ledger
        self._removal = removal
        self._holding = holding
        self._events = emitter
        self._is_on = is_on
        self._soft = SoftNotFound()

    # -- what survives a restart, and the loss of a shard -----------------------------------------

    def load(self, shard: int | None) -> None:
        """Restore what was learned in earlier runs, or by the previous owner."""
        for quarantine in self._ledger.records(QUARANTINES, shard):
            self._intake.novelty.load(quarantine)
        for evidence in self._ledger.records(EVIDENCE, shard):
            self._intake.dates.restore(evidence)
            self._soft.restore(evidence.host, evidence.repeated_texts, is_probed=evidence.is_probed)

    def save(self) -> None:
        """Add what was learned since the last call to the ledger's pending changes."""
        for host in self._intake.dates.take_changed() | self._soft.take_changed():
            evidence = HostEvidence(
                host, is_probed=self._soft.is_probed(host), repeated_texts=self._soft.repeated(host)
            )
            self._intake.dates.store(evidence)
            self._ledger.put_record(EVIDENCE, evidence)

    def forget(self, shards: Collection[int]) -> None:
        """Forget the hosts of shards."""
        self._soft.release(shards)

    # -- facts ------------------------------------------------------------------------------------

    def load_host(self, host: HostRecord) -> None:
        """Remember a host that sends over-size answers."""
        if host.oversize >= OVERSIZE_ANSWERS:
            self._intake.heavy_hosts.add(host.name)

    def record_size(self, record: HostRecord, result: Result) -> None:
        """Count an answer that was over the cap."""
        if result.truncated is _LENGTH:
            record.oversize += 1
            self.load_host(record)

    def record_page(self, url: QueuedUrl, result: Result, record: HostRecord, now: float) -> NotFoundVerdict:
        """Record a page; return what it shows about the host's "not found"."""
        if not self._is_on or url.kind is not _PAGE or result.outcome is not _OK:
            return NOTHING
        text = result.text_hash
        if not text or not result.content_type.startswith("text/html"):
            return NOTHING
        if url.source is _PROBE:
            record.soft_404 = text
            self._ledger.put_host(record)
        if record.soft_404 == text:
            self._events.soft_404(url, now)
            return NotFoundVerdict(is_soft_404=True)
        if self._soft.record(url.host, text) and not record.soft_404:
            return NotFoundVerdict(probe=link_to(_unlikely(url.url)))
        return NOTHING

    def record_novelty(self, url: QueuedUrl, result: Result, record: HostRecord, *, is_copy: bool, now: float) -> None:
        """Record what a page or redirect brought; begin a quarantine if its pattern brings too little."""
        if self._intake.dates.has_dated(url.host) and is_dated(url.url) and url.kind is _PAGE:
            self._record_dated(url, result)
        if not self._is_on or record.pages < MIN_PAGES or url.kind is not _PAGE:
            return
        if result.outcome is _REDIRECT:
            mark = PageMark(xxh3_64_digest(result.redirect_to.encode()))
        elif result.outcome is _OK:
            # A copy of another host's page is no evidence of a trap here: a mirror is finite.
            mark = _mark_of(result, is_copy=is_copy and result.duplicate_of[:8] == url.id[:8])
        else:
            return
        begun = self._intake.novelty.record(url.url, url.host, mark, now)
        if begun is not None:
            begun.held = self._kill_pattern(begun.host, begun.pattern, begun.name, now)
            self._holding.count_quarantined(begun.held)
            self._ledger.put_record(QUARANTINES, begun)
            self._events.quarantined(begun, now)

    def record_unfetched(self, url: QueuedUrl) -> None:
        """Record a URL that is not fetched after all: it says nothing about a calendar."""
        if self._intake.dates.has_dated(url.host) and is_dated(url.url):
            self._intake.dates.withdraw(url.host)
            self._holding.release(url.host, HoldRule.CALENDAR)

    def _record_dated(self, url: QueuedUrl, result: Result) -> None:
        """Record what became of a dated URL; dated links that were held back are released if there is room now."""
        dates = self._intake.dates
        if result.outcome is _OK:
            words = result.text_hash or result.content_hash[:8]
            lanes = result.signature[:_LANE_BYTES] if len(result.signature) >= _LANE_BYTES else b""
            # A page with hardly any text, or with that of another page, proves nothing.
            is_copy = bool(result.duplicate_of) or (not result.text_hash and result.content_type == "text/html")
            dates.record(url.host, PageMark(words, lanes, result.words, is_copy))
        else:
            dates.withdraw(url.host)
        self._holding.release(url.host, HoldRule.CALENDAR)

    def _kill_pattern(self, host: str, pattern: str, name: str, now: float) -> int:
        """Move what is queued of a pattern to the dead letters; return how many."""
        after: QueuePosition | None = None
        held = 0
        while urls := self._ledger.read_queue(host_id(host), after, _BATCH):
            after = urls[-1].position
            of_pattern = [url for url in urls if not is_requisite(url) and pattern in patterns_of(url.url)]
            held += len(self._removal.kill(host, of_pattern, Outcome.QUARANTINED, now, error=name))
        return held


def _mark_of(result: Result, *, is_copy: bool) -> PageMark:
    if len(result.signature) < _LANE_BYTES:
        # Without MinHash only what is repeated to the letter counts as nothing new.
        return PageMark(result.exact_text or result.content_hash[:8], is_copy=is_copy)
    words = result.text_hash or result.content_hash[:8]
    return PageMark(words, result.signature[:_LANE_BYTES], result.words, is_copy)


def _unlikely(url: str) -> str:
    """Return a URL of the same origin that no site has."""
    origin = origin_of(url)
    return f"{origin}/{xxh3_64_hexdigest(origin.encode())}-no-such-page"


def chosen_quarantines(known: Iterable[Quarantine], name: str, before: float = inf) -> list[Quarantine]:
    """Return the quarantines that a name concerns: one, or all that began before some time; none if it is unknown."""
    in_force = (each for each in known if not each.is_released)
    if name == ALL_PATTERNS:
        return [each for each in in_force if each.since < before]
    return [each for each in in_force if each.name == name]


def release_quarantine(ledger: Ledger, name: str) -> list[Quarantine]:
    """Release a quarantine, or all of them; return those that were released.

    For a crawl that is not running: those that were queued are queued again, and the next run, which loads what is
    changed here, offers the links that were found later.
    """
    chosen = chosen_quarantines(ledger.records(QUARANTINES), name)
    for each in chosen:
        _release(ledger, each)
    return chosen


def _release(ledger: Ledger, chosen: Quarantine) -> None:
    count = requeue_quarantined(ledger, chosen)
    state = ledger.crawl_state()
    if state is not None:
        state.totals.dead -= count
        state.totals.count_held(chosen.rule, -count)
        state.released += chosen.held
        if state.figures is not None:
            state.figures = _without_held(state.figures, chosen, count)
        ledger.put_crawl_state(state)


def _without_held(figures: Figures, released: Quarantine, queued: int) -> Figures:
    """Return the figures of the last run as they are once a quarantine has ended."""
    totals = figures.totals.copy()
    totals.dead -= queued
    totals.count_held(released.rule, -min(released.held, totals.held.get(released.rule, 0)))
    return replace(figures, totals=totals, urls_queued=figures.urls_queued + queued)


def requeue_quarantined(ledger: Ledger, chosen: Quarantine) -> int:
    """End a quarantine: queue its dead letters again; return how many. The caller counts them."""
    chosen.is_released = True
    host = ledger.host(chosen.host)
    count = 0
    for url_id, row in list(ledger.urls(host_id(chosen.host))):
        if row.state is UrlState.DEAD and row.outcome == Outcome.QUARANTINED.value and row.error == chosen.name:
            row.outcome = row.error = ""
            ledger.requeue(queued_from(url_id, host_of(row.url), row), row)
            count += 1
    if host is not None:
        Counts.enqueue_stored(host, count)
        ledger.put_host(host)
    ledger.put_record(QUARANTINES, chosen)
    return count
