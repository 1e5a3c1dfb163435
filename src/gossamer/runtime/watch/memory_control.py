"""Keeps a running crawl below its memory ceiling.

The guard (`runtime/watch/memory_control`) decides; this module measures what the crawl uses, and submits the
decisions as commands: how many concurrent requests are allowed, and when to commit. It shrinks
the ledger's caches itself, since these do not depend on the hub's turns. Called 20 times per second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from gossamer.engine.crawl import Crawl
from gossamer.model.commands import CommitSoon, SetMemoryWindow, Submit
from gossamer.runtime.watch import vitals
from gossamer.settings.budget import shown

# Does a crawl stay below its memory ceiling, and what is done if it comes near?
#
# Everything that can be counted is bounded from the start (`settings/budget`). The size of an answer is only known
# once it has arrived; so a crawl starts with as many concurrent requests as may all receive the largest body, and
# adds more with every answer, up to the number for which answers of the recent size have room, in their own part
# or in what the others leave free. As in TCP, the number doubles per round until memory is short for the first
# time, then grows by one. If memory is short the number is halved and inessential caches are dropped, at most once
# per second. A crawl is never stopped because of its memory.
#
# Pure: receives the memory in use, decides what to do. Costs 2 µs, 20 times per second.

SHORTAGE: Final = 0.9  # of the ceiling
COMFORT: Final = 0.75
RELIEF_S: Final = 1.0
RECENT: Final = 64  # answers over which the mean size is taken


class Use(Struct, frozen=True, gc=False):
    """What a crawl uses now, and has received so far."""

    private_bytes: int
    in_flight: int
    answers: int
    answer_bytes: int  # of all of them, on the wire and decoded


class Window:
    """The number of concurrent requests allowed."""

    def __init__(self, min_size: int, max_size: int, body_bytes: int) -> None:
        self._min_size = min_size
        self._max_size = max_size
        self._body_bytes = body_bytes  # for all answers in flight together, whatever else is in use
        self._free_bytes = 0.0
        self._size = float(min_size)
        self._answers = 0  # up to `RECENT`
        self._mean_bytes = 0.0  # of one of these
        self._was_short = False

    @property
    def size(self) -> int:
        """Concurrent requests allowed."""
        return int(self._size)

    def set_free(self, size: float) -> None:
        self._free_bytes = size
        self._size = min(self._size, self._room())

    def record_answers(self, count: int, size: int) -> None:
        """Record answers and their bytes: larger ones leave room for fewer."""
        self._answers = min(RECENT, self._answers + count)
        share = min(1.0, count / self._answers)  # the first ones count in full
        self._mean_bytes += share * (size / count - self._mean_bytes)
        self._size = min(self._size, self._room())

    def widen(self, answers: int) -> None:
        """Allow more requests, after this many answers."""
        more = answers / self._size if self._was_short else answers
        self._size = min(self._size + more, self._room())

    def halve(self) -> None:
        self._was_short = True
        self._size = max(self._min_size, self._size / 2)

    def _room(self) -> float:
        size = max(self._body_bytes, self._free_bytes)
        return min(self._max_size, max(self._min_size, size / max(1.0, self._mean_bytes)))


class MemoryGuard:
    def __init__(
        self, ceiling: int, window: Window, *, relieve: Callable[[], None], shrink: Callable[[], None]
    ) -> None:
        self._ceiling = ceiling
        self.window = window
        self._relieve = relieve  # costs time, but loses nothing
        self._shrink = shrink  # drops inessential caches
        self._before: Use | None = None
        self._next_relief_at = 0.0
        self._has_warned = False

    def update(self, use: Use, now: float) -> str:
        """React to the memory in use; return a warning, once, or ''."""
        before = self._before or use
        self._before = use
        answers = use.answers - before.answers
        self.window.set_free(COMFORT * self._ceiling - use.private_bytes)
        if answers:
            self.window.record_answers(answers, use.answer_bytes - before.answer_bytes)
        if use.private_bytes < COMFORT * self._ceiling:
            # A window that is not full is no evidence for a larger one.
            if 2 * use.in_flight >= self.window.size:
                self.window.widen(answers)
        elif use.private_bytes >= SHORTAGE * self._ceiling and now >= self._next_relief_at:
            self._next_relief_at = now + RELIEF_S
            self.window.halve()
            self._relieve()
            if use.private_bytes > self._ceiling:
                self._shrink()
        if use.private_bytes <= self._ceiling or self._has_warned:
            return ""
        self._has_warned = True
        return (
            f"{use.private_bytes / (1 << 20):.0f}M of memory in use, over the ceiling of {shown(self._ceiling)}: "
            "fewer concurrent requests, smaller caches"
        )


class CachedLedger(Protocol):
    """The part of a ledger that memory control uses."""

    def pending_count(self) -> int:
        """Return how many changes wait for the next commit."""
        ...

    def shrink(self, *, forgets_pages: bool) -> None:
        """Drop caches that are not essential; with `forgets_pages` also the older pages of the near-duplicate index."""
        ...

    @property
    def has_forgotten_signatures(self) -> bool:
        """Whether pages are compared with the newer ones only."""
        ...


class MemoryLimits(Struct, frozen=True):
    """How much memory a crawl may use, and for what."""

    ceiling_bytes: int
    min_connections: int
    max_connections: int
    body_bytes: int  # of all answers in flight together
    max_pending: int  # uncommitted changes of the ledger
    forgets_pages: bool = True  # above the ceiling: which pages are near duplicates then depends on measured memory


class MemoryControl:
    def __init__(
        self,
        limits: MemoryLimits,
        *,
        crawl: Crawl,
        ledger: CachedLedger,
        warn: Callable[[str, str], None],
        submit: Submit,
        now: Callable[[], float],
    ) -> None:
        self._max_pending = limits.max_pending
        self._crawl = crawl
        self._ledger = ledger
        self._warn = warn  # the name of a rule, and a text
        self._submit = submit
        self._now = now
        self._guard = MemoryGuard(
            limits.ceiling_bytes,
            Window(limits.min_connections, limits.max_connections, limits.body_bytes),
            relieve=self._relieve,
            shrink=lambda: ledger.shrink(forgets_pages=limits.forgets_pages),
        )
        self._window = limits.min_connections
        self._has_warned_of_signatures = False

    def on_memory(self, private_bytes: int) -> None:
        """React to the memory that the hub and its workers use now."""
        totals = self._crawl.totals
        now = self._now()
        answers = totals.fetches - totals.robots_fetches - totals.failed_lookups
        use = Use(private_bytes, self._crawl.frontier.in_flight, answers, totals.bytes + totals.content_bytes)
        warning = self._guard.update(use, now)
        if self._guard.window.size != self._window:
            self._window = self._guard.window.size
            self._submit(SetMemoryWindow(self._window))
        if self._ledger.pending_count() >= self._max_pending:
            self._submit(CommitSoon())
        if self._ledger.has_forgotten_signatures and not self._has_warned_of_signatures:
            self._has_warned_of_signatures = True
            self._warn("memory", "near duplicates are searched among the newer pages only: memory is at its ceiling")
        if warning:
            self._warn("memory", warning)

    def _relieve(self) -> None:
        """Return freed memory to the system, and commit early."""
        vitals.trim_memory()
        self._submit(CommitSoon())
