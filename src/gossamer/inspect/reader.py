"""What does a crawl folder hold, seen from outside, while its crawl may be running?

Reads only: the ledger is opened for reading and shows what is committed, at most a second
or two old. Takes no lock, writes nothing.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

import lmdb
import msgspec

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.errors import CorruptFolderError
from gossamer.figures import Totals
from gossamer.settings.load import completed, from_file, merged
from gossamer.settings.model import Settings
from gossamer.telemetry.summary import Summary

RUNNING = "running"
INTERRUPTED = "interrupted"


class CrawlReader:
    """A crawl folder, open for reading; use it with `with`."""

    def __init__(self, path: Path) -> None:
        self.folder = CrawlFolder(path)
        self.ledger = LocalLedger(self.folder.state, is_readonly=True)
        self.settings = Settings()
        self.totals = Totals()
        self.owner: int | None = None  # the process that runs the crawl now
        self.now = 0.0

    def __enter__(self) -> CrawlReader:
        self.folder.require_crawl()
        self.now = time.time()
        path = self.folder.settings_path
        self.settings = completed(merged((str(path), from_file(path))), has_domain_list=False)
        self.owner = self.folder.owner()
        try:
            self.ledger.open()
            value = self.ledger.get_meta("totals")
        except lmdb.Error as error:
            raise CorruptFolderError(f"{self.folder.state}: cannot read the ledger: {error}") from error
        if value is not None:
            self.totals = msgspec.msgpack.decode(value, type=Totals)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ledger.close()
        if isinstance(error, (lmdb.Error, msgspec.DecodeError)):
            raise CorruptFolderError(f"{self.folder.path}: the ledger cannot be read: {error}") from error

    def finished(self) -> str:
        """Return why the crawl ended; `running` if it still runs, `interrupted` if it was killed."""
        if self.owner is not None:
            return RUNNING
        stored = self._stored_summary()
        return INTERRUPTED if stored is None else stored.finished

    def _stored_summary(self) -> Summary | None:
        """Return the summary of the last run, or None if it did not reach its end."""
        if self.ledger.get_meta("is_running") == b"1":
            return None
        value = self.ledger.get_meta("summary")
        return None if value is None else msgspec.json.decode(value, type=Summary)

    def summary(self) -> Summary:
        """Return the figures of the last run if it has ended, else those of what is committed."""
        stored = None if self.owner is not None else self._stored_summary()
        return stored or self._summary_so_far()

    def _summary_so_far(self) -> Summary:
        totals = self.totals
        queued, parked = self._waiting()
        return Summary(
            pages=totals.pages,
            fetches=totals.fetches,
            errors=totals.errors,
            error_rate=round(totals.errors / totals.fetches, 6) if totals.fetches else 0.0,
            bytes=totals.bytes,
            seconds=round(totals.seconds, 3),
            pages_per_second=round(totals.pages / totals.seconds, 2) if totals.seconds else 0.0,
            cpu_seconds=round(totals.cpu_seconds, 3),
            cpu_ms_per_page=round(1000 * totals.cpu_seconds / totals.pages, 3) if totals.pages else 0.0,
            peak_rss_bytes=0,
            peak_private_bytes=0,
            unique_hosts=totals.unique_hosts,
            unique_domains=totals.unique_domains,
            urls_seen=totals.urls_seen,
            urls_queued=queued,
            urls_parked=parked,
            robots_disallowed=totals.robots_disallowed,
            duplicates=totals.duplicates,
            near_duplicates=totals.near_duplicates,
            html_share=round(totals.html_pages / totals.pages, 4) if totals.pages else 0.0,
            finished=self.finished(),
            out=str(self.folder.path),
            dead=totals.dead,
        )

    def _waiting(self) -> tuple[int, int]:
        """Return how many URLs are queued, and how many of them at hosts parked for longer than `max_wait`."""
        queued = parked = 0
        horizon = self.now + self.settings.max_wait
        for host in self.ledger.hosts():
            queued += host.queued
            if max(host.next_at, host.parked_until) > horizon:
                parked += host.queued
        return queued, parked
