"""What follows when a pattern of URLs is suspected, held, or neither any more, and when nothing else is left?

| change    | what is queued                                                   | what is held |
|-----------|------------------------------------------------------------------|--------------|
| suspected | goes behind everything else of its host, but for one in `TURNS`  |              |
| held      | leaves the queue and is held, as if never found                  |              |
| refuted   |                                                                  | is queued    |

Only what was found on pages of the pattern is affected (`core/traps/watch`): the parents are looked up, once each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.frontier.priority import DEMOTION
from gossamer.core.ledger.catalog import record_of
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.links.intake import Intake
from gossamer.core.links.requisite import is_requisite
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.traps.url_patterns import contains
from gossamer.core.traps.watch import TURNS, PatternChange, PatternVerdict
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.removal import Removal
from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.events import EventName
from gossamer.model.records import QueuedUrl, QueuePosition, Source, UrlId
from gossamer.model.state import CrawlState, HoldRule

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

_BATCH = 1000
_LINK = Source.LINK


class TrapVerdicts:
    """Applies what `core/traps/watch` decides."""

    def __init__(
        self,
        intake: Intake,
        ledger: FrontierStore,
        *,
        removal: Removal,
        admission: Admission,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._traps = intake.traps
        self._ledger = ledger
        self._removal = removal
        self._admission = admission
        self._holding = admission.holding
        self._events = emitter
        self._state = state

    def apply(self, verdict: PatternVerdict, now: float) -> None:
        """Change the queue as a verdict demands, and store it."""
        pattern = verdict.quarantine
        match verdict.change:
            case PatternChange.SUSPECTED:
                self._demote_queued(pattern, now)
                self._hold_queued(pattern.host, now)
                self._events.trap(EventName.TRAP_SUSPECTED, pattern, now)
            case PatternChange.HELD:
                self._hold_queued(pattern.host, now)
                self._events.trap(EventName.TRAP_QUARANTINED, pattern, now)
            case PatternChange.CLEARED | PatternChange.REFUTED:
                self._events.trap(EventName.TRAP_CLEARED, pattern, now)
                self._holding.release(pattern.host, HoldRule.QUARANTINE)
            case PatternChange.COUNTED:
                pass
        self._ledger.put_record(QUARANTINES, pattern)

    def grant(self) -> bool:
        """Have some of what is held offered as nothing else is left; return whether any may be."""
        is_any = False
        for host in self._traps.hosts_with_held():
            record = self._ledger.host(host)
            if record is None or record.queued:
                continue  # it is parked, or over its budget
            if self._traps.grant(host, record.pages, self._state.totals.pages):
                self._holding.release(host, HoldRule.QUARANTINE)
                is_any = True
        return is_any and bool(self._holding.due)

    def _demote_queued(self, suspect: Quarantine, now: float) -> None:
        for urls in self._queued(suspect, lambda url: url.priority < DEMOTION):
            chosen = [url for at, url in enumerate(urls) if at % TURNS]
            moved = self._removal.withdraw(suspect.host, chosen, now)
            demoted = [replace(url, priority=url.priority + DEMOTION) for url in moved]
            for url in demoted:
                self._ledger.requeue(url, record_of(url))
            self._state.totals.urls_seen += len(demoted)
            self._admission.enqueue(demoted, now)

    def _hold_queued(self, host: str, now: float) -> None:
        """Hold what is queued of all patterns of a host that are held: pages of the latest one may have led to it."""
        for held in self._traps.held(host):
            for urls in self._queued(held, lambda _: True):
                self._holding.hold_queued(self._removal.withdraw(host, urls, now), now)
            self._ledger.put_record(QUARANTINES, held)

    def _queued(self, pattern: Quarantine, is_wanted: Callable[[QueuedUrl], bool]) -> Iterator[list[QueuedUrl]]:
        """Yield batches of a pattern's queued URLs, of those that were found on its pages and never requested."""
        parents: dict[UrlId, bool] = {}
        after: QueuePosition | None = None
        while urls := self._ledger.read_queue(host_id(pattern.host), after, _BATCH):
            after = urls[-1].position
            yield [
                url
                for url in urls
                if url.source is _LINK
                and not (url.known or url.attempt or url.hops or is_requisite(url))
                and is_wanted(url)
                and contains(pattern.pattern, url.url)
                and self._is_suspected(url.parent, pattern.host, parents)
            ]

    def _is_suspected(self, page: UrlId, host: str, known: dict[UrlId, bool]) -> bool:
        if page not in known:
            row = self._ledger.look_up(page) if page[:8] == host_id(host) else None
            known[page] = row is not None and self._traps.pattern_in_force(row.url, host) is not None
        return known[page]
