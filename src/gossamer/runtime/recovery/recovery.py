"""Finishes what a dead process, or a dead worker of this process, had stored but not reported.

The archive is the write-ahead log (`stored_results`). Every file that a dead process left is
closed: it gets its index and its final name, and is never written to again, so what could not be
placed stays in it. A restart has two steps, with the engine's own `restore` between them:
robots.txt files and refusals are written to the ledger first, since they apply to the hosts that
`restore` loads; pages need the restored engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from gossamer.archive.cdxj import final_name
from gossamer.archive.excision import remove_unfinished_copies
from gossamer.archive.reader import ArchivedRecord
from gossamer.archive.recovery import ASIDE_FOLDER, RecoveredTail, close_file, mend_parts, recover, unfinished_files
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.url.forms import link_to
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.revisit.due_urls import is_due_again
from gossamer.foundation import failpoints
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError
from gossamer.model.events import EventName, masked
from gossamer.model.records import ArchiveSpan, FetchTask, Link, Result, RobotsRecord, UrlId, UrlState
from gossamer.runtime.recovery.stored_results import KnownUrl, Placing, ReadingRules, StoredResults, recovered_robots
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.telemetry.text import plural

if TYPE_CHECKING:
    from gossamer.ports import Ledger

OnFinished: TypeAlias = Callable[[UrlId], None]  # gets the URL of every answer that was read back after a restart


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
        on_finished: OnFinished | None = None,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._crawl = crawl
        self._emitter = emitter
        self._warnings = warnings
        self._rules = rules
        self._now = now
        self._on_finished = on_finished
        self._tails: list[RecoveredTail] = []
        self._robots: list[RobotsRecord] = []
        self._robots_targets: set[str] = set()

    # -- after a restart --------------------------------------------------------------------------

    def prepare(self, *, was_clean: bool) -> None:
        """Write refusals and robots.txt files to the ledger. Call before the engine is restored."""
        if not was_clean:
            from gossamer.runtime.recovery.unsaved_facts import read_unsaved_facts

            facts = read_unsaved_facts(self._folder.events, self._crawl.state.saved_at)
            self._robots_targets = facts.robots_targets
            self._crawl.restore_refusals(facts.parked_until)
        remove_unfinished_copies(self._folder.archive)
        committed = self._ledger.archive_ends()
        self._check_files(committed)
        unfinished = unfinished_files(self._folder.archive, committed)
        self._tails = [recover(path, committed) for path, committed in unfinished]
        self._robots = [record for tail in self._tails for record in recovered_robots(tail)]
        for record in self._robots:
            self._ledger.put_robots(record)

    def _check_files(self, committed: dict[str, int]) -> None:
        """Refuse to touch an archive that this ledger cannot explain, and warn of files that are missing."""
        present = archived_names(self._folder) | self._rules.files.merged().keys()
        missing = _missing(present, committed)
        if present and not self._crawl.totals.runs:
            raise CorruptFolderError(
                f"{self._folder.state}: the ledger is empty, but {self._folder.archive.name}/ has {len(present)} "
                f"files: it was emptied or replaced{HOW_TO_REBUILD}"
            )
        if foreign := foreign_ledger(present, committed):
            raise CorruptFolderError(f"{self._folder.state}: {foreign}{HOW_TO_REBUILD}")
        if missing:
            self._warnings.warn(
                "archive_missing",
                f"{len(missing)} archive files that were committed are missing, as {missing[0]}: "
                "their pages are in the catalog, but cannot be read",
            )

    def finish(self) -> None:
        """Complete the pages that were archived but not committed, and close the files of dead processes."""
        now = self._now()
        pages = QueuedPages(self._ledger, self._crawl, self._robots_targets, now)
        self._finish(pages, now, self._on_finished)

    def _finish(self, pages: Placing, now: float, on_finished: OnFinished | None = None) -> int:
        for record in self._robots:
            self._crawl.recall_robots(record, now)
        stored = self._stored(self._tails, pages)
        finished = 0
        for result in stored:
            completed = self._crawl.complete(result, now)
            if on_finished is not None and completed is not None:
                on_finished(completed.task.url_id)
            failpoints.reach("in_recovery")
            finished += 1
        for tail in self._tails:
            self._close_file(tail.path)
            cut = f": {tail.cut_bytes} bytes moved to {ASIDE_FOLDER}/" if tail.cut_bytes else ""
            self._emitter.emit(EventName.RECOVERED, now, reason=f"{tail.path.name} {tail.problem}{cut}".strip())
        mend_parts(self._folder.archive, self._folder.index)
        self._report(stored, now)
        if finished or stored.unplaced:
            reason = "pages finished from the archive"
            if stored.unplaced:
                reason += f"; {plural(len(stored.unplaced), 'record')} that could not be placed left in it"
            self._emitter.emit(EventName.RECOVERED, now, reason=reason, links=finished)
        self._tails = []
        self._robots = []
        return finished

    def rebuild(self) -> tuple[int, int]:
        """Read the whole archive into an empty ledger; return how many answers were read, and how many are seeds."""
        from gossamer.runtime.recovery.unsaved_facts import read_unsaved_facts, seeds_in_events

        now = self._now()
        facts = read_unsaved_facts(self._folder.events, 0.0)
        remove_unfinished_copies(self._folder.archive)
        self._tails = [recover(path, 0) for path in sorted(self._folder.archive.glob("*.warc.gz*"))]
        self._robots = [record for tail in self._tails for record in recovered_robots(tail)]
        for record in self._robots:
            self._ledger.put_robots(record)
        self._crawl.restore(now, was_clean=True)
        pages = KnownPages(self._ledger, self._crawl, facts.robots_targets, now)
        # First of all: a page may have linked to a seed, or to the domain of one.
        links = [link_to(url) for url in seeds_in_events(self._folder.events)]
        pages.seeds += self._crawl.add_seeds(links, now)
        for tail in self._tails:
            stored = (link_to(answer.target) for _, answer in tail.tasks() if pages.is_page(answer))
            self._crawl.join_scope(stored)
        answers = self._finish(pages, now)
        return answers, pages.seeds

    # -- while the crawl runs ---------------------------------------------------------------------

    def rescue(self, number: int) -> Iterator[Result]:
        """Yield what a dead worker had archived but not reported; then close its files."""
        unfinished = unfinished_files(self._folder.archive, self._ledger.archive_ends())
        own = [(path, end) for path, end in unfinished if path.match(f"*-{number:02d}-?????.warc.gz*")]
        tails = [recover(path, end) for path, end in own]
        stored = self._stored(tails, OutstandingTasks(self._ledger, self._crawl))
        yield from stored
        for path, _ in own:
            self._close_file(path)
        self._report(stored, self._now())

    # -- both -------------------------------------------------------------------------------------

    def _stored(self, tails: Sequence[RecoveredTail], placing: Placing) -> StoredResults:
        return StoredResults(tails, placing, self._rules)

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
    def __init__(self, ledger: Ledger, crawl: Crawl) -> None:
        self._ledger = ledger
        self._crawl = crawl

    def identified(self, link: Link, *, is_requisite: bool) -> Link:
        url_id, _ = self._ledger.find(link.id, link.url, is_requisite=is_requisite)
        return link if url_id == link.id else replace(link, id=url_id)

    def original(self, url: str) -> ArchiveSpan | None:
        record = self._ledger.look_up(self._ledger.url_id(url))
        return None if record is None else record.archived


class QueuedPages(_StoredPages):
    """After a restart: URLs that are queued in the ledger wait for their answers."""

    def __init__(self, ledger: Ledger, crawl: Crawl, robots_targets: set[str], now: float) -> None:
        super().__init__(ledger, crawl)
        self._robots_targets = robots_targets  # targets of robots.txt redirects in a killed run
        self._now = now

    def find(self, link: Link, *, is_requisite: bool = False) -> KnownUrl:
        url = link.url
        if url.endswith("/robots.txt"):
            return KnownUrl.SETTLED
        row = self._ledger.look_up(link.id)
        if row is None:
            is_robots = not is_requisite and (url in self._robots_targets or masked(url) in self._robots_targets)
            return KnownUrl.SETTLED if is_robots else KnownUrl.UNKNOWN
        is_expected = row.state is UrlState.QUEUED or is_due_again(row, self._now)
        return KnownUrl.QUEUED if is_expected else KnownUrl.SETTLED

    def adopt(self, link: Link) -> FetchTask | None:
        return self._crawl.adopt(link, self._now)


class KnownPages(QueuedPages):
    """During a rebuild: every stored page is wanted, whether the ledger knows its URL yet or not."""

    def __init__(self, ledger: Ledger, crawl: Crawl, robots_targets: set[str], now: float) -> None:
        super().__init__(ledger, crawl, robots_targets, now)
        self.seeds = 0

    def is_page(self, answer: ArchivedRecord) -> bool:
        """Return whether a stored answer is that of a page, not of robots.txt, its redirect or what a page needs."""
        return not answer.is_requisite and super().find(link_to(answer.target)) is not KnownUrl.SETTLED

    def find(self, link: Link, *, is_requisite: bool = False) -> KnownUrl:
        """Queue a URL if it is not queued yet: unknown ones as seeds, known ones for another visit.

        What an earlier page needs is queued by then; a requisite that is not belongs to a page that is lost.
        """
        found = super().find(link, is_requisite=is_requisite)
        if found is KnownUrl.UNKNOWN and not is_requisite:
            self.seeds += self._crawl.add_seeds([link], self._now)
            return KnownUrl.QUEUED
        row = self._ledger.look_up(link.id)
        if found is KnownUrl.SETTLED and row is not None and row.state is not UrlState.QUEUED and not is_requisite:
            self._crawl.queue_again(queued_from(link.id, link.host, row), self._now)
            return KnownUrl.QUEUED
        return found


class OutstandingTasks(_StoredPages):
    """While the crawl runs: the outstanding tasks of a dead worker wait for their answers."""

    def find(self, link: Link, *, is_requisite: bool = False) -> KnownUrl:
        return KnownUrl.SETTLED if self.adopt(link) is None else KnownUrl.QUEUED

    def adopt(self, link: Link) -> FetchTask | None:
        return self._crawl.task_for(link)


def archived_names(folder: CrawlFolder) -> set[str]:
    """Return the final names of the archive files in a folder that are not empty."""
    return {final_name(path) for path in folder.archive.glob("*.warc.gz*") if path.stat().st_size}


def foreign_ledger(present: set[str], committed: Mapping[str, int]) -> str:
    """Return why a ledger cannot be that of these archive files; empty if it can."""
    missing = _missing(present, committed)
    if not present or not missing or not present.isdisjoint(committed):
        return ""
    return (
        f"the ledger belongs to another archive: none of the {len(present)} files in archive/ is in it, "
        f"and its own are missing, as {missing[0]}"
    )


def _missing(present: set[str], committed: Mapping[str, int]) -> list[str]:
    return sorted(name for name, end in committed.items() if end and name not in present)
