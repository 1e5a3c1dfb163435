"""What do the pages of a host show about it? Traps, "not found" with 200, answers that are too large.

Called for every page; decides whether its links are followed, and reports the page to the watch on traps, whose
verdicts `trap_verdicts` applies. Earlier versions made dead letters of what was queued, with the outcome
`quarantined`: `release_quarantine` queues those again. What decisions depend on (calendar counts, suspicions of a
soft 404) is stored per host before each commit. Costs 5 µs per page of a host with many pages, else 1 µs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from xxhash import xxh3_64_digest, xxh3_64_hexdigest

from gossamer.core.frontier.counts import Counts
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.ledger.tables import EVIDENCE, QUARANTINES
from gossamer.core.links.intake import Intake
from gossamer.core.traps.novelty import LANES, PageLinks, PageMark
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.traps.shapes import is_dated
from gossamer.core.traps.soft_not_found import SoftNotFound
from gossamer.core.traps.watch import MIN_PAGES
from gossamer.core.url.forms import host_of, link_to, origin_of
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.holding import Holding
from gossamer.engine.admission.trap_verdicts import TrapVerdicts
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.figures import Figures
from gossamer.model.records import (
    FetchKind,
    HostRecord,
    Link,
    Outcome,
    QueuedUrl,
    Result,
    Source,
    Truncation,
    UrlState,
)
from gossamer.model.state import ALL_PATTERNS, HoldRule, HostEvidence

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore, Ledger

OVERSIZE_ANSWERS = 3  # one or two may be exceptions
OVERSIZE_SHARE = 0.5  # of a host's pages: a few logs or a manual in one page are no reason to leave out the others
_LANE_BYTES = 4 * LANES  # of a MinHash signature
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK = Outcome.OK
_REDIRECT = Outcome.REDIRECT
_PAGE = FetchKind.PAGE
_LINK = Source.LINK
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
        verdicts: TrapVerdicts,
        holding: Holding,
        emitter: EventEmitter,
        *,
        is_on: bool = True,
        max_oversize: int | None = None,
    ) -> None:
        self._intake = intake
        self._ledger = ledger
        self._verdicts = verdicts
        self._holding = holding
        self._events = emitter
        self._is_on = is_on
        # A limit that the operator has set holds whatever else the host has.
        self._max_oversize = max_oversize or OVERSIZE_ANSWERS
        self._oversize_share = 0.0 if max_oversize else OVERSIZE_SHARE
        self._soft = SoftNotFound()

    # -- what survives a restart, and the loss of a shard -----------------------------------------

    def load(self, shard: int | None) -> None:
        """Restore what was learned in earlier runs, or by the previous owner."""
        for quarantine in self._ledger.records(QUARANTINES, shard):
            self._intake.traps.load(quarantine)
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
        self._soft.release(shards)

    # -- facts ------------------------------------------------------------------------------------

    def load_host(self, host: HostRecord) -> None:
        """Remember a host that mostly sends over-size answers, or more of them than the operator allows."""
        if host.oversize >= self._max_oversize and host.oversize >= self._oversize_share * host.pages:
            self._intake.heavy_hosts.add(host.name)
        else:
            self._intake.heavy_hosts.discard(host.name)

    def record_size(self, record: HostRecord, result: Result) -> None:
        """Count an answer that was over the cap."""
        if result.truncated is _LENGTH:
            record.oversize += 1
        if record.oversize:
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

    def record_novelty(self, url: QueuedUrl, result: Result, record: HostRecord, new_links: int, now: float) -> None:
        """Record what a page or redirect brought and led to; its pattern may be suspected, held or cleared."""
        if self._counts_as_dated(url) and url.kind is _PAGE:
            self._record_dated(url, result)
        if not self._is_on or record.pages < MIN_PAGES or url.kind is not _PAGE:
            return
        if result.outcome is _REDIRECT:
            mark = PageMark(xxh3_64_digest(result.redirect_to.encode()))
        elif result.outcome is _OK:
            # A copy of another host's page is no evidence of a trap here: a mirror is finite.
            mark = _mark_of(result, result.duplicate_of if result.duplicate_of[:8] == url.id[:8] else b"")
        else:
            return
        links = PageLinks(
            result.links_found, new_links, self._intake.follows(url.depth + 1, url.seed), is_prose=result.is_prose
        )
        verdict = self._intake.traps.record(url.url, url.host, mark, links, now, record.pages)
        if verdict is not None:
            self._verdicts.apply(verdict, now)

    def record_unfetched(self, url: QueuedUrl) -> None:
        """Record a URL that is not fetched after all: it says nothing about a calendar."""
        if self._counts_as_dated(url):
            self._intake.dates.withdraw(url.host)
            self._holding.release(url.host, HoldRule.CALENDAR)

    def _counts_as_dated(self, url: QueuedUrl) -> bool:
        """Return whether a URL counts against the calendar's budget: a dated page led to it."""
        if not self._intake.dates.has_dated(url.host) or url.source is not _LINK or not is_dated(url.url):
            return False
        page = self._ledger.look_up(url.parent)
        return page is not None and is_dated(page.url)

    def _record_dated(self, url: QueuedUrl, result: Result) -> None:
        """Record what became of a dated URL; dated links that were held back are released if there is room now."""
        dates = self._intake.dates
        if result.outcome is _OK:
            words = result.text_hash or result.content_hash[:8]
            lanes = result.signature[:_LANE_BYTES] if len(result.signature) >= _LANE_BYTES else b""
            # A page with hardly any text, or with that of another page, proves nothing.
            is_copy = bool(result.duplicate_of) or (not result.text_hash and result.content_type == "text/html")
            dates.record(url.host, PageMark(words, lanes, result.words, is_copy, result.numbers))
        else:
            dates.withdraw(url.host)
        self._holding.release(url.host, HoldRule.CALENDAR)


def _mark_of(result: Result, original: bytes) -> PageMark:
    """Return what a page is compared by; `original` is the page of the same host that it copies."""
    is_copy = bool(original)
    if len(result.signature) < _LANE_BYTES:
        # Without MinHash only what is repeated to the letter counts as nothing new.
        return PageMark(result.exact_text or result.content_hash[:8], is_copy=is_copy, original=original)
    words = result.text_hash or result.short_text or result.content_hash[:8]
    return PageMark(words, result.signature[:_LANE_BYTES], result.words, is_copy, result.numbers, original)


def _unlikely(url: str) -> str:
    """Return a URL of the same origin that no site has."""
    origin = origin_of(url)
    return f"{origin}/{xxh3_64_hexdigest(origin.encode())}-no-such-page"


def chosen_quarantines(known: Iterable[Quarantine], name: str, before: float = inf) -> list[Quarantine]:
    """Return the quarantines that a name stands for: one, or all that began before some time; none if it is unknown."""
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
