"""At most `--max-queued` URLs are queued: beyond that the last ones of all queues become dead letters.

Last is what has the lowest priority, then what was found last; `engine/admission/queue_tails` finds it. Some more than
needed are evicted, so that it is rare, and at most `MAX_READS` queues are read at a time: the rest is done with the
next page. What is in flight stays. Requisites do not count: their pages are fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.first_pass import FirstPassProgress
from gossamer.engine.admission.queue_tails import QueueTails
from gossamer.engine.admission.removal import Removal
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.evidence import Evidence
from gossamer.model.events import EventName
from gossamer.model.records import Outcome, QueuedUrl
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import QueueStore

MAX_READS = 200
_BATCH = 64  # URLs of a queue that are read at a time


class Eviction:
    def __init__(
        self,
        max_queued: int | None,
        tails: QueueTails | None,
        *,
        frontier: Frontier,
        ledger: QueueStore,
        removal: Removal,
        evidence: Evidence,
        first_pass: FirstPassProgress,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._max_queued = max_queued or 0
        self._tails = tails
        self._frontier = frontier
        self._ledger = ledger
        self._removal = removal
        self._evidence = evidence
        self._first_pass = first_pass
        self._events = emitter
        self._state = state

    def evict_excess(self, now: float) -> None:
        """Evict what is too much."""
        tails = self._tails
        if tails is None:
            return
        counts = self._frontier.counts
        over = counts.queued - counts.requisites - self._max_queued
        if over <= 0:
            return
        over += self._max_queued // 100
        evicted: list[QueuedUrl] = []
        aside: list[QueuedUrl] = []  # the last of queues whose end is in flight
        for _ in range(MAX_READS):
            host = tails.pop() if len(evicted) < over else None
            if host is None:
                break
            last = self._ledger.last(host_id(host), min(_BATCH, over - len(evicted)))
            if not last:
                continue
            gone = self._evict_from(host, last, tails.latest(), now)
            evicted += gone
            if not gone and tails.latest() <= _tail(last[0]):
                aside.append(last[0])
            else:
                known = {url.id for url in gone}
                tails.add(host, _tail(next((url for url in last if url.id not in known), last[-1])))
        for url in aside:
            tails.add(url.host, _tail(url))
        if evicted:
            self._state.totals.evicted += len(evicted)
            reason = f"more than {self._max_queued} URLs queued"
            self._events.emit(EventName.EVICTED, now, reason=reason, rule="max_queued", links=len(evicted))
        for url in evicted:
            self._evidence.record_unfetched(url)
            self._first_pass.fail(url.host, now)

    def _evict_from(self, host: str, last: list[QueuedUrl], others: tuple[int, int], now: float) -> list[QueuedUrl]:
        """Evict those of a queue's last URLs that come after all other queues."""
        victims = [url for url in last if _tail(url) >= others]
        error = f"max_queued {self._max_queued}: the lowest priority of all that was queued"
        return self._removal.kill(host, victims, Outcome.EVICTED, now, error) if victims else []


def _tail(url: QueuedUrl) -> tuple[int, int]:
    return url.priority, url.seq
