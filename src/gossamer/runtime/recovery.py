"""Finishes what a dead process, or a dead worker of this process, had stored but not reported.

The archive is the write-ahead log (`stored_results`). Every file that a dead process left is
closed: it gets its index and its final name, and is never written to again, so what could not be
placed stays in it. A restart has two steps, with the engine's own `restore` between them:
robots.txt files and refusals are written to the ledger first, since they apply to the hosts that
`restore` loads; pages need the restored engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gossamer.archive.excision import remove_unfinished_copies
from gossamer.archive.recovery import RecoveredTail, close_file, mend_parts, recover, unfinished_files
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.url import link_to
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.events import EventName, masked
from gossamer.ports import Ledger
from gossamer.records import ArchiveSpan, Order, Result, RobotsRecord, UrlState
from gossamer.runtime.stored_results import Found, Placing, ReadingRules, StoredResults, recovered_robots
from gossamer.runtime.unsaved_facts import read_unsaved_facts
from gossamer.runtime.warning_log import WarningLog


class Recovery:
    """Reads the archive of one crawl folder back into its ledger."""

    def __init__(
        self,
        folder: CrawlFolder,
        ledger: Ledger,
        crawl: Crawl,
        emitter: EventEmitter,
        *,
        warnings: WarningLog,
        rules: ReadingRules,
        now: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._crawl = crawl
        self._emitter = emitter
        self._warnings = warnings
        self._rules = rules
        self._now = now
        self._tails: list[RecoveredTail] = []
        self._robots: list[RobotsRecord] = []
        self._robots_targets: set[str] = set()

    # -- after a restart --------------------------------------------------------------------------

    def prepare(self, *, was_clean: bool) -> None:
        """Write refusals and robots.txt files to the ledger. Call before the engine is restored."""
        if not was_clean:
            facts = read_unsaved_facts(self._folder.events, self._crawl.state.saved_at)
            self._robots_targets = facts.robots_targets
            self._crawl.restore_refusals(facts.parked_until)
        remove_unfinished_copies(self._folder.archive)
        unfinished = unfinished_files(self._folder.archive, self._ledger.archive_ends())
        self._tails = [recover(path, committed) for path, committed in unfinished]
        self._robots = [record for tail in self._tails for record in recovered_robots(tail)]
        for record in self._robots:
            self._ledger.put_robots(record)

    def finish(self) -> None:
        """Complete the pages that were archived but not committed, and close the files of dead processes."""
        now = self._now()
        for record in self._robots:
            self._crawl.recall_robots(record, now)
        stored = self._stored(self._tails, QueuedPages(self._ledger, self._crawl, self._robots_targets, now))
        finished = 0
        for result in stored:
            self._crawl.complete(result, now)
            finished += 1
        for tail in self._tails:
            self._close_file(tail.path)
            self._emitter.emit(EventName.RECOVERED, now, reason=f"{tail.path.name} {tail.problem}".strip())
        mend_parts(self._folder.archive, self._folder.index)
        self._report(stored, now)
        if finished or stored.unplaced:
            reason = "pages finished from the archive"
            if stored.unplaced:
                reason += f"; {len(stored.unplaced)} records that could not be placed stay in it"
            self._emitter.emit(EventName.RECOVERED, now, reason=reason, links=finished)
        self._tails, self._robots = [], []

    # -- while the crawl runs ---------------------------------------------------------------------

    def rescue(self, number: int) -> Iterator[Result]:
        """Yield what a dead worker had archived but not reported; then close its files."""
        ends = self._ledger.archive_ends()
        paths = sorted(self._folder.archive.glob(f"*-{number:02d}-*.warc.gz*"))
        tails = [recover(path, ends.get(path.name.removesuffix(".open"), 0)) for path in paths]
        stored = self._stored(tails, OutstandingOrders(self._ledger, self._crawl))
        yield from stored
        for path in paths:
            self._close_file(path)
        self._report(stored, self._now())

    # -- both -------------------------------------------------------------------------------------

    def _stored(self, tails: Sequence[RecoveredTail], placing: Placing) -> StoredResults:
        return StoredResults(self._folder.archive, tails, placing, self._rules)

    def _close_file(self, path: Path) -> None:
        length = close_file(path, self._folder.index)
        self._ledger.put_archive_end(path.name.removesuffix(".open"), length)

    def _report(self, stored: StoredResults, now: float) -> None:
        """Emit an event for every record that did not become a result, and for errors of ours."""
        for crash in stored.crashes:
            self._warnings.crash(crash)
        for record in stored.unplaced:
            place = {"file": record.file, "offset": record.offset}
            reason = f"{record.file} at {record.offset}: a record that could not be placed stays there: {record.why}"
            self._emitter.emit(EventName.WARNING, now, url=record.url, reason=reason, **place)
        for record in stored.removed:
            reason = f"{record.file} at {record.offset}: a record was removed: {record.why}"
            self._emitter.emit(EventName.RECOVERED, now, url=record.url, reason=reason)


class _StoredPages:
    """Finds the pages that revisits refer to."""

    def __init__(self, ledger: Ledger, crawl: Crawl) -> None:
        self._ledger = ledger
        self._crawl = crawl

    def original(self, url: str) -> ArchiveSpan | None:
        """Return where the page that a revisit refers to is stored."""
        record = self._ledger.look_up(link_to(url).id)
        return None if record is None else record.archived


class QueuedPages(_StoredPages):
    """After a restart: URLs that are queued in the ledger wait for their answers."""

    def __init__(self, ledger: Ledger, crawl: Crawl, robots_targets: set[str], now: float) -> None:
        super().__init__(ledger, crawl)
        self._robots_targets = robots_targets  # targets of robots.txt redirects in a killed run
        self._now = now

    def find(self, url: str) -> Found:
        """Return what the ledger has on a URL."""
        if url.endswith("/robots.txt"):
            return Found.SETTLED
        row = self._ledger.look_up(link_to(url).id)
        if row is None:
            is_robots = url in self._robots_targets or masked(url) in self._robots_targets
            return Found.SETTLED if is_robots else Found.UNKNOWN
        return Found.QUEUED if row.state is UrlState.QUEUED else Found.SETTLED

    def claim(self, url: str) -> Order | None:
        """Return an order for a URL that is queued."""
        return self._crawl.adopt(link_to(url), self._now)


class OutstandingOrders(_StoredPages):
    """While the crawl runs: the outstanding orders of a dead worker wait for their answers."""

    def find(self, url: str) -> Found:
        """Return whether an order for a URL is outstanding."""
        return Found.SETTLED if self._crawl.order_for(url) is None else Found.QUEUED

    def claim(self, url: str) -> Order | None:
        """Return the outstanding order for a URL."""
        return self._crawl.order_for(url)
