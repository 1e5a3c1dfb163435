"""Beside the hub: merges files in the store, and pauses fetching while too much of the folder waits for it.

What is merged is off the path of commits. If the store cannot be reached, the commits wait for it and warn the
operator; here it is only tried again. The spool is bounded: at `max_bytes` fetching pauses, and continues when it is
well below.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from gossamer.model.commands import Pause, Resume, Submit
from gossamer.model.errors import StoreUnavailableError
from gossamer.runtime.stores.uploads import PageUploads
from gossamer.telemetry.text import count, size

LOOK_S = 0.5
RESUME_SHARE = 0.8
PAUSED_BY = "spool"


class WatchLimits(Struct, frozen=True):
    """When fetching pauses, and how long is waited for a store."""

    max_bytes: int  # in the spool
    retry_s: float = 2.0
    give_up_s: float = 15.0  # after a stop
    warn_every_s: float = 30.0


class UploadWatch:
    """The uploads of one run that no commit waits for."""

    def __init__(
        self, uploads: PageUploads, limits: WatchLimits, submit: Submit, warn: Callable[[str, str], None]
    ) -> None:
        self._uploads = uploads
        self._limits = limits
        self._submit = submit
        self._warn = warn
        self._warned_at = 0.0  # 0: fetching is not paused

    def begin(self) -> None:
        """Learn what earlier runs have left. Called when the ledger is open and recovered."""
        self._uploads.begin()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            wait_s = LOOK_S
            try:
                if await asyncio.to_thread(self._uploads.tidy):
                    wait_s = 0.0
            except StoreUnavailableError:
                wait_s = self._limits.retry_s
            self.look(await asyncio.to_thread(self._uploads.spool_bytes))
            await asyncio.sleep(wait_s)

    def look(self, spooled: int) -> None:
        """Pause fetching, or let it go on, by the size of the spool."""
        now = monotonic()
        if spooled >= self._limits.max_bytes or (self._warned_at and spooled > RESUME_SHARE * self._limits.max_bytes):
            self._submit(Pause(PAUSED_BY))
            if not self._warned_at or now - self._warned_at >= self._limits.warn_every_s:
                self._warned_at = now
                allowed = size(self._limits.max_bytes)
                text = f"{size(spooled)} in the crawl folder wait for the store; --spool allows {allowed}"
                self._warn("spool_full", f"{text}: fetching is paused until they are there")
        elif self._warned_at:
            self._warned_at = 0.0
            self._submit(Resume(PAUSED_BY))

    async def finish(self, is_stopped: Callable[[], bool]) -> str:
        """Complete the store after the last commit; return what is missing, empty if nothing is.

        A crawl that is over waits for a store that is away, and warns; one that was stopped does not wait for long.
        """
        stopped_at = 0.0
        while True:
            try:
                while await asyncio.to_thread(self._uploads.tidy):
                    pass
                return ""
            except StoreUnavailableError as error:
                now = monotonic()
                stopped_at = stopped_at or (now if is_stopped() else 0.0)
                if stopped_at and now - stopped_at >= self._limits.give_up_s:
                    return self._left(str(error))
                if not self._warned_at or now - self._warned_at >= self._limits.warn_every_s:
                    self._warned_at = now
                    self._warn("store_unreachable", f"{error}; the crawl ends when the store has its last files")
            await asyncio.sleep(self._limits.retry_s)

    def _left(self, error: str) -> str:
        waiting = self._uploads.spool_bytes()
        return f"{error}; {count(waiting)} bytes in the crawl folder are not merged there yet: resume does that"
