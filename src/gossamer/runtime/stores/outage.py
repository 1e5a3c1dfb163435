"""A store or a ledger on other machines is away: fetching pauses, the operator is warned, and it goes on by itself.

The part of a commit that needs it is repeated in the commit's thread until it succeeds: no ledger row refers to what
the store does not have. Everything that was fetched is in the crawl folder meanwhile. If a crawl waits for a store and
is stopped, nothing more is committed: the folder is as after a kill, and the next run recovers it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from time import monotonic

from msgspec import Struct, field

from gossamer.model.commands import Command, Pause, Resume
from gossamer.model.errors import GossamerError, StoreUnavailableError
from gossamer.runtime.hub.run import Run
from gossamer.runtime.stores.store_stats import StoreStats

PAUSED_BY = "store"
RULE = "store_unreachable"
WARN_EVERY_S = 30.0


class OutageControl(Struct, frozen=True):
    """What an outage of the store does to the crawl."""

    run: Run
    warn: Callable[[str, str], None]  # the name of a rule, and a text. In the event loop
    retry_s: float = 1.0
    warn_every_s: float = WARN_EVERY_S
    stats: StoreStats = field(default_factory=StoreStats)


def patiently(act: Callable[[], None], control: OutageControl, loop: asyncio.AbstractEventLoop) -> None:
    """Call a function until the store is not away, unless the crawl is stopped. In a thread."""
    outage = Outage(PAUSED_BY, RULE, control.run.submit, control.warn, loop, warn_every_s=control.warn_every_s)
    stats = control.stats
    retry = threading.Event()  # never set: a wait that the end of the process does not delay
    while True:
        began_at = monotonic()
        try:
            act()
            stats.flush_time.add(monotonic() - began_at)
            break
        except StoreUnavailableError as error:
            stats.failed_writes += 1
            if control.run.is_stopped:
                raise _given_up(error) from error
            outage.go_on(error)
            retry.wait(control.retry_s)
    outage.end()


def _given_up(error: StoreUnavailableError) -> StoreUnavailableError:
    return StoreUnavailableError(f"{error}; stopped before it was back: nothing is lost, resume when it is")


class Outage:
    """A time in which commits cannot be made. Used in the commit's thread."""

    def __init__(
        self,
        by: str,
        rule: str,
        submit: Callable[[Command], None],
        warn: Callable[[str, str], None],
        loop: asyncio.AbstractEventLoop,
        *,
        warn_every_s: float = WARN_EVERY_S,
    ) -> None:
        self._by = by  # what is away
        self._rule = rule  # of the warning
        self._submit = submit
        self._warn = warn
        self._loop = loop
        self._warn_every_s = warn_every_s
        self._began_at = self._warned_at = 0.0

    def go_on(self, error: GossamerError) -> None:
        """Pause the crawl, and warn if that is due."""
        now = monotonic()
        if not self._began_at:
            self._began_at = now
            self._loop.call_soon_threadsafe(self._submit, Pause(self._by))
        elif now - self._warned_at < self._warn_every_s:
            return
        self._warned_at = now
        waited = f" for {now - self._began_at:.0f} s" if now > self._began_at else ""
        text = f"fetching is paused{waited}: {error}; nothing is lost, and it goes on by itself"
        self._loop.call_soon_threadsafe(self._warn, self._rule, text)

    def end(self) -> None:
        """Let the crawl go on."""
        if self._began_at:
            self._loop.call_soon_threadsafe(self._submit, Resume(self._by))
