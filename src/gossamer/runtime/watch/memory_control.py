"""Keeps a running crawl below its memory ceiling.

The guard (`runtime/watch/memory`) decides; this module measures what the crawl uses, and submits the
decisions as commands: how many concurrent requests are allowed, and when to commit. It shrinks
the ledger's caches itself, since these do not depend on the hub's turns. Called 20 times per second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from gossamer.engine.crawl import Crawl
from gossamer.runtime.hub.commands import CommitSoon, SetMemoryWindow, Submit
from gossamer.runtime.watch import vitals
from gossamer.runtime.watch.memory import MemoryGuard, Use, Window


class CachedLedger(Protocol):
    """The part of a ledger that concerns memory."""

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
    """Reacts to the memory in use."""

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
